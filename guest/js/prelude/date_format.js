// Intl.DateTimeFormat and toLocaleString of dates: US English, UTC, and the numeric dates of a few more locales.
//
// Only UTC exists in the sandbox; naming another time zone is an error rather than a silently wrong time. For the same
// reason en-GB, en-CA and sv-SE are known besides en-US: programs use them to get 31/12/2024 and 2024-12-31.

const { LOCALE, Options, defineService, joinParts, localeList } = shared.locale;

const MONTHS = "January February March April May June July August September October November December".split(" ");
const WEEKDAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");
const ERAS = { short: ["BC", "AD"], long: ["Before Christ", "Anno Domini"], narrow: ["B", "A"] };
const TIME_ZONES = ["utc", "gmt", "etc/utc", "etc/gmt", "etc/zulu", "etc/universal", "zulu", "uct", "+00:00"];
const TIME_ZONE_NAMES = {
  short: "UTC", long: "Coordinated Universal Time", shortOffset: "GMT", longOffset: "GMT", shortGeneric: "GMT",
  longGeneric: "GMT",
};

const AMERICAN = {
  locale: LOCALE, periods: ["AM", "PM"], hourCycle: "h12", order: ["month", "day", "year"], separator: "/",
};
const ISO = { order: ["year", "month", "day"], separator: "-", padded: true };
const VARIANTS = {
  __proto__: null,
  "en-CA": { ...AMERICAN, ...ISO, locale: "en-CA", periods: ["a.m.", "p.m."] },
  "sv-SE": { ...AMERICAN, ...ISO, locale: "sv-SE", hourCycle: "h23", join: " " },
  "en-GB": {
    locale: "en-GB", periods: ["am", "pm"], hourCycle: "h23", order: ["day", "month", "year"], separator: "/",
    padded: true, dayFirst: true,
  },
};

const NAMES = ["narrow", "short", "long"];
const NUMBERS = ["2-digit", "numeric"];
const FIELDS = {
  weekday: NAMES, era: NAMES, year: NUMBERS, month: [...NUMBERS, ...NAMES], day: NUMBERS,
  hour: NUMBERS, minute: NUMBERS, second: NUMBERS,
};
const DATE_FIELDS = ["weekday", "year", "month", "day"];
const TIME_FIELDS = ["hour", "minute", "second", "fractionalSecondDigits"];
const LONG_DATE = { year: "numeric", month: "long", day: "numeric" };
const DATE_STYLES = {
  full: { weekday: "long", ...LONG_DATE }, long: LONG_DATE, medium: { ...LONG_DATE, month: "short" },
  short: { year: "2-digit", month: "numeric", day: "numeric" },
};
const SHORT_TIME = { hour: "numeric", minute: "2-digit" };
const MEDIUM_TIME = { ...SHORT_TIME, second: "2-digit" };
const TIME_STYLES = {
  full: { ...MEDIUM_TIME, timeZoneName: "long" }, long: { ...MEDIUM_TIME, timeZoneName: "short" },
  medium: MEDIUM_TIME, short: SHORT_TIME,
};

function readTimeZone(options) {
  const name = options.text("timeZone", null, "UTC");
  if (TIME_ZONES.includes(name.toLowerCase())) return "UTC";
  const advice = "this sandbox knows only UTC (leave timeZone out, or say \"UTC\")";
  throw new RangeError(`Time zone "${name}" is not available: ${advice}`);
}

function readFields(options) {
  const fields = {};
  for (const [name, allowed] of Object.entries(FIELDS)) {
    const value = options.text(name, allowed, undefined);
    if (value !== undefined) fields[name] = value;
    if (name === "second") {
      const digits = options.number("fractionalSecondDigits", 1, 3, undefined);
      if (digits !== undefined) fields.fractionalSecondDigits = digits;
    }
  }
  const zone = options.text("timeZoneName", Object.keys(TIME_ZONE_NAMES), undefined);
  if (zone !== undefined) fields.timeZoneName = zone;
  return fields;
}

