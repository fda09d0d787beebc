"""A loop over cases in one test that reports every failing case, not only the first."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager

Case = Callable[[object], AbstractContextManager[None]]


@contextmanager
def each_case() -> Generator[Case]:
    """Collects the failed assertions of `with case(name): …`, and raises all of them at the end."""
    failed: list[str] = []

    @contextmanager
    def case(name: object) -> Generator[None]:
        try:
            yield
        except AssertionError as error:
            failed.append(f"{name}: {error}")

    yield case
    assert not failed, "\n".join(failed)
