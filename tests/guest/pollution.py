"""A program that replaces every builtin that a prelude could rely on, and records uses of them."""

from __future__ import annotations

# `ran` lists the replacements that were called. Index loops, as iterators are replaced too.
POLLUTION = """
const ran = [];
const tell = (name) => function () { ran[ran.length] = name; throw new TypeError("polluted: " + name); };
const { ownKeys, getOwnPropertyDescriptor, defineProperty } = Reflect;
const victims = [
  Array.prototype, String.prototype, Map.prototype, RegExp.prototype, Function.prototype, Number.prototype,
  Uint8Array, Number, Object, Array, Reflect, JSON, Math, Error, Promise.prototype,
  Reflect.getPrototypeOf([][Symbol.iterator]()),
];
for (let i = 0; i < victims.length; i++) {
  const keys = ownKeys(victims[i]);
  for (let k = 0; k < keys.length; k++) {
    const key = keys[k];
    if (key === "constructor" || key === "prototype" || key === "length" || key === "name") continue;
    if (!getOwnPropertyDescriptor(victims[i], key).configurable) continue;
    const value = tell(typeof key === "symbol" ? "a symbol" : key);
    defineProperty(victims[i], key, { __proto__: null, configurable: true, value });
  }
}
const names = [
  "id", "mime", "size", "name", "value", "get", "set", "writable", "enumerable", "configurable", "limit", "errors",
  "done", "next", "target", "frame", "handles", "ok", "\\0handle",
];
for (let i = 0; i < names.length; i++) {
  const get = tell("get " + names[i]), set = tell("set " + names[i]);
  defineProperty(Object.prototype, names[i], { __proto__: null, configurable: true, get, set });
}
"""

# The end of a program is the engine's own, and minds what is on Object.prototype.
CLEAN_UP = "for (let i = 0; i < names.length; i++) delete Object.prototype[names[i]];"
