// Handle: a large or binary result that stays on the host. A program reads parts of it, or passes it on to a tool.
//
// Programs will treat a handle as the value it stands for, so a missing property throws an error that says what to do.
// No template literals here: they call String.prototype.concat, which a guest may have replaced.
const { apply, getOwnPropertyDescriptor } = Reflect;
const { create, defineProperty, freeze, hasOwn, setPrototypeOf } = Object;
const { isArray } = Array;
const { isSafeInteger } = Number;
const { round, trunc } = Math;
const { InternalError, TypeError, Uint8Array } = globalThis;
const { fromBase64 } = Uint8Array;
const { hasOwnProperty, isPrototypeOf, propertyIsEnumerable, toLocaleString } = Object.prototype;
const stringify = JSON.stringify;
const uncurry = (method) => Function.prototype.call.bind(method);
const slice = uncurry(String.prototype.slice);
const execute = uncurry(RegExp.prototype.exec);
const { isWritingCall } = native;

const MARK = "\0handle"; // in a call's arguments: {"\0handle": id}
const INSPECT = Symbol.for("nodejs.util.inspect.custom");
const SECRET = create(null); // capability: only this file can construct handles
const MEDIA_TYPE = /^[\w.+-]{1,60}\/[\w.+-]{1,60}/;
const READABLE = /^text\/|[/+](?:json|xml|yaml|csv|javascript)$/;
const LONGEST_NAME = 80;

const bridgeFunction = (name) =>
  native.hostFunction('{"op":"call","module":"host:bridge","function":"' + name + '","arguments":', "host:bridge", name, false);
const readText = bridgeFunction("handle_text");
const readJson = bridgeFunction("handle_json");
const readBytes = bridgeFunction("handle_bytes");
const readSlice = bridgeFunction("handle_slice");

// 512 B, 3.1 KB, 34 KB, 2.5 MB: of 1024, with a decimal below ten.
function sizeText(size) {
  if (size < 1024) return size + " B";
  let amount = size / 1024;
  let unit = " KB";
  if (round(amount) >= 1024) {
    amount /= 1024;
    unit = " MB";
  }
  return (amount < 9.95 ? round(amount * 10) / 10 : round(amount)) + unit;
}

// Untrusted text: a server chose the media type, so it is shown only if it has the form of one.
function mimeText(mime) {
  const found = execute(MEDIA_TYPE, mime);
  return found === null ? "data" : found[0];
}

// Clamps an index of Array.prototype.slice to [0, size].
function clampIndex(index, size, byDefault) {
  if (index === undefined) return byDefault;
  index = trunc(index);
  if (index !== index) return 0;
  if (index < 0) index += size;
  return index < 0 ? 0 : index > size ? size : index;
}

