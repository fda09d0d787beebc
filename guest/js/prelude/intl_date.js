// Intl.DateTimeFormat and toLocaleString of dates: US English, UTC, and the numeric dates of a few more locales.
//
// Only UTC exists in the sandbox; naming another time zone is an error rather than a silently wrong time. For the same
// reason en-GB, en-CA and sv-SE are known besides en-US: programs use them to get 31/12/2024 and 2024-12-31.

const { Options, defineFormatter, defineMethod, joinParts, localeList } = shared.intl;

const MONTHS = "January February March April May June July August September October November December".split(" ");
const WEEKDAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");
const TIME_ZONES = ["utc", "gmt", "etc/utc", "etc/gmt", "+00:00"];
const TIME_ZONE_NAMES = { short: "UTC", long: "Coordinated Universal Time" };

const AMERICAN = {
  locale: "en-US", periods: ["AM", "PM"], hourCycle: "h12", order: ["month", "day", "year"], separator: "/",
};
const ISO = { order: ["year", "month", "day"], separator: "-", padded: true };
const BRITISH = { order: ["day", "month", "year"], separator: "/", padded: true, dayFirst: true };
const VARIANTS = {
  __proto__: null,
  "en-ca": { ...AMERICAN, ...ISO, locale: "en-CA", periods: ["a.m.", "p.m."] },
  "sv-se": { ...AMERICAN, ...ISO, locale: "sv-SE", hourCycle: "h23", join: " " },
  "en-gb": { ...BRITISH, locale: "en-GB", periods: ["am", "pm"], hourCycle: "h23" },
};

