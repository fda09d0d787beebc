// URL hosts: domains (with punycode), IPv4 and IPv6 addresses, in the text form the WHATWG URL standard prescribes.
//
// Left out: the full UTS-46 mapping table. Names outside ASCII are lower-cased and NFKC-normalised, which maps all but
// rare characters the same way; labels beginning with "xn--" must decode, but aren't checked further.

const { decodeUtf8 } = shared;

const FORBIDDEN_IN_HOST = /[\0\t\n\r #/:<>?@[\\\]^|]/;
const FORBIDDEN_IN_DOMAIN = /[\0-\x20#%/:<>?@[\\\]^|\x7f]/;
const DISALLOWED_IN_LABEL = /^\p{M}|[\ufffd\p{Cc}\p{Cn}\p{Co}\p{Z}]/u;
const IGNORED_IN_DOMAIN = /[\u00ad\u034f\u180b-\u180f\u200b\u2060\u2064\ufe00-\ufe0f\ufeff]/g;
const ESCAPES = /(?:%[0-9a-fA-F]{2})+/g;
const LONGEST_LABEL = 1024; // punycode takes quadratic time; DNS itself ends at 63

// Replaces %XX sequences by the text their bytes spell in UTF-8; anything else stays as it is.
function percentDecode(text) {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text.replace(ESCAPES, (run) => decodeUtf8(Uint8Array.fromHex(run.replaceAll("%", ""))));
  }
}

// RFC 3492 §6.1
function adaptBias(delta, count, first) {
  delta = Math.floor(delta / (first ? 700 : 2));
  delta += Math.floor(delta / count);
  let bias = 0;
  for (; delta > 455; bias += 36) delta = Math.floor(delta / 35);
  return bias + Math.floor((36 * delta) / (delta + 38));
}

const threshold = (position, bias) => Math.min(Math.max(position - bias, 1), 26);
const DIGITS = "abcdefghijklmnopqrstuvwxyz0123456789";

// RFC 3492 §6.3
function encodePunycode(label) {
  const codePoints = Array.from(label, (character) => character.codePointAt(0));
  if (codePoints.length > LONGEST_LABEL) return null;
  let output = label.replace(/[^\0-\x7f]/g, "");
  const basic = output.length;
  let handled = basic;
  if (basic > 0) output += "-";
  let next = 128;
  let delta = 0;
  let bias = 72;
  while (handled < codePoints.length) {
    let smallest = Infinity;
    for (const codePoint of codePoints) if (codePoint >= next && codePoint < smallest) smallest = codePoint;
    delta += (smallest - next) * (handled + 1);
    next = smallest;
    for (const codePoint of codePoints) {
      if (codePoint < next) delta++;
      if (codePoint !== next) continue;
      let rest = delta;
      for (let position = 36; ; position += 36) {
        const limit = threshold(position, bias);
        if (rest < limit) break;
        output += DIGITS[limit + ((rest - limit) % (36 - limit))];
        rest = Math.floor((rest - limit) / (36 - limit));
      }
      output += DIGITS[rest];
      bias = adaptBias(delta, handled + 1, handled === basic);
      delta = 0;
      handled++;
    }
    delta++;
    next++;
  }
  return output;
}

// RFC 3492 §6.2; null for what is no punycode
function decodePunycode(text) {
  if (text.length > LONGEST_LABEL) return null;
  const lastDash = text.lastIndexOf("-");
  const output = lastDash > 0 ? Array.from(text.slice(0, lastDash)) : [];
  let index = 0;
  let codePoint = 128;
  let bias = 72;
  for (let at = lastDash > 0 ? lastDash + 1 : 0; at < text.length; ) {
    const before = index;
    let weight = 1;
    for (let position = 36; ; position += 36) {
      const digit = at < text.length ? DIGITS.indexOf(text[at++]) : -1;
      if (digit < 0) return null;
      index += digit * weight;
      const limit = threshold(position, bias);
      if (digit < limit) break;
      weight *= 36 - limit;
      if (weight > 0x7fffffff) return null;
    }
    const count = output.length + 1;
    bias = adaptBias(index - before, count, before === 0);
    codePoint += Math.floor(index / count);
    index %= count;
    if (codePoint > 0x10ffff || (codePoint >= 0xd800 && codePoint < 0xe000)) return null;
    output.splice(index++, 0, String.fromCodePoint(codePoint));
  }
  return output.join("");
}

function labelToAscii(label) {
  if (label.startsWith("xn--")) {
    const decoded = decodePunycode(label.slice(4));
    // What decodes to plain ASCII, or to something that would be mapped, was never made by an encoder.
    const valid = decoded !== null && /[^\0-\x7f]/.test(decoded) && decoded === mapDomain(decoded);
    return valid ? label : null;
  }
  if (!/[^\0-\x7f]/.test(label)) return label;
  if (DISALLOWED_IN_LABEL.test(label)) return null;
  const encoded = encodePunycode(label);
  return encoded === null ? null : "xn--" + encoded;
}

function mapDomain(domain) {
  const composed = domain.normalize("NFKC").toLowerCase().replaceAll("\u1e9e", "ß");
  return composed.normalize("NFKC").replace(IGNORED_IN_DOMAIN, "").replaceAll("\u3002", ".");
}

function domainToAscii(domain) {
  const ascii = !/[^\0-\x7f]/.test(domain);
  domain = ascii ? domain.toLowerCase() : mapDomain(domain);
  if (ascii && !domain.includes("xn--")) return domain;
  const labels = domain.split(".").map(labelToAscii);
  return labels.includes(null) ? null : labels.join(".");
}

// One part of an IPv4 address in decimal, octal (0…) or hexadecimal (0x…); NaN for anything else.
function ipv4Number(text) {
  if (/^0[xX][0-9a-fA-F]*$/.test(text)) return text.length === 2 ? 0 : Number(text);
  if (/^0[0-7]*$/.test(text)) return parseInt(text, 8);
  return /^[1-9][0-9]*$/.test(text) ? Number(text) : NaN;
}

function parseIpv4(parts) {
  if (parts.length > 4) return null;
  const numbers = parts.map(ipv4Number);
  const last = numbers.pop();
  if (numbers.some((number) => !(number <= 255)) || !(last < 256 ** (4 - numbers.length))) return null;
  const address = numbers.reduce((sum, number, index) => sum + number * 256 ** (3 - index), last);
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join(".");
}

function parseIpv6(text) {
  const halves = text.split("::");
  if (text.length > 45 || halves.length > 2) return null;
  const [before, after] = halves.map((half, index) => {
    const pieces = half === "" ? [] : half.split(":");
    if (index === halves.length - 1 && pieces.length > 0 && pieces.at(-1).includes(".")) {
      const bytes = pieces.pop().split(".");
      if (bytes.length !== 4 || bytes.some((byte) => !/^(?:0|[1-9]\d{0,2})$/.test(byte) || byte > 255)) return null;
      pieces.push((bytes[0] * 256 + +bytes[1]).toString(16), (bytes[2] * 256 + +bytes[3]).toString(16));
    }
    return pieces.every((piece) => /^[0-9a-fA-F]{1,4}$/.test(piece)) ? pieces : null;
  });
  if (before === null || after === null) return null;
  const missing = 8 - before.length - (after?.length ?? 0);
  if (after === undefined ? missing !== 0 : missing < 1) return null;
  const pieces = [...before, ...new Array(missing).fill("0"), ...(after ?? [])];
  const short = pieces.map((piece) => parseInt(piece, 16).toString(16));

  // "::" stands for the first of the longest runs of zeros, if that has two or more.
  let [start, length] = [-1, 1];
  for (let index = 0; index < 8; index++) {
    let end = index;
    while (short[end] === "0") end++;
    if (end - index > length) [start, length] = [index, end - index];
    if (end > index) index = end;
  }
  if (start < 0) return short.join(":");
  return short.slice(0, start).join(":") + "::" + short.slice(start + length).join(":");
}

// The host in its final text form, or null if it isn't valid. `opaque`: the scheme isn't one of the special ones.
function parseHost(text, opaque) {
  if (text.startsWith("[")) {
    const address = text.endsWith("]") ? parseIpv6(text.slice(1, -1)) : null;
    return address === null ? null : `[${address}]`;
  }
  if (opaque) {
    if (FORBIDDEN_IN_HOST.test(text)) return null;
    return text.replace(/[^\x20-\x7e]+/g, encodeURIComponent);
  }
  const domain = domainToAscii(percentDecode(text));
  if (domain === null || domain === "" || FORBIDDEN_IN_DOMAIN.test(domain)) return null;
  const parts = domain.split(".");
  if (parts.length > 1 && parts.at(-1) === "") parts.pop();
  const last = parts.at(-1);
  return /^[0-9]+$/.test(last) || !Number.isNaN(ipv4Number(last)) ? parseIpv4(parts) : domain;
}

shared.percentDecode = percentDecode;
shared.parseHost = parseHost;
