"""hypothesis-jsonschema on a Hypothesis that has moved on: its last version asks `many` for `more()`, which is gone."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import hypothesis_jsonschema
from hypothesis.internal.conjecture.utils import many
from hypothesis.strategies import SearchStrategy
from hypothesis_jsonschema import _from_schema


class _ManyThatIsAsked:
    """Hypothesis's own `many`, driven by questions as before in place of a loop."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._many: Any = many(*arguments, **named)
        self._steps: Iterator[None] | None = None

    def more(self) -> bool:
        if self._steps is None:
            self._steps = iter(self._many.__enter__())
        try:
            next(self._steps)
        except StopIteration:
            self._many.__exit__(None, None, None)
            return False
        return True

    def reject(self) -> None:
        self._many.reject()


def instances_of(schema: dict[str, Any]) -> SearchStrategy[Any]:
    """Instances that are valid under the schema (drafts 4 to 7)."""
    if not hasattr(many, "more"):
        setattr(_from_schema, "cu", SimpleNamespace(many=_ManyThatIsAsked))  # noqa: B010
    from_schema: Any = getattr(hypothesis_jsonschema, "from_schema")  # noqa: B009
    return from_schema(schema)
