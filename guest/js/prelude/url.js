// URL: the class, and its parser after the WHATWG URL standard, which reads text and a base into a record of components.
//
// The standard describes one state machine that goes through the text character by character. The first "#" and the
// first "?" before it always end the component before them, whatever the state, so here the text is cut into pieces
// instead, which is shorter, faster, and takes linear time.
//
// Record: {scheme, username, password, host, port, path, query, fragment}; host, port, query and fragment may be null;
// path is an array of segments, or a string if it is opaque ("mailto:someone").
//
// Left out: hosts outside ASCII (punycode is kept as it is), IPv4 addresses in other than four decimal numbers, the
// compression of IPv6 addresses, Windows drive letters.

const { linkedSearchParams, percentDecode, replaceSearchParams } = shared;

const DEFAULT_PORT = { __proto__: null, "http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21, "file": null };

// Runs of the characters to escape: everything outside printable ASCII, and more in each component.
const IN_FRAGMENT = /[^!#-;=?-_a-~]+/g; // space " < > `
const IN_QUERY = /[^!$-;=?-~]+/g; // space " # < >
const IN_PATH = /[^!$-;=@-_a-z|~]+/g; // as in a query and ? ` { }
const IN_USERINFO = /[^!$-.0-9A-Z_a-z~]+/g; // as in a path and / : ; = @ [ \ ] ^ |
const NOT_PRINTABLE = /[^\x20-\x7e]+/g;
const FORBIDDEN_IN_HOST = /[\0\t\n\r #/:<>?@[\\\]^|]/;
const FORBIDDEN_IN_DOMAIN = /[\0-\x20#%/:<>?@[\\\]^|\x7f-\uffff]/;

const toUsv = (value) => `${value}`.toWellFormed();
const escapeIn = (set, text) => text.replace(set, encodeURIComponent);
const isSpecial = (record) => record.scheme in DEFAULT_PORT;
const hasOpaquePath = (record) => typeof record.path === "string";
const hasCredentials = (record) => record.username !== "" || record.password !== "";
const isSlash = (record, character) => character === "/" || (character === "\\" && isSpecial(record));
const beginsWithSlashes = (record, text) => isSlash(record, text[0]) && isSlash(record, text[1]);

// Without trailing spaces and control characters. (A regular expression would take quadratic time.)
function trimEnd(text) {
  let end = text.length;
  while (end > 0 && text.charCodeAt(end - 1) <= 0x20) end--;
  return text.slice(0, end);
}

function escapeQuery(record, text) {
  const escaped = escapeIn(IN_QUERY, text);
  return isSpecial(record) ? escaped.replaceAll("'", "%27") : escaped;
}

// Appends the segments of `text`, which begins after the slash that led to them.
function appendPath(record, text) {
  const { path } = record;
  const segments = escapeIn(IN_PATH, text).split(isSpecial(record) ? /[/\\]/ : "/");
  const last = segments.length - 1;
  for (let index = 0; index <= last; index++) {
    const segment = segments[index];
    const dots = segment.length <= 6 ? segment.replace(/%2e/gi, ".") : segment;
    if (dots === "..") path.pop();
    if (dots !== ".." && dots !== ".") path.push(segment);
    else if (index === last) path.push("");
  }
}

// The path after an authority, or the whole of a path given to a setter.
function parsePathStart(record, text) {
  if (isSpecial(record) || text !== "") appendPath(record, isSlash(record, text[0]) ? text.slice(1) : text);
}

// The host in its final text form, or null if it isn't valid.
function parseHost(record, text) {
  if (text.startsWith("[")) return /^\[[0-9a-f:.]*:[0-9a-f:.]*\]$/i.test(text) ? text.toLowerCase() : null;
  if (!isSpecial(record)) return FORBIDDEN_IN_HOST.test(text) ? null : escapeIn(NOT_PRINTABLE, text);
  const domain = percentDecode(text).toLowerCase();
  if (FORBIDDEN_IN_DOMAIN.test(domain)) return null;
  if (!/(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)\.?$/.test(domain)) return domain;
  const numbers = domain.replace(/\.$/, "").split(".");
  return numbers.length === 4 && numbers.every((number) => /^(?:0|[1-9]\d{0,2})$/.test(number) && number < 256)
    ? numbers.join(".") : null;
}

function parsePort(record, digits) {
  if (digits === "") return true;
  const port = Number(digits);
  if (!/^[0-9]+$/.test(digits) || port > 65535) return false;
  record.port = port === DEFAULT_PORT[record.scheme] ? null : port;
  return true;
}

// Splits "host:port"; the colons of an IPv6 address don't count.
function splitPort(text) {
  const colon = text.indexOf(":", text.startsWith("[") ? text.indexOf("]") : 0);
  return colon < 0 ? [text, "", false] : [text.slice(0, colon), text.slice(colon + 1), true];
}

// Parses host and path; `text` begins after "//". False if it isn't valid.
function parseAuthority(record, text) {
  const slash = text.search(isSpecial(record) ? /[/\\]/ : /\//);
  const end = slash < 0 ? text.length : slash;
  let authority = text.slice(0, end);
  const at = authority.lastIndexOf("@");
  if (at >= 0) {
    const [name, password] = splitPort(authority.slice(0, at));
    authority = authority.slice(at + 1);
    if (authority === "") return false;
    record.username = escapeIn(IN_USERINFO, name);
    record.password = escapeIn(IN_USERINFO, password);
  }
  const [host, port, hasPort] = splitPort(authority);
  if (host === "" && (hasPort || (isSpecial(record) && record.scheme !== "file"))) return false;
  record.host = record.scheme === "file" && host === "localhost" ? "" : parseHost(record, host);
  if (record.host === null || !parsePort(record, port)) return false;
  parsePathStart(record, text.slice(end));
  return true;
}

function parseAfterSlashes(record, text) {
  const skipsSlashes = isSpecial(record) && record.scheme !== "file";
  return parseAuthority(record, skipsSlashes ? text.replace(/^[/\\]+/, "") : text.slice(2));
}

// Parses a reference without a scheme, or with that of its base.
function parseRelative(record, text, base) {
  if (beginsWithSlashes(record, text)) return parseAfterSlashes(record, text);
  const { username, password, host, port } = base;
  Object.assign(record, { username, password, host, port });
  if (isSlash(record, text[0])) {
    appendPath(record, text.slice(1));
    return true;
  }
  record.path = base.path.slice();
  if (text === "") {
    record.query ??= base.query;
    return true;
  }
  record.path.pop();
  appendPath(record, text);
  return true;
}

function parseWithScheme(record, text, base) {
  if (isSpecial(record)) {
    if (base?.scheme === record.scheme) return parseRelative(record, text, base);
    if (record.scheme !== "file" || beginsWithSlashes(record, text)) return parseAfterSlashes(record, text);
    record.host = "";
    parsePathStart(record, text);
    return true;
  }
  if (text.startsWith("//")) return parseAfterSlashes(record, text);
  if (text.startsWith("/")) appendPath(record, text.slice(1));
  else record.path = escapeIn(NOT_PRINTABLE, text);
  return true;
}

// The record for `text`, or null if it isn't a valid URL.
function parseUrl(text, base = null) {
  text = trimEnd(text.replace(/^[\0-\x20]+/, ""));
  if (/[\t\n\r]/.test(text)) text = text.replace(/[\t\n\r]+/g, "");

  const record = {
    scheme: "", username: "", password: "", host: null, port: null, path: [], query: null, fragment: null,
  };
  const hash = text.indexOf("#");
  if (hash >= 0) {
    record.fragment = escapeIn(IN_FRAGMENT, text.slice(hash + 1));
    text = text.slice(0, hash);
  }
  const question = text.indexOf("?");
  let query = null;
  if (question >= 0) {
    query = text.slice(question + 1);
    text = text.slice(0, question);
    record.query = ""; // its escapes depend on the scheme; its presence decides whether the base's is taken
  }
  const scheme = /^[a-zA-Z][a-zA-Z0-9+.-]*(?=:)/.exec(text)?.[0];
  if (scheme !== undefined) {
    record.scheme = scheme.toLowerCase();
    if (!parseWithScheme(record, text.slice(scheme.length + 1), base)) return null;
  } else if (base !== null && hasOpaquePath(base)) {
    if (text !== "" || query !== null || record.fragment === null) return null;
    Object.assign(record, base, { fragment: record.fragment });
  } else {
    if (base === null) return null;
    record.scheme = base.scheme;
    if (!parseRelative(record, text, base)) return null;
  }
  if (query !== null) record.query = escapeQuery(record, query);
  return record;
}

function serializePath(record) {
  if (hasOpaquePath(record)) return record.path;
  return record.path.length === 0 ? "" : "/" + record.path.join("/");
}

function serializeHost(record) {
  if (record.host === null) return "";
  return record.port === null ? record.host : record.host + ":" + record.port;
}

function serializeUrl(record) {
  let text = record.scheme + ":";
  if (record.host !== null) {
    text += "//" + record.username;
    if (record.password !== "") text += ":" + record.password;
    if (hasCredentials(record)) text += "@";
    text += serializeHost(record);
  } else if (!hasOpaquePath(record) && record.path.length > 1 && record.path[0] === "") {
    text += "/."; // or the path would be read as a host
  }
  text += serializePath(record);
  if (record.query !== null) text += "?" + record.query;
  if (record.fragment !== null) text += "#" + record.fragment;
  return text;
}

// ---- the class

const read = {
  href: serializeUrl,
  origin(record) {
    return isSpecial(record) && record.scheme !== "file" ? record.scheme + "://" + serializeHost(record) : "null";
  },
  protocol: (record) => record.scheme + ":",
  username: (record) => record.username,
  password: (record) => record.password,
  host: serializeHost,
  hostname: (record) => record.host ?? "",
  port: (record) => (record.port === null ? "" : `${record.port}`),
  pathname: serializePath,
  search: (record) => (record.query ? "?" + record.query : ""),
  hash: (record) => (record.fragment ? "#" + record.fragment : ""),
};

function writeHost(record, text, withPort) {
  if (hasOpaquePath(record)) return;
  const [host, port] = splitPort(text.slice(0, text.search(isSpecial(record) ? /[/\\?#]|$/ : /[/?#]|$/)));
  const parsed = host === "" ? null : parseHost(record, host);
  if (parsed === null) return;
  record.host = parsed;
  if (withPort) parsePort(record, /^[0-9]*/.exec(port)[0]);
}

// By component; except for href, an invalid value changes nothing.
const write = {
  __proto__: null,
  href(record, text) {
    const parsed = parseUrl(text);
    if (parsed === null) throw invalidUrl(text);
    Object.assign(record, parsed);
  },
  protocol(record, text) {
    const scheme = /^[a-zA-Z][a-zA-Z0-9+.-]*(?=:|$)/.exec(text)?.[0].toLowerCase();
    if (scheme === undefined || scheme in DEFAULT_PORT !== isSpecial(record)) return;
    if (scheme === "file" || record.scheme === "file") return;
    record.scheme = scheme;
    if (record.port === DEFAULT_PORT[scheme]) record.port = null;
  },
  username(record, text) {
    if (record.host) record.username = escapeIn(IN_USERINFO, text);
  },
  password(record, text) {
    if (record.host) record.password = escapeIn(IN_USERINFO, text);
  },
  host: (record, text) => writeHost(record, text, true),
  hostname: (record, text) => writeHost(record, text, false),
  port(record, text) {
    if (!record.host || record.scheme === "file") return;
    if (text === "") record.port = null;
    else parsePort(record, /^[0-9]*/.exec(text)[0]);
  },
  pathname(record, text) {
    if (hasOpaquePath(record)) return;
    record.path = [];
    parsePathStart(record, text);
  },
  search(record, text) {
    record.query = text === "" ? null : escapeQuery(record, text.replace(/^\?/, ""));
  },
  hash(record, text) {
    record.fragment = text === "" ? null : escapeIn(IN_FRAGMENT, text.replace(/^#/, ""));
  },
};

// The record of `input` read against `base`, or null if either isn't valid.
function resolve(input, base) {
  input = toUsv(input);
  if (base === undefined) return parseUrl(input);
  const baseRecord = parseUrl(toUsv(base));
  return baseRecord === null ? null : parseUrl(input, baseRecord);
}

function invalidUrl(input) {
  input = toUsv(input);
  const advice = /\/\/[^/]*[^\0-\x7f]/.test(input) ? " (a host outside ASCII must be written in punycode here)" : "";
  return Object.assign(new TypeError("Invalid URL" + advice), { code: "ERR_INVALID_URL", input });
}

class URL {
  #record;
  #searchParams = null; // made when first asked for

  constructor(input, base = undefined) {
    this.#record = resolve(input, base);
    if (this.#record === null) throw invalidUrl(input);
  }

  static canParse(input, base = undefined) {
    return resolve(input, base) !== null;
  }

  static parse(input, base = undefined) {
    return URL.canParse(input, base) ? new URL(input, base) : null;
  }

  static {
    for (const name in read) {
      const get = function () {
        return read[name](this.#record);
      };
      const set = function (value) {
        write[name](this.#record, toUsv(value));
        if (this.#searchParams !== null) replaceSearchParams(this.#searchParams, this.#record.query ?? "");
      };
      const accessor = { get, set: name in write ? set : undefined, enumerable: true, configurable: true };
      Object.defineProperty(this.prototype, name, accessor);
    }
  }

  get searchParams() {
    this.#searchParams ??= linkedSearchParams(this.#record.query ?? "", (query) => {
      this.#record.query = query === "" ? null : query;
    });
    return this.#searchParams;
  }

  toString() {
    return this.href;
  }

  toJSON() {
    return this.href;
  }

  [Symbol.for("nodejs.util.inspect.custom")](depth, options, inspect) {
    return `URL { href: ${inspect(this.href)} }`;
  }
}

Object.defineProperty(URL.prototype, Symbol.toStringTag, { value: "URL", configurable: true });
Object.defineProperty(globalThis, "URL", { value: URL, writable: true, configurable: true, enumerable: false });
