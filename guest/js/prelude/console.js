// console: log, info, debug, dir, table, group, count and time print to stdout; warn, error, assert and trace to stderr.
// One call prints at most 65,536 characters.

const { inspect, kindOf } = shared;
const { makeList, join, formatNumber, ownProperty } = shared.inspecting;
const { ownKeys } = Reflect;
const { isArray } = Array;
const { String, Number, Map, parseInt, parseFloat } = globalThis;
const { captureStackTrace } = Error;
const { stringify } = JSON;
const uncurry = (method) => Function.prototype.call.bind(method);
const slice = uncurry(String.prototype.slice);
const indexOf = uncurry(String.prototype.indexOf);
const repeat = uncurry(String.prototype.repeat);
const charCodeAt = uncurry(String.prototype.charCodeAt);
const toWellFormed = uncurry(String.prototype.toWellFormed);
const toFixed = uncurry(Number.prototype.toFixed);
const getMap = uncurry(Map.prototype.get);
const setMap = uncurry(Map.prototype.set);
const deleteMap = uncurry(Map.prototype.delete);
const STDOUT = 1;
const STDERR = 2;
const LONGEST = 65536;
const CUT = "\n... [cut: one console call prints at most 65536 characters]";
const DEEPEST_INDENTATION = 40;
const MOST_COLUMNS = 1000;

const isObject = (value) => typeof value === "object" && value !== null;

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

// One %-specifier; undefined if there is no such one.
function substitute(specifier, value) {
  const isBigInt = typeof value === "bigint";
  const number = (convert) => {
    if (isBigInt) return String(value) + "n";
    return typeof value === "symbol" ? "NaN" : formatNumber(convert(value));
  };
  switch (specifier) {
    case "s":
      if (isObject(value)) return inspect(value, { __proto__: null, depth: 0 });
      return typeof value === "number" || isBigInt ? number(Number) : String(value);
    case "d": return number(Number);
    case "i": return number(parseInt);
    case "f": return number(parseFloat);
    case "j": return String(stringify(value));
    case "o":
    case "O": return inspect(value);
    case "c": return "";
    default: return undefined;
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
const formatDuration = (milliseconds) =>
  milliseconds < 1000 ? Number(toFixed(milliseconds, 3)) + "ms" : toFixed(milliseconds / 1000, 3) + "s";

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

// ---- console.table

// On one line, and not deep: of an object with more than two properties only the name.
function showCell(property) {
  if (property.get !== undefined) return "[Getter]";
  const { value } = property;
  const isLarge = isObject(value) && !isArray(value) && ownKeys(value).length > 2;
  return inspect(value, { __proto__: null, depth: isLarge ? -1 : 0, maxArrayLength: 3, lineWidth: Infinity });
}

// The names and descriptors of the enumerable properties that have text for a name.
function enumerableProperties(object) {
  const found = makeList();
  const keys = ownKeys(object);
  for (let index = 0; index < keys.length && index <= LONGEST; index++) {
    const key = keys[index];
    const property = typeof key === "symbol" ? undefined : ownProperty(object, key);
    if (property !== undefined && property.enumerable) found[found.length] = { __proto__: null, key, property };
  }
  return found;
}

// The lines of a table as lists of cells, its titles first: one row per property of `data`, one column per property of
// a row, and a last one, Values, for rows that aren't objects.
function tableLines(data, wanted) {
  const titles = makeList();
  titles[0] = "(index)";
  const columns = { __proto__: null }; // name → place in a line
  const addColumn = (name) => {
    if (columns[name] !== undefined || titles.length > MOST_COLUMNS) return;
    columns[name] = titles.length;
    titles[titles.length] = name;
  };
  if (wanted !== undefined) for (let index = 0; index < wanted.length; index++) addColumn(String(wanted[index]));
  const rows = enumerableProperties(data);
  let hasValues = false;
  for (let index = 0; index < rows.length; index++) {
    const { property } = rows[index];
    const cells = isObject(property.value) ? enumerableProperties(property.value) : undefined;
    rows[index].cells = cells;
    hasValues ||= cells === undefined;
    if (wanted !== undefined || cells === undefined) continue;
    for (let cell = 0; cell < cells.length; cell++) addColumn(cells[cell].key);
  }
  const width = titles.length;
  if (hasValues) titles[width] = "Values";
  const lines = makeList();
  lines[0] = titles;
  let characters = 0; // text that doesn't fit would be cut anyway
  for (let index = 0; index < rows.length && characters < LONGEST; index++) {
    const { key, property, cells } = rows[index];
    const line = makeList();
    line[0] = key;
    for (let column = 1; column < titles.length; column++) line[column] = "";
    if (cells === undefined) line[width] = showCell(property);
    for (let cell = 0; cells !== undefined && cell < cells.length && characters < LONGEST; cell++) {
      const column = columns[cells[cell].key];
      if (column === undefined) continue;
      line[column] = showCell(cells[cell].property);
      characters += line[column].length;
    }
    characters += key.length + 3 * line.length;
    lines[lines.length] = line;
  }
  return lines;
}

function drawTable(lines) {
  const widths = makeList();
  for (let column = 0; column < lines[0].length; column++) {
    widths[column] = 0;
    for (let index = 0; index < lines.length; index++) {
      const { length } = lines[index][column];
      if (length > widths[column]) widths[column] = length;
    }
  }
  const rule = (left, middle, right) => {
    const parts = makeList();
    for (let index = 0; index < widths.length; index++) parts[index] = repeat("─", widths[index] + 2);
    return left + join(parts, middle) + right;
  };
  const row = (cells) => {
    const parts = makeList();
    for (let index = 0; index < widths.length; index++) {
      parts[index] = " " + cells[index] + repeat(" ", widths[index] - cells[index].length + 1);
    }
    return "│" + join(parts, "│") + "│\n";
  };
  let text = rule("┌", "┬", "┐\n") + row(lines[0]) + rule("├", "┼", "┤\n");
  for (let index = 1; index < lines.length && text.length <= LONGEST; index++) text += row(lines[index]);
  return text + rule("└", "┴", "┘");
}

// The table as text; null for a value that isn't an array or a plain object, or can't be read (a Proxy's trap threw).
function formatTable(data, wanted) {
  if (!isObject(data)) return null;
  try {
    const kind = kindOf(data);
    if (kind !== "Array" && kind !== "Object") return null;
    return drawTable(tableLines(data, isArray(wanted) ? wanted : undefined));
  } catch {
    return null;
  }
}

// ---- the object

const console = {
  log,
  warn,
  trace,
  group,
  info: log,
  debug: log,
  error: warn,
  dir(value, options = undefined) {
    print(STDOUT, guarded(() => inspect(value, options)));
  },
  table(data, columns = undefined) {
    const text = formatTable(data, columns);
    if (text === null) log(data);
    else print(STDOUT, text);
  },
  assert(condition, ...values) {
    if (condition) return;
    const isText = typeof values[0] === "string";
    if (isText) values[0] = "Assertion failed: " + values[0];
    print(STDERR, (isText ? "" : values.length === 0 ? "Assertion failed" : "Assertion failed ") + format(values));
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
  groupCollapsed: group,
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