// `required`, `defaults`: "date", "time" or "any"/"all", as in ECMA-402: which fields to add if none of the required
// ones is there.
function create(locales, options, required = "any", defaults = "date") {
  const variant = VARIANTS[locales[0]] ?? AMERICAN;
  const hour12 = options.boolean("hour12", undefined);
  const hourCycle = options.text("hourCycle", ["h11", "h12", "h23", "h24"], undefined);
  const timeZone = readTimeZone(options);
  let fields = readFields(options);
  const dateStyle = options.text("dateStyle", ["full", "long", "medium", "short"], undefined);
  const timeStyle = options.text("timeStyle", ["full", "long", "medium", "short"], undefined);
  if (dateStyle !== undefined || timeStyle !== undefined) {
    const style = dateStyle === undefined ? "timeStyle" : "dateStyle";
    const [given] = Object.keys(fields);
    if (given !== undefined) throw new TypeError(`Can't set option ${given} when ${style} is used`);
    if (required === "date" && timeStyle !== undefined) throw new TypeError("Invalid option : timeStyle");
    if (required === "time" && dateStyle !== undefined) throw new TypeError("Invalid option : dateStyle");
    fields = { ...DATE_STYLES[dateStyle], ...TIME_STYLES[timeStyle] };
    if (dateStyle === "short" && variant.padded) fields.year = "numeric";
  } else {
    const wanted = { date: DATE_FIELDS, time: TIME_FIELDS, any: [...DATE_FIELDS, ...TIME_FIELDS] }[required];
    if (!wanted.some((name) => name in fields)) {
      if (defaults !== "time") Object.assign(fields, { year: "numeric", month: "numeric", day: "numeric" });
      if (defaults !== "date") Object.assign(fields, { hour: "numeric", minute: "2-digit", second: "2-digit" });
    }
  }
  let cycle = hourCycle ?? variant.hourCycle;
  if (hour12 === true) cycle = "h12";
  if (hour12 === false) cycle = variant.hourCycle === "h12" ? "h24" : "h23"; // midnight is 24:00 in V8 too
  return { variant, timeZone, dateStyle, timeStyle, fields, hourCycle: "hour" in fields ? cycle : undefined };
}

const pad = (number, width = 2) => String(number).padStart(width, "0");

function nameOf(names, index, style) {
  const name = names[index];
  return style === "long" ? name : name.slice(0, style === "narrow" ? 1 : 3);
}

const isNumericMonth = (fields) => fields.month === "numeric" || fields.month === "2-digit";

// The text of one date field.
function dateField(name, date, { fields, variant }) {
  const style = fields[name];
  const allNumeric = variant.padded && isNumericMonth(fields) && "day" in fields;
  switch (name) {
    case "weekday": return nameOf(WEEKDAYS, date.getUTCDay(), style);
    case "year": {
      const year = date.getUTCFullYear();
      const shown = year > 0 ? year : 1 - year; // years of the era: 0 is 1 BC
      return style === "2-digit" ? pad(shown % 100) : String(shown);
    }
    case "month": {
      const month = date.getUTCMonth();
      if (!isNumericMonth(fields)) return nameOf(MONTHS, month, style);
      return style === "2-digit" || allNumeric ? pad(month + 1) : String(month + 1);
    }
    default: return style === "2-digit" || allNumeric ? pad(date.getUTCDate()) : String(date.getUTCDate());
  }
}

// The date fields in order, with what stands between them: ["month", " ", "day", ", ", "year"].
function datePattern({ fields, variant, dateStyle }) {
  const { weekday, year, month, day } = fields;
  const between = (names, separator) => names.flatMap((name, index) => (index === 0 ? [name] : [separator, name]));
  if (month === undefined) {
    if (year && day) return weekday ? ["day", " ", "weekday", " ", "year"] : ["year", " (day: ", "day", ")"];
    return between(["day", "year", "weekday"].filter((name) => name in fields), " ");
  }
  let pattern;
  if (isNumericMonth(fields)) {
    const style = day ? variant : { ...AMERICAN, separator: variant.separator };
    pattern = between(style.order.filter((name) => name in fields), style.separator);
  } else if (variant.dayFirst) {
    pattern = between(["day", "month", "year"].filter((name) => name in fields), " ");
  } else {
    pattern = ["month"];
    if (day) pattern.push(" ", "day");
    if (year) pattern.push(day ? ", " : " ", "year");
  }
  if (!weekday) return pattern;
  if (!day) return [...pattern, " ", "weekday"];
  return ["weekday", variant.dayFirst && dateStyle === "full" ? " " : ", ", ...pattern];
}

const usesHalfDays = (cycle) => cycle === "h11" || cycle === "h12";

