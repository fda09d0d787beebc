// console: what programs print. log, info, debug, dir, table, group and count go to stdout, warnings and errors to
// stderr; one call prints at most 65,536 characters.

const { inspect, formatTable } = shared;
const { formatNumber, dataProperty, ownProperty } = shared.titles;
const { String, Number, Map, parseInt, parseFloat } = globalThis;
const { captureStackTrace } = Error;
const { stringify } = JSON;
const { floor } = Math;
const uncurry = (method) => Function.prototype.call.bind(method);
const slice = uncurry(String.prototype.slice);
const indexOf = uncurry(String.prototype.indexOf);
const padStart = uncurry(String.prototype.padStart);
const repeat = uncurry(String.prototype.repeat);
const charCodeAt = uncurry(String.prototype.charCodeAt);
const toWellFormed = uncurry(String.prototype.toWellFormed);
const toFixed = uncurry(Number.prototype.toFixed);
const getMap = uncurry(Map.prototype.get);
const setMap = uncurry(Map.prototype.set);
const deleteMap = uncurry(Map.prototype.delete);
const builtinToStrings = [
  Object.prototype.toString, Error.prototype.toString, Array.prototype.toString, Date.prototype.toString,
  RegExp.prototype.toString,
];

const STDOUT = 1;
const STDERR = 2;
const LONGEST = 65536;
const CUT = "\n... [cut: one console call prints at most 65536 characters]";
const DEEPEST_INDENTATION = 40;

let groups = 0;
const counts = new Map();
const timers = new Map();

// Every line of the text after the group's indentation; stops once it is too long anyway.
function indent(text) {
  if (groups === 0) return text;
  const spaces = repeat("  ", groups < DEEPEST_INDENTATION ? groups : DEEPEST_INDENTATION);
  let indented = spaces;
  for (let start = 0; indented.length <= LONGEST; ) {
    const newline = indexOf(text, "\n", start);
    if (newline < 0) return indented + slice(text, start);
    indented += slice(text, start, newline + 1) + spaces;
    start = newline + 1;
  }
  return indented;
}

function print(stream, text) {
  text = indent(text);
  if (text.length > LONGEST) {
    let end = LONGEST - CUT.length;
    if ((charCodeAt(text, end - 1) & 0xfc00) === 0xd800) end--;
    text = slice(text, 0, end) + CUT;
  }
  native.log(stream, toWellFormed(text) + "\n");
}

// Runs a conversion that may call the program's code (toString, toJSON, valueOf), which may throw.
function guarded(convert) {
  try {
    return convert();
  } catch {
    return "[a value that cannot be converted]";
  }
}

// Whether the program has said how the object is to be written.
function hasItsOwnToString(value) {
  const method = dataProperty(value, "toString");
  if (typeof method !== "function") return false;
  for (let index = 0; index < builtinToStrings.length; index++) if (method === builtinToStrings[index]) return false;
  return true;
}

// One %-specifier; undefined if there is no such one.
function substitute(specifier, value) {
  const isObject = typeof value === "object" && value !== null;
  switch (specifier) {
    case "s":
      if (typeof value === "number") return formatNumber(value);
      if (typeof value === "bigint") return String(value) + "n";
      if (isObject && !hasItsOwnToString(value)) return inspect(value, { __proto__: null, depth: 0 });
      return String(value);
    case "d":
      if (typeof value === "bigint") return String(value) + "n";
      return typeof value === "symbol" ? "NaN" : formatNumber(Number(value));
    case "i":
      if (typeof value === "bigint") return String(value) + "n";
      return typeof value === "symbol" ? "NaN" : formatNumber(parseInt(value));
    case "f":
      return typeof value === "symbol" ? "NaN" : formatNumber(parseFloat(value));
    case "j":
      return formatJson(value);
    case "o":
      return inspect(value, { __proto__: null, depth: 4 });
    case "O":
      return inspect(value);
    case "c":
      return "";
    default:
      return undefined;
  }
}

function formatJson(value) {
  try {
    return String(stringify(value));
  } catch (error) {
    const message = typeof error === "object" && error !== null ? dataProperty(error, "message") : "";
    if (typeof message === "string" && indexOf(message, "circular") >= 0) return "[Circular]";
    throw error;
  }
}

// Replaces the specifiers of the first argument; {text, used}: how many arguments that took.
function fillIn(pattern, values) {
  let text = "";
  let used = 1;
  let from = 0;
  for (let at = indexOf(pattern, "%"); at >= 0 && at + 1 < pattern.length; at = indexOf(pattern, "%", at)) {
    const specifier = pattern[at + 1];
    let replacement;
    if (specifier === "%") replacement = "%";
    else if (specifier !== undefined && used < values.length) {
      const value = values[used];
      replacement = guarded(() => substitute(specifier, value));
      if (replacement !== undefined) used++;
    }
    if (replacement !== undefined) {
      text += slice(pattern, from, at) + replacement;
      from = at + 2;
      if (text.length > LONGEST) break;
    }
    at += 2;
  }
  return { text: text + slice(pattern, from), used };
}

