"""What the tests of the command line share."""

from __future__ import annotations

import pytest

from toolbridge import Sandbox


@pytest.fixture(scope="session", autouse=True)
def compiled_engines() -> None:
    """Compile the engines beforehand: the first command that needs one says on a terminal that it compiles it."""
    with Sandbox() as sandbox:
        for language in ("javascript", "python"):
            sandbox.run_sync("1", language=language)
