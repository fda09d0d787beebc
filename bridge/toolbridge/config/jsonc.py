"""JSON with comments and trailing commas, as VS Code writes it, made into plain JSON of the same length.

What is taken out becomes spaces, so that a position in the result is a position in the file.
"""

from __future__ import annotations

import re

# Strings and comments that are not closed match as well, and are left for the JSON parser to complain about:
# looking for their ends again from every later quotation mark would take quadratic time.
_STRING = r'"[^"\\\r\n]*(?:\\.[^"\\\r\n]*)*"?'
_STRING_OR_COMMENT = re.compile(rf"{_STRING}|//[^\r\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_STRING_OR_LAST_COMMA = re.compile(rf"{_STRING}|,(?=[ \t\r\n]*[}}\]])")
_NOT_LINE_BREAK = re.compile(r"[^\r\n]")
_SPACE = " \t\r\n"
_BEFORE_NO_VALUE = "[{,:"


def plain_json(text: str) -> str:
    """The text without its comments and trailing commas."""
    return _without_last_commas(_STRING_OR_COMMENT.sub(_blank, text))


def _blank(match: re.Match[str]) -> str:
    found = match[0]
    is_comment = found.startswith("//") or (len(found) >= 4 and found.endswith("*/") and found.startswith("/*"))
    return _NOT_LINE_BREAK.sub(" ", found) if is_comment else found


def _without_last_commas(text: str) -> str:
    pieces: list[str] = []
    end = 0
    before = ""  # the last character that is no space
    for match in _STRING_OR_LAST_COMMA.finditer(text):
        between = text[end : match.start()]
        before = (between.rstrip(_SPACE) or before)[-1:]
        is_extra = match[0] == "," and before != "" and before not in _BEFORE_NO_VALUE
        pieces += [between, " " if is_extra else match[0]]
        before, end = match[0][-1], match.end()
    return "".join([*pieces, text[end:]])
