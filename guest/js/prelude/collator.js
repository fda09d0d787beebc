// Intl.Collator and String.prototype.localeCompare: alphabetical order by letter, then accent, then case.
//
// A small stand-in for the Unicode collation algorithm: punctuation, symbols, digits, Latin letters, other letters by
// code point; accents and case only decide between strings that are otherwise equal.

const { LOCALE, defineService } = shared.locale;

const CONTROL = 0; // ignored
const SYMBOL = 1000;
const CURRENCY = 2_000_000;
const DIGIT = 4_000_000;
const LATIN = 5_000_000;
const OTHER = 6_000_000;

const ASCII_WEIGHTS = new Uint32Array(128);
const SYMBOLS_IN_ORDER = "\t\n\v\f\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~";
for (let index = 0; index < SYMBOLS_IN_ORDER.length; index++) {
  ASCII_WEIGHTS[SYMBOLS_IN_ORDER.charCodeAt(index)] = 1 + index;
}
ASCII_WEIGHTS[0x24] = CURRENCY;
for (let digit = 0; digit < 10; digit++) ASCII_WEIGHTS[0x30 + digit] = DIGIT + digit;
for (let letter = 0; letter < 26; letter++) {
  ASCII_WEIGHTS[0x61 + letter] = ASCII_WEIGHTS[0x41 + letter] = LATIN + letter;
}

// Letters that NFKD leaves whole, spelt as what they are sorted under. The mark makes them differ from just that.
const SPELLINGS = {
  ß: "ss\u0338", æ: "ae\u0338", Æ: "AE\u0338", œ: "oe\u0338", Œ: "OE\u0338", ø: "o\u0338", Ø: "O\u0338",
  đ: "d\u0338", Đ: "D\u0338", ł: "l\u0338", Ł: "L\u0338", þ: "th\u0338", Þ: "TH\u0338", ð: "d\u0338", Ð: "D\u0338",
};

const isAscii = (text) => !/[^\0-\x7f]/.test(text);
const decompose = (text) =>
  isAscii(text) ? text : text.normalize("NFKD").replace(/[ßæÆœŒøØđĐłŁþÞðÐ]/g, (letter) => SPELLINGS[letter]);

function weightOf(codePoint) {
  if (codePoint < 128) return ASCII_WEIGHTS[codePoint];
  const character = String.fromCodePoint(codePoint);
  if (/\p{M}|\p{Cc}|\p{Cf}/u.test(character)) return CONTROL;
  if (/\p{Sc}/u.test(character)) return CURRENCY + codePoint;
  if (/\p{P}|\p{S}|\p{Z}/u.test(character)) return SYMBOL + codePoint;
  return OTHER + character.toLowerCase().codePointAt(0);
}

const isDigit = (text, index) => index < text.length && text[index] >= "0" && text[index] <= "9";

// The run of digits at `index`, without leading zeros.
function numberAt(text, index) {
  let end = index;
  while (isDigit(text, end)) end++;
  let start = index;
  while (start < end - 1 && text[start] === "0") start++;
  return { digits: text.slice(start, end), end };
}

const order = (left, right) => (left < right ? -1 : left > right ? 1 : 0);

function compareLetters(left, right, { numeric, ignorePunctuation }) {
  let leftIndex = 0;
  let rightIndex = 0;
  const ignored = ignorePunctuation ? CURRENCY - 1 : CONTROL; // everything up to this weight
  for (;;) {
    let leftWeight = 0;
    let rightWeight = 0;
    while (leftIndex < left.length && leftWeight <= ignored) {
      const codePoint = left.codePointAt(leftIndex);
      leftIndex += codePoint > 0xffff ? 2 : 1;
      leftWeight = weightOf(codePoint);
    }
    while (rightIndex < right.length && rightWeight <= ignored) {
      const codePoint = right.codePointAt(rightIndex);
      rightIndex += codePoint > 0xffff ? 2 : 1;
      rightWeight = weightOf(codePoint);
    }
    if (leftWeight <= ignored || rightWeight <= ignored) {
      return order(leftWeight > ignored ? 1 : 0, rightWeight > ignored ? 1 : 0);
    }
    if (numeric && isDigit(left, leftIndex - 1) && isDigit(right, rightIndex - 1)) {
      const leftNumber = numberAt(left, leftIndex - 1);
      const rightNumber = numberAt(right, rightIndex - 1);
      const longer = order(leftNumber.digits.length, rightNumber.digits.length);
      const result = longer || order(leftNumber.digits, rightNumber.digits);
      if (result !== 0) return result;
      leftIndex = leftNumber.end;
      rightIndex = rightNumber.end;
      continue;
    }
    if (leftWeight !== rightWeight) return leftWeight < rightWeight ? -1 : 1;
  }
}

