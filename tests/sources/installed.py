"""Installed plugins for tests: entry points whose modules are files of the test's own."""

from __future__ import annotations

import sys
import textwrap
from importlib.metadata import EntryPoint
from itertools import count
from pathlib import Path

import pytest

_NUMBERS = count()
HEAD = "from toolbridge import hookimpl\n"


class Installed:
    """Plugins by name, each a module of its own."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._directory = directory
        self.entry_points: list[EntryPoint] = []
        monkeypatch.syspath_prepend(str(directory))  # pyright: ignore[reportUnknownMemberType]  # pytest leaves it open

    def add(self, name: str, source: str, target: str = "Plugin") -> str:
        """A plugin whose module has this source; gives the module's name."""
        module = f"toolbridge_test_plugin_{next(_NUMBERS)}"
        (self._directory / f"{module}.py").write_text(HEAD + textwrap.dedent(source), encoding="utf-8")
        value = f"{module}:{target}" if target else module
        self.entry_points.append(EntryPoint(name, value, "toolbridge.plugins"))
        return module

    def offering(self, name: str, servers: str) -> str:
        """A plugin that offers these servers, written as an expression."""
        return self.add(
            name,
            f"""
            class Plugin:
                @hookimpl
                def provide_mcp_servers(self):
                    return {servers}
            """,
        )

    @staticmethod
    def was_imported(module: str) -> bool:
        """Whether a plugin's module was."""
        return module in sys.modules
