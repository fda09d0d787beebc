"""Type hints with `typing.TypedDict` in them, made readable for pydantic, which on Python 3.11 reads only another one.

It wants that of `typing_extensions`, which is the same to whoever uses it. Newer Pythons need none of this.
"""

from __future__ import annotations

import sys
from types import GenericAlias, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

IS_NEEDED = sys.version_info < (3, 12)


def readable(hint: Any) -> Any:
    """The same hint for pydantic. One that contains itself is left as it is, and pydantic can't read it."""
    return _readable(hint, {}) if IS_NEEDED else hint


def _readable(hint: Any, made: dict[Any, Any]) -> Any:
    if is_typeddict(hint) and type(hint).__module__ == "typing":
        if hint not in made:
            made[hint] = hint  # while it is being made
            made[hint] = _made_readable(hint, made)
        return made[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is None or origin is Literal:
        return hint
    inner = tuple(_readable(each, made) for each in arguments)
    if inner == arguments:
        return hint
    if origin is Annotated:
        return Annotated[inner]
    if origin in (Union, UnionType):
        return Union[inner]  # noqa: UP007  # of a tuple
    return GenericAlias(origin, inner) if isinstance(hint, GenericAlias) else hint.copy_with(inner)


def _made_readable(kind: Any, made: dict[Any, Any]) -> Any:
    from typing_extensions import TypedDict

    members: dict[str, Any] = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        # What the class knows of its keys is wrong where hints are text: it has not read them.
        is_marked = get_origin(hint) in (Required, NotRequired)
        is_required = get_origin(hint) is Required if is_marked else name in kind.__required_keys__
        bare = get_args(hint)[0] if is_marked else hint
        members[name] = (Required if is_required else NotRequired)[_readable(bare, made)]
    same: Any = TypedDict(kind.__name__, members)  # type: ignore[operator]  # made from what the host declared
    same.__doc__, same.__module__ = kind.__doc__, kind.__module__
    if hasattr(kind, "__pydantic_config__"):
        same.__pydantic_config__ = kind.__pydantic_config__
    return same
