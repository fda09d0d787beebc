"""What several test files share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from toolbridge import Sandbox

ROOT = Path(__file__).resolve().parent.parent

# The same examples in every run, so that a red run means a change; TOOLBRIDGE_EXPLORE=1 looks for new ones.
settings.register_profile("steady", derandomize=True)
if not os.environ.get("TOOLBRIDGE_EXPLORE"):
    settings.load_profile("steady")

# guest/ is a source root of its own, as it is for the wheel's build hook: `import build`, `import bake`.
if str(ROOT / "guest") not in sys.path:
    sys.path.insert(0, str(ROOT / "guest"))


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """A sandbox without modules."""
    with Sandbox() as shared:
        yield shared
