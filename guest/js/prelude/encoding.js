// TextEncoder and TextDecoder. (The engine itself has atob, btoa, Uint8Array.fromBase64 and DOMException.)
//
// Everything is captured at load time, so it goes on working after a program has overwritten any builtin. (No template
// strings for the same reason: this engine compiles them to calls of String.prototype.concat.)

const { TypeError, RangeError, Uint8Array, Uint16Array, String, ArrayBuffer, atob } = globalThis;
const { apply, defineProperty, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
const uncurry = (method) => Function.prototype.call.bind(method);
const getter = (prototype, name) => uncurry(getOwnPropertyDescriptor(prototype, name).get);

const { isView } = ArrayBuffer;
const { utf8Bytes, utf8Text } = native;
const { fromCharCode } = String;
const toBase64 = uncurry(Uint8Array.prototype.toBase64);
const charCodeAt = uncurry(String.prototype.charCodeAt);
const slice = uncurry(String.prototype.slice);
const sliceBuffer = uncurry(ArrayBuffer.prototype.slice);
const trim = uncurry(String.prototype.trim);
const toLowerCase = uncurry(String.prototype.toLowerCase);
const toWellFormed = uncurry(String.prototype.toWellFormed);
const isWellFormed = uncurry(String.prototype.isWellFormed);
const execute = uncurry(RegExp.prototype.exec);
const bufferBytes = getter(ArrayBuffer.prototype, "byteLength");
const typedArrayPrototype = getPrototypeOf(Uint8Array.prototype);
const typedArrayName = getter(typedArrayPrototype, Symbol.toStringTag);
const typedArrayBuffer = getter(typedArrayPrototype, "buffer");
const typedArrayOffset = getter(typedArrayPrototype, "byteOffset");
const typedArrayBytes = getter(typedArrayPrototype, "byteLength");
const dataViewBuffer = getter(DataView.prototype, "buffer");
const dataViewOffset = getter(DataView.prototype, "byteOffset");
const dataViewBytes = getter(DataView.prototype, "byteLength");

const CHUNK = 8192; // arguments of one call of String.fromCharCode
const windowsOnly = /[\x80-\x9f]/;
// The characters of windows-1252 at 0x80-0x9F, where ISO-8859-1 has control characters.
const windows1252 =
  "\u20ac\x81\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\x8d\u017d\x8f" +
  "\x90\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\x9d\u017e\u0178";

const encodingOfLabel = {
  __proto__: null,
  "utf-8": "utf-8", utf8: "utf-8", "utf-16le": "utf-16le", "utf-16": "utf-16le",
  "windows-1252": "windows-1252", cp1252: "windows-1252", latin1: "windows-1252", "iso-8859-1": "windows-1252",
  ascii: "windows-1252", "us-ascii": "windows-1252",
};

function withCode(error, code) {
  defineProperty(error, "code", { __proto__: null, value: code, configurable: true, writable: true });
  return error;
}

function bytesOf(input) {
  if (input === undefined) return new Uint8Array(0);
  if (!isView(input)) {
    bufferBytes(input); // throws a TypeError for anything but an ArrayBuffer
    return new Uint8Array(input);
  }
  return typedArrayName(input) === undefined
    ? new Uint8Array(dataViewBuffer(input), dataViewOffset(input), dataViewBytes(input))
    : new Uint8Array(typedArrayBuffer(input), typedArrayOffset(input), typedArrayBytes(input));
}

function decodeUtf16(bytes) {
  const length = typedArrayBytes(bytes);
  const start = typedArrayOffset(bytes);
  const buffer = sliceBuffer(typedArrayBuffer(bytes), start, start + length - (length & 1)); // aligned
  let text = "";
  for (let at = 0; at + 1 < length; at += 2 * CHUNK) {
    const units = (length - at) >> 1;
    text += apply(fromCharCode, undefined, new Uint16Array(buffer, at, units < CHUNK ? units : CHUNK));
  }
  return length & 1 ? text + "\ud800" : text; // half a character: malformed
}

function decodeWindows1252(bytes) {
  const binary = atob(toBase64(bytes));
  if (execute(windowsOnly, binary) === null) return binary;
  let text = "";
  for (let index = 0; index < binary.length; index++) {
    const byte = charCodeAt(binary, index);
    text += byte >= 0x80 && byte < 0xa0 ? windows1252[byte - 0x80] : binary[index];
  }
  return text;
}

class TextEncoder {
  get encoding() {
    return "utf-8";
  }

  encode(input = "") {
    return utf8Bytes(toWellFormed(String(input)));
  }
}

class TextDecoder {
  constructor(label = "utf-8", options = undefined) {
    const encoding = encodingOfLabel[toLowerCase(trim(String(label)))];
    if (encoding === undefined) {
      throw withCode(new RangeError("The \"" + label + "\" encoding is not supported"), "ERR_ENCODING_NOT_SUPPORTED");
    }
    const define = (name, value) => defineProperty(this, name, { __proto__: null, value });
    define("encoding", encoding);
    define("fatal", !!options?.fatal);
    define("ignoreBOM", !!options?.ignoreBOM);
  }

  decode(input = undefined, options = undefined) {
    if (options?.stream) {
      throw new TypeError("TextDecoder doesn't support { stream: true } here: join the chunks, then decode");
    }
    const { encoding, fatal, ignoreBOM } = this;
    const bytes = bytesOf(input);
    if (encoding === "windows-1252") return decodeWindows1252(bytes);
    let text = encoding === "utf-8" ? utf8Text(bytes, fatal) : decodeUtf16(bytes);
    if (text === null || (fatal && !isWellFormed(text))) {
      const message = "The encoded data was not valid for encoding " + encoding;
      throw withCode(new TypeError(message), "ERR_ENCODING_INVALID_ENCODED_DATA");
    }
    text = toWellFormed(text);
    return !ignoreBOM && text[0] === "\ufeff" ? slice(text, 1) : text;
  }
}

for (const constructor of [TextEncoder, TextDecoder]) {
  const { name } = constructor;
  defineProperty(constructor.prototype, Symbol.toStringTag, { value: name, configurable: true });
  defineProperty(globalThis, name, { value: constructor, writable: true, configurable: true, enumerable: false });
}
shared.decodeUtf8 = (bytes) => toWellFormed(utf8Text(bytes, false));