class Handle {
  #id;
  constructor(secret, id, mime, size, name) {
    if (secret !== SECRET) {
      throw new TypeError("a Handle can't be constructed: a tool returns one for a large or binary result");
    }
    this.#id = id;
    define(this, "mime", mime);
    define(this, "size", size);
    define(this, "name", name);
    freeze(this);
  }
  text() {
    return readText(this.#id);
  }
  json() {
    return readJson(this.#id);
  }
  bytes() {
    const text = readBytes(this.#id);
    if (typeof text !== "string") throw new InternalError("the host gave no bytes for a handle");
    return apply(fromBase64, Uint8Array, [text]);
  }
  slice(start = 0, end = undefined) {
    const id = this.#id;
    const { size } = this;
    const part = readSlice(id, clampIndex(start, size, 0), clampIndex(end, size, size));
    if (!isHandle(part)) throw new InternalError("the host gave no handle for a part of one");
    return part;
  }
  toString() {
    return describe(this);
  }
  toJSON() {
    return isWritingCall() ? { __proto__: null, [MARK]: this.#id } : describe(this);
  }
  [INSPECT]() {
    return describe(this);
  }
  static is(value) {
    return typeof value === "object" && value !== null && #id in value;
  }
}
const isHandle = Handle.is;
delete Handle.is;

function define(object, key, value) {
  defineProperty(object, key, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
}

// The text of a handle, for logs and models: <image/png 34 KB "chart.png">
function describe(handle) {
  if (!isHandle(handle)) return "Handle"; // its prototype, or what a program made of that
  const { mime, size, name } = handle;
  const shown = name === undefined ? "" : name.length > LONGEST_NAME ? slice(name, 0, LONGEST_NAME) + "…" : name;
  return "<" + mimeText(mime) + " " + sizeText(size) + (shown === "" ? "" : " " + stringify(shown)) + ">";
}

function notTheValue(handle) {
  const { mime, size } = handle;
  const readable = execute(READABLE, mimeText(mime)) !== null;
  return new TypeError("This result is a Handle (" + mimeText(mime) + ", " + sizeText(size) + "), " +
    (readable ? "too large to be given whole: use .json(), .text(), .slice() or .bytes() to read it"
      : "binary data that stays on the host: use .bytes(), .text() or .slice() to read it") +
    ", or pass it to a tool.");
}

// Names that the language itself, or a logger, reads of any object: never an error.
const neverMissing = freeze({
  __proto__: null, hasOwnProperty, isPrototypeOf, propertyIsEnumerable, toLocaleString,
  then: undefined, valueOf: undefined, inspect: undefined, nodeType: undefined, __esModule: undefined,
});
const throwing = new Proxy(neverMissing, {
  __proto__: null,
  get(target, key, receiver) {
    if (typeof key === "symbol" || hasOwn(target, key) || !isHandle(receiver)) return target[key];
    throw notTheValue(receiver);
  },
});
const hidden = (value) => ({ __proto__: null, value });
defineProperty(Handle.prototype, Symbol.toStringTag, hidden("Handle"));
defineProperty(Handle.prototype, Symbol.iterator, hidden(function () { throw notTheValue(this); }));
freeze(setPrototypeOf(Handle.prototype, throwing));
freeze(Handle);

// ---- handles in a reply: the host put null in their places

const missingPlace = () => new InternalError("the host's reply names a missing place for a handle");

// Reads an own property of a frame, never one of a prototype.
function ownField(object, key) {
  const property = typeof object === "object" && object !== null ? getOwnPropertyDescriptor(object, key) : undefined;
  if (property === undefined) throw missingPlace();
  return property.value;
}

function makeHandle(description) {
  const id = ownField(description, "id");
  const mime = ownField(description, "mime");
  const size = ownField(description, "size");
  const name = hasOwn(description, "name") ? ownField(description, "name") : undefined;
  if (!isSafeInteger(id) || typeof mime !== "string" || !isSafeInteger(size) || size < 0 ||
      (name !== undefined && typeof name !== "string")) {
    throw new InternalError("the host's reply has a malformed handle");
  }
  return new Handle(SECRET, id, mime, size, name);
}

function memberOf(holder, key) {
  if (typeof key !== (isArray(holder) ? "number" : "string")) throw missingPlace();
  return ownField(holder, key);
}

function placeHandles(value, handles) {
  if (!isArray(handles)) throw missingPlace();
  for (let i = 0; i < handles.length; i++) {
    const path = ownField(handles[i], 0);
    const handle = makeHandle(ownField(handles[i], 1));
    if (!isArray(path)) throw missingPlace();
    if (path.length === 0) {
      if (value !== null) throw missingPlace();
      value = handle;
      continue;
    }
    let holder = value;
    for (let k = 0; k < path.length - 1; k++) holder = memberOf(holder, path[k]);
    const key = path[path.length - 1];
    if (memberOf(holder, key) !== null) throw missingPlace();
    define(holder, key, handle);
  }
  return value;
}

shared.Handle = Handle;
shared.isHandle = isHandle;
shared.placeHandles = placeHandles;