const NAMES = ["narrow", "short", "long"];
const NUMBERS = ["2-digit", "numeric"];
const FIELDS = {
  weekday: NAMES, year: NUMBERS, month: [...NUMBERS, ...NAMES], day: NUMBERS,
  hour: NUMBERS, minute: NUMBERS, second: NUMBERS, timeZoneName: Object.keys(TIME_ZONE_NAMES),
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

function requireUtc(options) {
  const name = options.text("timeZone", null, "UTC");
  if (TIME_ZONES.includes(name.toLowerCase())) return;
  const advice = "this sandbox knows only UTC (leave timeZone out, or say \"UTC\")";
  throw new RangeError(`Time zone "${name}" is not available: ${advice}`);
}

function readFields(options) {
  const fields = {};
  for (const name in FIELDS) {
    const value = options.text(name, FIELDS[name], undefined);
    if (value !== undefined) fields[name] = value;
  }
  const digits = options.number("fractionalSecondDigits", 1, 3, undefined);
  if (digits !== undefined) fields.fractionalSecondDigits = digits;
  return fields;
}

// `required`, `defaults`: "date", "time" or "any"/"all", as in ECMA-402: the fields to add if none of the required
// ones is given.
function readFormat(locales, options, required = "any", defaults = "date") {
  const variant = VARIANTS[locales[0]?.toLowerCase()] ?? AMERICAN;
  const hour12 = options.boolean("hour12", undefined);
  let hourCycle = options.text("hourCycle", ["h12", "h23"], variant.hourCycle);
  if (hour12 === true) hourCycle = "h12";
  if (hour12 === false) hourCycle = variant.hourCycle === "h12" ? "h24" : "h23"; // midnight is 24:00 in V8 too
  requireUtc(options);
  let fields = readFields(options);
  const dateStyle = options.text("dateStyle", Object.keys(DATE_STYLES), undefined);
  const timeStyle = options.text("timeStyle", Object.keys(TIME_STYLES), undefined);
  if (dateStyle !== undefined || timeStyle !== undefined) {
    const [given] = Object.keys(fields);
    if (given !== undefined) throw new TypeError(`Can't set option ${given} when dateStyle or timeStyle is used`);
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
  return { variant, fields, dateStyle, timeStyle, hourCycle: "hour" in fields ? hourCycle : undefined };
}

const pad = (number, width = 2) => String(number).padStart(width, "0");

function nameOf(names, index, style) {
  return style === "long" ? names[index] : names[index].slice(0, style === "narrow" ? 1 : 3);
}

const isNumericMonth = (fields) => fields.month === "numeric" || fields.month === "2-digit";

function dateField(name, date, { fields, variant }) {
  const style = fields[name];
  const pads = style === "2-digit" || (variant.padded && isNumericMonth(fields) && "day" in fields);
  const shown = (number) => (pads ? pad(number) : String(number));
  if (name === "weekday") return nameOf(WEEKDAYS, date.getUTCDay(), style);
  if (name === "day") return shown(date.getUTCDate());
  if (name === "month") {
    const month = date.getUTCMonth();
    return isNumericMonth(fields) ? shown(month + 1) : nameOf(MONTHS, month, style);
  }
  const year = date.getUTCFullYear();
  const ofEra = year > 0 ? year : 1 - year; // the year 0 is 1 BC
  return style === "2-digit" ? pad(ofEra % 100) : String(ofEra);
}

// The date fields in order, with the literals between them: ["month", " ", "day", ", ", "year"].
function datePattern({ fields, variant, dateStyle }) {
  const between = (names, separator) =>
    names.filter((name) => name in fields).flatMap((name, index) => (index === 0 ? [name] : [separator, name]));
  if (!("month" in fields)) return between(["weekday", "day", "year"], " ");
  let pattern;
  if (isNumericMonth(fields)) {
    const { order } = "day" in fields ? variant : AMERICAN;
    pattern = between(order, variant.separator);
  } else if (variant.dayFirst) {
    pattern = between(["day", "month", "year"], " ");
  } else {
    pattern = between(["month", "day"], " ");
    if ("year" in fields) pattern.push("day" in fields ? ", " : " ", "year");
  }
  if (!("weekday" in fields)) return pattern;
  return ["weekday", variant.dayFirst && dateStyle === "full" ? " " : ", ", ...pattern];
}

function hourText(hour, cycle, style) {
  const shown = { h12: hour % 12 || 12, h23: hour, h24: hour || 24 }[cycle];
  return style === "2-digit" || cycle !== "h12" ? pad(shown) : String(shown);
}

function timeParts(date, { fields, hourCycle, variant }) {
  const { hour, minute, second, fractionalSecondDigits, timeZoneName } = fields;
  const parts = [];
  const add = (type, value, separator) => {
    if (parts.length > 0) parts.push({ type: "literal", value: separator });
    parts.push({ type, value });
  };
  const [hours, minutes, seconds] = [date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()];
  if (hour) add("hour", hourText(hours, hourCycle, hour));
  if (minute) add("minute", hour || second ? pad(minutes) : String(minutes), ":");
  if (second) add("second", hour || minute ? pad(seconds) : String(seconds), ":");
  if (fractionalSecondDigits) {
    add("fractionalSecond", pad(date.getUTCMilliseconds(), 3).slice(0, fractionalSecondDigits), ".");
  }
  if (hour && hourCycle === "h12") add("dayPeriod", variant.periods[hours < 12 ? 0 : 1], " ");
  if (timeZoneName) add("timeZoneName", TIME_ZONE_NAMES[timeZoneName], " ");
  return parts;
}

function dateToParts(state, value = undefined) {
  const date = new Date(value === undefined ? Date.now() : Number(value));
  if (Number.isNaN(date.getTime())) throw new RangeError("Invalid time value");
  const parts = datePattern(state).map((token) =>
    token in FIELDS ? { type: token, value: dateField(token, date, state) } : { type: "literal", value: token },
  );
  const time = timeParts(date, state);
  const join = state.fields.month === "long" ? " at " : state.variant.join ?? ", ";
  if (parts.length > 0 && time.length > 0) parts.push({ type: "literal", value: join });
  return [...parts, ...time];
}

const formatDate = (state, value) => joinParts(dateToParts(state, value));

defineFormatter("DateTimeFormat", (locales, options) => {
  const state = readFormat(locales, options);
  const { variant, hourCycle, fields, dateStyle, timeStyle } = state;
  const isStyled = dateStyle !== undefined || timeStyle !== undefined;
  return {
    format: (value) => formatDate(state, value),
    formatToParts: (value) => dateToParts(state, value),
    formatRange(start, end) {
      const [first, last] = [formatDate(state, start), formatDate(state, end)];
      return first === last ? first : `${first} – ${last}`;
    },
    resolvedOptions: () => ({
      locale: variant.locale, calendar: "gregory", numberingSystem: "latn", timeZone: "UTC", hourCycle,
      ...(isStyled ? { dateStyle, timeStyle } : fields),
    }),
  };
});

function defineDateMethod(name, required, defaults) {
  const { getTime } = Date.prototype;
  defineMethod(Date.prototype, name, function (locales = undefined, options = undefined) {
    const time = Reflect.apply(getTime, this, []);
    const state = readFormat(localeList(locales), new Options("DateTimeFormat", options), required, defaults);
    return Number.isNaN(time) ? "Invalid Date" : formatDate(state, time);
  });
}
defineDateMethod("toLocaleString", "any", "all");
defineDateMethod("toLocaleDateString", "date", "date");
defineDateMethod("toLocaleTimeString", "time", "time");