// Every base character becomes the same low one, so that only the marks and where they stand count.
const accentsOf = (text) => text.replace(/\P{M}/gu, "\x01");
const compareAccents = (left, right) =>
  isAscii(left) && isAscii(right) ? 0 : order(accentsOf(left), accentsOf(right));

function compareCase(left, right, upperFirst) {
  const [leftLower, rightLower] = [left.toLowerCase(), right.toLowerCase()];
  const length = Math.min(left.length, right.length);
  for (let index = 0; index < length; index++) {
    const result = order(left[index] !== leftLower[index], right[index] !== rightLower[index]);
    if (result !== 0) return upperFirst ? -result : result;
  }
  return 0;
}

// The common case at five times the speed; undefined if there is anything but printable ASCII.
function compareAscii(left, right, { sensitivity, caseFirst }) {
  const length = Math.min(left.length, right.length);
  let caseOrder = 0;
  for (let index = 0; index < length; index++) {
    const leftCode = left.charCodeAt(index);
    const rightCode = right.charCodeAt(index);
    const leftWeight = ASCII_WEIGHTS[leftCode]; // undefined outside ASCII
    const rightWeight = ASCII_WEIGHTS[rightCode];
    if (!leftWeight || !rightWeight) return undefined;
    if (leftWeight !== rightWeight) return leftWeight < rightWeight ? -1 : 1;
    if (caseOrder === 0 && leftCode !== rightCode) caseOrder = leftCode > rightCode ? -1 : 1;
  }
  if (left.length !== right.length) {
    const rest = left.length > length ? left.charCodeAt(length) : right.charCodeAt(length);
    return ASCII_WEIGHTS[rest] ? order(left.length, right.length) : undefined;
  }
  if (sensitivity === "base" || sensitivity === "accent") return 0;
  return caseFirst === "upper" ? -caseOrder : caseOrder;
}

function compare(state, left, right) {
  left = String(left);
  right = String(right);
  if (left === right) return 0;
  if (!state.numeric && !state.ignorePunctuation) {
    const result = compareAscii(left, right, state);
    if (result !== undefined) return result;
  }
  left = decompose(left);
  right = decompose(right);
  const { sensitivity } = state;
  let result = compareLetters(left, right, state);
  if (result === 0 && (sensitivity === "accent" || sensitivity === "variant")) result = compareAccents(left, right);
  if (result === 0 && (sensitivity === "case" || sensitivity === "variant")) {
    result = compareCase(left, right, state.caseFirst === "upper");
  }
  return result;
}

const Collator = defineService("Collator", {
  create: (locales, options) => ({
    usage: options.text("usage", ["sort", "search"], "sort"),
    sensitivity: options.text("sensitivity", ["base", "accent", "case", "variant"], "variant"),
    ignorePunctuation: options.boolean("ignorePunctuation", false),
    numeric: options.boolean("numeric", false),
    caseFirst: options.text("caseFirst", ["upper", "lower", "false"], "false"),
  }),
  callable: true,
  bound: { compare },
  methods: {
    resolvedOptions: ({ usage, sensitivity, ignorePunctuation, numeric, caseFirst }) => ({
      locale: LOCALE, usage, sensitivity, ignorePunctuation, collation: "default", numeric, caseFirst,
    }),
  },
});

const { compare: compareByDefault } = new Collator();
const { localeCompare } = {
  localeCompare(that, locales = undefined, options = undefined) {
    if (this === undefined || this === null) {
      throw new TypeError("String.prototype.localeCompare called on null or undefined");
    }
    if (locales === undefined && options === undefined) return compareByDefault(this, that);
    return new Collator(locales, options).compare(this, that);
  },
};
Object.defineProperty(localeCompare, "length", { value: 1 });
Object.defineProperty(String.prototype, "localeCompare", { value: localeCompare, writable: true, configurable: true });
