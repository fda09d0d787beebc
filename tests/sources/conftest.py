"""What the tests of sources share."""

from __future__ import annotations

from pathlib import Path

import pytest

from sources.installed import Installed


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installed:
    directory = tmp_path / "plugins"
    directory.mkdir()
    return Installed(directory, monkeypatch)