function format(values) {
  let text = "";
  let index = 0;
  if (values.length > 1 && typeof values[0] === "string") {
    const filled = fillIn(values[0], values);
    text = filled.text;
    index = filled.used;
  }
  for (; index < values.length && text.length <= LONGEST; index++) {
    if (index > 0) text += " ";
    const value = values[index];
    text += typeof value === "string" ? slice(value, 0, LONGEST + 1) : inspect(value);
  }
  return text;
}

const labelOf = (label) => (label === undefined ? "default" : guarded(() => String(label)));
const twoDigits = (number) => padStart(String(number), 2, "0");

function formatDuration(milliseconds) {
  if (milliseconds < 1000) return String(Number(toFixed(milliseconds, 3))) + "ms";
  const seconds = milliseconds / 1000;
  if (seconds < 60) return toFixed(seconds, 3) + "s";
  const minutes = floor(seconds / 60);
  if (minutes < 60) return minutes + ":" + padStart(toFixed(seconds % 60, 3), 6, "0") + " (m:ss.mmm)";
  return floor(minutes / 60) + ":" + twoDigits(minutes % 60) + ":" + twoDigits(floor(seconds % 60)) + " (h:mm:ss)";
}

function warn(...values) {
  print(STDERR, format(values));
}

function printTimer(method, label, values) {
  const start = getMap(timers, label);
  if (start === undefined) {
    warn("Warning: No such label '" + label + "' for console." + method + "()");
    return;
  }
  const text = label + ": " + formatDuration(native.now() - start);
  print(STDOUT, values.length > 0 ? text + " " + format(values) : text);
}

function log(...values) {
  print(STDOUT, format(values));
}

function trace(...values) {
  const holder = { __proto__: null };
  captureStackTrace(holder, trace); // leaves out this function, and so everything of the prelude
  const stack = ownProperty(holder, "stack")?.value;
  let text = values.length > 0 ? "Trace: " + format(values) : "Trace";
  if (typeof stack === "string" && stack !== "") {
    text += "\n" + (stack[stack.length - 1] === "\n" ? slice(stack, 0, -1) : stack);
  }
  print(STDERR, text);
}

function group(...values) {
  if (values.length > 0) print(STDOUT, format(values));
  groups++;
}

const console = {
  log,
  warn,
  trace,
  group,
  info(...values) {
    print(STDOUT, format(values));
  },
  debug(...values) {
    print(STDOUT, format(values));
  },
  error(...values) {
    print(STDERR, format(values));
  },
  dir(value, options = undefined) {
    print(STDOUT, guarded(() => inspect(value, options)));
  },
  dirxml(...values) {
    print(STDOUT, format(values));
  },
  table(data, columns = undefined) {
    const text = formatTable(data, columns);
    if (text === null) log(data);
    else print(STDOUT, text);
  },
  assert(condition, ...values) {
    if (condition) return;
    if (values.length === 0) {
      warn("Assertion failed");
    } else if (typeof values[0] === "string") {
      values[0] = "Assertion failed: " + values[0];
      print(STDERR, format(values));
    } else {
      print(STDERR, "Assertion failed " + format(values));
    }
  },
  count(label = "default") {
    label = labelOf(label);
    const count = (getMap(counts, label) ?? 0) + 1;
    setMap(counts, label, count);
    log(label + ": " + count);
  },
  countReset(label = "default") {
    label = labelOf(label);
    if (!deleteMap(counts, label)) warn("Warning: Count for '" + label + "' does not exist");
  },
  groupCollapsed(...values) {
    if (values.length > 0) print(STDOUT, format(values));
    groups++;
  },
  groupEnd() {
    if (groups > 0) groups--;
  },
  time(label = "default") {
    label = labelOf(label);
    if (getMap(timers, label) !== undefined) warn("Warning: Label '" + label + "' already exists for console.time()");
    else setMap(timers, label, native.now());
  },
  timeLog(label = "default", ...values) {
    printTimer("timeLog", labelOf(label), values);
  },
  timeEnd(label = "default") {
    label = labelOf(label);
    printTimer("timeEnd", label, []);
    deleteMap(timers, label);
  },
};

Object.defineProperty(console, Symbol.toStringTag, { value: "console", configurable: true });
Object.defineProperty(globalThis, "console", { value: console, writable: true, configurable: true, enumerable: false });
