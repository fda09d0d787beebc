// The title of an object in the console: its class, size and tag, or the whole text of dates, functions and errors.

const { quoteInside } = shared.layout;
const { getOwnPropertyDescriptor, getPrototypeOf, setPrototypeOf } = Reflect;
const { is } = Object;
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
const domExceptionName = getter(shared.DOMException.prototype, "name");
const domExceptionMessage = getter(shared.DOMException.prototype, "message");
const mapSize = getter(Map.prototype, "size");
const setSize = getter(Set.prototype, "size");
const typedArrayPrototype = getPrototypeOf(Uint8Array.prototype);
const typedArrayName = getter(typedArrayPrototype, Symbol.toStringTag);
const typedArrayLength = getter(typedArrayPrototype, "length");
const bufferLength = getter(ArrayBuffer.prototype, "byteLength");
const sharedBufferLength = getter(SharedArrayBuffer.prototype, "byteLength");
const unbox = {
  __proto__: null,
  Boolean: uncurry(Boolean.prototype.valueOf), Number: uncurry(Number.prototype.valueOf),
  String: uncurry(String.prototype.valueOf), Symbol: uncurry(Symbol.prototype.valueOf),
  BigInt: uncurry(BigInt.prototype.valueOf),
};
const functionKinds = [
  [Function.prototype, "Function"],
  [getPrototypeOf(async () => {}), "AsyncFunction"],
  [getPrototypeOf(function* () {}), "GeneratorFunction"],
  [getPrototypeOf(async function* () {}), "AsyncGeneratorFunction"],
];

const { toStringTag } = Symbol;
const CLASS_SOURCE = /^class\b/;
const LONGEST_CHAIN = 1000; // of prototypes: a Proxy could make one without end

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

function isInChain(object, prototype) {
  for (let steps = 0; object !== null && steps < LONGEST_CHAIN; steps++) {
    object = getPrototypeOf(object);
    if (object === prototype) return true;
  }
  return false;
}

// The name of the class; null for an object without a prototype.
function constructorName(value) {
  let object = value;
  for (let steps = 0; object !== null && steps < LONGEST_CHAIN; steps++) {
    const property = ownProperty(object, "constructor");
    if (property !== undefined && typeof property.value === "function") {
      const name = ownString(property.value, "name");
      const prototype = ownProperty(property.value, "prototype");
      if (name !== "" && prototype !== undefined && isInChain(value, prototype.value)) return name;
    }
    object = getPrototypeOf(object);
  }
  return null;
}

function tagOf(value, name) {
  const own = ownProperty(value, toStringTag);
  if (own !== undefined && own.enumerable) return "";
  const tag = dataProperty(value, toStringTag);
  return typeof tag === "string" && tag !== name ? tag : "";
}

// "Foo ", "Foo(2) [tag] ", "[Object: null prototype] "
function prefixOf(name, tag, fallback, size = "") {
  const suffix = tag === "" ? "" : "[" + tag + "] ";
  if (name !== null) return name + size + " " + suffix;
  if (tag === "Module") return "[Module: null prototype] ";
  return "[" + fallback + size + ": null prototype] " + (tag === fallback ? "" : suffix);
}

function formatNumber(number) {
  return is(number, -0) ? "-0" : String(number);
}

function formatPrimitive(value, indentation) {
  switch (typeof value) {
    case "string": return quoteInside(value, indentation);
    case "number": return formatNumber(value);
    case "bigint": return String(value) + "n";
    case "symbol": return symbolToString(value);
    default: return String(value);
  }
}

function functionBase(value, name, tag) {
  const source = functionToString(value);
  const ownName = ownString(value, "name");
  if (execute(CLASS_SOURCE, source) !== null) {
    const parent = getPrototypeOf(value);
    const parentName = typeof parent === "function" ? ownString(parent, "name") : "";
    const heritage = parentName !== "" ? " extends " + parentName : parent === null ? " extends null" : "";
    return "[class " + (ownName === "" ? "(anonymous)" : ownName) + heritage + "]";
  }
  let kind = "Function";
  for (let index = 0; index < 4; index++) if (isInChain(value, functionKinds[index][0])) kind = functionKinds[index][1];
  let base = "[" + kind + (name === null ? " (null prototype)" : "");
  base += ownName === "" ? " (anonymous)]" : ": " + ownName + "]";
  if (name !== null && name !== kind && name !== "Function") base += " " + name;
  return tag === "" || tag === kind ? base : base + " [" + tag + "]";
}

