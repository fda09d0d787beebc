"""SECURITY: cleans text from servers (sanitise), and escapes text for the language it is written into.

Comments get sanitised text, escaped so that it stays inside the comment and is no directive to a compiler or type
checker. String literals hold exact data (a property's name, an enum's value): invisible characters are written as
escapes.
"""

from __future__ import annotations

import json
import keyword
import math
import re
from itertools import islice
from typing import Any, TypeGuard

# SECURITY: the table of invisible characters, and of those that reorder text. Shared by stubs, terminals, errors and
# the audit.

# Ranges of a character class. Tab and line feed are text.
CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
"""Control characters, which terminals obey."""
DIRECTION = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Bidirectional controls: text reads otherwise than it is."""
TAGS = "\U000e0000-\U000e007f"
"""Tag characters: an invisible ASCII."""
SELECTORS = "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
"""Variation selectors: 259, enough to encode any byte after a visible character."""
# Joiners, soft hyphens, fillers, blanks, format characters of scripts and music, and code points reserved for more of
# them.
_BLANK = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200d\u2028\u2029\u2060-\u2065\u206a-\u206f\u2800\u3164\ufeff"
    "\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U00016fe4\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    "\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
)
_SURROGATES = "\ud800-\udfff"

HIDDEN = re.compile(f"[{CONTROLS}{DIRECTION}{TAGS}{SELECTORS}{_BLANK}{_SURROGATES}]")
"""Any invisible or reordering character."""

# Terminal escape sequences: operating system commands and other strings with their terminator, then the rest.
ESCAPE_SEQUENCES = re.compile(
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f]{0,4096}(?:\x07|\x1b\\|\x9c)"
    r"|(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,16}[@-~]?"
    r"|\x1b[ -/]{0,16}[0-~]?"
)


def written_out(character: str) -> str:
    """An invisible character as an escape: `\\x1b`, `\\u202e`, `\\U000e0041`."""
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


# SECURITY: sanitises text from servers: plain text, which people and models read alike. The emitters escape it.

LONGEST_TEXT = 2000
CUT_MARK = "…"

_LINE_BREAKS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_SPACES = re.compile(r"[^\S\n]+")
_AROUND_BREAKS = re.compile(r" ?\n ?")
_MANY_BREAKS = re.compile(r"\n{3,}")
_WHITESPACE = re.compile(r"\s+")


def clean_text(text: str, *, limit: int = LONGEST_TEXT) -> str:
    """Sanitises text: removes invisible characters and escape sequences, and collapses spaces and blank lines.

    Longer text is truncated to `limit` characters, the last of them `…`.
    """
    if _is_clean(text, limit):
        return text.strip()
    text, shortened = _bounded(text, limit)
    if not text.isascii() or not text.isprintable():
        text = _without_hidden(text)
    text = _SPACES.sub(" ", text)
    if "\n" in text:
        text = _MANY_BREAKS.sub("\n\n", _AROUND_BREAKS.sub("\n", text))
    return _cut(text.strip(), limit, shortened=shortened)


def clean_line(text: str, *, limit: int = LONGEST_TEXT) -> str:
    """Sanitises text into one line: as `clean_text`, and line breaks become spaces."""
    if _is_clean(text, limit):
        return text.strip()
    text, shortened = _bounded(text, limit)
    if not text.isascii() or not text.isprintable():
        text = _without_hidden(text)
    return _cut(_WHITESPACE.sub(" ", text).strip(), limit, shortened=shortened)


def _is_clean(text: str, limit: int) -> bool:
    """Fast path: whether only surrounding spaces need to go, as in most text."""
    return len(text) <= limit and text.isascii() and text.isprintable() and "  " not in text


def characters_read(limit: int = LONGEST_TEXT) -> int:
    """Returns how many characters of a text are processed for a limit; the rest is never written anywhere."""
    return limit * 2 + 1000


def _bounded(text: str, limit: int) -> tuple[str, bool]:
    """Truncates long text before it is sanitised; returns whether it did.

    So a megabyte costs no more than what may be shown.
    """
    most = characters_read(limit)
    return (text[:most], True) if len(text) > most else (text, False)


def _without_hidden(text: str) -> str:
    """Removes escape sequences and unprintable characters; line breaks of any kind become line feeds."""
    text = _LINE_BREAKS.sub("\n", ESCAPE_SEQUENCES.sub("", text))
    text = _SPACES.sub(" ", HIDDEN.sub("", text))
    if text.replace("\n", "").isprintable():
        return text
    # Unassigned code points and private use.
    return "".join([character for character in text if character.isprintable() or character == "\n"])


def _cut(text: str, limit: int, *, shortened: bool) -> str:
    """Truncates to `limit` characters with `…`, which text that was `shortened` before gets, too."""
    if len(text) > limit:
        return text[: max(limit - 1, 0)].rstrip() + CUT_MARK
    return text + CUT_MARK if shortened and not text.endswith(CUT_MARK) else text


# JSON values from a server, written without trust in their size.


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a value is a JSON object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Whether a value is a JSON array."""
    return isinstance(value, list)


