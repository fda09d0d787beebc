// What assigning to a component of a URL does: every setter of the WHATWG URL standard, on the parser's record.

const { parseHost } = shared;
const {
  DEFAULT_PORT, IN_FRAGMENT, IN_USERINFO, escapeIn, escapeQuery, isSpecial, hasOpaquePath, hasCredentials,
  removeTabsAndNewlines, trimEnd, parsePathStart, parsePort, parseFileHost, splitPort,
} = shared.urlParts;

const cannotHaveCredentials = (record) => record.host === null || record.host === "" || record.scheme === "file";

function stripTrailingSpaces(record) {
  if (hasOpaquePath(record) && record.query === null && record.fragment === null) {
    record.path = trimEnd(record.path); // in an opaque path only spaces are left of those
  }
}

const TAKES_TABS = ["username", "password", "search", "hash"]; // escaped in the first two, removed later in the others

// By component; an invalid value changes nothing.
const setComponent = {
  __proto__: null,

  protocol(record, text) {
    const scheme = /^[a-zA-Z][a-zA-Z0-9+.-]*(?=:|$)/.exec(text)?.[0].toLowerCase();
    if (scheme === undefined || scheme in DEFAULT_PORT !== isSpecial(record)) return;
    if (scheme === "file" && (hasCredentials(record) || record.port !== null)) return;
    if (record.scheme === "file" && record.host === "") return;
    record.scheme = scheme;
    if (record.port === DEFAULT_PORT[scheme]) record.port = null;
  },

  username(record, text) {
    if (!cannotHaveCredentials(record)) record.username = escapeIn(IN_USERINFO, text);
  },

  password(record, text) {
    if (!cannotHaveCredentials(record)) record.password = escapeIn(IN_USERINFO, text);
  },

  host(record, text, withPort = true) {
    if (hasOpaquePath(record)) return;
    text = text.slice(0, text.search(isSpecial(record) ? /[/\\?#]|$/ : /[/?#]|$/));
    if (record.scheme === "file") {
      if (text === "") record.host = "";
      else parseFileHost(record, text);
      return;
    }
    const [host, port, hasPort] = splitPort(text);
    if (hasPort && !withPort) return;
    if (host === "" && (isSpecial(record) || hasPort || hasCredentials(record) || record.port !== null)) return;
    const parsed = parseHost(host, !isSpecial(record));
    if (parsed === null) return;
    record.host = parsed;
    parsePort(record, /^[0-9]*/.exec(port)[0]);
  },

  hostname(record, text) {
    setComponent.host(record, text, false);
  },

  port(record, text) {
    if (cannotHaveCredentials(record)) return;
    if (text === "") record.port = null;
    else parsePort(record, /^[0-9]*/.exec(text)[0]);
  },

  pathname(record, text) {
    if (hasOpaquePath(record)) return;
    record.path = [];
    parsePathStart(record, text);
    if (text === "" && record.host === null) record.path.push("");
  },

  search(record, text) {
    record.query = text === "" ? null : escapeQuery(record, removeTabsAndNewlines(text.replace(/^\?/, "")));
    stripTrailingSpaces(record);
  },

  hash(record, text) {
    record.fragment = text === "" ? null : escapeIn(IN_FRAGMENT, removeTabsAndNewlines(text.replace(/^#/, "")));
    stripTrailingSpaces(record);
  },
};

shared.setUrlComponent = (record, component, text) => {
  const verbatim = TAKES_TABS.includes(component);
  setComponent[component](record, verbatim ? text : removeTabsAndNewlines(text));
};
