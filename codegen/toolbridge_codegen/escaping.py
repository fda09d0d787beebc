"""SECURITY: the only place where text is escaped for the language it is written into.

Comments get text that `sanitise` has already cleaned; what is done here keeps it inside the comment, and keeps it from
being read as a directive to a compiler or type checker. String literals hold exact data (a property's name, an enum's
value): whatever a reader could not see in it is written as an escape.
"""

from __future__ import annotations

import json
import keyword
import math
import re
from itertools import islice
from typing import Any, TypeGuard

# SECURITY: the one table of characters that a reader can't see, or that move what a reader sees.
#
# Stubs, terminals, errors and the audit all use it: what one of them removes, the others show or report.


# Ranges of a character class, by what they do. Tab and line feed are text, and not among them.
CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
"""What a terminal obeys."""
DIRECTION = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""What turns text around, so that it reads otherwise than it is."""
TAGS = "\U000e0000-\U000e007f"
"""A second, invisible ASCII."""
SELECTORS = "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
"""Variation selectors: 259 of them, enough to write any byte behind a visible character."""
# Joiners, soft hyphens, fillers, blanks, marks of scripts and music that only steer how their neighbours are drawn,
# and what Unicode holds back for more of that kind.
_BLANK = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200d\u2028\u2029\u2060-\u2065\u206a-\u206f\u2800\u3164\ufeff"
    "\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U00016fe4\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    "\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
)
_SURROGATES = "\ud800-\udfff"

HIDDEN = re.compile(f"[{CONTROLS}{DIRECTION}{TAGS}{SELECTORS}{_BLANK}{_SURROGATES}]")
"""Any one of them."""

# A terminal's escape sequences: operating system commands and other strings with their end, then the rest.
ESCAPE_SEQUENCES = re.compile(
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f]{0,4096}(?:\x07|\x1b\\|\x9c)"
    r"|(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,16}[@-~]?"
    r"|\x1b[ -/]{0,16}[0-~]?"
)


def written_out(character: str) -> str:
    """A character that can't be seen, as a reader can see it: `\\x1b`, `\\u202e`, `\\U000e0041`."""
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


# SECURITY: the one place where a server's text is cleaned before it is written into a stub.
#
# What is left is plain text that a person and a model read alike. It is not yet escaped for a language: that depends
# on where it is written, and is the emitters' work.


LONGEST_TEXT = 2000
CUT_MARK = "…"

_LINE_BREAKS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_SPACES = re.compile(r"[^\S\n]+")
_AROUND_BREAKS = re.compile(r" ?\n ?")
_MANY_BREAKS = re.compile(r"\n{3,}")
_WHITESPACE = re.compile(r"\s+")


def clean_text(text: str, *, limit: int = LONGEST_TEXT) -> str:
    """Text of several lines, without what can't be seen or would be obeyed, cut with a visible mark."""
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
    """The same on one line."""
    if _is_clean(text, limit):
        return text.strip()
    text, shortened = _bounded(text, limit)
    if not text.isascii() or not text.isprintable():
        text = _without_hidden(text)
    return _cut(_WHITESPACE.sub(" ", text).strip(), limit, shortened=shortened)


def _is_clean(text: str, limit: int) -> bool:
    """Whether nothing but spaces around it has to go: most text is so, and this is quickly seen."""
    return len(text) <= limit and text.isascii() and text.isprintable() and "  " not in text


def characters_read(limit: int = LONGEST_TEXT) -> int:
    """How much of a text is looked at: nothing after that is ever written anywhere."""
    return limit * 2 + 1000


def _bounded(text: str, limit: int) -> tuple[str, bool]:
    """A megabyte of text costs no more than what may be shown of it, even if most of that is hidden."""
    most = characters_read(limit)
    return (text[:most], True) if len(text) > most else (text, False)


def _without_hidden(text: str) -> str:
    text = _LINE_BREAKS.sub("\n", ESCAPE_SEQUENCES.sub("", text))
    text = _SPACES.sub(" ", HIDDEN.sub("", text))
    if text.replace("\n", "").isprintable():
        return text
    # Code points that mean nothing (yet), or what somebody's font makes of them.
    return "".join([character for character in text if character.isprintable() or character == "\n"])


def _cut(text: str, limit: int, *, shortened: bool) -> str:
    if len(text) > limit:
        return text[: max(limit - 1, 0)].rstrip() + CUT_MARK
    return text + CUT_MARK if shortened and not text.endswith(CUT_MARK) else text


# JSON values as they come from a server: what they are, and how to write them down without trusting their size.


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """A JSON object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """A JSON array."""
    return isinstance(value, list)


def brief_json(value: Any, limit: int = 100) -> str:
    """A value on one clean line. Costs no more than `limit`, however large or deep the value is."""
    parts: list[str] = []
    room = limit
    # What is still to be written, last first: values and finished pieces of text.
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
    if isinstance(value, str):
        return json.dumps(value[: limit + 1], ensure_ascii=False)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**40:
        return "a very large number"  # Python refuses to write integers of thousands of digits
    return json.dumps(value) if value is None or isinstance(value, bool | int | float) else "?"


def exact_text(value: Any) -> str:
    """A text that two values share only if they are the same JSON with the same order of members."""
    return plain_json(value) or _text_without_recursion(value)


def plain_json(value: Any) -> str | None:
    """A value as JSON in ASCII; None for one that is nested too deeply, or isn't JSON."""
    try:
        return json.dumps(value, separators=(",", ":"), check_circular=False)
    except (RecursionError, TypeError, ValueError):
        return None


