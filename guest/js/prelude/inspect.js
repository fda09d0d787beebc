// inspect(value): the text that console.log prints of a value, in the manner of Node's util.inspect.
//
// A program's own code never runs because it is logged: getters are shown, not called, and names are read from data
// properties only. The exceptions are a Proxy's traps and [Symbol.for("nodejs.util.inspect.custom")]; an error thrown
// there is caught. Work is bounded by a budget of characters: once it is spent, every loop stops at its next step.
//
// The console uses only functions captured at load time, and no template strings (this engine compiles them to calls of
// String.prototype.concat), iterators or inherited array methods: a program may overwrite those.

const { kindOf, unbox } = shared;
const { apply, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
const { is, setPrototypeOf } = Object;
const { isArray } = Array;
const { stringify } = JSON;
const { String } = globalThis;
const uncurry = (method) => Function.prototype.call.bind(method);
const getter = (prototype, name) => uncurry(getOwnPropertyDescriptor(prototype, name).get);
const slice = uncurry(String.prototype.slice);
const indexOf = uncurry(String.prototype.indexOf);
const repeat = uncurry(String.prototype.repeat);
const execute = uncurry(RegExp.prototype.exec);
const symbolToString = uncurry(Symbol.prototype.toString);
const functionToString = uncurry(Function.prototype.toString);
const getTime = uncurry(Date.prototype.getTime);
const toISOString = uncurry(Date.prototype.toISOString);
const regExpSource = getter(RegExp.prototype, "source");
const regExpFlags = getter(RegExp.prototype, "flags");
const nativeStack = getter(Error.prototype, "stack");
const domExceptionName = getter(DOMException.prototype, "name");
const domExceptionMessage = getter(DOMException.prototype, "message");
const mapSize = getter(Map.prototype, "size");
const setSize = getter(Set.prototype, "size");
const typedArrayLength = getter(getPrototypeOf(Uint8Array.prototype), "length");
const bufferLength = getter(ArrayBuffer.prototype, "byteLength");
const mapEntries = uncurry(Map.prototype.entries);
const nextEntry = uncurry(getPrototypeOf(new Map().entries()).next);
const setValues = uncurry(Set.prototype.values);
const nextMember = uncurry(getPrototypeOf(new Set().values()).next);
const { toStringTag } = Symbol;

const CUSTOM = Symbol.for("nodejs.util.inspect.custom");
const BUDGET = 65536; // characters
const WORK = 200_000; // keys listed
const LINE_WIDTH = 80;
const LONGEST_STRING = 10000;
const LONGEST_PACKED = 16; // short elements of long arrays share lines
const LONGEST_CHAIN = 1000; // of prototypes: a Proxy could make one without end
const MANY_ELEMENTS = 1000; // beyond this, an array's other properties are left out: listing its keys takes too long
const MUST_ESCAPE = /[\x00-\x1f'\\\ud800-\udfff]/;
const IDENTIFIER = /^[a-zA-Z_][a-zA-Z_0-9]*$/;
const ARRAY_INDEX = /^(?:0|[1-9][0-9]{0,9})$/;
const CLASS_SOURCE = /^class\b/;

// An array that no setter on Array.prototype can get at: `items[items.length] = value` always appends.
const makeList = () => setPrototypeOf([], null);

function join(items, separator) {
  let text = "";
  for (let index = 0; index < items.length; index++) text += index === 0 ? items[index] : separator + items[index];
  return text;
}

const includes = (text, part) => indexOf(text, part) >= 0;

// ---- primitives

function quote(text) {
  if (execute(MUST_ESCAPE, text) === null) return "'" + text + "'";
  const json = stringify(text);
  return includes(text, "'") || includes(text, "\"") ? json : "'" + slice(json, 1, -1) + "'";
}

const formatNumber = (number) => (is(number, -0) ? "-0" : String(number));
const more = (count, noun) => "... " + count + " more " + noun + (count > 1 ? "s" : "");

function formatPrimitive(value) {
  switch (typeof value) {
    case "string":
      if (value.length <= LONGEST_STRING) return quote(value);
      return quote(slice(value, 0, LONGEST_STRING)) + more(value.length - LONGEST_STRING, "character");
    case "number": return formatNumber(value);
    case "bigint": return String(value) + "n";
    case "symbol": return symbolToString(value);
    default: return String(value);
  }
}

// ---- properties

// The descriptor of an own property; without a prototype, so that nothing put on Object.prototype shows in it.
function ownProperty(object, key) {
  const property = getOwnPropertyDescriptor(object, key);
  return property === undefined ? undefined : (setPrototypeOf(property, null), property);
}

// Own or inherited, but only if it is a plain value: no getter runs.
function dataProperty(object, key) {
  for (let steps = 0; object !== null && steps < LONGEST_CHAIN; steps++) {
    const property = ownProperty(object, key);
    if (property !== undefined) return property.value;
    object = getPrototypeOf(object);
  }
  return undefined;
}

function ownString(object, key) {
  const property = ownProperty(object, key);
  return property !== undefined && typeof property.value === "string" ? property.value : "";
}

function spend(state, characters) {
  state.budget -= characters;
}

// All own keys. Listing them is work that shows nothing, so it has a limit of its own (a Proxy may list any number).
function listKeys(state, value) {
  if (state.work < 0) {
    state.budget = 0;
    return makeList();
  }
  const keys = ownKeys(value);
  state.work -= keys.length;
  return keys;
}

// The enumerable keys, at most `limit` of them and no more than the budget can show. With `length`, that of an array or
// string, only those that are no index.
function shownKeys(state, value, limit, length) {
  const keys = makeList();
  if (length > MANY_ELEMENTS) return keys;
  const all = listKeys(state, value);
  for (let index = 0; index < all.length && keys.length < limit && keys.length * 3 < state.budget; index++) {
    const key = all[index];
    if (length !== undefined && typeof key === "string" && execute(ARRAY_INDEX, key) !== null) continue;
    const property = ownProperty(value, key);
    if (property !== undefined && property.enumerable) keys[keys.length] = key;
  }
  return keys;
}

function formatKey(key) {
  if (typeof key === "symbol") return "[" + symbolToString(key) + "]";
  return execute(IDENTIFIER, key) === null || key === "__proto__" ? quote(key) : key;
}

// The value of a property, or the kind of its accessor.
function formatDescriptor(state, property, level) {
  if (property.get !== undefined) return property.set === undefined ? "[Getter]" : "[Getter/Setter]";
  if (property.set !== undefined) return "[Setter]";
  state.indentation += 2;
  const text = formatValue(state, property.value, level);
  state.indentation -= 2;
  return text;
}

function pushProperty(state, entries, name, property, level) {
  spend(state, name.length + state.indentation + 4);
  entries[entries.length] = name + ": " + formatDescriptor(state, property, level);
}

// ---- titles: the class, size and tag of an object, or the whole text of dates, functions and errors

function classNameOf(value, kind) {
  const constructor = dataProperty(value, "constructor");
  return (typeof constructor === "function" && ownString(constructor, "name")) || kind;
}

function functionText(value, className) {
  const name = ownString(value, "name");
  if (execute(CLASS_SOURCE, functionToString(value)) !== null) return "[class " + (name || "(anonymous)") + "]";
  return "[" + className + (name === "" ? " (anonymous)]" : ": " + name + "]");
}

// "TypeError: message"
function errorHeader(value, kind, className) {
  let name = kind === "DOMException" ? domExceptionName(value) : dataProperty(value, "name");
  let message = kind === "DOMException" ? domExceptionMessage(value) : dataProperty(value, "message");
  if (typeof name !== "string" || includes(className, name)) name = className; // a class of errors without a name
  message = typeof message === "object" && message !== null ? "[object]" : String(message ?? "");
  return message === "" ? name : name === "" ? message : name + ": " + message;
}

function errorText(value, kind, className, indentation) {
  const own = ownProperty(value, "stack");
  const stack = own === undefined && kind === "Error" ? nativeStack(value) : own?.value;
  let frames = typeof stack === "string" ? stack : "";
  while (frames !== "" && frames[frames.length - 1] === "\n") frames = slice(frames, 0, -1);
  const start = indexOf(frames, "    at ");
  const header = errorHeader(value, kind, className);
  if (start < 0) return "[" + header + "]";
  // This engine's stacks have no header of their own; those that a program made up may.
  return indentLines(header + "\n" + slice(frames, start), indentation);
}

// Puts spaces in front of every line but the first.
function indentLines(text, indentation) {
  const spaces = repeat(" ", indentation);
  let indented = "";
  for (let start = 0; ; ) {
    const newline = indexOf(text, "\n", start);
    if (newline < 0) return indented + slice(text, start);
    indented += slice(text, start, newline + 1) + spaces;
    start = newline + 1;
  }
}

// The form of an object: `text` stands for the whole object if it has no properties, and before them if it has; `title`
// comes before its braces; `size` counts its elements or entries.
function describe(value, kind, indentation) {
  const name = classNameOf(value, kind);
  const shape = { __proto__: null, kind, name, text: "", title: name + " ", isArray: false, size: undefined };
  const prefix = name === kind ? "" : name + " ";
  switch (kind) {
    case "Array":
    case "TypedArray":
      shape.size = kind === "Array" ? value.length : typedArrayLength(value);
      shape.title = name === "Array" ? "" : name + "(" + shape.size + ") ";
      shape.isArray = true;
      break;
    case "Map":
    case "Set":
      shape.size = kind === "Map" ? mapSize(value) : setSize(value);
      shape.title = name + "(" + shape.size + ") ";
      break;
    case "Function":
      shape.text = functionText(value, name);
      break;
    case "RegExp":
      shape.text = prefix + "/" + regExpSource(value) + "/" + regExpFlags(value);
      break;
    case "Date":
      shape.text = prefix + (getTime(value) === getTime(value) ? toISOString(value) : "Invalid Date");
      break;
    case "Boolean":
    case "Number":
    case "String":
    case "Symbol":
    case "BigInt":
      shape.text = "[" + kind + ": " + formatPrimitive(unbox[kind](value)) + "]";
      break;
    case "Error":
    case "DOMException":
      shape.text = errorText(value, kind, name, indentation);
      break;
    default:
      if (name === "Object") {
        const tag = dataProperty(value, toStringTag);
        shape.title = typeof tag === "string" ? "Object [" + tag + "] " : "";
      }
  }
  return shape;
}

// ---- entries: elements and members, as far as the budget goes

function pushElements(state, entries, value, { kind, size }, level) {
  const shown = size < state.maxArrayLength ? size : state.maxArrayLength;
  for (let index = 0; index < shown && state.budget > 0; index++) {
    spend(state, state.indentation + 2);
    if (kind === "TypedArray") {
      entries[index] = formatPrimitive(value[index]);
      spend(state, entries[index].length);
      continue;
    }
    const property = ownProperty(value, String(index));
    entries[index] = property === undefined ? "<empty>" : formatDescriptor(state, property, level);
  }
  if (entries.length < size) entries[entries.length] = more(size - entries.length, "item");
}

function pushMembers(state, entries, value, { kind, size }, level) {
  const iterator = kind === "Map" ? mapEntries(value) : setValues(value);
  const shown = size < state.maxArrayLength ? size : state.maxArrayLength;
  state.indentation += 2;
  for (let index = 0; index < shown && state.budget > 0; index++) {
    const { value: item } = kind === "Map" ? nextEntry(iterator) : nextMember(iterator);
    spend(state, state.indentation + 4);
    entries[index] = kind === "Map"
      ? formatValue(state, item[0], level) + " => " + formatValue(state, item[1], level)
      : formatValue(state, item, level);
  }
  state.indentation -= 2;
  if (entries.length < size) entries[entries.length] = more(size - entries.length, "item");
}

// Non-enumerable, but wanted of every error.
function pushErrorDetails(state, entries, value, level) {
  const cause = ownProperty(value, "cause");
  if (cause !== undefined && !cause.enumerable) pushProperty(state, entries, "[cause]", cause, level);
  const errors = ownProperty(value, "errors");
  if (errors !== undefined && !errors.enumerable && isArray(errors.value)) {
    pushProperty(state, entries, "[errors]", errors, level);
  }
}

// Whether an error's first line has the property's text already.
function isInHeader(value, key, text) {
  const shown = key === "name" || key === "message" ? ownProperty(value, key)?.value : undefined;
  return key === "stack" || (typeof shown === "string" && includes(text, shown));
}

// ---- layout: on one line if it is short, else on several

// Several short elements to a line.
function packed(entries, width) {
  const rows = makeList();
  let row = "";
  for (let index = 0; index < entries.length; index++) {
    if (entries[index].length > LONGEST_PACKED && index < entries.length - 1) return entries;
    const text = row === "" ? entries[index] : row + ", " + entries[index];
    if (row !== "" && text.length > width) {
      rows[rows.length] = row;
      row = entries[index];
    } else {
      row = text;
    }
  }
  rows[rows.length] = row;
  return rows;
}

// `inner`: the levels of objects inside; three fit on a line.
function layOut(entries, head, close, isList, inner, { indentation, lineWidth }) {
  let width = entries.length * 2 + indentation + head.length + 10;
  let fits = inner < 3;
  for (let index = 0; index < entries.length && fits; index++) {
    width += entries[index].length;
    fits = width <= lineWidth && !includes(entries[index], "\n");
  }
  if (fits && !includes(head, "\n")) return head + " " + join(entries, ", ") + " " + close;
  if (isList && entries.length > 6) entries = packed(entries, lineWidth - indentation - 4);
  const newline = "\n" + repeat(" ", indentation);
  return head + newline + "  " + join(entries, "," + newline + "  ") + newline + close;
}

function formatObject(state, value, level) {
  const kind = kindOf(value);
  const isError = kind === "Error" || kind === "DOMException";
  const isTooDeep = level > state.depth && !isError;
  const shape = describe(value, kind, state.indentation);
  const { text, title, isArray: isList } = shape;
  const length = kind === "String" ? 0 : isList ? shape.size : undefined;
  const keys = shownKeys(state, value, isTooDeep ? 1 : Infinity, length);
  const open = isList ? "[" : "{";
  const close = isList ? "]" : "}";
  if (isTooDeep && (keys.length > 0 || shape.size > 0)) {
    spend(state, shape.name.length + 2);
    return "[" + shape.name + "]";
  }
  const head = text === "" ? title + open : text + " " + open;
  state.ancestors[state.ancestors.length] = value;
  if (keys.length > 0 || shape.size > 0) state.deepest = level;
  spend(state, head.length + 4);
  const entries = makeList();
  if (isList) pushElements(state, entries, value, shape, level + 1);
  else if (shape.size !== undefined) pushMembers(state, entries, value, shape, level + 1);
  else if (kind === "ArrayBuffer") entries[0] = "byteLength: " + bufferLength(value);
  for (let index = 0; index < keys.length && state.budget > 0; index++) {
    const property = ownProperty(value, keys[index]);
    if (property === undefined || (isError && isInHeader(value, keys[index], text))) continue;
    pushProperty(state, entries, formatKey(keys[index]), property, level + 1);
  }
  if (isError) pushErrorDetails(state, entries, value, level + 1);
  state.ancestors.length--;
  if (entries.length === 0) return text === "" ? head + close : text;
  return layOut(entries, head, close, isList || kind === "Set", state.deepest - level, state);
}

function formatCustom(state, value, level) {
  const custom = dataProperty(value, CUSTOM);
  if (typeof custom !== "function") return undefined;
  const depth = state.depth - level;
  const result = apply(custom, value, [depth, { depth }, inspect]);
  if (result === value) return undefined;
  if (typeof result !== "object" && typeof result !== "function") {
    const text = slice(String(result), 0, state.budget > 0 ? state.budget : 0);
    spend(state, text.length);
    return indentLines(text, state.indentation);
  }
  return result === null ? "null" : formatObject(state, result, level);
}

function formatValue(state, value, level) {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) {
    const text = formatPrimitive(value);
    spend(state, text.length + 2);
    return text;
  }
  if (state.budget <= 0) return "...";
  for (let index = 0; index < state.ancestors.length; index++) {
    if (state.ancestors[index] === value) return "[Circular]";
  }
  const { indentation } = state;
  const depth = state.ancestors.length;
  try {
    return formatCustom(state, value, level) ?? formatObject(state, value, level);
  } catch {
    state.indentation = indentation;
    state.ancestors.length = depth;
    return "[an object that cannot be shown]"; // a trap or a custom inspector threw
  }
}

function inspect(value, options) {
  const state = {
    __proto__: null,
    depth: 2, maxArrayLength: 100, lineWidth: LINE_WIDTH, budget: BUDGET, work: WORK, indentation: 0, deepest: 0,
    ancestors: makeList(),
  };
  if (typeof options === "object" && options !== null) {
    const { depth, maxArrayLength, lineWidth } = options;
    if (depth === null) state.depth = Infinity;
    else if (typeof depth === "number") state.depth = depth;
    if (typeof maxArrayLength === "number") state.maxArrayLength = maxArrayLength;
    if (typeof lineWidth === "number") state.lineWidth = lineWidth;
  }
  const text = formatValue(state, value, 0);
  return state.budget > 0 ? text : text + "\n... too much to show";
}

shared.inspect = inspect;
shared.inspecting = { __proto__: null, makeList, join, formatNumber, ownProperty };