def brief_json(value: Any, limit: int = 100) -> str:
    """Returns a value as JSON on one sanitised line, truncated to `limit` characters with `…`.

    Costs no more than `limit`, however large or deep the value is.
    """
    parts: list[str] = []
    room = limit
    # Values and finished text still to be written, last first.
    stack: list[tuple[bool, Any]] = [(True, value)]
    while stack and room > 0:
        is_value, item = stack.pop()
        if is_value and is_object(item):
            stack.append((False, "}"))
            names = list(islice(item, room))
            for index in range(len(names) - 1, -1, -1):
                stack.append((True, item[names[index]]))
                stack.append((False, f"{', ' if index else ''}{_scalar(names[index], room)}: "))
            stack.append((False, "{"))
            continue
        if is_value and is_list(item):
            stack.append((False, "]"))
            some = item[:room]
            for index in range(len(some) - 1, -1, -1):
                stack.append((True, some[index]))
                if index:
                    stack.append((False, ", "))
            stack.append((False, "["))
            continue
        text: str = _scalar(item, room) if is_value else item
        parts.append(text)
        room -= len(text)
    text = "".join(parts)
    return clean_line(text + CUT_MARK if stack else text, limit=limit)


def _scalar(value: Any, limit: int) -> str:
    """Writes a scalar as JSON: strings up to `limit` characters, huge integers in words, other values as `?`."""
    if isinstance(value, str):
        return json.dumps(value[: limit + 1], ensure_ascii=False)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**40:
        return "a very large number"  # Python refuses to format integers of thousands of digits
    return json.dumps(value) if value is None or isinstance(value, bool | int | float) else "?"


def plain_json(value: Any) -> str | None:
    """Returns a value as compact ASCII JSON; None if it is too deep for Python's stack, or no JSON."""
    try:
        return json.dumps(value, separators=(",", ":"), check_circular=False)
    except (RecursionError, TypeError, ValueError):
        return None


def text_without_recursion(value: Any) -> str:
    """Returns a canonical text of a value deeper than Python's stack, or with members that JSON lacks; no JSON."""
    parts: list[str] = []
    stack: list[tuple[bool, Any]] = [(True, value)]
    while stack:
        is_value, item = stack.pop()
        if not is_value:
            parts.append(item)
        elif is_object(item):
            parts.append("{")
            stack.append((False, "}"))
            for name in reversed(item):
                stack += [(False, ","), (True, item[name]), (False, json.dumps(str(name)) + ":")]
        elif is_list(item):
            parts.append("[")
            stack.append((False, "]"))
            for member in reversed(item):
                stack += [(False, ","), (True, member)]
        elif item is None or isinstance(item, str | bool | float):
            parts.append(json.dumps(item))
        elif isinstance(item, int):
            parts.append(hex(item))
        else:
            parts.append(f"<{type(item).__name__}>")
    return "".join(parts)


_PLAIN = re.compile(r"[ !#-\[\]-~]*")
"""Fast path: printable ASCII without quote and backslash."""

# Printable by str.isprintable(), but invisible: default ignorable characters, filler letters, blank Braille pattern.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\U0001d159\U000e0000-\U000e0fff]"
)
_CLOSING_QUOTE = re.compile(r'"(?=""|\Z)')
"""A quote that would end a docstring, or extend its closing quotes."""
_ESCAPED_QUOTE = r'\\"'
_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_TYPESCRIPT_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_PYTHON_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOST_DIGITS = 300
"""Longer integers exceed every double, and are slow to format."""

