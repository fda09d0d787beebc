"""SECURITY: the one form in which definitions of tools are compared: equal JSON is equal, everything else is not (T11).

Member order means nothing in JSON, and `1.0` is `1`: a server that is written anew in another language lists the same
tools. `true` is not `1`, although Python thinks so, which is why definitions are never compared with `==`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any, cast

from toolbridge_codegen.catalog import ToolDefinition

MOST_DEPTH = 200
"""A definition that is nested deeper can't be pinned: not every reader of the lock could read it."""

FIELDS = ("title", "description", "inputSchema", "outputSchema", "annotations")
"""What is pinned of a tool besides its name, in the order in which a person reads it."""


class UnpinnableError(ValueError):
    """A definition has no exact form in JSON."""


@dataclass(frozen=True, slots=True)
class PinnedTool:
    """A tool's definition in canonical form. What is empty is left out of `fields`."""

    name: str
    fields: Mapping[str, Any]
    digest: str
    """`sha256:…` over name and fields: two definitions are the same if it is."""


def pin_of(tool: ToolDefinition) -> PinnedTool:
    """The canonical form of a definition.

    Raises:
        UnpinnableError: it is nested too deeply, or holds what JSON can't.
    """
    fields: dict[str, Any] = {"inputSchema": tool.input_schema}
    if tool.title:
        fields["title"] = tool.title
    if tool.description:
        fields["description"] = tool.description
    if tool.output_schema is not None:
        fields["outputSchema"] = tool.output_schema
    if tool.annotations:
        fields["annotations"] = tool.annotations
    return pin_of_fields(tool.name, fields)


def pin_of_fields(name: str, fields: Mapping[str, Any]) -> PinnedTool:
    """The canonical form of a name and fields.

    Raises:
        UnpinnableError: they are nested too deeply, or hold what JSON can't.
    """
    try:
        name, plain = canonical_text(name), cast("dict[str, Any]", _canonical(fields, MOST_DEPTH))
        text = json.dumps({"name": name, **plain}, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except RecursionError:
        raise UnpinnableError("is nested too deeply") from None
    except UnpinnableError:
        raise
    except ValueError:  # Python writes no integers of thousands of digits
        raise UnpinnableError("has a number that is too long") from None
    digest = f"sha256:{hashlib.sha256(text.encode('ascii')).hexdigest()}"
    return PinnedTool(name, MappingProxyType(plain), digest)


def canonical_text(text: str) -> str:
    """Text as it comes back from JSON: two surrogates in a row, which Python keeps apart, are one character there."""
    if text.isascii():
        return str(text)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _canonical(value: object, depth: int) -> Any:
    if depth < 0:
        raise UnpinnableError(f"is nested more than {MOST_DEPTH} levels deep")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return canonical_text(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _canonical_number(value)
    if isinstance(value, Mapping):
        return _canonical_object(cast("Mapping[object, object]", value), depth)
    if isinstance(value, (list, tuple)):
        return [_canonical(item, depth - 1) for item in cast("list[object] | tuple[object, ...]", value)]
    raise UnpinnableError(f"holds a value of type {type(value).__name__}, which is not JSON")


def _canonical_number(value: float) -> int | float:
    if not math.isfinite(value):
        raise UnpinnableError("has a number that is not finite")
    # By its decimal digits, so that 1e23 is the whole number that it was written as and not its nearest double.
    return int(Decimal(repr(value))) if value.is_integer() else value


def _canonical_object(value: Mapping[object, object], depth: int) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise UnpinnableError("has a member whose name is not text")
        plain[canonical_text(key)] = _canonical(item, depth - 1)
    if len(plain) != len(value):
        raise UnpinnableError("has two members of one name")
    return plain
