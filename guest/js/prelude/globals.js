// Small globals: crypto, performance, toJSON of Map, Set, Error and typed arrays; registers the hooks.
const { apply, getPrototypeOf } = Reflect;
const { defineProperty } = Object;
const install = (target, name, value) => defineProperty(target, name, { value, writable: true, configurable: true });

// ---- crypto: from the run's seed
const MAX_RANDOM_BYTES = 65536;
const hexadecimal = [];
for (let i = 0; i < 256; i++) hexadecimal[i] = (i < 16 ? "0" : "") + i.toString(16);

function uuidFrom(bytes) {
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  let text = "";
  for (let i = 0; i < 16; i++) {
    if (i === 4 || i === 6 || i === 8 || i === 10) text += "-";
    text += hexadecimal[bytes[i]];
  }
  return text;
}

const isView = ArrayBuffer.isView;
const Bytes = Uint8Array;
const crypto = {
  randomUUID() {
    const bytes = new Bytes(16);
    native.randomFill(bytes);
    return uuidFrom(bytes);
  },
  getRandomValues(array) {
    if (!isView(array) || array instanceof DataView || array instanceof Float32Array || array instanceof Float64Array) {
      throw new TypeError("crypto.getRandomValues takes an integer typed array");
    }
    if (array.byteLength > MAX_RANDOM_BYTES) {
      const message = `crypto.getRandomValues gives at most ${MAX_RANDOM_BYTES} bytes at once`;
      throw new DOMException(message, "QuotaExceededError");
    }
    native.randomFill(new Bytes(array.buffer, array.byteOffset, array.byteLength));
    return array;
  },
};
defineProperty(crypto, Symbol.toStringTag, { value: "Crypto", configurable: true });
install(globalThis, "crypto", crypto);

// ---- performance: milliseconds since the run began
const now = native.now;
const performance = { now: () => now() };
defineProperty(performance, "timeOrigin", { get: () => Date.now() - now(), enumerable: true, configurable: true });
install(globalThis, "performance", performance);

// ---- JSON: toJSON for values that would silently become {}
install(Map.prototype, "toJSON", function toJSON() {
  const object = {};
  const entries = [];
  let plain = true;
  for (const [key, value] of this) {
    entries[entries.length] = [key, value];
    if (typeof key === "string") {
      defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
    } else {
      plain = false;
    }
  }
  return plain ? object : entries;
});
install(Promise.prototype, "toJSON", function toJSON() {
  throw new TypeError("the value contains a promise: await it (for a list of promises, await Promise.all(list))");
});
install(Set.prototype, "toJSON", function toJSON() { return [...this]; });
install(Error.prototype, "toJSON", function toJSON() {
  return { name: `${this.name}`, message: `${this.message}`, ...this };
});
install(getPrototypeOf(Bytes.prototype), "toJSON", function toJSON() { return [...this]; });

// Raw JSON could hold numbers that other parsers refuse (1e999).
delete JSON.rawJSON;
delete JSON.isRawJSON;

// ---- the run's value: a promise is awaited, a default-exported function is called
const sourceOf = Function.prototype.toString;
const isClass = (value) => apply(startsWith, apply(sourceOf, value, []), ["class"]);
const startsWith = String.prototype.startsWith;
shared.hooks.awaitValue = async (value, isDefaultExport) => {
  if (isDefaultExport && typeof value === "function" && !isClass(value)) {
    return { __proto__: null, value: await value() };
  }
  return { __proto__: null, value: await value };
};
native.hooks(shared.hooks);
