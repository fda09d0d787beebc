// Exact decimal arithmetic for number formatting: a value as a string of digits, rounded the way Intl rounds.
//
// A decimal is {negative, digits, exponent, special}: 0.digits x 10^exponent, digits without zeros at either end ("" is
// zero); special is "NaN" or "Infinity" instead. Rounding works on the shortest digits that denote the number, so 1.005
// becomes 1.01 as everybody expects (and as ICU does), although the nearest double is smaller than 1.005.

const NUMERIC = /^([+-]?)(\d*)\.?(\d*)(?:e([+-]?\d{1,6}))?$/i;

function makeDecimal(negative, integer, fraction, shift) {
  const all = integer + fraction;
  const leading = /^0*/.exec(all)[0].length;
  return { negative, digits: trimZeros(all.slice(leading)), exponent: integer.length - leading + shift, special: null };
}

function trimZeros(digits) {
  let end = digits.length;
  while (end > 0 && digits[end - 1] === "0") end--;
  return digits.slice(0, end);
}

// Of a number, a bigint, or a decimal string, which may have more digits than a number can hold.
function toDecimal(value) {
  if (typeof value === "object" && value !== null) value = value[Symbol.toPrimitive]?.("number") ?? value.valueOf();
  if (typeof value !== "bigint" && typeof value !== "string") value = Number(value);
  let text = String(value).trim();
  let match = NUMERIC.exec(text);
  if (match === null || match[2] + match[3] === "") {
    const number = Number(text); // "", hexadecimal, Infinity, or no number at all
    if (!Number.isFinite(number)) {
      return { negative: number < 0, digits: "", exponent: 0, special: Number.isNaN(number) ? "NaN" : "Infinity" };
    }
    text = String(number);
    match = NUMERIC.exec(text);
  }
  const negative = match[1] === "-" || Object.is(value, -0);
  return makeDecimal(negative, match[2], match[3], Number(match[4] ?? 0));
}

function addOne(digits) {
  const nines = /9*$/.exec(digits)[0].length;
  const head = digits.slice(0, digits.length - nines);
  const raised = head === "" ? "1" : head.slice(0, -1) + (Number(head.at(-1)) + 1);
  return raised + "0".repeat(nines);
}

// Whether dropping `rest` after `kept` must raise the last digit kept.
function roundsAway(mode, negative, kept, rest) {
  if (/^0*$/.test(rest)) return false;
  const half = /^50*$/.test(rest);
  const above = !half && rest[0] >= "5";
  switch (mode) {
    case "ceil": return !negative;
    case "floor": return negative;
    case "expand": return true;
    case "trunc": return false;
    case "halfCeil": return above || (half && !negative);
    case "halfFloor": return above || (half && negative);
    case "halfTrunc": return above;
    case "halfEven": return above || (half && Number(kept.at(-1) ?? 0) % 2 === 1);
    default: return above || half;
  }
}

// The decimal with at most `keep` digits; 0 or less is to the left of the first one.
function roundTo(decimal, keep, mode) {
  const { negative, digits, exponent } = decimal;
  if (keep >= digits.length) return decimal;
  const kept = keep > 0 ? digits.slice(0, keep) : "";
  const rest = keep >= 0 ? digits.slice(keep) : `0${digits}`;
  if (!roundsAway(mode, negative, kept, rest)) return { ...decimal, digits: trimZeros(kept) };
  if (keep <= 0) return { ...decimal, digits: "1", exponent: exponent - keep + 1 };
  const raised = addOne(kept);
  return { ...decimal, digits: trimZeros(raised), exponent: exponent + raised.length - kept.length };
}

// How many digits a rounding rule keeps of this decimal.
function digitsToKeep(decimal, rules) {
  const byFraction = decimal.exponent + (rules.maximumFractionDigits ?? 0);
  const bySignificance = rules.maximumSignificantDigits;
  switch (rules.roundingPriority) {
    case "morePrecision": return Math.max(byFraction, bySignificance);
    case "lessPrecision": return Math.min(byFraction, bySignificance);
    default: return bySignificance ?? byFraction;
  }
}

// Rounds by the rules; gives {integer, fraction} as strings, with the zeros the rules demand.
function layOut(decimal, rules) {
  const keep = digitsToKeep(decimal, rules);
  const usesSignificance = keep === rules.maximumSignificantDigits;
  const { digits, exponent } = roundTo(decimal, keep, rules.roundingMode);
  const integer = digits === "" || exponent <= 0 ? "0" : digits.slice(0, exponent).padEnd(exponent, "0");
  let fraction = digits === "" ? "" : "0".repeat(Math.max(0, -exponent)) + digits.slice(Math.max(0, exponent));
  const shownDigits = digits === "" ? 1 : exponent;
  const minimum = usesSignificance ? rules.minimumSignificantDigits - shownDigits : rules.minimumFractionDigits ?? 0;
  const wantsZeros = rules.trailingZeroDisplay !== "stripIfInteger" || fraction !== "";
  if (wantsZeros) fraction = fraction.padEnd(Math.max(0, minimum), "0");
  return { integer: integer.padStart(rules.minimumIntegerDigits, "0"), fraction };
}

// The four digit options of NumberFormat and PluralRules, as ECMA-402 combines them.
function readDigitRules(options, defaultMinimum, defaultMaximum, compact) {
  const rules = { minimumIntegerDigits: options.number("minimumIntegerDigits", 1, 21, 1) };
  const minimumFraction = options.number("minimumFractionDigits", 0, 100, undefined);
  const maximumFraction = options.number("maximumFractionDigits", 0, 100, undefined);
  const minimumSignificant = options.number("minimumSignificantDigits", 1, 21, undefined);
  const maximumSignificant = options.number("maximumSignificantDigits", minimumSignificant ?? 1, 21, undefined);
  const priority = options.text("roundingPriority", ["auto", "morePrecision", "lessPrecision"], "auto");
  const modes = "ceil floor expand trunc halfCeil halfFloor halfExpand halfTrunc halfEven".split(" ");
  rules.roundingMode = options.text("roundingMode", modes, "halfExpand");
  rules.trailingZeroDisplay = options.text("trailingZeroDisplay", ["auto", "stripIfInteger"], "auto");
  rules.roundingPriority = priority;

  const givenSignificant = minimumSignificant !== undefined || maximumSignificant !== undefined;
  const givenFraction = minimumFraction !== undefined || maximumFraction !== undefined;
  if (compact && !givenSignificant && !givenFraction && priority === "auto") {
    return Object.assign(rules, {
      minimumFractionDigits: 0, maximumFractionDigits: 0, minimumSignificantDigits: 1, maximumSignificantDigits: 2,
      roundingPriority: "morePrecision",
    });
  }
  if (givenSignificant || priority !== "auto") {
    rules.minimumSignificantDigits = minimumSignificant ?? 1;
    rules.maximumSignificantDigits = maximumSignificant ?? 21;
  }
  if (!givenSignificant || priority !== "auto") {
    const minimum = minimumFraction ?? Math.min(defaultMinimum, maximumFraction ?? defaultMinimum);
    const maximum = maximumFraction ?? Math.max(defaultMaximum, minimum);
    if (minimum > maximum) throw new RangeError("maximumFractionDigits value is out of range.");
    rules.minimumFractionDigits = minimum;
    rules.maximumFractionDigits = maximum;
  }
  return rules;
}

shared.decimal = { toDecimal, roundTo, layOut, digitsToKeep, readDigitRules };
