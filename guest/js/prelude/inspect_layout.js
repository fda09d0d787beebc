// The text side of console.log: quoting strings and laying out the entries of an object on one line or on several.
//
// The layout is Node's, which everybody who reads logs is used to. Like all of the console it uses only what it
// captured at load time, and no template strings (this engine compiles them to calls of String.prototype.concat),
// iterators or inherited array methods: a program may overwrite those.

const { setPrototypeOf } = Object;
const { sqrt, round, floor, min, max } = Math;
const uncurry = (method) => Function.prototype.call.bind(method);
const slice = uncurry(String.prototype.slice);
const indexOf = uncurry(String.prototype.indexOf);
const charCodeAt = uncurry(String.prototype.charCodeAt);
const codePointAt = uncurry(String.prototype.codePointAt);
const padStart = uncurry(String.prototype.padStart);
const padEnd = uncurry(String.prototype.padEnd);
const repeat = uncurry(String.prototype.repeat);
const toUpperCase = uncurry(String.prototype.toUpperCase);
const numberToString = uncurry(Number.prototype.toString);
const execute = uncurry(RegExp.prototype.exec);

const LINE_WIDTH = 80;
const LONGEST_STRING = 10000;
const MUST_ESCAPE = /[\x00-\x1f'\\\x7f-\x9f\ud800-\udfff]/;
const NOT_NARROW = /[^\x20-\x7e]/;
const ESCAPES = { __proto__: null, 8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 92: "\\\\" };

// An array that no setter on Array.prototype can get at: `items[items.length] = value` always appends.
const makeList = () => setPrototypeOf([], null);

function join(items, separator) {
  let text = "";
  for (let index = 0; index < items.length; index++) text += index === 0 ? items[index] : separator + items[index];
  return text;
}

const includes = (text, part) => indexOf(text, part) >= 0;
const isHighSurrogate = (code) => code >= 0xd800 && code < 0xdc00;
const isLowSurrogate = (code) => code >= 0xdc00 && code < 0xe000;

// The string as a literal, in whichever quotes need the least escaping.
function quote(text) {
  if (execute(MUST_ESCAPE, text) === null) return "'" + text + "'";
  let mark = "'";
  if (includes(text, "'")) {
    if (!includes(text, "\"")) mark = "\"";
    else if (!includes(text, "`") && !includes(text, "${")) mark = "`";
  }
  let quoted = mark;
  for (let index = 0; index < text.length; index++) {
    const code = charCodeAt(text, index);
    if (code === 0x27) {
      quoted += mark === "'" ? "\\'" : "'";
    } else if (ESCAPES[code] !== undefined) {
      quoted += ESCAPES[code];
    } else if (code < 0x20 || (code >= 0x7f && code < 0xa0)) {
      quoted += "\\x" + padStart(toUpperCase(numberToString(code, 16)), 2, "0");
    } else if (isHighSurrogate(code) && index + 1 < text.length && isLowSurrogate(charCodeAt(text, index + 1))) {
      quoted += text[index] + text[index + 1];
      index++;
    } else if (isHighSurrogate(code) || isLowSurrogate(code)) {
      quoted += "\\u" + numberToString(code, 16);
    } else {
      quoted += text[index];
    }
  }
  return quoted + mark;
}

// A string inside an object: quoted, cut if enormous, and one line of source per line of text if it doesn't fit.
function quoteInside(text, indentation) {
  let trailer = "";
  if (text.length > LONGEST_STRING) {
    const left = text.length - LONGEST_STRING;
    trailer = "... " + left + " more character" + (left > 1 ? "s" : "");
    text = slice(text, 0, LONGEST_STRING);
  }
  if (text.length <= 16 || text.length <= LINE_WIDTH - indentation - 4) return quote(text) + trailer;
  const lines = makeList();
  for (let start = 0, end; start < text.length; start = end) {
    const newline = indexOf(text, "\n", start);
    end = newline < 0 ? text.length : newline + 1;
    lines[lines.length] = quote(slice(text, start, end));
  }
  return join(lines, " +\n" + repeat(" ", indentation + 2)) + trailer;
}

// Columns that a terminal needs: two for East Asian wide characters and emoji, none for combining marks.
function widthOf(text) {
  if (execute(NOT_NARROW, text) === null) return text.length;
  let width = 0;
  for (let index = 0; index < text.length; index++) {
    const code = codePointAt(text, index);
    if (code > 0xffff) index++;
    const ignored = code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x300 && code < 0x370) ||
      (code >= 0x200b && code < 0x2010) || (code >= 0x20d0 && code < 0x2100) || (code >= 0xfe00 && code < 0xfe10);
    const wide = (code >= 0x1100 && code < 0x1160) || (code >= 0x2e80 && code < 0xa4d0 && code !== 0x303f) ||
      (code >= 0xac00 && code < 0xd7a4) || (code >= 0xf900 && code < 0xfb00) || (code >= 0xff00 && code < 0xff61) ||
      (code >= 0x1f300 && code < 0x1f650) || (code >= 0x1f900 && code < 0x1fa00) || (code >= 0x20000 && code < 0x3fffe);
    if (!ignored) width += wide ? 2 : 1;
  }
  return width;
}

