// The frame of Intl: the namespace, locale lists, option reading, and how its classes are made; en-US is all it knows.
//
// A locale that isn't known falls back to the default one, as ECMA-402 allows: every valid language tag is accepted,
// and resolvedOptions().locale says "en-US". (DateTimeFormat knows the numeric dates of a few more.)

const LANGUAGE_TAG = /^(?:[a-z]{2,3}|[a-z]{5,8})(?:-[a-z0-9]{1,8})*$/i;
const LOCALE = "en-US";
const hidden = { writable: true, configurable: true, enumerable: false };

function localeList(locales) {
  if (locales === undefined) return [];
  if (locales === null) throw new TypeError("Cannot convert undefined or null to object");
  const list = typeof locales === "string" ? [locales] : Array.from(locales);
  return list.map((locale) => {
    if (typeof locale !== "string" && (typeof locale !== "object" || locale === null)) {
      throw new TypeError("Language ID should be string or object.");
    }
    const tag = `${locale}`;
    if (!LANGUAGE_TAG.test(tag)) throw new RangeError(`Incorrect locale information provided: ${tag.slice(0, 40)}`);
    return canonicalTag(tag);
  });
}

// "EN-us-LATN" -> "en-US-Latn"; what follows a single-character subtag is in lower case.
function canonicalTag(tag) {
  let extension = false;
  return tag.toLowerCase().split("-").map((part, index) => {
    if (part.length === 1) extension = true;
    if (index === 0 || extension) return part;
    if (part.length === 2) return part.toUpperCase();
    return part.length === 4 && /^[a-z]/.test(part) ? part[0].toUpperCase() + part.slice(1) : part;
  }).join("-");
}

// Reads options one by one, each checked against the values it may have.
class Options {
  #values;
  #service;

  constructor(service, options) {
    if (options === null) throw new TypeError(`Intl.${service} called on null or undefined`);
    this.#values = options === undefined ? Object.create(null) : Object(options);
    this.#service = service;
  }

  raw(name) {
    return this.#values[name];
  }

  text(name, allowed, fallback) {
    const value = this.#values[name];
    if (value === undefined) return fallback;
    const text = String(value);
    if (allowed !== null && !allowed.includes(text)) {
      throw new RangeError(`Value ${text} out of range for Intl.${this.#service} options property ${name}`);
    }
    return text;
  }

  boolean(name, fallback) {
    const value = this.#values[name];
    return value === undefined ? fallback : Boolean(value);
  }

  number(name, minimum, maximum, fallback) {
    const value = this.#values[name];
    if (value === undefined) return fallback;
    const number = Number(value);
    if (!(number >= minimum && number <= maximum)) throw new RangeError(`${name} value is out of range.`);
    return Math.floor(number);
  }
}

const Intl = Object.create(Object.prototype, { [Symbol.toStringTag]: { value: "Intl", configurable: true } });

// Makes Intl[name]. `create(locales, options)` gives an instance's state, which each of `methods` gets as its first
// argument. Those in `bound` are getters of a function that needs no `this`, as in `numbers.map(format.format)`.
function defineService(name, { create, methods, bound = {}, callable = false }) {
  const states = new WeakMap();

  function stateOf(instance, method) {
    const state = states.get(instance);
    if (state !== undefined) return state;
    throw new TypeError(`Method Intl.${name}.prototype.${method} called on incompatible receiver`);
  }

  function construct(instance, locales, options) {
    states.set(instance, create(localeList(locales), new Options(name, options)));
  }

  const service = {
    [name]: function (locales = undefined, options = undefined) {
      if (new.target === undefined) {
        if (!callable) throw new TypeError(`Constructor Intl.${name} requires 'new'`);
        return new service(locales, options);
      }
      construct(this, locales, options);
    },
  }[name];
  Object.defineProperty(service, "length", { value: 0 });
  const supportedLocalesOf = (tags) => localeList(tags).filter((tag) => /^en(?:-|$)/.test(tag));
  Object.defineProperty(service, "supportedLocalesOf", { value: supportedLocalesOf, ...hidden });
  for (const [key, method] of Object.entries(methods)) {
    const value = {
      [key](...argumentList) {
        return method(stateOf(this, key), ...argumentList);
      },
    }[key];
    Object.defineProperty(service.prototype, key, { value, ...hidden });
  }
  for (const [key, method] of Object.entries(bound)) {
    const get = {
      [key]() {
        const state = stateOf(this, key);
        state.bound ??= {};
        state.bound[key] ??= (...argumentList) => method(state, ...argumentList);
        return state.bound[key];
      },
    }[key];
    Object.defineProperty(service.prototype, key, { get, configurable: true, enumerable: false });
  }
  Object.defineProperty(service.prototype, "constructor", { value: service, ...hidden });
  Object.defineProperty(service.prototype, Symbol.toStringTag, { value: `Intl.${name}`, configurable: true });
  Object.defineProperty(Intl, name, { value: service, ...hidden });
  return service;
}

const getCanonicalLocales = (locales = undefined) => [...new Set(localeList(locales))];
const joinParts = (parts) => parts.map((part) => part.value).join("");

Object.defineProperty(Intl, "getCanonicalLocales", { value: getCanonicalLocales, ...hidden });
Object.defineProperty(globalThis, "Intl", { value: Intl, ...hidden });
shared.locale = { LOCALE, Options, defineService, joinParts, localeList };
