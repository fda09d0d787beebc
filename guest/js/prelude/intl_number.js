// Intl.NumberFormat, Intl.PluralRules and toLocaleString of numbers and bigints: grouping, digits, percent, currencies.
//
// Formatting works on decimal digits, not on doubles: {negative, digits, exponent} is 0.digits × 10^exponent, without
// zeros at either end ("" is zero). So 1.005 rounds to 1.01, as everybody expects, and a bigint keeps every digit.

const { defineFormatter, defineMethod, joinParts } = shared.intl;

const NUMERIC = /^([+-]?)(\d*)\.?(\d*)(?:e([+-]?\d{1,6}))?$/i;
const COMPACT = ["", "K", "M", "B", "T"];
const NO_BREAK_SPACE = "\u00a0";
// The symbols of CLDR; any other currency is shown by its code.
const CURRENCY_SYMBOLS = {
  __proto__: null,
  USD: "$", EUR: "€", GBP: "£", JPY: "¥", INR: "₹", CNY: "CN¥", AUD: "A$", BRL: "R$", CAD: "CA$", HKD: "HK$", ILS: "₪",
  KRW: "₩", MXN: "MX$", NZD: "NZ$", PHP: "₱", TWD: "NT$", VND: "₫",
};
const NO_CENTS =
  "AFN ALL BIF CLP COP DJF GNF HUF IDR IQD IRR ISK JPY KMF KPW KRW LAK LBP MGA MMK PKR PYG RWF SLL SOS SYP UGX VND " +
  "VUV XAF XOF XPF YER";
const THREE_DECIMALS = "BHD JOD KWD LYD OMR TND";

function trimZeros(digits) {
  let end = digits.length;
  while (end > 0 && digits[end - 1] === "0") end--;
  return digits.slice(0, end);
}

// The decimal of a number, a bigint or a numeric string; {special} for NaN and the infinities.
function toDecimal(value) {
  if (typeof value !== "bigint" && typeof value !== "string") value = Number(value);
  let text = String(value).trim();
  let match = NUMERIC.exec(text);
  if (match === null || match[2] + match[3] === "") {
    const number = Number(text); // "", hexadecimal, Infinity, or not a number
    if (Number.isNaN(number)) return { special: "NaN", negative: false };
    if (!Number.isFinite(number)) return { special: "∞", negative: number < 0 };
    text = String(number);
    match = NUMERIC.exec(text);
  }
  const all = match[2] + match[3];
  const leading = /^0*/.exec(all)[0].length;
  const exponent = match[2].length - leading + Number(match[4] ?? 0);
  return { negative: match[1] === "-" || Object.is(value, -0), digits: trimZeros(all.slice(leading)), exponent };
}

// The decimal with at most `keep` digits, halves rounded away from zero.
function roundTo(decimal, keep) {
  const { digits, exponent } = decimal;
  if (keep >= digits.length) return decimal;
  if (keep < 0) return { ...decimal, digits: "" };
  const kept = digits.slice(0, keep);
  if (digits[keep] < "5") return { ...decimal, digits: trimZeros(kept) };
  const raised = String(BigInt(kept) + 1n);
  return { ...decimal, digits: trimZeros(raised), exponent: exponent + raised.length - kept.length };
}

function roundBy(decimal, { significant, compact, maximumFractionDigits, maximumSignificantDigits }) {
  if (significant) return roundTo(decimal, maximumSignificantDigits);
  return roundTo(decimal, compact ? Math.max(decimal.exponent, 2) : decimal.exponent + maximumFractionDigits);
}

// The digits before and after the decimal point of a rounded decimal, with the zeros that the rules demand.
function layOut({ digits, exponent }, rules) {
  if (digits === "") exponent = 1;
  const integer = exponent > 0 ? digits.slice(0, exponent).padEnd(exponent, "0") : "0";
  const fraction = "0".repeat(Math.max(0, -exponent)) + digits.slice(Math.max(0, exponent));
  const minimum = rules.significant ? rules.minimumSignificantDigits - exponent : rules.minimumFractionDigits;
  return { integer: integer.padStart(rules.minimumIntegerDigits, "0"), fraction: fraction.padEnd(minimum, "0") };
}

