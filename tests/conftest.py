"""What several test files share."""

from __future__ import annotations

import gc
import itertools
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from toolbridge import Sandbox

pytest_plugins = ["run_limits"]

ROOT = Path(__file__).resolve().parent.parent

# The same examples in every run, so that a red run means a change; TOOLBRIDGE_EXPLORE=1 looks for new ones.
# How long drawing takes says something of the machine only.
settings.register_profile("steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
if not os.environ.get("TOOLBRIDGE_EXPLORE"):
    settings.load_profile("steady")

# guest/ is a source root of its own, as it is for the wheel's build hook: `import build`, `import bake`.
if str(ROOT / "guest") not in sys.path:
    sys.path.insert(0, str(ROOT / "guest"))


def pytest_collection_finish() -> None:
    """Exempt the 15,000 tests and their modules from garbage collection: each full one would walk them all."""
    gc.collect()
    gc.freeze()


class _Listener(logging.Handler):
    """Keeps what is said."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.INFO:
            self.heard.append(record.getMessage())


@pytest.fixture(autouse=True)
def no_program_runs_unchecked(request: pytest.FixtureRequest) -> Iterator[None]:
    """A check that fails lets the program run, with a warning: here, unless a test expects it, that is an error."""
    listener, log = _Listener(), logging.getLogger("toolbridge.check")
    log.addHandler(listener)
    log.setLevel(logging.INFO)
    yield
    log.removeHandler(listener)
    if request.node.get_closest_marker("unchecked") is None:  # pyright: ignore[reportUnknownMemberType]
        assert listener.heard == [], "a program ran unchecked (mark the test with `unchecked` if it should)"


_numbers = itertools.count()


@pytest.fixture(autouse=True)
def _state_of_its_own(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test is a new user: no decision about servers or tools carries from one to another, or to this machine."""
    if "TOOLBRIDGE_STATE_DIR" not in os.environ:
        state = tmp_path_factory.getbasetemp() / "states" / str(next(_numbers))
        monkeypatch.setenv("TOOLBRIDGE_STATE_DIR", str(state))


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """A sandbox without modules."""
    with Sandbox() as shared:
        yield shared
