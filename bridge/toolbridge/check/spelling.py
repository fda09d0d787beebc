"""The name that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

_LONGEST = 100
_MOST_CANDIDATES = 2000


def nearest(name: str, candidates: Sequence[str]) -> str | None:
    """The candidate spelt most like a name; None if none is near. Bounded: both may be hostile."""
    if len(name) > _LONGEST:
        return None
    known = [each for each in candidates[:_MOST_CANDIDATES] if len(each) <= _LONGEST]
    found = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    return found[0] if found else None