def _text_without_recursion(value: Any) -> str:
    """For values that are nested deeper than Python's stack, or hold what JSON can't."""
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
"""Printable ASCII without the quote and the backslash: most strings, and the quick way out."""

# What str.isprintable() calls printable although nothing is seen: Unicode's default ignorable characters outside the
# format characters, the filler letters, and the blank Braille pattern.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\U0001d159\U000e0000-\U000e0fff]"
)
_CLOSING_QUOTE = re.compile(r'"(?=""|\Z)')
"""A quote that would end a docstring, or join the quotes that do."""
_ESCAPED_QUOTE = r'\\"'
_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_TYPESCRIPT_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_PYTHON_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOST_DIGITS = 300
"""A longer integer is beyond every double, and slow to write."""

# A tag starts at an @ that follows a line's start, white space, the comment's star or an inline tag's brace; the text
# after it would be taken for the tag's. `@ts-ignore` at the start of a comment's last line is one of them.
_TAG = re.compile(r"(?<![^\s*{/])@(?=\S)")
# `# type: ignore`, `# ty: ignore`, `# pyright: basic`, `# mypy: ignore-errors`: directives wherever a comment begins,
# and for some checkers wherever in a comment a number sign stands. To ty, a space before the colon changes nothing.
_DIRECTIVE = re.compile(r"(?i)((?:^|#)\s*(?:type|ty|(?:based)?pyright|mypy|pyrefly|pyre|zuban)\s*):")


def ts_string(text: str) -> str:
    """A TypeScript string literal."""
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    return f'"{"".join(map(_typescript_character, text))}"'


def py_string(text: str) -> str:
    """A Python string literal."""
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    return f'"{"".join(map(_python_character, text))}"'


def visible_python(source: str) -> str:
    """Python source from elsewhere, with escapes for what can't be seen: it can only stand in string literals."""
    if source.isascii():
        return source
    return "".join(
        character if character == "\n" or _is_visible(character) else _python_character(character)
        for character in source
    )


def ts_key(name: str) -> str:
    """A property's name as an object type has it: bare where that is possible."""
    return name if _TYPESCRIPT_NAME.fullmatch(name) else ts_string(name)


def is_keyword_argument(name: str) -> bool:
    """Whether a Python call can give this property as a keyword, and a class body can declare it.

    Letters beyond ASCII are out: Python normalises them, and the server would see another name. A class would mangle
    a name that starts with two underscores.
    """
    return bool(_PYTHON_NAME.fullmatch(name)) and not keyword.iskeyword(name) and not name.startswith("__")


def ts_number(value: float) -> str | None:
    """A number as a literal type; None where no literal stands for it."""
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
    """An integer as a literal; None where it is too long to be written."""
    return str(value) if abs(value) < 10**_MOST_DIGITS else None


def jsdoc(text: str, indent: str = "", *, deprecated: bool = False) -> str:
    """A documentation comment, one line for each line of the text, the later ones indented.

    The only tag in it is ours; the text, if any, is then the reason that the tag gives.
    """
    words = ["/**", "@deprecated" if deprecated else "", _in_block_comment(text, indent), "*/"]
    return " ".join(word for word in words if word)


def block_comment(text: str, indent: str = "") -> str:
    """A comment that documents nothing in particular."""
    return f"/* {_in_block_comment(text, indent)} */"


def ts_comment(text: str) -> str:
    """Text for a TypeScript comment that ends with its line."""
    return _TAG.sub(r"\\@", one_line(text))


def docstring(text: str, indent: str = " ") -> str:
    """A Python docstring, one line for each line of the text, the later ones indented.

    Never without an indent: one checker takes a line that begins with `# mypy: ` for a setting, in strings too.
    """
    safe = _indented(text, indent).replace("\\", "\\\\")
    return f'"""{_CLOSING_QUOTE.sub(_ESCAPED_QUOTE, safe)}"""'


def py_comment(text: str) -> str:
    """Text for a Python comment."""
    return _DIRECTIVE.sub(r"\1\\:", one_line(text))


def one_line(text: str) -> str:
    """The text's words with single spaces between them, whatever separated them."""
    return " ".join(text.split())


def _in_block_comment(text: str, indent: str) -> str:
    return _TAG.sub(r"\\@", _indented(text, indent)).replace("*/", "*\\/")


def _indented(text: str, indent: str) -> str:
    return f"\n{indent}".join(stripped for line in text.splitlines() if (stripped := line.strip()))


def _is_visible(character: str) -> bool:
    return character.isprintable() and not _INVISIBLE.match(character)


def _typescript_character(character: str) -> str:
    if escape := _SHORT_ESCAPES.get(character):
        return escape
    if _is_visible(character):
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\u{{{code:x}}}"


def _python_character(character: str) -> str:
    if escape := _SHORT_ESCAPES.get(character):
        return escape
    if _is_visible(character):
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
