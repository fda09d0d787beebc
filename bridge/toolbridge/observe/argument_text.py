"""SECURITY: a call's arguments as an event shows them, for observers that asked: masked, then cut."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from toolbridge.trust.sanitise import for_error, masked

MOST_CHARACTERS = 200
# A character of a secret becomes at most so many in an encoding that is masked: `\ud83d\ude00`, `%F0%9F%98%80`.
_WIDEST_ENCODING = 12


def shown(arguments: Mapping[str, Any], secrets: Collection[str] = ()) -> str:
    """Arguments as JSON on one line, known secrets masked in any common encoding, cut at 200 characters."""
    import json

    try:
        text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"), default=_named)
    except (TypeError, ValueError, RecursionError):  # a key that is no text, a cycle, nested too deeply
        return "(no JSON form)"
    return for_error(_beginning(text, secrets), limit=MOST_CHARACTERS)


def _beginning(text: str, secrets: Collection[str]) -> str:
    """The masked beginning of a text: long enough, and not ending in a part of a secret, which no mask would know."""
    longest = _WIDEST_ENCODING * max(map(len, secrets), default=0)
    enough = 4 * MOST_CHARACTERS + 2 * longest
    if len(text) <= enough:
        return masked(text, secrets)
    beginning = masked(text[:enough], secrets)
    return beginning[: max(0, len(beginning) - longest)] + "…"


def _named(value: object) -> str:
    return f"<{type(value).__name__}>"
