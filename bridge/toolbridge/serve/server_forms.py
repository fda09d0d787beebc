"""SECURITY: a form that a server wants a person to fill in, as it may be shown (T4, T20, T29).

Titles and descriptions are cleaned. Everything else in a form goes back to the server or is compared with the answer:
names of fields, choices, defaults. Such a text is shown as it is; if that would not do, the form is not shown at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from toolbridge.trust.sanitise import for_form

_MOST_WORDS = 1_000
"""Characters of one title or description."""
_MOST_CHARACTERS = 16_000
"""Of all texts of a form."""
_MOST_PARTS = 1_000
_DEEPEST = 8
_WORDS = ("title", "description")
_NAMING = ("properties",)
"""Where the keys are the server's own: a field may be called `title`."""

Form: TypeAlias = Mapping[str, Any]


class _UnfitError(Exception):
    """The form can't be shown."""


def shown_form(form: Form, secrets: frozenset[str]) -> dict[str, Any] | None:
    """The form for a person; None for one that is too large, or has something hidden or secret where it can't go."""
    try:
        return cast("dict[str, Any]", _Cleaning(secrets).clean(dict(form), depth=0))
    except _UnfitError:
        return None


class _Cleaning:
    def __init__(self, secrets: frozenset[str]) -> None:
        self._secrets = secrets
        self._characters = 0
        self._parts = 0

    def clean(self, value: object, *, depth: int, names_fields: bool = False) -> object:
        self._parts += 1
        if depth > _DEEPEST or self._parts > _MOST_PARTS:
            raise _UnfitError
        if isinstance(value, str):
            return self._exact(value)
        if isinstance(value, Mapping):
            items = cast("Mapping[str, object]", value).items()
            return {self._exact(key): self._member(key, each, depth, is_field=names_fields) for key, each in items}
        if isinstance(value, (list, tuple)):
            return [self.clean(each, depth=depth + 1) for each in cast("list[object]", value)]
        return value

    def _member(self, key: str, value: object, depth: int, *, is_field: bool) -> object:
        if key in _WORDS and isinstance(value, str) and not is_field:
            return self._counted(for_form(value, self._secrets, limit=_MOST_WORDS))
        return self.clean(value, depth=depth + 1, names_fields=key in _NAMING and not is_field)

    def _exact(self, text: str) -> str:
        if for_form(text, self._secrets, limit=_MOST_WORDS) != text:
            raise _UnfitError
        return self._counted(text)

    def _counted(self, text: str) -> str:
        self._characters += len(text)
        if self._characters > _MOST_CHARACTERS:
            raise _UnfitError
        return text
