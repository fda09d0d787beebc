// The WHATWG URL parser: text (and a base) to a record of components, and such a record back to text.
//
// The standard describes one state machine that goes through the text character by character. The first "#" and the
// first "?" before it always end what comes before them, whatever the state, so here the text is cut into pieces
// instead, which is shorter, faster, and takes linear time.
//
// Record: {scheme, username, password, host, port, path, query, fragment}; host, port, query and fragment may be null;
// path is an array of segments, or a string if it is opaque ("mailto:someone").

const { parseHost } = shared;

const DEFAULT_PORT = { __proto__: null, "http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21, "file": null };

// Runs of the characters to escape: everything outside printable ASCII, and what each component adds to that.
const IN_FRAGMENT = /[^!#-;=?-_a-~]+/g; // space " < > `
const IN_QUERY = /[^!$-;=?-~]+/g; // space " # < >
const IN_PATH = /[^!$-;=@-_a-z|~]+/g; // as in a query and ? ` { }
const IN_USERINFO = /[^!$-.0-9A-Z_a-z~]+/g; // as in a path and / : ; = @ [ \ ] ^ |
const IN_OPAQUE_PATH = /[^\x20-\x7e]+/g;

const escapeIn = (set, text) => text.replace(set, encodeURIComponent);
const isSpecial = (record) => record.scheme in DEFAULT_PORT;
const hasOpaquePath = (record) => typeof record.path === "string";
const hasCredentials = (record) => record.username !== "" || record.password !== "";
const removeTabsAndNewlines = (text) => (/[\t\n\r]/.test(text) ? text.replace(/[\t\n\r]+/g, "") : text);
const isSlash = (record, character) => character === "/" || (character === "\\" && isSpecial(record));

// Without trailing spaces and control characters. (A regular expression would take quadratic time.)
function trimEnd(text) {
  let end = text.length;
  while (end > 0 && text.charCodeAt(end - 1) <= 0x20) end--;
  return text.slice(0, end);
}

const startsWithDrive = (text) => /^[a-zA-Z][:|](?:$|[/\\])/.test(text);

function escapeQuery(record, text) {
  const escaped = escapeIn(IN_QUERY, text);
  return isSpecial(record) ? escaped.replaceAll("'", "%27") : escaped;
}

function shortenPath(record) {
  const { path } = record;
  if (record.scheme === "file" && path.length === 1 && /^[a-zA-Z]:$/.test(path[0])) return;
  path.pop();
}

// Appends the segments of `text`, which begins after the slash that led to them.
function appendPath(record, text) {
  const { path } = record;
  const segments = escapeIn(IN_PATH, text).split(isSpecial(record) ? /[/\\]/ : "/");
  const last = segments.length - 1;
  for (let index = 0; index <= last; index++) {
    const segment = segments[index];
    const maybeDots = segment.length <= 6 && (segment[0] === "." || segment[0] === "%");
    const dots = maybeDots ? segment.replace(/%2e/gi, ".") : segment;
    if (dots === "..") {
      shortenPath(record);
      if (index === last) path.push("");
    } else if (dots === ".") {
      if (index === last) path.push("");
    } else if (record.scheme === "file" && path.length === 0 && /^[a-zA-Z][:|]$/.test(segment)) {
      path.push(segment[0] + ":");
    } else {
      path.push(segment);
    }
  }
}

// The path after an authority, or the whole of a path given to a setter.
function parsePathStart(record, text) {
  if (isSpecial(record) || text !== "") appendPath(record, isSlash(record, text[0]) ? text.slice(1) : text);
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
  const from = text.startsWith("[") ? text.indexOf("]") : 0;
  const colon = from < 0 ? -1 : text.indexOf(":", from);
  return colon < 0 ? [text, ""] : [text.slice(0, colon), text.slice(colon + 1), true];
}

function endOfAuthority(record, text) {
  const end = text.search(isSpecial(record) ? /[/\\]/ : /\//);
  return end < 0 ? text.length : end;
}

// `text` begins after "//". False if it isn't valid.
function parseAuthority(record, text) {
  const end = endOfAuthority(record, text);
  let authority = text.slice(0, end);
  const at = authority.lastIndexOf("@");
  if (at >= 0) {
    const credentials = authority.slice(0, at);
    authority = authority.slice(at + 1);
    if (authority === "") return false;
    const colon = credentials.indexOf(":");
    record.username = escapeIn(IN_USERINFO, colon < 0 ? credentials : credentials.slice(0, colon));
    record.password = colon < 0 ? "" : escapeIn(IN_USERINFO, credentials.slice(colon + 1));
  }
  const [host, port, hasPort] = splitPort(authority);
  if (host === "" && (isSpecial(record) || hasPort)) return false;
  record.host = parseHost(host, !isSpecial(record));
  if (record.host === null || !parsePort(record, port)) return false;
  parsePathStart(record, text.slice(end));
  return true;
}

function parseFileHost(record, text) {
  const host = parseHost(text, false);
  if (host === null) return false;
  record.host = host === "localhost" ? "" : host;
  return true;
}

function parseFile(record, text, base) {
  record.host = "";
  if (base !== null && base.scheme !== "file") base = null;
  if (!isSlash(record, text[0])) {
    if (base === null) {
      appendPath(record, text);
      return true;
    }
    record.host = base.host;
    record.path = base.path.slice();
    if (text === "") {
      record.query ??= base.query;
      return true;
    }
    if (startsWithDrive(text)) record.path = [];
    else shortenPath(record);
    appendPath(record, text);
    return true;
  }
  if (!isSlash(record, text[1])) {
    if (base !== null) {
      record.host = base.host;
      if (!startsWithDrive(text.slice(1)) && /^[a-zA-Z]:$/.test(base.path[0])) record.path.push(base.path[0]);
    }
    appendPath(record, text.slice(1));
    return true;
  }
  const rest = text.slice(2);
  const end = endOfAuthority(record, rest);
  if (/^[a-zA-Z][:|]$/.test(rest.slice(0, end))) {
    appendPath(record, rest);
    return true;
  }
  if (end > 0 && !parseFileHost(record, rest.slice(0, end))) return false;
  parsePathStart(record, rest.slice(end));
  return true;
}

function parseRelative(record, text, base, hasFragmentOnly) {
  record.scheme = base.scheme;
  if (hasOpaquePath(base)) {
    if (!hasFragmentOnly) return false;
    Object.assign(record, base, { fragment: record.fragment });
    return true;
  }
  if (base.scheme === "file") return parseFile(record, text, base);
  if (isSlash(record, text[0]) && isSlash(record, text[1])) return parseAfterSlashes(record, text);
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
  shortenPath(record);
  appendPath(record, text);
  return true;
}

const parseAfterSlashes = (record, text) =>
  parseAuthority(record, isSpecial(record) ? text.replace(/^[/\\]+/, "") : text.slice(2));

function parseRest(record, text, base) {
  if (record.scheme === "file") return parseFile(record, text, base);
  if (isSpecial(record)) {
    if (base !== null && base.scheme === record.scheme && !text.startsWith("//")) {
      return parseRelative(record, text, base, false);
    }
    return parseAfterSlashes(record, text);
  }
  if (text.startsWith("//")) return parseAfterSlashes(record, text);
  if (text.startsWith("/")) appendPath(record, text.slice(1));
  else record.path = escapeIn(IN_OPAQUE_PATH, text);
  return true;
}

// The record for `text`, or null if it isn't a valid URL.
function parseUrl(text, base = null) {
  text = removeTabsAndNewlines(trimEnd(text.replace(/^[\0-\x20]+/, "")));

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
    record.query = ""; // what it holds depends on the scheme; that it is there decides whether the base's is taken
  }
  const scheme = /^[a-zA-Z][a-zA-Z0-9+.-]*(?=:)/.exec(text)?.[0];
  if (scheme !== undefined) {
    record.scheme = scheme.toLowerCase();
    if (!parseRest(record, text.slice(scheme.length + 1), base)) return null;
  } else {
    const fragmentOnly = text === "" && query === null && record.fragment !== null;
    if (base === null || !parseRelative(record, text, base, fragmentOnly)) return null;
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

function serializeOrigin(record) {
  if (record.scheme === "blob") {
    const inner = parseUrl(serializePath(record));
    return inner !== null && /^https?$/.test(inner.scheme) ? serializeOrigin(inner) : "null";
  }
  return isSpecial(record) && record.scheme !== "file" ? record.scheme + "://" + serializeHost(record) : "null";
}

shared.parseUrl = parseUrl;
shared.serializeUrl = serializeUrl;
shared.serializeOrigin = serializeOrigin;
shared.serializeHost = serializeHost;
shared.serializePath = serializePath;
shared.urlParts = {
  DEFAULT_PORT, IN_FRAGMENT, IN_USERINFO, escapeIn, escapeQuery, isSpecial, hasOpaquePath, hasCredentials,
  removeTabsAndNewlines, trimEnd, parsePathStart, parsePort, parseFileHost, splitPort,
};
