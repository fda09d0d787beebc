"""Lists that a host gives: of the right kind throughout, or an error that says which item is not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar, cast

from toolbridge.errors import MisuseError

_Item = TypeVar("_Item")


def checked_items(name: str, given: object, kind: type[_Item], expected: str) -> tuple[_Item, ...]:
    """The items of a list; `expected` says what each should be.

    Raises:
        MisuseError: it is no list, or one of them is something else.
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise MisuseError(name, given, f"a list, each item {expected}")
    items = tuple(cast("Iterable[object]", given))
    for number, item in enumerate(items):
        if not isinstance(item, kind):
            raise MisuseError(f"{name}[{number}]", item, expected)
    return cast("tuple[_Item, ...]", items)