function readDigitRules(options, defaultMinimum, defaultMaximum, compact) {
  const minimumIntegerDigits = options.number("minimumIntegerDigits", 1, 21, 1);
  const minimumFraction = options.number("minimumFractionDigits", 0, 100, undefined);
  const maximumFraction = options.number("maximumFractionDigits", 0, 100, undefined);
  const minimumSignificant = options.number("minimumSignificantDigits", 1, 21, undefined);
  const maximumSignificant = options.number("maximumSignificantDigits", minimumSignificant ?? 1, 21, undefined);
  if (minimumSignificant !== undefined || maximumSignificant !== undefined) {
    return {
      minimumIntegerDigits, significant: true,
      minimumSignificantDigits: minimumSignificant ?? 1, maximumSignificantDigits: maximumSignificant ?? 21,
    };
  }
  const minimum = minimumFraction ?? Math.min(defaultMinimum, maximumFraction ?? defaultMinimum);
  const maximum = maximumFraction ?? Math.max(defaultMaximum, minimum);
  if (minimum > maximum) throw new RangeError("maximumFractionDigits value is out of range.");
  compact &&= minimumFraction === undefined && maximumFraction === undefined;
  return { minimumIntegerDigits, compact, minimumFractionDigits: minimum, maximumFractionDigits: maximum };
}

function readCurrency(options, style) {
  const currency = options.text("currency", null, undefined)?.toUpperCase();
  if (style !== "currency") return {};
  if (currency === undefined) throw new TypeError("Currency code is required with currency style.");
  if (!/^[A-Z]{3}$/.test(currency)) throw new RangeError(`Invalid currency code : ${currency}`);
  const display = options.text("currencyDisplay", ["symbol", "narrowSymbol", "code"], "symbol");
  const known = display === "code" ? currency : CURRENCY_SYMBOLS[currency] ?? currency;
  const symbol = display === "narrowSymbol" ? known.replace(/^[A-Z]+(?=[^A-Z])/, "") : known;
  const cents = NO_CENTS.includes(currency) ? 0 : THREE_DECIMALS.includes(currency) ? 3 : 2;
  const isAccounting = options.text("currencySign", ["standard", "accounting"], "standard") === "accounting";
  return { currency, symbol, cents, isAccounting };
}

function readGrouping(options, fallback) {
  const value = options.values.useGrouping;
  if (value === undefined || value === true || value === "true") return value === undefined ? fallback : "always";
  return value ? options.text("useGrouping", ["min2", "auto", "always"]) : false;
}

function pushGroups(parts, integer, grouping) {
  if (!grouping || integer.length <= (grouping === "min2" ? 4 : 3)) {
    parts.push({ type: "integer", value: integer });
    return;
  }
  for (let start = 0, end = integer.length % 3 || 3; start < integer.length; start = end, end += 3) {
    if (start > 0) parts.push({ type: "group", value: "," });
    parts.push({ type: "integer", value: integer.slice(start, end) });
  }
}

function pushDigits(parts, decimal, { rules, grouping, notation }) {
  let power = 0;
  if (notation === "compact" && decimal.digits !== "") {
    power = Math.min(Math.max(Math.floor((decimal.exponent - 1) / 3) * 3, 0), 12);
    decimal = { ...decimal, exponent: decimal.exponent - power };
  }
  let rounded = roundBy(decimal, rules);
  if (notation === "compact" && power < 12 && rounded.exponent > 3) { // 999,999 is 1M, not 1000K
    power += 3;
    rounded = roundBy({ ...decimal, exponent: decimal.exponent - 3 }, rules);
  }
  const { integer, fraction } = layOut(rounded, rules);
  pushGroups(parts, integer, grouping);
  if (fraction !== "") parts.push({ type: "decimal", value: "." }, { type: "fraction", value: fraction });
  if (power > 0) parts.push({ type: "compact", value: COMPACT[power / 3] });
  return rounded.digits === "";
}