// Many short array elements go into columns of a roughly square block. `more` tells that the last entry is the line
// about elements left out; it stays on its own.
function intoColumns(entries, indentation, allNumbers, more) {
  const count = entries.length - (more ? 1 : 0);
  const widths = makeList();
  let total = 0;
  let widest = 0;
  for (let index = 0; index < count; index++) {
    const width = widthOf(entries[index]);
    widths[index] = width;
    total += width + 2;
    widest = max(widest, width);
  }
  const cell = widest + 2; // a comma and a space
  const worthwhile = cell * 3 + indentation < LINE_WIDTH && (total / cell > 5 || widest <= 6);
  if (!worthwhile) return entries;
  const bias = sqrt(cell - total / entries.length);
  const biased = max(cell - 3 - bias, 1);
  const square = round(sqrt(2.5 * biased * count) / biased); // a character is about 2.5 times as high as wide
  const columns = min(square, floor((LINE_WIDTH - indentation) / cell), 12);
  if (columns <= 1) return entries;

  const columnWidths = makeList();
  for (let column = 0; column < columns; column++) {
    let width = 0;
    for (let index = column; index < count; index += columns) width = max(width, widths[index]);
    columnWidths[column] = width + 2;
  }
  const rows = makeList();
  for (let start = 0; start < count; start += columns) {
    const last = min(start + columns, count) - 1;
    let row = "";
    for (let index = start; index <= last; index++) {
      // padding counts code units; what is wider or narrower than that needs less or more of it
      const slack = entries[index].length - widths[index];
      const width = columnWidths[index - start] + slack;
      if (index < last) {
        row += allNumbers ? padStart(entries[index] + ", ", width, " ") : padEnd(entries[index] + ", ", width, " ");
      } else {
        row += allNumbers ? padStart(entries[index], width - 2, " ") : entries[index];
      }
    }
    rows[rows.length] = row;
  }
  if (more) rows[rows.length] = entries[count];
  return rows;
}

// Puts entries between braces. `inner`: how many levels of objects there are inside; three fit on a line.
function layOut(entries, { prefix, open, close, indentation, inner, asArray, allNumbers, more, lineWidth }) {
  const width = lineWidth === undefined ? LINE_WIDTH : lineWidth;
  const count = entries.length;
  if (asArray && count > 6) entries = intoColumns(entries, indentation, allNumbers, more);
  const head = prefix === "" ? open : prefix + " " + open;
  if (inner < 3 && entries.length === count && !includes(prefix, "\n")) {
    let total = count + count + indentation + open.length + prefix.length + 10;
    let oneLine = true;
    for (let index = 0; index < count && oneLine; index++) {
      total += entries[index].length;
      oneLine = total <= width && !includes(entries[index], "\n");
    }
    if (oneLine) return head + " " + join(entries, ", ") + " " + close;
  }
  const newline = "\n" + repeat(" ", indentation);
  return head + newline + "  " + join(entries, "," + newline + "  ") + newline + close;
}

shared.layout = { __proto__: null, makeList, join, quote, quoteInside, widthOf, layOut };
