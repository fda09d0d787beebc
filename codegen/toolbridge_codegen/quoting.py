"""SECURITY: the only place where text is escaped for the language it is written into.

Comments get text that `sanitise` has already cleaned; what is done here keeps it inside the comment, and keeps it from
being read as a directive to a compiler or type checker. String literals hold exact data (a property's name, an enum's
value): whatever a reader could not see in it is written as an escape.
"""

from __future__ import annotations

import keyword
import math
import re

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
