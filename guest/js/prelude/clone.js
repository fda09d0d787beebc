// structuredClone: deep copies with cycles and builtin types, as the HTML standard describes them.
//
// Uses a work list instead of recursion, so that memory alone bounds the depth of a value, not the stack.

const { kindOf, unbox } = shared;
const { getOwnPropertyDescriptor, getPrototypeOf, defineProperty } = Reflect;
const { keys } = Object;
const uncurry = (method) => Function.prototype.call.bind(method);
const getter = (prototype, name) => uncurry(getOwnPropertyDescriptor(prototype, name).get);

const typedArrayPrototype = getPrototypeOf(Uint8Array.prototype);
const typedArrayName = getter(typedArrayPrototype, Symbol.toStringTag);
const typedArrayBuffer = getter(typedArrayPrototype, "buffer");
const typedArrayOffset = getter(typedArrayPrototype, "byteOffset");
const typedArrayLength = getter(typedArrayPrototype, "length");
const dataViewBuffer = getter(DataView.prototype, "buffer");
const dataViewOffset = getter(DataView.prototype, "byteOffset");
const dataViewLength = getter(DataView.prototype, "byteLength");
const regExpSource = getter(RegExp.prototype, "source");
const regExpFlags = getter(RegExp.prototype, "flags");
const sliceBuffer = uncurry(ArrayBuffer.prototype.slice);
const getTime = uncurry(Date.prototype.getTime);
const forEachEntry = uncurry(Map.prototype.forEach);
const forEachMember = uncurry(Set.prototype.forEach);

const typedArrays = {
  __proto__: null,
  Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array,
  BigInt64Array, BigUint64Array, Float16Array, Float32Array, Float64Array,
};
const errors = { __proto__: null, Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
const NOT_CLONEABLE = [
  "Function", "Symbol", "WeakMap", "WeakSet", "WeakRef", "Promise", "Generator", "AsyncGenerator", "Handle",
];

function cannotClone(value, kind) {
  if (kind === "Handle") {
    const advice = "a handle can't be cloned: use it as it is, or clone what its .json(), .text() or .bytes() gives";
    return new DOMException(`${value}: ${advice}`, "DataCloneError");
  }
  const text = kind === undefined || kind === "Function" ? String(value) : `#<${kind}>`;
  return new DOMException(`${text} could not be cloned.`, "DataCloneError");
}

function setProperty(target, key, value) {
  if (key === "__proto__") defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
  else target[key] = value;
}

function defineHidden(target, key, value) {
  defineProperty(target, key, { value, writable: true, enumerable: false, configurable: true });
}

class Cloner {
  #copies = new Map(); // original -> copy
  #unfilled = []; // functions that put the contents into a copy made before

  clone(root) {
    const copy = this.#copy(root);
    while (this.#unfilled.length > 0) this.#unfilled.pop()();
    return copy;
  }

  #copy(value) {
    if (typeof value === "symbol") throw cannotClone(value);
    if ((typeof value !== "object" || value === null) && typeof value !== "function") return value;
    const known = this.#copies.get(value);
    if (known !== undefined) return known;
    const kind = kindOf(value);
    if (NOT_CLONEABLE.includes(kind)) throw cannotClone(value, kind);
    const copy = this.#begin(value, kind);
    this.#copies.set(value, copy);
    return copy;
  }

  // Creates the copy of an object; contents that may refer back to it are filled in later.
  #begin(value, kind) {
    switch (kind) {
      case "Array": {
        const copy = new Array(value.length);
        this.#unfilled.push(() => this.#fillProperties(value, copy));
        return copy;
      }
      case "Map": {
        const copy = new Map();
        this.#unfilled.push(() => forEachEntry(value, (item, key) => copy.set(this.#copy(key), this.#copy(item))));
        return copy;
      }
      case "Set": {
        const copy = new Set();
        this.#unfilled.push(() => forEachMember(value, (member) => copy.add(this.#copy(member))));
        return copy;
      }
      case "Boolean":
      case "Number":
      case "String":
      case "BigInt":
        return Object(unbox[kind](value));
      case "Date":
        return new Date(getTime(value));
      case "RegExp":
        return new RegExp(regExpSource(value), regExpFlags(value));
      case "ArrayBuffer":
        return sliceBuffer(value, 0);
      case "TypedArray": {
        const constructor = typedArrays[typedArrayName(value)];
        return new constructor(this.#copy(typedArrayBuffer(value)), typedArrayOffset(value), typedArrayLength(value));
      }
      case "DataView":
        return new DataView(this.#copy(dataViewBuffer(value)), dataViewOffset(value), dataViewLength(value));
      case "DOMException":
        return new DOMException(value.message, value.name);
      case "Error":
        return this.#beginError(value);
      default: {
        const copy = {};
        this.#unfilled.push(() => this.#fillProperties(value, copy));
        return copy;
      }
    }
  }

  #beginError(value) {
    const { name, stack } = value;
    const copy = new (errors[name] ?? Error)();
    const message = getOwnPropertyDescriptor(value, "message");
    if (message !== undefined && "value" in message) defineHidden(copy, "message", String(message.value));
    if (typeof stack === "string") defineHidden(copy, "stack", stack);
    const cause = getOwnPropertyDescriptor(value, "cause");
    if (cause !== undefined && "value" in cause) {
      this.#unfilled.push(() => defineHidden(copy, "cause", this.#copy(cause.value)));
    }
    return copy;
  }

  #fillProperties(source, target) {
    const names = keys(source);
    for (let index = 0; index < names.length; index++) {
      setProperty(target, names[index], this.#copy(source[names[index]]));
    }
  }
}

function structuredClone(value, options = undefined) {
  if (arguments.length === 0) throw new TypeError("The value argument must be specified");
  if (options?.transfer?.length) {
    throw new TypeError("structuredClone doesn't support transfer here: leave it out, to copy");
  }
  return new Cloner().clone(value);
}

Object.defineProperty(globalThis, "structuredClone", { value: structuredClone, writable: true, configurable: true });
