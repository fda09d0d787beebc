// Intl.Collator with String.prototype.localeCompare, Intl.ListFormat and Intl.RelativeTimeFormat.
//
// The collator is a small stand-in for the Unicode collation algorithm: punctuation, symbols, digits, Latin letters,
// then other letters by code point; accents and case only decide between strings that are otherwise equal.

const { defineFormatter, defineMethod, joinParts } = shared.intl;

const ASCII_ORDER = "\t\n\v\f\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz";
const ASCII_WEIGHTS = new Uint8Array(128);
for (let index = 0; index < ASCII_ORDER.length; index++) {
  ASCII_WEIGHTS[ASCII_ORDER.charCodeAt(index)] = ASCII_WEIGHTS[ASCII_ORDER.toUpperCase().charCodeAt(index)] = 1 + index;
}
// Letters that NFKD leaves whole, and the letters under which they are sorted.
const SPELLINGS = { ß: "ss", æ: "ae", œ: "oe", ø: "o", đ: "d", ł: "l", þ: "th", ð: "d" };

const isAscii = (text) => !/[^\0-\x7f]/.test(text);
const isDigit = (code) => code >= 0x30 && code <= 0x39;
const order = (left, right) => (left < right ? -1 : left > right ? 1 : 0);
const spell = (letter) => SPELLINGS[letter];
const baseLetters = (text) => text.toLowerCase().replace(/\p{M}/gu, "").replace(/[ßæœøđłþð]/g, spell);

function endOfDigits(text, index) {
  while (isDigit(text.charCodeAt(index))) index++;
  return index;
}

function compareNumbers(left, right) {
  left = left.replace(/^0+/, "");
  right = right.replace(/^0+/, "");
  return order(left.length, right.length) || order(left, right);
}

function compareLetters(left, right, numeric) {
  let at = 0;
  let to = 0; // the place in `right`: they differ once numbers of different lengths have been equal
  for (; at < left.length && to < right.length; at++, to++) {
    const leftCode = left.charCodeAt(at);
    const rightCode = right.charCodeAt(to);
    if (numeric && isDigit(leftCode) && isDigit(rightCode)) {
      const [end, last] = [endOfDigits(left, at), endOfDigits(right, to)];
      const result = compareNumbers(left.slice(at, end), right.slice(to, last));
      if (result !== 0) return result;
      [at, to] = [end - 1, last - 1];
    } else if (leftCode !== rightCode) {
      const result = order(ASCII_WEIGHTS[leftCode] ?? leftCode, ASCII_WEIGHTS[rightCode] ?? rightCode);
      if (result !== 0) return result;
    }
  }
  return order(left.length - at, right.length - to);
}

function compare(left, right, sensitivity, numeric) {
  left = String(left);
  right = String(right);
  if (left === right) return 0;
  const plain = isAscii(left) && isAscii(right);
  if (!plain) [left, right] = [left.normalize("NFKD"), right.normalize("NFKD")];
  const base = plain ? (text) => text : baseLetters;
  const letters = compareLetters(base(left), base(right), numeric);
  if (letters !== 0 || sensitivity === "base") return letters;
  if (!plain) {
    const accents = order(left.toLowerCase(), right.toLowerCase());
    if (accents !== 0) return accents;
  }
  return sensitivity === "accent" ? 0 : order(right, left); // a capital has the lower code, and comes second
}

const Collator = defineFormatter("Collator", (locales, options) => {
  const usage = options.text("usage", ["sort", "search"], "sort");
  const sensitivity = options.text("sensitivity", ["base", "accent", "variant"], "variant");
  const numeric = options.boolean("numeric", false);
  options.text("ignorePunctuation", ["false"]);
  options.text("caseFirst", ["lower", "false"]);
  return {
    compare: (left, right) => compare(left, right, sensitivity, numeric),
    resolvedOptions: () => ({ locale: "en-US", usage, sensitivity, numeric, collation: "default" }),
  };
});

defineMethod(String.prototype, "localeCompare", function (that, locales = undefined, options = undefined) {
  if (locales === undefined && options === undefined) return compare(this, that, "variant", false);
  return new Collator(locales, options).compare(this, that);
});

const LIST_WORDS = { conjunction: "and ", disjunction: "or ", unit: "" };

function listToParts(word, list = []) {
  const elements = Array.from(list);
  return elements.flatMap((value, index) => {
    if (typeof value !== "string") throw new TypeError(`Iterable yielded ${String(value)} which is not a string`);
    const element = { type: "element", value };
    if (index === 0) return [element];
    const comma = elements.length === 2 && word !== "" ? " " : ", ";
    return [{ type: "literal", value: comma + (index === elements.length - 1 ? word : "") }, element];
  });
}

defineFormatter("ListFormat", (locales, options) => {
  const type = options.text("type", Object.keys(LIST_WORDS), "conjunction");
  const style = options.text("style", ["long"], "long");
  return {
    format: (list) => joinParts(listToParts(LIST_WORDS[type], list)),
    formatToParts: (list) => listToParts(LIST_WORDS[type], list),
    resolvedOptions: () => ({ locale: "en-US", type, style }),
  };
});

const UNITS = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];
const DAYS = { "-1": "yesterday", 0: "today", 1: "tomorrow" };

// "tomorrow", "last year"; undefined where only a number will do.
function timeWord(value, unit) {
  if (unit === "day") return DAYS[value];
  if (unit === "second") return value === 0 ? "now" : undefined;
  if (unit === "hour" || unit === "minute") return value === 0 ? `this ${unit}` : undefined;
  return Math.abs(value) <= 1 && Number.isInteger(value) ? `${["last", "this", "next"][value + 1]} ${unit}` : undefined;
}

const { formatToParts: numberToParts } = new Intl.NumberFormat();

function timeToParts(value, unit, numeric) {
  value = Number(value);
  unit = String(unit).replace(/s$/, "");
  if (!UNITS.includes(unit)) throw new RangeError(`Invalid unit for Intl.RelativeTimeFormat: '${unit}'`);
  if (!Number.isFinite(value)) throw new RangeError("Intl.RelativeTimeFormat takes a finite number");
  const word = numeric === "auto" ? timeWord(value, unit) : undefined;
  if (word !== undefined) return [{ type: "literal", value: word }];
  const name = Math.abs(value) === 1 ? unit : `${unit}s`;
  const number = numberToParts(Math.abs(value)).map((part) => ({ ...part, unit }));
  if (value < 0 || Object.is(value, -0)) return [...number, { type: "literal", value: ` ${name} ago` }];
  return [{ type: "literal", value: "in " }, ...number, { type: "literal", value: ` ${name}` }];
}

defineFormatter("RelativeTimeFormat", (locales, options) => {
  const numeric = options.text("numeric", ["always", "auto"], "always");
  const style = options.text("style", ["long"], "long");
  return {
    format: (value, unit) => joinParts(timeToParts(value, unit, numeric)),
    formatToParts: (value, unit) => timeToParts(value, unit, numeric),
    resolvedOptions: () => ({ locale: "en-US", style, numeric, numberingSystem: "latn" }),
  };
});
