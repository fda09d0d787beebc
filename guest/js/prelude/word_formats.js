// Intl.PluralRules, Intl.ListFormat and Intl.RelativeTimeFormat: the parts of Intl that put words around values.

const { LOCALE, Options, defineService, joinParts } = shared.locale;
const { toDecimal, layOut, readDigitRules } = shared.decimal;
const { createNumberFormat, formatNumberToParts } = shared;

const CATEGORIES = { cardinal: ["one", "other"], ordinal: ["few", "one", "two", "other"] };
const ORDINALS = { 1: "one", 2: "two", 3: "few" };

function pluralCategory({ type, rules }, value) {
  const decimal = toDecimal(Number(value));
  if (decimal.special !== null) return "other";
  const { integer, fraction } = layOut(decimal, rules);
  if (fraction !== "") return "other";
  if (type === "cardinal") return /^0*1$/.test(integer) ? "one" : "other";
  const tens = integer.slice(-2);
  return (tens.length === 2 && tens[0] === "1" ? undefined : ORDINALS[tens.at(-1)]) ?? "other";
}

defineService("PluralRules", {
  create: (locales, options) => ({
    type: options.text("type", ["cardinal", "ordinal"], "cardinal"),
    rules: readDigitRules(options, 0, 3, false),
  }),
  methods: {
    select: pluralCategory,
    resolvedOptions({ type, rules }) {
      const { roundingMode, roundingPriority, trailingZeroDisplay, ...digits } = rules;
      return { locale: LOCALE, type, ...digits, pluralCategories: [...CATEGORIES[type]] };
    },
  },
});

// What stands between two elements, between more of them, and before the last of more.
const LIST_WORDS = {
  "conjunction long": [" and ", ", ", ", and "],
  "conjunction short": [" & ", ", ", ", & "],
  "disjunction long": [" or ", ", ", ", or "],
  "unit narrow": [" ", " ", " "],
};
LIST_WORDS["disjunction short"] = LIST_WORDS["disjunction narrow"] = LIST_WORDS["disjunction long"];
LIST_WORDS["conjunction narrow"] = LIST_WORDS["unit long"] = LIST_WORDS["unit short"] = [", ", ", ", ", "];

function listToParts({ type, style }, list = []) {
  const [two, middle, last] = LIST_WORDS[`${type} ${style}`];
  const elements = Array.from(list, (element) => {
    if (typeof element === "string") return element;
    throw new TypeError(`Iterable yielded ${String(element)} which is not a string`);
  });
  return elements.flatMap((value, index) => {
    const part = { type: "element", value };
    if (index === 0) return [part];
    const isLast = index === elements.length - 1;
    return [{ type: "literal", value: elements.length === 2 ? two : isLast ? last : middle }, part];
  });
}

defineService("ListFormat", {
  create: (locales, options) => ({
    type: options.text("type", ["conjunction", "disjunction", "unit"], "conjunction"),
    style: options.text("style", ["long", "short", "narrow"], "long"),
  }),
  methods: {
    format: (state, list) => joinParts(listToParts(state, list)),
    formatToParts: listToParts,
    resolvedOptions: ({ type, style }) => ({ locale: LOCALE, type, style }),
  },
});

// unit: short name, short plural, narrow name, and what "last", "this" and "next" go before in the short styles
const TIME_UNITS = {
  __proto__: null,
  second: ["sec.", "sec.", "s"], minute: ["min.", "min.", "m"], hour: ["hr.", "hr.", "h"],
  day: ["day", "days", "d"], week: ["wk.", "wk.", "w"], month: ["mo.", "mo.", "mo"],
  quarter: ["qtr.", "qtrs.", "q"], year: ["yr.", "yr.", "y"],
};
const DAYS = { "-1": "yesterday", 0: "today", 1: "tomorrow" };

// "tomorrow", "last year"; undefined where only a number will do
function timeWord(value, unit, style) {
  if (value !== 0 && Math.abs(value) !== 1) return undefined;
  if (unit === "day") return DAYS[value];
  if (unit === "second") return value === 0 ? "now" : undefined;
  if (unit === "hour" || unit === "minute") return value === 0 ? `this ${unit}` : undefined;
  return `${["last", "this", "next"][value + 1]} ${style === "long" ? unit : TIME_UNITS[unit][0]}`;
}

const numberState = createNumberFormat([], new Options("NumberFormat", undefined));

function timeToParts({ style, numeric }, value, unit) {
  value = Number(value);
  unit = String(unit).replace(/s$/, "");
  if (!(unit in TIME_UNITS)) {
    throw new RangeError(`Invalid unit argument for Intl.RelativeTimeFormat.prototype.format() '${unit}'`);
  }
  if (!Number.isFinite(value)) {
    throw new RangeError("Value need to be finite number for Intl.RelativeTimeFormat.prototype.format()");
  }
  const word = numeric === "auto" ? timeWord(value, unit, style) : undefined;
  if (word !== undefined) return [{ type: "literal", value: word }];
  const past = value < 0 || Object.is(value, -0);
  const singular = Math.abs(value) === 1;
  const [short, shortPlural, narrow] = TIME_UNITS[unit];
  let name = style === "narrow" ? narrow : ` ${singular ? unit : `${unit}s`}`;
  if (style === "short") name = ` ${singular ? short : shortPlural}`;
  const number = formatNumberToParts(numberState, toDecimal(Math.abs(value))).map((part) => ({ ...part, unit }));
  if (past) return [...number, { type: "literal", value: `${name} ago` }];
  return [{ type: "literal", value: "in " }, ...number, { type: "literal", value: name }];
}

defineService("RelativeTimeFormat", {
  create: (locales, options) => ({
    style: options.text("style", ["long", "short", "narrow"], "long"),
    numeric: options.text("numeric", ["always", "auto"], "always"),
  }),
  methods: {
    format: (state, value, unit) => joinParts(timeToParts(state, value, unit)),
    formatToParts: timeToParts,
    resolvedOptions: ({ style, numeric }) => ({ locale: LOCALE, style, numeric, numberingSystem: "latn" }),
  },
});
