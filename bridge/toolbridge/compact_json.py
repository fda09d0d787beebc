"""The encoder of compact JSON text, made once: the library's own function makes one for every value."""

from __future__ import annotations

import json
import json.encoder
from collections.abc import Callable, Iterable
from typing import Any


def compact_encoder(*, ascii_only: bool) -> Callable[[object, int], Iterable[str]]:
    """What gives the compact JSON text of a value in pieces, at a level of nesting.

    It raises what `json.dumps` does; for a value that holds itself that is a RecursionError.
    """
    slow = json.JSONEncoder(ensure_ascii=ascii_only, allow_nan=False, check_circular=False, separators=(",", ":"))
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return lambda value, _level: (slow.encode(value),)
    text = json.encoder.encode_basestring_ascii if ascii_only else json.encoder.encode_basestring
    return make(None, slow.default, text, None, ":", ",", False, False, False)
