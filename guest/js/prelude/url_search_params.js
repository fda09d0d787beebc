// URLSearchParams: the list of name-value pairs of a query, alone or linked to the URL it belongs to.

const { decodeUtf8 } = shared;
const toUsv = (value) => `${value}`.toWellFormed();
const INSPECT = Symbol.for("nodejs.util.inspect.custom");

// Replaces %XX sequences by the text their bytes spell in UTF-8; anything else stays as it is.
function percentDecode(text) {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    const decodeRun = (run) => decodeUtf8(Uint8Array.fromHex(run.replaceAll("%", "")));
    return text.replace(/(?:%[0-9a-fA-F]{2})+/g, decodeRun);
  }
}

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
  const pairs = typeof init[Symbol.iterator] === "function" ? init : Object.entries(init);
  return Array.from(pairs, (pair) => {
    const items = typeof pair === "object" && pair !== null ? [...pair] : [];
    if (items.length !== 2) throw new TypeError("Each query pair must be an iterable [name, value] tuple");
    return [toUsv(items[0]), toUsv(items[1])];
  });
}

class URLSearchParams {
  #pairs = [];
  #changed = null; // notifies the linked URL of a change

  constructor(init = undefined) {
    if (init === undefined || init === null) return;
    if (typeof init === "object" || typeof init === "function") {
      this.#pairs = pairsOfObject(init);
    } else {
      const text = toUsv(init);
      this.#pairs = parsePairs(text.startsWith("?") ? text.slice(1) : text);
    }
  }

  static {
    // The params of a URL: `changed` gets the new query whenever a program changes them.
    shared.linkedSearchParams = (query, changed) => {
      const params = new URLSearchParams();
      params.#pairs = parsePairs(query);
      params.#changed = changed;
      return params;
    };
    shared.replaceSearchParams = (params, query) => {
      params.#pairs = parsePairs(query);
    };
  }

  #update() {
    this.#changed?.(serializePairs(this.#pairs));
  }

  get size() {
    return this.#pairs.length;
  }

  append(name, value) {
    this.#pairs.push([toUsv(name), toUsv(value)]);
    this.#update();
  }

  delete(name, value = undefined) {
    name = toUsv(name);
    if (value !== undefined) value = toUsv(value);
    this.#pairs = this.#pairs.filter((pair) => pair[0] !== name || (value !== undefined && pair[1] !== value));
    this.#update();
  }

  get(name) {
    name = toUsv(name);
    return this.#pairs.find((pair) => pair[0] === name)?.[1] ?? null;
  }

  getAll(name) {
    name = toUsv(name);
    return this.#pairs.filter((pair) => pair[0] === name).map((pair) => pair[1]);
  }

  has(name, value = undefined) {
    name = toUsv(name);
    if (value !== undefined) value = toUsv(value);
    return this.#pairs.some((pair) => pair[0] === name && (value === undefined || pair[1] === value));
  }

  set(name, value) {
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
    return this.#pairs.map((pair) => [...pair]).values();
  }

  keys() {
    return this.#pairs.map(([name]) => name).values();
  }

  values() {
    return this.#pairs.map(([, value]) => value).values();
  }

  toString() {
    return serializePairs(this.#pairs);
  }

  [INSPECT](depth, options, inspect) {
    const items = this.#pairs.map(([name, value]) => `${inspect(name)} => ${inspect(value)}`);
    return items.length === 0 ? "URLSearchParams {}" : `URLSearchParams { ${items.join(", ")} }`;
  }
}

const { prototype } = URLSearchParams;
const hidden = { writable: true, configurable: true, enumerable: false };
Object.defineProperty(prototype, Symbol.iterator, { value: prototype.entries, ...hidden });
Object.defineProperty(prototype, Symbol.toStringTag, { value: "URLSearchParams", configurable: true });
Object.defineProperty(globalThis, "URLSearchParams", { value: URLSearchParams, ...hidden });
shared.percentDecode = percentDecode;
