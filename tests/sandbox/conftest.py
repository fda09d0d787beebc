"""What tests of the sandbox share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from toolbridge.sandbox.engine import shared_engine


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for every run, or part of one, that a guest thread got."""
    threads = shared_engine().threads
    seen: list[str] = []
    submit = threads.submit

    def noted(job: Callable[[], None]) -> None:
        seen.append("run")
        submit(job)

    monkeypatch.setattr(threads, "submit", noted)
    return seen
