// Intl.NumberFormat and toLocaleString of numbers and bigints, in US English.

const { LOCALE, defineService, joinParts } = shared.locale;
const { toDecimal, roundTo, layOut, digitsToKeep, readDigitRules } = shared.decimal;
const { CURRENCY_DIGITS, currencyName, currencySymbol, isKnownUnit, unitSuffix } = shared.numberTables;

const NO_BREAK_SPACE = "\u00a0";
const COMPACT_SHORT = ["", "K", "M", "B", "T"];
const COMPACT_LONG = ["", "thousand", "million", "billion", "trillion"];

function readStyle(options) {
  const state = { style: options.text("style", ["decimal", "percent", "currency", "unit"], "decimal") };
  const currency = options.text("currency", null, undefined);
  if (currency !== undefined && !/^[a-z]{3}$/i.test(currency)) {
    throw new RangeError(`Invalid currency code : ${currency}`);
  }
  if (currency === undefined && state.style === "currency") {
    throw new TypeError("Currency code is required with currency style.");
  }
  const currencyDisplay = options.text("currencyDisplay", ["code", "symbol", "narrowSymbol", "name"], "symbol");
  const currencySign = options.text("currencySign", ["standard", "accounting"], "standard");
  const unit = options.text("unit", null, undefined);
  if (unit !== undefined && !isKnownUnit(unit)) {
    throw new RangeError(`Invalid unit argument for Intl.NumberFormat() '${unit}'`);
  }
  if (unit === undefined && state.style === "unit") {
    throw new TypeError("Invalid unit argument for Intl.NumberFormat() ''");
  }
  const unitDisplay = options.text("unitDisplay", ["short", "narrow", "long"], "short");
  if (state.style === "currency") {
    Object.assign(state, { currency: currency.toUpperCase(), currencyDisplay, currencySign });
  }
  if (state.style === "unit") Object.assign(state, { unit, unitDisplay });
  return state;
}

function readGrouping(options, fallback) {
  const value = options.raw("useGrouping");
  if (value === undefined) return fallback;
  if (value === true) return "always";
  if (value === false || value === null || value === 0 || value === "") return false;
  const text = options.text("useGrouping", ["min2", "auto", "always", "true", "false"]);
  return text === "true" || text === "false" ? fallback : text;
}

function create(locales, options) {
  const state = readStyle(options);
  state.notation = options.text("notation", ["standard", "scientific", "engineering", "compact"], "standard");
  const compact = state.notation === "compact";
  let [minimum, maximum] = [0, state.style === "percent" ? 0 : 3];
  if (state.style === "currency" && !compact) {
    minimum = maximum = CURRENCY_DIGITS[state.currency] ?? 2;
  }
  state.rules = readDigitRules(options, minimum, maximum, compact);
  const increment = options.number("roundingIncrement", 1, 5000, 1);
  if (increment !== 1) throw new RangeError("roundingIncrement is not supported in this sandbox");
  const compactDisplay = options.text("compactDisplay", ["short", "long"], "short");
  if (compact) state.compactDisplay = compactDisplay;
  state.useGrouping = readGrouping(options, compact ? "min2" : "auto");
  const signs = ["auto", "never", "always", "exceptZero", "negative"];
  state.signDisplay = options.text("signDisplay", signs, "auto");
  return state;
}

// The power of ten that the notation takes out of the number.
function scaleOf(state, decimal) {
  if (decimal.digits === "" || state.notation === "standard") return 0;
  const magnitude = decimal.exponent - 1;
  if (state.notation === "scientific") return magnitude;
  const thousands = Math.floor(magnitude / 3) * 3;
  return state.notation === "compact" ? Math.min(Math.max(thousands, 0), 12) : thousands;
}

const scaledBy = (decimal, power) => ({ ...decimal, exponent: decimal.exponent - power });

function groupParts(parts, integer, grouping) {
  const first = integer.length % 3 || 3;
  if (grouping === false || integer.length <= 3 || (grouping === "min2" && integer.length < 5)) {
    parts.push({ type: "integer", value: integer });
    return;
  }
  for (let start = 0, end = first; start < integer.length; start = end, end += 3) {
    if (start > 0) parts.push({ type: "group", value: "," });
    parts.push({ type: "integer", value: integer.slice(start, end) });
  }
}

