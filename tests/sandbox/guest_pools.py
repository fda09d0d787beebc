"""Spare guests that a test has to itself."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from toolbridge.sandbox.engine import Engine, shared_engine
from toolbridge.sandbox.instance import InstancePool

has_page_map = pytest.mark.skipif(not Path("/proc/self/pagemap").exists(), reason="the system tells of no pages")


@contextmanager
def new_guests(monkeypatch: pytest.MonkeyPatch) -> Generator[InstancePool]:
    """No spares yet, and those that come are seen."""
    engine = shared_engine()
    fresh = InstancePool(engine.pointer, engine.image("javascript"))

    def pool(_engine: Engine, _language: str, _on_compile: object = None) -> InstancePool:
        return fresh

    monkeypatch.setattr(Engine, "pool", pool)
    yield fresh
    for spare in fresh._instances:
        spare.close()
