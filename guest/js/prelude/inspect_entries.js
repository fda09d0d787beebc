// The contents of an object in the console: elements, entries and properties, as far as the budget goes.

const { makeList, quote } = shared.layout;
const { ownProperty, formatPrimitive } = shared.titles;
const { getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
const { String, Uint8Array } = globalThis;
const uncurry = (method) => Function.prototype.call.bind(method);
const getter = (prototype, name) => uncurry(getOwnPropertyDescriptor(prototype, name).get);
const slice = uncurry(String.prototype.slice);
const indexOf = uncurry(String.prototype.indexOf);
const execute = uncurry(RegExp.prototype.exec);
const symbolToString = uncurry(Symbol.prototype.toString);
const { isArray } = Array;
const mapEntries = uncurry(Map.prototype.entries);
const nextEntry = uncurry(getPrototypeOf(new Map().entries()).next);
const setValues = uncurry(Set.prototype.values);
const nextMember = uncurry(getPrototypeOf(new Set().values()).next);
const toHex = uncurry(Uint8Array.prototype.toHex);
const dataViewBuffer = getter(DataView.prototype, "buffer");
const dataViewOffset = getter(DataView.prototype, "byteOffset");
const dataViewLength = getter(DataView.prototype, "byteLength");

const IDENTIFIER = /^[a-zA-Z_][a-zA-Z_0-9]*$/;
const ARRAY_INDEX = /^(?:0|[1-9][0-9]{0,9})$/;
const MANY_ELEMENTS = 1000; // beyond this, an array's other properties are left out: listing its keys takes too long

// Takes characters off the budget; once it is used up, every loop stops at its next step.
function spend(state, characters) {
  state.budget -= characters;
}

function formatKey(key) {
  if (typeof key === "symbol") return "[" + symbolToString(key) + "]";
  if (key === "__proto__") return "['__proto__']";
  return execute(IDENTIFIER, key) === null ? quote(key) : key;
}

// The value that a property holds, or what kind of accessor it is.
function formatDescriptor(state, property, level) {
  if (property.get !== undefined) return property.set === undefined ? "[Getter]" : "[Getter/Setter]";
  if (property.set !== undefined) return "[Setter]";
  state.indentation += 2;
  const text = state.formatValue(state, property.value, level);
  state.indentation -= 2;
  return text;
}

function pushProperty(state, entries, key, property, level) {
  const name = formatKey(key);
  spend(state, name.length + state.indentation + 4);
  entries[entries.length] = name + ": " + formatDescriptor(state, property, level);
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

// The enumerable ones from the `first`th on, at most `limit` of them and no more than the budget can show.
function shownKeys(state, value, limit, all = listKeys(state, value), first = 0) {
  const keys = makeList();
  for (let index = first; index < all.length && keys.length < limit && keys.length * 3 < state.budget; index++) {
    const property = ownProperty(value, all[index]);
    if (property !== undefined && property.enumerable) keys[keys.length] = all[index];
  }
  return keys;
}

// Where the keys that aren't indices begin: behind all of those, by the order in which keys are listed.
function keysBesidesIndices(state, value, limit, length) {
  if (length > MANY_ELEMENTS) return makeList();
  const all = listKeys(state, value);
  let first = all.length;
  while (first > 0 && (typeof all[first - 1] === "symbol" || execute(ARRAY_INDEX, all[first - 1]) === null)) first--;
  return shownKeys(state, value, limit, all, first);
}

const more = (count) => "... " + count + " more item" + (count > 1 ? "s" : "");

function formatArrayEntries(state, value, length, level, shape) {
  const entries = makeList();
  const shown = length < state.maxArrayLength ? length : state.maxArrayLength;
  let index = 0;
  let sparseKeys = null;
  for (; entries.length < shown && index < length && state.budget > 0; ) {
    const property = ownProperty(value, String(index));
    if (property === undefined) {
      // A hole: the next element is the next key, however far away it is.
      if (sparseKeys === null) sparseKeys = { keys: listKeys(state, value), position: 0 };
      const { keys } = sparseKeys;
      while (sparseKeys.position < keys.length && +keys[sparseKeys.position] < index) sparseKeys.position++;
      const key = keys[sparseKeys.position];
      const isIndex = typeof key === "string" && execute(ARRAY_INDEX, key) !== null;
      const end = isIndex ? +key : length;
      entries[entries.length] = "<" + (end - index) + " empty item" + (end - index > 1 ? "s" : "") + ">";
      index = end;
      shape.allNumbers = false;
      continue;
    }
    if (typeof property.value !== "number" && typeof property.value !== "bigint") shape.allNumbers = false;
    spend(state, state.indentation);
    entries[entries.length] = formatDescriptor(state, property, level);
    index++;
  }
  if (index < length) {
    entries[entries.length] = more(length - index);
    shape.more = true;
  }
  return entries;
}

function formatTypedArrayEntries(state, value, length, level, shape) {
  const entries = makeList();
  for (let index = 0; index < length && index < state.maxArrayLength && state.budget > 0; index++) {
    entries[index] = formatPrimitive(value[index], 0);
    spend(state, entries[index].length + 2);
  }
  if (entries.length < length) {
    shape.more = true;
    entries[entries.length] = more(length - entries.length);
  }
  return entries;
}

function formatCollectionEntries(state, value, size, level, isMap) {
  const entries = makeList();
  const iterator = isMap ? mapEntries(value) : setValues(value);
  const shown = size < state.maxArrayLength ? size : state.maxArrayLength;
  state.indentation += 2;
  for (let index = 0; index < shown && state.budget > 0; index++) {
    const { value: item } = isMap ? nextEntry(iterator) : nextMember(iterator);
    spend(state, state.indentation + 4);
    entries[index] = isMap
      ? state.formatValue(state, item[0], level) + " => " + state.formatValue(state, item[1], level)
      : state.formatValue(state, item, level);
  }
  state.indentation -= 2;
  if (entries.length < size) entries[entries.length] = more(size - entries.length);
  return entries;
}

function formatBufferEntries(state, value, size) {
  const entries = makeList();
  const count = size < state.maxArrayLength ? size : state.maxArrayLength;
  const hexadecimal = toHex(new Uint8Array(value, 0, count));
  let bytes = "";
  for (let index = 0; index < count; index++) {
    bytes += (index > 0 ? " " : "") + slice(hexadecimal, index * 2, index * 2 + 2);
  }
  if (size > count) bytes += " ... " + (size - count) + " more byte" + (size - count > 1 ? "s" : "");
  entries[0] = "[Uint8Contents]: <" + bytes + ">";
  entries[1] = "byteLength: " + size;
  return entries;
}

function formatDataViewEntries(state, value, level) {
  const entries = makeList();
  entries[0] = "byteLength: " + dataViewLength(value);
  entries[1] = "byteOffset: " + dataViewOffset(value);
  entries[2] = "buffer: " + formatDescriptor(state, { __proto__: null, value: dataViewBuffer(value) }, level);
  return entries;
}

function formatPromiseEntries(state, value, level) {
  const entries = makeList();
  if (typeof native.promiseState !== "function") return entries; // only the engine can see inside
  const { status, result } = native.promiseState(value);
  if (status === "pending") {
    entries[0] = "<pending>";
  } else {
    const text = formatDescriptor(state, { __proto__: null, value: result }, level);
    entries[0] = status === "rejected" ? "<rejected> " + text : text;
  }
  return entries;
}

// Non-enumerable, but what one wants to know about an error.
function pushErrorDetails(state, entries, value, level) {
  const cause = ownProperty(value, "cause");
  if (cause !== undefined && !cause.enumerable) {
    entries[entries.length] = "[cause]: " + formatDescriptor(state, cause, level);
  }
  const errors = ownProperty(value, "errors");
  if (errors !== undefined && !errors.enumerable && isArray(errors.value)) {
    entries[entries.length] = "[errors]: " + formatDescriptor(state, errors, level);
  }
}

// The keys of an error, less those whose text is in its first lines already.
function withoutErrorText(value, keys, base) {
  const others = makeList();
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index];
    const text = key === "name" || key === "message" ? ownProperty(value, key)?.value : undefined;
    if (key === "stack" || (typeof text === "string" && indexOf(base, text) >= 0)) continue;
    others[others.length] = key;
  }
  return others;
}

function kindEntries(state, value, shape, level) {
  const { kind, length } = shape;
  switch (kind) {
    case "Array": return formatArrayEntries(state, value, length, level, shape);
    case "TypedArray": return formatTypedArrayEntries(state, value, length, level, shape);
    case "Map": return formatCollectionEntries(state, value, length, level, true);
    case "Set": return formatCollectionEntries(state, value, length, level, false);
    case "ArrayBuffer":
    case "SharedArrayBuffer": return formatBufferEntries(state, value, length);
    case "DataView": return formatDataViewEntries(state, value, level);
    case "Promise": return formatPromiseEntries(state, value, level);
    default: return makeList();
  }
}

shared.entries = {
  __proto__: null, spend, shownKeys, keysBesidesIndices, pushProperty, kindEntries, pushErrorDetails,
  withoutErrorText,
};
