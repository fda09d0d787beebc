"""References to environment variables: `${VAR}` and `${env:VAR}`. `$${` stands for the characters `${`.

Text is read once: what a variable holds is never looked at again. A form that means something elsewhere but
not here (`${input:token}`, `${VAR:-default}`) is refused, for a server would get it as if it were the secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container

_MARK = re.compile(r"\$\$\{|\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}|\$\{")
# Only what is surely no part of a secret: a password may have `${` in it.
_SAFE_TO_SHOW = re.compile(r"\$\{input:[A-Za-z0-9_.-]{1,60}\}|\$\{[A-Z_][A-Z0-9_]{0,60}(?=:-)")
_INPUT = re.compile(r"(?<!\$)\$\{input:")


class UnknownReferenceError(Exception):
    """A `${` that begins no reference. Never leaves the configuration."""

    def __init__(self, name: str) -> None:
        self.name = name
        """The reference, or its beginning, without anything that could be a default value."""
        super().__init__(name)


def expand(text: str, lookup: Callable[[str], str]) -> str:
    """The text with every reference replaced by what `lookup` gives for its variable.

    Raises:
        UnknownReferenceError: it has a `${` that begins no reference.
    """

    def replacement(match: re.Match[str]) -> str:
        if match[1] is not None:
            return lookup(match[1])
        if match[0] == "$${":
            return "${"
        shown = _SAFE_TO_SHOW.match(text, match.start())
        raise UnknownReferenceError((shown[0] if shown[0].endswith("}") else f"{shown[0]}…") if shown else "${…")

    return _MARK.sub(replacement, text)


def without_literals(text: str, mask: str) -> str:
    """The references in a text as they are written, and a mask for whatever is between them."""
    parts: list[str] = []
    end = 0
    for match in _MARK.finditer(text):
        if match[1] is not None:
            parts += [mask, match[0]] if match.start() > end else [match[0]]
            end = match.end()
    return "".join([*parts, mask] if end < len(text) else parts)


def uses_input(text: str) -> bool:
    """Whether the text has an `${input:…}`, which only VS Code can ask a person for."""
    return _INPUT.search(text) is not None


def looks_expandable(text: str, *, besides: Container[str] = ()) -> bool:
    """Whether a person may expect something in the text to be replaced, other than these variables."""
    return any(match[0] != "$${" and match[1] not in besides for match in _MARK.finditer(text))
