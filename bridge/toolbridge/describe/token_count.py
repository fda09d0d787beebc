"""How many tokens a text costs a model, estimated without a tokenizer.

Every model has a vocabulary of its own, and none of them is worth a dependency for choosing between three forms of a
text. The weights are fitted to three public vocabularies on what is really written here (definitions, stubs, compact
stubs, prompts) and lean to the larger count, so that a budget holds. docs/TOKENS.md has the errors.
"""

from __future__ import annotations

import math
import re

_PIECES = re.compile(
    r"(?P<word>[A-Z]?[a-z]+|[A-Z]+(?![a-z]))"
    r"|(?P<digits>[0-9]{1,3})"
    r"|(?P<marks>[!-/:-@\[-`{-~]+)"
    r"|(?P<blank>[ \t]*\n\s*|[ \t]{2,})"
    r"|(?P<letters>[\u00aa-\u1fff]+)"
    r"|(?P<symbols>[\u2000-\u2bff\U00010000-\U0010ffff]+)"
    r"|(?P<signs>[^\x00-\u2bff\U00010000-\U0010ffff]+)"
)
"""A single space costs nothing: it is the start of the token that follows."""

_EACH = {"word": 0.98, "digits": 1.2, "marks": 1.0, "blank": 0.7}
_EACH_CHARACTER = {
    "letters": 0.55,  # of other alphabets than ASCII's
    "symbols": 1.6,  # dashes, arrows, pictures
    "signs": 1.1,  # of the scripts of East Asia, where a character is a token more often than not
}
_LONG_WORD = 8
_LONG_MARKS = 4
_BEYOND = 0.25
"""Each further letter of a long word, and each further mark of many."""


def count_tokens(text: str) -> int:
    """An estimate of how many tokens a text is; at least one for any text that isn't empty."""
    total = 0.0
    for piece in _PIECES.finditer(text):
        kind = piece.lastgroup
        assert kind is not None  # every alternative has a name
        length = piece.end() - piece.start()
        total += _EACH.get(kind, 0.0) + _EACH_CHARACTER.get(kind, 0.0) * length
        if kind == "word":
            total += max(length - _LONG_WORD, 0) * _BEYOND
        elif kind == "marks":
            total += max(length - _LONG_MARKS, 0) * _BEYOND
    return math.ceil(total) if total else int(bool(text))
