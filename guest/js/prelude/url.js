// URL: the class that programs see, over the parser's record and the linked URLSearchParams.

const { parseUrl, serializeUrl, serializeOrigin, serializeHost, serializePath, setUrlComponent } = shared;
const { linkedSearchParams, replaceSearchParams } = shared;
const toUsv = (value) => `${value}`.toWellFormed();

// The record of `input` read against `base`, or null if either isn't valid.
function resolve(input, base) {
  input = toUsv(input);
  if (base === undefined) return parseUrl(input);
  const baseRecord = parseUrl(toUsv(base));
  return baseRecord === null ? null : parseUrl(input, baseRecord);
}

function invalidUrl(input) {
  return Object.assign(new TypeError("Invalid URL"), { code: "ERR_INVALID_URL", input: toUsv(input) });
}

class URL {
  #record;
  #searchParams = null; // made when first asked for

  constructor(input, base = undefined) {
    if (arguments.length === 0) throw new TypeError("The \"url\" argument must be specified");
    this.#record = resolve(input, base);
    if (this.#record === null) throw invalidUrl(input);
  }

  static canParse(input, base = undefined) {
    if (arguments.length === 0) throw new TypeError("The \"url\" argument must be specified");
    return resolve(input, base) !== null;
  }

  static parse(input, base = undefined) {
    return URL.canParse(input, base) ? new URL(input, base) : null;
  }

  #set(component, value) {
    setUrlComponent(this.#record, component, toUsv(value));
  }

  #refreshSearchParams() {
    if (this.#searchParams !== null) replaceSearchParams(this.#searchParams, this.#record.query ?? "");
  }

  get href() {
    return serializeUrl(this.#record);
  }

  set href(value) {
    const record = parseUrl(toUsv(value));
    if (record === null) throw invalidUrl(value);
    this.#record = record;
    this.#refreshSearchParams();
  }

  get origin() {
    return serializeOrigin(this.#record);
  }

  get protocol() {
    return this.#record.scheme + ":";
  }

  set protocol(value) {
    this.#set("protocol", value);
  }

  get username() {
    return this.#record.username;
  }

  set username(value) {
    this.#set("username", value);
  }

  get password() {
    return this.#record.password;
  }

  set password(value) {
    this.#set("password", value);
  }

  get host() {
    return serializeHost(this.#record);
  }

  set host(value) {
    this.#set("host", value);
  }

  get hostname() {
    return this.#record.host ?? "";
  }

  set hostname(value) {
    this.#set("hostname", value);
  }

  get port() {
    return this.#record.port === null ? "" : `${this.#record.port}`;
  }

  set port(value) {
    this.#set("port", value);
  }

  get pathname() {
    return serializePath(this.#record);
  }

  set pathname(value) {
    this.#set("pathname", value);
  }

  get search() {
    return this.#record.query ? "?" + this.#record.query : "";
  }

  set search(value) {
    this.#set("search", value);
    this.#refreshSearchParams();
  }

  get searchParams() {
    this.#searchParams ??= linkedSearchParams(this.#record.query ?? "", (query) => {
      this.#record.query = query === "" ? null : query;
    });
    return this.#searchParams;
  }

  get hash() {
    return this.#record.fragment ? "#" + this.#record.fragment : "";
  }

  set hash(value) {
    this.#set("hash", value);
  }

  toString() {
    return this.href;
  }

  toJSON() {
    return this.href;
  }

  // What console.log shows: the components, as if they were properties.
  [Symbol.for("nodejs.util.inspect.custom")](depth, options, inspect) {
    const shown = {};
    for (const name of COMPONENTS) shown[name] = this[name];
    return `URL ${inspect(shown, options)}`;
  }
}

const COMPONENTS = [
  "href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search",
  "searchParams", "hash",
];
for (const name of [...COMPONENTS, "toString", "toJSON"]) {
  Object.defineProperty(URL.prototype, name, { enumerable: true });
}
Object.defineProperty(URL.prototype, Symbol.toStringTag, { value: "URL", configurable: true });
Object.defineProperty(globalThis, "URL", { value: URL, writable: true, configurable: true, enumerable: false });