function signOf(display, negative, isZero) {
  if (display === "never" || (isZero && (display === "exceptZero" || display === "negative"))) return "";
  return negative ? "-" : display === "always" || display === "exceptZero" ? "+" : "";
}

function numberToParts(state, value) {
  const { style, symbol, isAccounting } = state;
  const decimal = toDecimal(value);
  const parts = [];
  if (style === "currency") parts.push({ type: "currency", value: symbol });
  if (/[A-Z]$/.test(symbol)) parts.push({ type: "literal", value: NO_BREAK_SPACE });
  let isZero = decimal.special === "NaN";
  if (decimal.special === undefined) {
    if (style === "percent") decimal.exponent += 2;
    isZero = pushDigits(parts, decimal, state);
  } else {
    parts.push({ type: decimal.special === "NaN" ? "nan" : "infinity", value: decimal.special });
  }
  if (style === "percent") parts.push({ type: "percentSign", value: "%" });
  const sign = signOf(state.signDisplay, decimal.negative, isZero);
  if (sign === "-" && isAccounting) return [{ type: "literal", value: "(" }, ...parts, { type: "literal", value: ")" }];
  if (sign !== "") parts.unshift({ type: sign === "-" ? "minusSign" : "plusSign", value: sign });
  return parts;
}

const NumberFormat = defineFormatter("NumberFormat", (locales, options) => {
  const style = options.text("style", ["decimal", "percent", "currency"], "decimal");
  const { currency, symbol, cents, isAccounting } = readCurrency(options, style);
  const notation = options.text("notation", ["standard", "compact"], "standard");
  options.text("compactDisplay", ["short"]);
  options.text("roundingMode", ["halfExpand"]);
  options.text("roundingPriority", ["auto"]);
  options.text("trailingZeroDisplay", ["auto"]);
  const compact = notation === "compact";
  const minimum = compact ? 0 : cents ?? 0;
  const maximum = compact || style === "percent" ? 0 : cents ?? 3;
  const rules = readDigitRules(options, minimum, maximum, compact);
  const grouping = readGrouping(options, compact ? "min2" : "auto");
  const signDisplay = options.text("signDisplay", ["auto", "always", "exceptZero", "never", "negative"], "auto");
  const state = { style, symbol, isAccounting, notation, rules, grouping, signDisplay };
  const { significant, compact: rounds, ...digits } = rules;
  return {
    format: (value) => joinParts(numberToParts(state, value)),
    formatToParts: (value) => numberToParts(state, value),
    resolvedOptions: () => ({
      locale: "en-US", numberingSystem: "latn", style, currency, ...digits, useGrouping: grouping, notation, signDisplay,
    }),
  };
});

// Most calls have no arguments: those share one formatter.
const { format: formatByDefault } = new NumberFormat();
for (const prototype of [Number.prototype, BigInt.prototype]) {
  const { valueOf } = prototype;
  defineMethod(prototype, "toLocaleString", function (locales = undefined, options = undefined) {
    const value = Reflect.apply(valueOf, this, []);
    if (locales === undefined && options === undefined) return formatByDefault(value);
    return new NumberFormat(locales, options).format(value);
  });
}

const ORDINALS = { __proto__: null, 1: "one", 2: "two", 3: "few" };

defineFormatter("PluralRules", (locales, options) => {
  const type = options.text("type", ["cardinal", "ordinal"], "cardinal");
  const rules = readDigitRules(options, 0, 3, false);
  return {
    select(value) {
      const decimal = toDecimal(Number(value));
      if (decimal.special !== undefined) return "other";
      const { integer, fraction } = layOut(roundBy(decimal, rules), rules);
      if (fraction !== "") return "other";
      if (type === "cardinal") return /^0*1$/.test(integer) ? "one" : "other";
      return (integer.at(-2) === "1" ? undefined : ORDINALS[integer.at(-1)]) ?? "other";
    },
    resolvedOptions: () => ({ locale: "en-US", type }),
  };
});
