// kindOf(object): the name of the builtin that an object is, by its internal slots; for structuredClone and console.
//
// The prototype chain gives a candidate, and one of that builtin's own methods confirms it. Neither toStringTag nor
// `constructor` is read, so none of the program's code runs (except a Proxy's traps, which can't be avoided from here).

const { apply, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
const { isArray } = Array;
const uncurry = (method) => Function.prototype.call.bind(method);
const getMap = uncurry(Map.prototype.get);

const LONGEST_CHAIN = 1000; // a Proxy could make one without end

const typedArrayPrototype = getPrototypeOf(Uint8Array.prototype);
const noArguments = [];
const oneObject = [{}];

// A predicate: whether `method` accepts the object as its `this`.
function accepts(method, argumentList = noArguments) {
  return (object) => {
    try {
      apply(method, object, argumentList);
      return true;
    } catch {
      return false;
    }
  };
}

const getter = (prototype, name) => getOwnPropertyDescriptor(prototype, name).get;
const always = () => true;
const typedArrayName = uncurry(getter(typedArrayPrototype, Symbol.toStringTag));
const { isError } = Error;

const entries = [
  [Object.prototype, "Object", always],
  [Map.prototype, "Map", accepts(getter(Map.prototype, "size"))],
  [Set.prototype, "Set", accepts(getter(Set.prototype, "size"))],
  [WeakMap.prototype, "WeakMap", accepts(WeakMap.prototype.has, oneObject)],
  [WeakSet.prototype, "WeakSet", accepts(WeakSet.prototype.has, oneObject)],
  [WeakRef.prototype, "WeakRef", accepts(WeakRef.prototype.deref)],
  [Promise.prototype, "Promise", always],
  [Date.prototype, "Date", accepts(Date.prototype.getTime)],
  [RegExp.prototype, "RegExp", accepts(getter(RegExp.prototype, "source"))],
  [DOMException.prototype, "DOMException", accepts(getter(DOMException.prototype, "name"))],
  [Error.prototype, "Error", isError],
  [shared.Handle.prototype, "Handle", shared.isHandle],
  [ArrayBuffer.prototype, "ArrayBuffer", accepts(getter(ArrayBuffer.prototype, "byteLength"))],
  [DataView.prototype, "DataView", accepts(getter(DataView.prototype, "byteLength"))],
  [typedArrayPrototype, "TypedArray", (object) => typedArrayName(object) !== undefined],
  [Boolean.prototype, "Boolean", accepts(Boolean.prototype.valueOf)],
  [Number.prototype, "Number", accepts(Number.prototype.valueOf)],
  [String.prototype, "String", accepts(String.prototype.valueOf)],
  [Symbol.prototype, "Symbol", accepts(Symbol.prototype.valueOf)],
  [BigInt.prototype, "BigInt", accepts(BigInt.prototype.valueOf)],
  [getPrototypeOf((function* () {}).prototype), "Generator", always],
  [getPrototypeOf((async function* () {}).prototype), "AsyncGenerator", always],
];
const kindOfPrototype = new Map(entries.map(([prototype, kind, check]) => [prototype, { kind, check }]));

shared.kindOf = function kindOf(object) {
  if (typeof object === "function") return "Function";
  if (isArray(object)) return "Array";
  let prototype = getPrototypeOf(object);
  for (let steps = 0; prototype !== null && steps < LONGEST_CHAIN; steps++) {
    const found = getMap(kindOfPrototype, prototype);
    if (found !== undefined) {
      const { kind, check } = found;
      // The prototypes themselves (Map.prototype, say) are in the chains of nothing but ordinary objects.
      return check(object) ? kind : "Object";
    }
    prototype = getPrototypeOf(prototype);
  }
  return "Object";
};

shared.unbox = {
  __proto__: null,
  Boolean: uncurry(Boolean.prototype.valueOf), Number: uncurry(Number.prototype.valueOf),
  String: uncurry(String.prototype.valueOf), Symbol: uncurry(Symbol.prototype.valueOf),
  BigInt: uncurry(BigInt.prototype.valueOf),
};
