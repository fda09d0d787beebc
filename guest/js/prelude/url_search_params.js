// URLSearchParams: the list of name-value pairs of a query, alone or linked to the URL it belongs to.

const { percentDecode } = shared;
const toUsv = (value) => `${value}`.toWellFormed();
const INSPECT = Symbol.for("nodejs.util.inspect.custom");

const decodePart = (text) => percentDecode(text.includes("+") ? text.replaceAll("+", " ") : text);

function parsePairs(query) {
  const pairs = [];
  for (const part of query.split("&")) {
    if (part === "") continue;
    const equals = part.indexOf("=");
    if (equals < 0) pairs.push([decodePart(part), ""]);
    else pairs.push([decodePart(part.slice(0, equals)), decodePart(part.slice(equals + 1))]);
  }
  return pairs;
}

const FORM_ESCAPES = { "%20": "+", "!": "%21", "'": "%27", "(": "%28", ")": "%29", "~": "%7E" };
const encodePart = (text) => encodeURIComponent(text).replace(/%20|[!'()~]/g, (found) => FORM_ESCAPES[found]);
const serializePairs = (pairs) => pairs.map(([name, value]) => encodePart(name) + "=" + encodePart(value)).join("&");

function pairsOfObject(init) {
  const iterator = init[Symbol.iterator];
  if (iterator === undefined || iterator === null) {
    const record = new Map();
    for (const key of Reflect.ownKeys(init)) {
      if (Object.getOwnPropertyDescriptor(init, key)?.enumerable) record.set(toUsv(key), toUsv(init[key]));
    }
    return [...record];
  }
  if (typeof iterator !== "function") throw new TypeError("Query pairs must be iterable");
  const pairs = [];
  for (const pair of init) {
    if (pair === null || typeof pair !== "object" || typeof pair[Symbol.iterator] !== "function") {
      throw new TypeError("Each query pair must be an iterable [name, value] tuple");
    }
    const items = [...pair];
    if (items.length !== 2) throw new TypeError("Each query pair must be an iterable [name, value] tuple");
    pairs.push([toUsv(items[0]), toUsv(items[1])]);
  }
  return pairs;
}

function requireArguments(given, needed) {
  if (given >= needed) return;
  const names = ["\"name\"", "\"value\""].slice(0, needed);
  throw new TypeError(`The ${names.join(" and ")} argument${needed > 1 ? "s" : ""} must be specified`);
}

class PairIterator {
  #pairs; // a function: the list may be replaced while it is iterated
  #pick;
  #index = 0;

  constructor(pairs, pick) {
    this.#pairs = pairs;
    this.#pick = pick;
  }

  next() {
    const pairs = this.#pairs();
    if (this.#index >= pairs.length) return { value: undefined, done: true };
    return { value: this.#pick(pairs[this.#index++]), done: false };
  }
}
Object.setPrototypeOf(PairIterator.prototype, Iterator.prototype);
Object.defineProperty(PairIterator.prototype, Symbol.toStringTag, {
  value: "URLSearchParams Iterator", configurable: true,
});
delete PairIterator.prototype.constructor;

class URLSearchParams {
  #pairs = [];
  #changed = null; // what tells the linked URL about a change

  constructor(init = undefined) {
    if (init === undefined || init === null) return;
    if (typeof init === "object" || typeof init === "function") {
      this.#pairs = #pairs in init && init[Symbol.iterator] === URLSearchParams.prototype.entries
        ? init.#pairs.map((pair) => [...pair])
        : pairsOfObject(init);
    } else {
      const text = toUsv(init);
      this.#pairs = parsePairs(text.startsWith("?") ? text.slice(1) : text);
    }
  }

  // The params of a URL: `changed` gets the new query whenever a program changes them.
  static #linked(query, changed) {
    const params = new URLSearchParams();
    params.#pairs = parsePairs(query);
    params.#changed = changed;
    return params;
  }

  static #replace(params, query) {
    params.#pairs = parsePairs(query);
  }

  static {
    shared.linkedSearchParams = URLSearchParams.#linked;
    shared.replaceSearchParams = URLSearchParams.#replace;
  }

  #update() {
    this.#changed?.(serializePairs(this.#pairs));
  }

  get size() {
    return this.#pairs.length;
  }

  append(name, value) {
    requireArguments(arguments.length, 2);
    this.#pairs.push([toUsv(name), toUsv(value)]);
    this.#update();
  }

  delete(name, value = undefined) {
    requireArguments(arguments.length, 1);
    name = toUsv(name);
    if (value !== undefined) value = toUsv(value);
    this.#pairs = this.#pairs.filter((pair) => pair[0] !== name || (value !== undefined && pair[1] !== value));
    this.#update();
  }

  get(name) {
    requireArguments(arguments.length, 1);
    name = toUsv(name);
    return this.#pairs.find((pair) => pair[0] === name)?.[1] ?? null;
  }

  getAll(name) {
    requireArguments(arguments.length, 1);
    name = toUsv(name);
    return this.#pairs.filter((pair) => pair[0] === name).map((pair) => pair[1]);
  }

  has(name, value = undefined) {
    requireArguments(arguments.length, 1);
    name = toUsv(name);
    if (value !== undefined) value = toUsv(value);
    return this.#pairs.some((pair) => pair[0] === name && (value === undefined || pair[1] === value));
  }

  set(name, value) {
    requireArguments(arguments.length, 2);
    name = toUsv(name);
    value = toUsv(value);
    const first = this.#pairs.find((pair) => pair[0] === name);
    if (first === undefined) {
      this.#pairs.push([name, value]);
    } else {
      first[1] = value;
      this.#pairs = this.#pairs.filter((pair) => pair === first || pair[0] !== name);
    }
    this.#update();
  }

  sort() {
    this.#pairs.sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0));
    this.#update();
  }

  forEach(callback, thisArgument = undefined) {
    if (typeof callback !== "function") throw new TypeError("The \"callback\" argument must be of type function");
    for (let index = 0; index < this.#pairs.length; index++) {
      const [name, value] = this.#pairs[index];
      Reflect.apply(callback, thisArgument, [value, name, this]);
    }
  }

  entries() {
    this.#pairs; // a foreign `this` must fail here, not at the first next()
    return new PairIterator(() => this.#pairs, ([name, value]) => [name, value]);
  }

  keys() {
    this.#pairs;
    return new PairIterator(() => this.#pairs, ([name]) => name);
  }

  values() {
    this.#pairs;
    return new PairIterator(() => this.#pairs, ([, value]) => value);
  }

  toString() {
    return serializePairs(this.#pairs);
  }

  [INSPECT](depth, options, inspect) {
    const items = this.#pairs.map(([name, value]) => `${inspect(name)} => ${inspect(value)}`);
    if (items.length === 0) return "URLSearchParams {}";
    const line = `URLSearchParams { ${items.join(", ")} }`;
    return line.length <= 76 ? line : `URLSearchParams {\n  ${items.join(",\n  ")} }`;
  }
}

const { prototype } = URLSearchParams;
const hidden = { writable: true, configurable: true, enumerable: false };
Object.defineProperty(prototype, Symbol.iterator, { value: prototype.entries, ...hidden });
Object.defineProperty(prototype, Symbol.toStringTag, { value: "URLSearchParams", configurable: true });
Object.defineProperty(globalThis, "URLSearchParams", { value: URLSearchParams, ...hidden });
