"""Python read as text: where strings end, which bracket belongs to which, what a program gives a new meaning.

The host never parses a program: a few patterns answer what is asked here, and whoever asks takes doubt for "no".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Each kind of string ends with the text at the latest, so that none is tried twice.
_STRING_OR_COMMENT = re.compile(
    r'''"""[^"\\]*(?:(?:\\(?:.|\Z)|"(?!""))[^"\\]*)*(?:"""|\Z)|"[^"\\\n]*(?:\\(?:.|\Z)[^"\\\n]*)*(?:"|$)|\#[^\n]*'''
    r"""|'''[^'\\]*(?:(?:\\(?:.|\Z)|'(?!''))[^'\\]*)*(?:'''|\Z)|'[^'\\\n]*(?:\\(?:.|\Z)[^'\\\n]*)*(?:'|$)""",
    re.DOTALL | re.MULTILINE,
)
# What is left of a string of several lines: its quotes, and space.
_LINES_OF_STRING = re.compile(r""" "[ \n]*"|'[ \n]*' """.strip())
_JOINED = re.compile(r"[()\[\]{}\n]|\\\n")
_FORMATTED = re.compile(r"(?<!\w)(?:[fF][rR]?|[rR][fF])\Z")
_FIELD = re.compile(r"(?<!\{)\{[^{}\n]+\}(?!\})")
_FARTHEST = 20_000
"""How far the end of a bracket is looked for: a program may be nothing but brackets."""
_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_OPENING.values())
_NAME = re.compile(r"[^\W\d]\w*")
_BINDINGS = (
    re.compile(r"\b(?:def|class|as|case)[ \t]+(\w+)"),
    re.compile(r"\b(?:for|del|import|global)[ \t]+([^\n:;=]*?)(?=\bin\b|[\n:;=]|$)"),
)
_ASSIGNMENT = re.compile(r"(?<![=!<>])=(?!=)")
_BEFORE_TARGETS = re.compile(r"[({]")
HOST_IMPORT = re.compile(r"^(?:from[ \t]+host\b[^\n(]*(?:\([^)]*\))?[^\n]*|import[ \t]+host\b[^\n]*)", re.MULTILINE)
"""An import of host modules, at the top level of a program."""


def without_texts(source: str) -> str:
    """The program with its strings and comments blanked: every other character stays where it is."""

    def blank(found: re.Match[str]) -> str:
        text = found[0]
        spaces = "\n".join(" " * len(line) for line in text.split("\n")) if "\n" in text else " " * len(text)
        return spaces if text.startswith("#") or len(text) < 2 else text[0] + spaces[1:-1] + text[-1]

    return _STRING_OR_COMMENT.sub(blank, source)


def with_fields(source: str, code: str) -> str:
    """The program without its texts, but with what stands in the braces of f-strings."""
    parts: list[str] = []
    written = 0
    for text in _STRING_OR_COMMENT.finditer(source):
        if not _FORMATTED.search(source, max(0, text.start() - 3), text.start()):
            continue
        for field in _FIELD.finditer(source, text.start(), text.end()):
            parts += [code[written : field.start()], without_texts(field[0])]
            written = field.end()
    return "".join([*parts, code[written:]])


def one_line_each(code: str) -> str:
    """A text without strings, with every statement in one line: whatever goes on in the next is joined by a space."""
    code = _LINES_OF_STRING.sub(lambda found: found[0].replace("\n", " "), code)
    depth = 0
    parts: list[str] = []
    written = 0
    for found in _JOINED.finditer(code):
        text = found[0]
        if text in _OPENING:
            depth += 1
        elif text in _CLOSING:
            depth = max(0, depth - 1)
        elif depth or text != "\n":
            parts += [code[written : found.start()], " " * len(text)]
            written = found.end()
    return "".join([*parts, code[written:]])


def end_of_bracket(code: str, at: int, farthest: int = _FARTHEST) -> int | None:
    """Behind the bracket that closes the one at a place of a text without strings; None if none near it does."""
    awaited: list[str] = []
    for index in range(at, min(len(code), at + farthest)):
        character = code[index]
        if character in _OPENING:
            awaited.append(_OPENING[character])
        elif character in _CLOSING:
            if not awaited or awaited.pop() != character:
                return None
            if not awaited:
                return index + 1
    return None


def start_of_last_bracket(code: str) -> int | None:
    """Where the bracket opens with whose end a text without strings ends; None if it ends otherwise."""
    depth = 0
    for index in range(len(code) - 1, -1, -1):
        if code[index] in _CLOSING:
            depth += 1
        elif code[index] in _OPENING:
            depth -= 1
        if depth == 0:
            return index if index < len(code) - 1 else None
    return None


def start_of_bracket_around(code: str, at: int) -> int | None:
    """Where the bracket opens that a place of a text without strings is in; None if that is not near it."""
    depth = 0
    for index in range(at - 1, max(-1, at - _FARTHEST), -1):
        if code[index] in _CLOSING:
            depth += 1
        elif code[index] in _OPENING:
            if depth == 0:
                return index
            depth -= 1
    return None


def parts(code: str, opening: int, end: int) -> Iterator[tuple[int, int]]:
    """What stands between the commas of a bracket."""
    depth, start = 0, opening + 1
    for at in range(opening + 1, min(end - 1, opening + _FARTHEST)):
        if code[at] in "([{":
            depth += 1
        elif code[at] in ")]}":
            depth -= 1
        elif code[at] == "," and depth == 0:
            yield start, at
            start = at + 1
    if code[start : end - 1].strip():
        yield start, end - 1


def split_outside(text: str, separator: str) -> list[str]:
    """The parts between separators that are in no bracket and no string."""
    code = without_texts(text.replace("#", " "))
    depth = 0
    parts: list[str] = []
    start = index = 0
    while index < len(code):
        if code[index] in _OPENING:
            depth += 1
        elif code[index] in _CLOSING:
            depth -= 1
        elif depth == 0 and code.startswith(separator, index):
            parts.append(text[start:index])
            start = index = index + len(separator)
            continue
        index += 1
    return [*parts, text[start:]]


def new_meanings(code: str) -> set[str]:
    """The names that a program without its strings may define, assign or delete, other than by importing the host's."""
    own = HOST_IMPORT.sub("", code)
    bound = [found for pattern in _BINDINGS for found in pattern.findall(own)]
    for line in own.split("\n"):
        # Targets of an assignment, plain, annotated or augmented; a keyword of a call looks the same.
        bound += [_BEFORE_TARGETS.split(target)[-1] for target in _ASSIGNMENT.split(line)[:-1]]
    return {name for text in bound for name in _NAME.findall(text)}