function hourText(hour, cycle, style) {
  const shown = { h11: hour % 12, h12: hour % 12 || 12, h23: hour, h24: hour || 24 }[cycle];
  return style === "2-digit" || cycle === "h23" || cycle === "h24" ? pad(shown) : String(shown);
}

function timeParts(date, state) {
  const { fields, hourCycle, variant } = state;
  const { hour, minute, second, fractionalSecondDigits: digits } = fields;
  const parts = [];
  const add = (type, value, separator) => {
    if (parts.length > 0) parts.push({ type: "literal", value: separator });
    parts.push({ type, value });
  };
  if (hour) add("hour", hourText(date.getUTCHours(), hourCycle, hour));
  const minutes = date.getUTCMinutes();
  if (minute) add("minute", hour || second ? pad(minutes) : String(minutes), ":");
  const seconds = date.getUTCSeconds();
  if (second) add("second", hour || minute ? pad(seconds) : String(seconds), ":");
  if (digits) add("fractionalSecond", pad(date.getUTCMilliseconds(), 3).slice(0, digits), ".");
  if (hour && usesHalfDays(hourCycle)) {
    add("dayPeriod", variant.periods[date.getUTCHours() < 12 ? 0 : 1], " ");
  }
  if (fields.timeZoneName) add("timeZoneName", TIME_ZONE_NAMES[fields.timeZoneName], " ");
  return parts;
}

function joinerOf({ fields, variant }) {
  if (fields.month === "long") return " at ";
  const onlyWeekday = fields.weekday && !DATE_FIELDS.some((name) => name !== "weekday" && name in fields);
  return onlyWeekday ? " " : variant.join ?? ", ";
}

function formatToParts(state, value = undefined) {
  const date = new Date(value === undefined ? Date.now() : Number(value));
  if (Number.isNaN(date.getTime())) throw new RangeError("Invalid time value");
  const parts = datePattern(state).map((token) =>
    token in FIELDS ? { type: token, value: dateField(token, date, state) } : { type: "literal", value: token },
  );
  if (state.fields.era) {
    const era = ERAS[state.fields.era][date.getUTCFullYear() > 0 ? 1 : 0];
    parts.push({ type: "literal", value: " " }, { type: "era", value: era });
  }
  const time = timeParts(date, state);
  if (parts.length > 0 && time.length > 0) parts.push({ type: "literal", value: joinerOf(state) });
  return [...parts, ...time];
}

const format = (state, value) => joinParts(formatToParts(state, value));

function resolvedOptions(state) {
  const { variant, timeZone, hourCycle, fields, dateStyle, timeStyle } = state;
  const resolved = { locale: variant.locale, calendar: "gregory", numberingSystem: "latn", timeZone };
  if (hourCycle !== undefined) Object.assign(resolved, { hourCycle, hour12: usesHalfDays(hourCycle) });
  if (dateStyle === undefined && timeStyle === undefined) {
    Object.assign(resolved, fields);
    if (fields.minute && (fields.hour || fields.second)) resolved.minute = "2-digit";
    if (fields.second && fields.minute) resolved.second = "2-digit";
    if (fields.hour && !usesHalfDays(hourCycle)) resolved.hour = "2-digit";
  }
  if (dateStyle !== undefined) resolved.dateStyle = dateStyle;
  if (timeStyle !== undefined) resolved.timeStyle = timeStyle;
  return resolved;
}

defineService("DateTimeFormat", {
  create: (locales, options) => create(locales, options),
  callable: true,
  bound: { format },
  methods: {
    formatToParts,
    formatRange(state, start, end) {
      const [first, last] = [format(state, start), format(state, end)];
      return first === last ? first : `${first} – ${last}`;
    },
    resolvedOptions,
  },
});

function defineDateMethod(name, required, defaults) {
  const { getTime } = Date.prototype;
  const method = {
    [name](locales = undefined, options = undefined) {
      const time = Reflect.apply(getTime, this, []);
      const state = create(localeList(locales), new Options("DateTimeFormat", options), required, defaults);
      return Number.isNaN(time) ? "Invalid Date" : format(state, time);
    },
  }[name];
  Object.defineProperty(method, "length", { value: 0 });
  Object.defineProperty(Date.prototype, name, { value: method, writable: true, configurable: true });
}
defineDateMethod("toLocaleString", "any", "all");
defineDateMethod("toLocaleDateString", "date", "date");
defineDateMethod("toLocaleTimeString", "time", "time");