// Digits, compact word and exponent; {parts, isZero, isOne}.
function formatMagnitude(state, decimal) {
  if (decimal.special !== null) {
    const nan = decimal.special === "NaN";
    const part = nan ? { type: "nan", value: "NaN" } : { type: "infinity", value: "∞" };
    return { parts: [part], isZero: nan, isOne: false };
  }
  let power = scaleOf(state, decimal);
  let scaled = scaledBy(decimal, power);
  if (state.notation !== "standard") {
    // Rounding may reach the next power: 999,999 is 1M, not 1000K.
    const rounded = roundTo(scaled, digitsToKeep(scaled, state.rules), state.rules.roundingMode);
    if (rounded.exponent > scaled.exponent) {
      power = scaleOf(state, { ...decimal, exponent: decimal.exponent + 1 });
      scaled = scaledBy(decimal, power);
    }
  }
  const { integer, fraction } = layOut(scaled, state.rules);
  const parts = [];
  groupParts(parts, integer, state.useGrouping);
  if (fraction !== "") parts.push({ type: "decimal", value: "." }, { type: "fraction", value: fraction });
  if (state.notation === "compact" && power > 0) {
    const long = state.compactDisplay === "long" && state.style !== "currency";
    if (long) parts.push({ type: "literal", value: " " });
    parts.push({ type: "compact", value: (long ? COMPACT_LONG : COMPACT_SHORT)[power / 3] });
  } else if (state.notation === "scientific" || state.notation === "engineering") {
    parts.push({ type: "exponentSeparator", value: "E" });
    if (power < 0) parts.push({ type: "exponentMinusSign", value: "-" });
    parts.push({ type: "exponentInteger", value: String(Math.abs(power)) });
  }
  return { parts, isZero: /^0*$/.test(integer + fraction), isOne: integer === "1" && fraction === "" && power === 0 };
}

function signOf(state, negative, isZero) {
  switch (state.signDisplay) {
    case "never": return "";
    case "always": return negative ? "-" : "+";
    case "exceptZero": return isZero ? "" : negative ? "-" : "+";
    case "negative": return negative && !isZero ? "-" : "";
    default: return negative ? "-" : "";
  }
}

function formatDecimalToParts(state, decimal) {
  if (state.style === "percent") decimal = scaledBy(decimal, -2);
  const { parts, isZero, isOne } = formatMagnitude(state, decimal);
  const sign = signOf(state, decimal.negative, isZero);
  if (state.style === "percent") {
    parts.push({ type: "percentSign", value: "%" });
  } else if (state.style === "unit") {
    const { space, text } = unitSuffix(state.unit, state.unitDisplay, !isOne);
    if (space) parts.push({ type: "literal", value: " " });
    parts.push({ type: "unit", value: text });
  } else if (state.style === "currency" && state.currencyDisplay === "name") {
    parts.push({ type: "literal", value: " " }, { type: "currency", value: currencyName(state.currency, !isOne) });
  } else if (state.style === "currency") {
    const symbol = currencySymbol(state.currency, state.currencyDisplay);
    if (/\p{L}$/u.test(symbol)) parts.unshift({ type: "literal", value: NO_BREAK_SPACE });
    parts.unshift({ type: "currency", value: symbol });
    if (sign === "-" && state.currencySign === "accounting") {
      return [{ type: "literal", value: "(" }, ...parts, { type: "literal", value: ")" }];
    }
  }
  if (sign !== "") parts.unshift({ type: sign === "-" ? "minusSign" : "plusSign", value: sign });
  return parts;
}

const format = (state, value) => joinParts(formatDecimalToParts(state, toDecimal(value)));

function resolvedOptions(state) {
  const { style, currency, currencyDisplay, currencySign, unit, unitDisplay, compactDisplay, rules } = state;
  const all = {
    locale: LOCALE, numberingSystem: "latn", style, currency, currencyDisplay, currencySign, unit, unitDisplay,
    minimumIntegerDigits: rules.minimumIntegerDigits,
    minimumFractionDigits: rules.minimumFractionDigits,
    maximumFractionDigits: rules.maximumFractionDigits,
    minimumSignificantDigits: rules.minimumSignificantDigits,
    maximumSignificantDigits: rules.maximumSignificantDigits,
    useGrouping: state.useGrouping, notation: state.notation, compactDisplay, signDisplay: state.signDisplay,
    roundingIncrement: 1, roundingMode: rules.roundingMode, roundingPriority: rules.roundingPriority,
    trailingZeroDisplay: rules.trailingZeroDisplay,
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

const NumberFormat = defineService("NumberFormat", {
  create,
  callable: true,
  bound: { format },
  methods: {
    formatToParts: (state, value) => formatDecimalToParts(state, toDecimal(value)),
    resolvedOptions,
  },
});

// Most calls have no arguments: those share one formatter.
const { format: formatByDefault } = new NumberFormat();
function defineToLocaleString(prototype) {
  const { valueOf } = prototype;
  const { toLocaleString } = {
    toLocaleString(locales = undefined, options = undefined) {
      const value = Reflect.apply(valueOf, this, []);
      if (locales === undefined && options === undefined) return formatByDefault(value);
      return new NumberFormat(locales, options).format(value);
    },
  };
  Object.defineProperty(toLocaleString, "length", { value: 0 });
  Object.defineProperty(prototype, "toLocaleString", { value: toLocaleString, writable: true, configurable: true });
}
defineToLocaleString(Number.prototype);
defineToLocaleString(BigInt.prototype);
shared.createNumberFormat = create;
shared.formatNumberToParts = formatDecimalToParts;
