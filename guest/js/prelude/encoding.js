// TextEncoder and TextDecoder: text to bytes and back at native speed, out of the engine's base64 and URI functions.
// (UTF-16, for which there are none, has a function of the shim's.)
//
// The engine already has atob, btoa and Uint8Array.fromBase64. Going through them keeps the work in C, which is
// ten times faster than a loop over characters:
//   text -> encodeURIComponent -> unescape -> binary string -> btoa -> fromBase64 -> bytes, and the same way back.
// Everything is captured at load time, so it goes on working after a program has overwritten any builtin. (No template
// strings for the same reason: this engine compiles them to calls of String.prototype.concat.)

const { TypeError, RangeError, Uint8Array, String, ArrayBuffer, atob, btoa } = globalThis;
const { escape, unescape, encodeURIComponent, decodeURIComponent } = globalThis;
const { apply, defineProperty, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
const uncurry = (method) => Function.prototype.call.bind(method);
const getter = (prototype, name) => uncurry(getOwnPropertyDescriptor(prototype, name).get);

const { isView } = ArrayBuffer;
const { fromBase64 } = Uint8Array;
const { utf16Text } = native;
const toBase64 = uncurry(Uint8Array.prototype.toBase64);
const charCodeAt = uncurry(String.prototype.charCodeAt);
const slice = uncurry(String.prototype.slice);
const trim = uncurry(String.prototype.trim);
const toLowerCase = uncurry(String.prototype.toLowerCase);
const toWellFormed = uncurry(String.prototype.toWellFormed);
const isWellFormed = uncurry(String.prototype.isWellFormed);
const execute = uncurry(RegExp.prototype.exec);

const typedArrayPrototype = getPrototypeOf(Uint8Array.prototype);
const setBytes = uncurry(typedArrayPrototype.set);
const typedArrayName = getter(typedArrayPrototype, Symbol.toStringTag);
const typedArrayBuffer = getter(typedArrayPrototype, "buffer");
const typedArrayOffset = getter(typedArrayPrototype, "byteOffset");
const typedArrayBytes = getter(typedArrayPrototype, "byteLength");
const lengthOf = getter(typedArrayPrototype, "length");
const dataViewBuffer = getter(DataView.prototype, "buffer");
const dataViewOffset = getter(DataView.prototype, "byteOffset");
const dataViewBytes = getter(DataView.prototype, "byteLength");

const CHUNK = 65536; // the intermediate strings stay small, however long the text is
const notAscii = /[^\x00-\x7f]/;
const windowsOnly = /[\x80-\x9f]/;
// What windows-1252 has at 0x80-0x9F, where ISO-8859-1 has control characters.
const windows1252 =
  "\u20ac\x81\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\x8d\u017d\x8f" +
  "\x90\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\x9d\u017e\u0178";

const encodingOfLabel = {
  __proto__: null,
  "utf-8": "utf-8", utf8: "utf-8", "unicode-1-1-utf-8": "utf-8",
  "utf-16le": "utf-16le", "utf-16": "utf-16le", "ucs-2": "utf-16le", unicode: "utf-16le", "utf-16be": "utf-16be",
  "windows-1252": "windows-1252", cp1252: "windows-1252", latin1: "windows-1252", l1: "windows-1252",
  "iso-8859-1": "windows-1252", "iso8859-1": "windows-1252", ascii: "windows-1252", "us-ascii": "windows-1252",
};

function withCode(error, code) {
  defineProperty(error, "code", { __proto__: null, value: code, configurable: true, writable: true });
  return error;
}

function encodeUtf8(text) {
  text = toWellFormed(text);
  if (execute(notAscii, text) === null) return apply(fromBase64, Uint8Array, [btoa(text)]);
  let binary = "";
  for (let start = 0, end; start < text.length; start = end) {
    end = start + CHUNK < text.length ? start + CHUNK : text.length;
    if ((charCodeAt(text, end - 1) & 0xfc00) === 0xd800) end++; // well-formed: its other half follows
    binary += unescape(encodeURIComponent(slice(text, start, end)));
  }
  return apply(fromBase64, Uint8Array, [btoa(binary)]);
}

function part(bytes, start, end) {
  return new Uint8Array(typedArrayBuffer(bytes), typedArrayOffset(bytes) + start, end - start);
}
const binaryString = (bytes) => atob(toBase64(bytes));

// Decodes bytes that are valid UTF-8; throws URIError where they aren't.
function decodeValid(bytes) {
  const length = lengthOf(bytes);
  let text = "";
  for (let start = 0, end; start < length; start = end) {
    end = start + CHUNK < length ? start + CHUNK : length;
    for (let back = 0; back < 3 && end < length && (bytes[end] & 0xc0) === 0x80; back++) end--;
    const binary = binaryString(part(bytes, start, end));
    text += execute(notAscii, binary) === null ? binary : decodeURIComponent(escape(binary));
  }
  return text;
}

// How many bytes from `index` on form one UTF-8 sequence. Negative: that many bytes form the valid beginning of one
// (0 counted as 1) and are replaced together by one U+FFFD.
function sequenceLength(bytes, index) {
  const lead = bytes[index];
  if (lead < 0x80) return 1;
  const needed = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (needed === 0) return -1;
  let low = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
  let high = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
  for (let count = 1; count < needed; count++) {
    const byte = bytes[index + count]; // undefined at the end: neither comparison holds
    if (!(byte >= low && byte <= high)) return -count;
    low = 0x80;
    high = 0xbf;
  }
  return needed;
}

function decodeWithReplacement(bytes) {
  let text = "";
  let validFrom = 0;
  for (let index = 0; index < lengthOf(bytes); ) {
    const length = sequenceLength(bytes, index);
    if (length > 0) {
      index += length;
    } else {
      if (validFrom < index) text += decodeValid(part(bytes, validFrom, index));
      text += "\ufffd";
      index -= length;
      validFrom = index;
    }
  }
  return text + decodeValid(part(bytes, validFrom, lengthOf(bytes)));
}

function decodeUtf8(bytes, fatal = false) {
  try {
    return decodeValid(bytes);
  } catch {
    if (fatal) return null;
    return decodeWithReplacement(bytes);
  }
}

// How many bytes at the end are the beginning of a sequence that the next chunk may complete.
function incompleteUtf8(bytes) {
  const length = lengthOf(bytes);
  for (let count = 1; count <= 3 && count <= length; count++) {
    const byte = bytes[length - count];
    if (byte >= 0xc2 && byte < 0xf5) return sequenceLength(bytes, length - count) === -count ? count : 0;
    if (byte < 0x80 || byte >= 0xc0) return 0;
  }
  return 0;
}

function decodeUtf16(bytes, bigEndian) {
  return lengthOf(bytes) < 2 ? "" : utf16Text(bytes, bigEndian); // a last odd byte is the caller's business
}

function incompleteUtf16(bytes, bigEndian) {
  const odd = lengthOf(bytes) & 1;
  const last = lengthOf(bytes) - odd - 2;
  if (last >= 0 && (bytes[bigEndian ? last : last + 1] & 0xfc) === 0xd8) return odd + 2;
  return odd;
}

function decodeWindows1252(bytes) {
  const binary = binaryString(bytes);
  if (execute(windowsOnly, binary) === null) return binary;
  let text = "";
  for (let index = 0; index < binary.length; index++) {
    const byte = charCodeAt(binary, index);
    text += byte >= 0x80 && byte < 0xa0 ? windows1252[byte - 0x80] : binary[index];
  }
  return text;
}

function bytesOf(input) {
  if (input === undefined) return new Uint8Array(0);
  if (isView(input)) {
    return typedArrayName(input) === undefined
      ? new Uint8Array(dataViewBuffer(input), dataViewOffset(input), dataViewBytes(input))
      : new Uint8Array(typedArrayBuffer(input), typedArrayOffset(input), typedArrayBytes(input));
  }
  if (isArrayBuffer(input)) return new Uint8Array(input);
  throw new TypeError("The \"input\" argument must be an ArrayBuffer, a typed array or a DataView");
}

const arrayBufferBytes = getter(ArrayBuffer.prototype, "byteLength");
const sharedBufferBytes = getter(SharedArrayBuffer.prototype, "byteLength");
function isArrayBuffer(value) {
  try {
    arrayBufferBytes(value);
    return true;
  } catch {
    try {
      sharedBufferBytes(value);
      return true;
    } catch {
      return false;
    }
  }
}

function joinBytes(first, second) {
  if (first === null) return second;
  const all = new Uint8Array(lengthOf(first) + lengthOf(second));
  setBytes(all, first);
  setBytes(all, second, lengthOf(first));
  return all;
}

class TextEncoder {
  get encoding() {
    return "utf-8";
  }

  encode(input = "") {
    return encodeUtf8(String(input));
  }

  encodeInto(source, destination) {
    source = String(source);
    if (!isView(destination) || typedArrayName(destination) !== "Uint8Array") {
      throw new TypeError("The \"dest\" argument must be an instance of Uint8Array");
    }
    const room = typedArrayBytes(destination);
    const encoded = encodeUtf8(slice(source, 0, room + 1)); // no character takes less than a byte
    let written = lengthOf(encoded) < room ? lengthOf(encoded) : room;
    while (written < lengthOf(encoded) && (encoded[written] & 0xc0) === 0x80) written--; // not within a character
    let read = 0;
    for (let index = 0; index < written; index++) {
      if ((encoded[index] & 0xc0) !== 0x80) read += encoded[index] >= 0xf0 ? 2 : 1;
    }
    setBytes(destination, part(encoded, 0, written));
    return { read, written };
  }
}

class TextDecoder {
  #encoding;
  #fatal;
  #ignoreBOM;
  #pending = null; // bytes of an incomplete character, kept between calls with {stream: true}
  #started = false; // whether a byte order mark can no longer come

  constructor(label = "utf-8", options = undefined) {
    label = String(label);
    const encoding = encodingOfLabel[toLowerCase(trim(label))];
    if (encoding === undefined) {
      throw withCode(new RangeError("The \"" + label + "\" encoding is not supported"), "ERR_ENCODING_NOT_SUPPORTED");
    }
    this.#encoding = encoding;
    this.#fatal = !!options?.fatal;
    this.#ignoreBOM = !!options?.ignoreBOM;
  }

  get encoding() {
    return this.#encoding;
  }

  get fatal() {
    return this.#fatal;
  }

  get ignoreBOM() {
    return this.#ignoreBOM;
  }

  decode(input = undefined, options = undefined) {
    const stream = !!options?.stream;
    const encoding = this.#encoding;
    let bytes = joinBytes(this.#pending, bytesOf(input));
    this.#pending = null;
    if (encoding === "windows-1252") return decodeWindows1252(bytes);

    const bigEndian = encoding === "utf-16be";
    if (stream) {
      const incomplete = encoding === "utf-8" ? incompleteUtf8(bytes) : incompleteUtf16(bytes, bigEndian);
      const complete = lengthOf(bytes) - incomplete;
      if (incomplete > 0) this.#pending = new Uint8Array(part(bytes, complete, lengthOf(bytes)));
      bytes = part(bytes, 0, complete);
    }
    let text = encoding === "utf-8" ? decodeUtf8(bytes, this.#fatal) : decodeUtf16(bytes, bigEndian);
    if (encoding !== "utf-8") {
      const odd = lengthOf(bytes) & 1; // never so in a stream, where it waits for the next chunk
      if (this.#fatal && (odd || !isWellFormed(text))) text = null;
      else text = toWellFormed(text) + (odd ? "\ufffd" : "");
    }
    if (text === null) {
      this.#pending = null;
      this.#started = false;
      const message = "The encoded data was not valid for encoding " + encoding;
      throw withCode(new TypeError(message), "ERR_ENCODING_INVALID_ENCODED_DATA");
    }
    if (!this.#started && !this.#ignoreBOM && text[0] === "\ufeff") text = slice(text, 1);
    this.#started = stream && (this.#started || lengthOf(bytes) > 0);
    return text;
  }
}

for (const constructor of [TextEncoder, TextDecoder]) {
  const { name } = constructor;
  defineProperty(constructor.prototype, Symbol.toStringTag, { value: name, configurable: true });
  defineProperty(globalThis, name, { value: constructor, writable: true, configurable: true, enumerable: false });
}
if (typeof atob !== "function" || typeof btoa !== "function" || typeof fromBase64 !== "function") {
  throw new Error("this engine lacks atob, btoa or Uint8Array.fromBase64");
}
shared.encodeUtf8 = encodeUtf8;
shared.decodeUtf8 = decodeUtf8;
