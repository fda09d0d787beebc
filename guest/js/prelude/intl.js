// Intl: the namespace, locale lists, option reading, and how a formatter class is defined. The one language is en-US.
//
// Every valid language tag is accepted and falls back to en-US, as ECMA-402 allows. A value of an option that isn't
// implemented is a RangeError that lists the supported ones.

const LANGUAGE_TAG = /^(?:[a-z]{2,3}|[a-z]{5,8})(?:-[a-z0-9]{1,8})*$/i;
const hidden = { writable: true, configurable: true, enumerable: false };

function localeList(locales) {
  if (locales === undefined) return [];
  const tags = typeof locales === "string" ? [locales] : Array.from(locales, String);
  for (const tag of tags) {
    if (!LANGUAGE_TAG.test(tag)) throw new RangeError(`Incorrect locale information provided: ${tag.slice(0, 40)}`);
  }
  return tags;
}

// Reads and validates the options of one formatter.
class Options {
  constructor(service, options) {
    if (options === null) throw new TypeError(`Intl.${service} called on null or undefined`);
    this.service = service;
    this.values = options === undefined ? {} : Object(options);
  }

  text(name, supported, fallback) {
    const value = this.values[name];
    if (value === undefined) return fallback;
    const text = String(value);
    if (supported !== null && !supported.includes(text)) {
      const list = supported.map((known) => `"${known}"`).join(", ");
      throw new RangeError(`Intl.${this.service} doesn't support ${name}: "${text}" here. Supported: ${list}`);
    }
    return text;
  }

  boolean(name, fallback) {
    const value = this.values[name];
    return value === undefined ? fallback : Boolean(value);
  }

  number(name, minimum, maximum, fallback) {
    const value = this.values[name];
    if (value === undefined) return fallback;
    const number = Number(value);
    if (!(number >= minimum && number <= maximum)) throw new RangeError(`${name} value is out of range.`);
    return Math.floor(number);
  }
}

// Defines Intl[name]. `create(locales, options)` returns the methods of one formatter: they need no `this`, as in
// `numbers.map(formatter.format)`. The constructor works without `new`, too.
function defineFormatter(name, create) {
  const formatter = {
    [name]: function (locales = undefined, options = undefined) {
      const methods = create(localeList(locales), new Options(name, options));
      const instance = Object.create(new.target === undefined ? formatter.prototype : new.target.prototype);
      for (const key in methods) Object.defineProperty(instance, key, { value: methods[key], ...hidden });
      return instance;
    },
  }[name];
  const supportedLocalesOf = (tags) => localeList(tags).filter((tag) => /^en(?:-|$)/i.test(tag));
  Object.defineProperty(formatter, "supportedLocalesOf", { value: supportedLocalesOf, ...hidden });
  Object.defineProperty(formatter.prototype, Symbol.toStringTag, { value: `Intl.${name}`, configurable: true });
  Object.defineProperty(Intl, name, { value: formatter, ...hidden });
  return formatter;
}

function defineMethod(prototype, name, method) {
  Object.defineProperty(method, "name", { value: name });
  Object.defineProperty(prototype, name, { value: method, ...hidden });
}

const Intl = Object.create(Object.prototype, { [Symbol.toStringTag]: { value: "Intl", configurable: true } });
Object.defineProperty(globalThis, "Intl", { value: Intl, ...hidden });

const joinParts = (parts) => parts.map((part) => part.value).join("");
shared.intl = { Options, defineFormatter, defineMethod, joinParts, localeList };
