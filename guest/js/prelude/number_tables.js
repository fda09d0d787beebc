// English names and symbols of currencies and units, as CLDR gives them; any other currency is shown by its code.

const words = (text) => text.split(" ");
const rows = (text) => text.split("; ").map((row) => row.split("="));
const table = (text) => Object.assign(Object.create(null), Object.fromEntries(rows(text)));

const CURRENCY_DIGITS = Object.create(null);
const WITHOUT_DIGITS =
  "AFN ALL BIF CLP COP DJF GNF HUF IDR IQD IRR ISK JPY KMF KPW KRW LAK LBP MGA MMK PKR PYG RWF SLL SOS SYP UGX VND " +
  "VUV XAF XOF XPF YER";
for (const code of words(WITHOUT_DIGITS)) CURRENCY_DIGITS[code] = 0;
for (const code of words("BHD JOD KWD LYD OMR TND")) CURRENCY_DIGITS[code] = 3;

const CURRENCY_SYMBOLS = table(
  "USD=$; EUR=€; GBP=£; JPY=¥; INR=₹; CNY=CN¥; AUD=A$; BRL=R$; CAD=CA$; HKD=HK$; ILS=₪; KRW=₩; MXN=MX$; NZD=NZ$; " +
    "PHP=₱; TWD=NT$; VND=₫; XAF=FCFA; XCD=EC$; XOF=F\u202fCFA; XPF=CFPF",
);
const NARROW_SYMBOLS = table(
  "CNY=¥; AUD=$; CAD=$; HKD=$; MXN=$; NZD=$; TWD=$; XCD=$; ARS=$; CLP=$; COP=$; SGD=$; RUB=₽; UAH=₴; TRY=₺; THB=฿; " +
    "PLN=zł; CZK=Kč; HUF=Ft; SEK=kr; NOK=kr; DKK=kr; ISK=kr; ZAR=R; IDR=Rp; MYR=RM; PKR=Rs; EGP=E£; NGN=₦; KZT=₸; " +
    "RON=lei",
);
// singular, and the plural if it isn't just an "s" more
const CURRENCY_NAMES = table(
  "USD=US dollar; EUR=euro; GBP=British pound; JPY=Japanese yen|Japanese yen; INR=Indian rupee; " +
    "CNY=Chinese yuan|Chinese yuan; AUD=Australian dollar; BRL=Brazilian real; CAD=Canadian dollar; CHF=Swiss franc; " +
    "CZK=Czech koruna; DKK=Danish krone|Danish kroner; HKD=Hong Kong dollar; HUF=Hungarian forint; " +
    "IDR=Indonesian rupiah; ILS=Israeli new shekel; KRW=South Korean won|South Korean won; MXN=Mexican peso; " +
    "NOK=Norwegian krone|Norwegian kroner; NZD=New Zealand dollar; PHP=Philippine peso; PLN=Polish zloty; " +
    "RUB=Russian ruble; SEK=Swedish krona|Swedish kronor; SGD=Singapore dollar; THB=Thai baht|Thai baht; " +
    "TRY=Turkish lira|Turkish Lira; TWD=New Taiwan dollar; UAH=Ukrainian hryvnia; " +
    "ZAR=South African rand|South African rand",
);

// short, narrow (if it isn't the short one), long plural (if it isn't just an "s" more), short plural (if it differs);
// ~ before a short form: no space between it and the number
const UNITS = table(
  "acre=ac; bit=bit; byte=byte|B; celsius=~°C|°C|degrees Celsius; centimeter=cm; day=day|d||days; degree=deg|°; " +
    "fahrenheit=~°F|°|degrees Fahrenheit; fluid-ounce=fl oz; foot=ft|′|feet; gallon=gal; gigabit=Gb; gigabyte=GB; " +
    "gram=g; hectare=ha; hour=hr|h; inch=in|″|inches; kilobit=kb; kilobyte=kB; kilogram=kg; kilometer=km; liter=L; " +
    "megabit=Mb; megabyte=MB; meter=m; microsecond=μs; mile=mi; milliliter=mL; millimeter=mm; millisecond=ms; " +
    "minute=min|m; month=mth|m||mths; nanosecond=ns; ounce=oz; percent=~%|%|percent; petabyte=PB; pound=lb|#; " +
    "second=sec|s; stone=st; terabit=Tb; terabyte=TB; week=wk|w||wks; yard=yd; year=yr|y||yrs",
);
// what stands after "/" where it isn't the unit's own short form, and compounds with a name of their own
const PER_UNITS = table("hour=h; second=s; day=d; week=w; month=m; year=y");
const COMPOUND_UNITS = table("mile-per-hour=mph; mile-per-gallon=mpg");

const LONG_SINGULARS = table("celsius=degree Celsius; fahrenheit=degree Fahrenheit");

function longName(unit, plural) {
  const singular = LONG_SINGULARS[unit] ?? unit.replace("-", " ");
  return plural ? UNITS[unit].split("|")[2] || `${singular}s` : singular;
}

function simpleUnit(unit, display, plural) {
  const [short, narrow, , shortPlural] = UNITS[unit].split("|");
  if (display === "long") return longName(unit, plural);
  if (display === "narrow") return narrow || short.replace("~", "");
  return plural && shortPlural ? shortPlural : short;
}

const isKnownUnit = (unit) => unit.split("-per-").length <= 2 && unit.split("-per-").every((part) => part in UNITS);

// What follows the number: {space, text}.
function unitSuffix(unit, display, plural) {
  const [first, second] = unit.split("-per-");
  let text = simpleUnit(first, display, plural);
  if (second !== undefined) {
    if (display === "long") text += ` per ${longName(second, false)}`;
    else text = COMPOUND_UNITS[unit] ?? `${text}/${PER_UNITS[second] ?? simpleUnit(second, display, false)}`;
  }
  const space = display !== "narrow" && !text.startsWith("~");
  return { space, text: text.replaceAll("~", "") };
}

function currencyName(code, plural) {
  const [singular, irregular] = (CURRENCY_NAMES[code] ?? `${code}|${code}`).split("|");
  return plural ? irregular ?? `${singular}s` : singular;
}

function currencySymbol(code, display) {
  if (display === "code") return code;
  return (display === "narrowSymbol" ? NARROW_SYMBOLS[code] : undefined) ?? CURRENCY_SYMBOLS[code] ?? code;
}

shared.numberTables = { CURRENCY_DIGITS, currencyName, currencySymbol, isKnownUnit, unitSuffix };