# JSDoc tags start at an @ after a line's start, white space, the comment's star or an inline tag's brace, and swallow
# the text after it. `@ts-ignore` on a comment's last line is one.
_TAG = re.compile(r"(?<![^\s*{/])@(?=\S)")
# `# type: ignore`, `# ty: ignore`, `# pyright: basic`, `# mypy: ignore-errors`: directives at a comment's start, and
# for some checkers after any number sign in it; ty allows a space before the colon.
_DIRECTIVE = re.compile(r"(?i)((?:^|#)\s*(?:type|ty|(?:based)?pyright|mypy|pyrefly|pyre|zuban)\s*):")


def ts_string(text: str) -> str:
    """Returns a double-quoted TypeScript string literal, with invisible characters escaped."""
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    return f'"{"".join(map(_typescript_character, text))}"'


def py_string(text: str) -> str:
    """Returns a double-quoted Python string literal, with invisible characters escaped."""
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    return f'"{"".join(map(_python_character, text))}"'


def visible_python(source: str) -> str:
    """Escapes invisible characters but line feeds in Python source, where they can only be in string literals."""
    if source.isascii():
        return source
    return "".join(
        character if character == "\n" or _is_visible(character) else _python_character(character)
        for character in source
    )


def ts_key(name: str) -> str:
    """A property's name in an object type: unquoted if possible."""
    return name if _TYPESCRIPT_NAME.fullmatch(name) else ts_string(name)


def is_keyword_argument(name: str) -> bool:
    """Returns whether a property can be a keyword argument, and a field of a class body.

    Letters beyond ASCII are excluded: Python normalises them, and the server would get another name. So are names with
    two leading underscores, which classes mangle.
    """
    return bool(_PYTHON_NAME.fullmatch(name)) and not keyword.iskeyword(name) and not name.startswith("__")


def ts_number(value: float) -> str | None:
    """Returns a number as a literal type; None if it is infinite, no number, or an integer beyond a float."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        if not value.is_integer():
            return repr(value)
        value = int(value)
    if abs(value) < 10**21:
        return str(value)
    try:
        return repr(float(value))
    except OverflowError:
        return None


def py_integer(value: int) -> str | None:
    """An integer as a literal; None if it is too long."""
    return str(value) if abs(value) < 10**_MOST_DIGITS else None


def jsdoc(text: str, indent: str = "", *, deprecated: bool = False) -> str:
    """Returns a JSDoc comment, one line per line of text, the later ones indented.

    Its only tag is our own `@deprecated`, and the text then the tag's reason.
    """
    words = ["/**", "@deprecated" if deprecated else "", _in_block_comment(text, indent), "*/"]
    return " ".join(word for word in words if word)


def block_comment(text: str, indent: str = "") -> str:
    """A comment that documents no declaration."""
    return f"/* {_in_block_comment(text, indent)} */"


def ts_comment(text: str) -> str:
    """Escapes text for a TypeScript line comment."""
    return _TAG.sub(r"\\@", one_line(text))


def docstring(text: str, indent: str = " ") -> str:
    """Returns a Python docstring, one line per line of text.

    Later lines are indented: mypy reads a line that begins with `# mypy: ` as a setting, even in strings.
    """
    safe = _indented(text, indent).replace("\\", "\\\\")
    return f'"""{_CLOSING_QUOTE.sub(_ESCAPED_QUOTE, safe)}"""'


def py_comment(text: str) -> str:
    """Escapes text for a Python comment."""
    return _DIRECTIVE.sub(r"\1\\:", one_line(text))


def one_line(text: str) -> str:
    """Collapses white space to single spaces."""
    return " ".join(text.split())


def _in_block_comment(text: str, indent: str) -> str:
    return _TAG.sub(r"\\@", _indented(text, indent)).replace("*/", "*\\/")


def _indented(text: str, indent: str) -> str:
    return f"\n{indent}".join(stripped for line in text.splitlines() if (stripped := line.strip()))


def _is_visible(character: str) -> bool:
    return character.isprintable() and not _INVISIBLE.match(character)


def _typescript_character(character: str) -> str:
    """Returns the character, escaped for a TypeScript string if it is invisible, a quote or a backslash."""
    if ord(character) > 0xFFFF and not _is_visible(character):
        return f"\\u{{{ord(character):x}}}"
    return _python_character(character)


def _python_character(character: str) -> str:
    escape = _SHORT_ESCAPES.get(character)
    return escape or (character if _is_visible(character) else written_out(character))