// What comes before the stack's frames: "TypeError: message", and the class if the name doesn't tell it.
function errorHeader(value, kind, name) {
  let errorName;
  let message;
  if (kind === "DOMException") {
    errorName = "DOMException [" + domExceptionName(value) + "]";
    message = domExceptionMessage(value);
  } else {
    errorName = dataProperty(value, "name");
    errorName = typeof errorName === "string" ? errorName : name === null ? "Error" : name;
    message = dataProperty(value, "message");
    message = message === undefined ? "" : typeof message === "object" ? "[object]" : String(message);
    const plain = errorName !== "" && slice(errorName, -5) === "Error";
    if (plain && name !== null && name !== errorName) {
      errorName = indexOf(name, errorName) >= 0 ? name : name + " [" + errorName + "]";
    }
  }
  return message === "" ? errorName : errorName === "" ? message : errorName + ": " + message;
}

function errorBase(value, kind, name, indentation) {
  let stack;
  const own = ownProperty(value, "stack");
  if (own !== undefined) stack = own.value;
  else if (kind === "Error") stack = nativeStack(value);
  const header = errorHeader(value, kind, name);
  let frames = typeof stack === "string" ? stack : "";
  while (frames !== "" && frames[frames.length - 1] === "\n") frames = slice(frames, 0, -1);
  const start = indexOf(frames, "    at ");
  if (start < 0) return "[" + header + "]";
  // This engine's stacks have no header of their own; those that a program made up may.
  const text = header + "\n" + slice(frames, start);
  return indentation > 0 ? indentLines(text, indentation) : text;
}

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

// How an object is shown: {base, open, close, asArray, length, ...}. `base` stands for the whole object if it has no
// properties, and before them if it has; `length` counts what it holds besides properties.
function describe(value, kind, indentation) {
  const name = constructorName(value);
  const tag = tagOf(value, name);
  const shape = {
    __proto__: null,
    kind, name, tag, base: "", open: "{", close: "}", asArray: false, allNumbers: true, more: false, length: undefined,
  };
  const titled = (fallback, size) => prefixOf(name, tag, fallback, size === undefined ? "" : "(" + size + ")");
  switch (kind) {
    case "Array":
    case "TypedArray": {
      shape.length = kind === "Array" ? value.length : typedArrayLength(value);
      const plain = kind === "Array" && name === "Array" && tag === "";
      shape.open = plain ? "[" : titled(kind === "Array" ? kind : typedArrayName(value), shape.length) + "[";
      shape.close = "]";
      shape.asArray = true;
      break;
    }
    case "Map":
    case "Set":
      shape.length = kind === "Map" ? mapSize(value) : setSize(value);
      shape.open = titled(kind, shape.length) + "{";
      break;
    case "ArrayBuffer":
    case "SharedArrayBuffer":
      shape.length = kind === "ArrayBuffer" ? bufferLength(value) : sharedBufferLength(value);
      shape.open = titled(kind) + "{";
      break;
    case "Function":
      shape.base = functionBase(value, name, tag);
      break;
    case "RegExp":
      shape.base = "/" + regExpSource(value) + "/" + regExpFlags(value);
      if (name !== "RegExp") shape.base = titled("RegExp") + shape.base;
      break;
    case "Date":
      shape.base = getTime(value) === getTime(value) ? toISOString(value) : "Invalid Date";
      if (name !== "Date") shape.base = titled("Date") + shape.base;
      break;
    case "Boolean":
    case "Number":
    case "String":
    case "Symbol":
    case "BigInt": {
      const inside = formatPrimitive(unbox[kind](value), 0);
      const type = name === kind || name === null ? kind : kind + " (" + name + ")";
      shape.base = "[" + type + ": " + inside + "]";
      break;
    }
    case "Error":
    case "DOMException":
      shape.base = errorBase(value, kind, name, indentation);
      break;
    case "Arguments":
      shape.open = "[Arguments] {";
      break;
    case "Object":
      shape.open = name === "Object" && tag === "" ? "{" : titled("Object") + "{";
      break;
    default:
      shape.open = titled(kind) + "{";
  }
  return shape;
}

shared.titles = {
  __proto__: null, ownProperty, dataProperty, prefixOf, formatNumber, formatPrimitive, indentLines, describe,
};
