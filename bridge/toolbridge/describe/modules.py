"""Which modules there are: what a model asks first, before it looks into one of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from toolbridge.describe.module_info import FunctionInfo, ModuleInfo, module_info
from toolbridge.describe.summaries import module_summary, shown_name
from toolbridge_codegen.catalog import Catalog, ModuleSpec, module_specifier, python_module

__all__ = ["FunctionInfo", "ModuleInfo", "ModuleSummary", "ServerStatusLike", "list_modules", "module_info"]


class ServerStatusLike(Protocol):
    """What is asked of a configured server's status (`toolbridge.ServerStatus` is one)."""

    @property
    def name(self) -> str:
        """The server's name."""
        ...

    @property
    def display_name(self) -> str:
        """What it is called in its configuration."""
        ...

    @property
    def state(self) -> str:
        """`idle`, `connected`, `error`, …"""
        ...

    @property
    def tools(self) -> int | None:
        """How many tools it exposes; None when it was never asked."""
        ...


@dataclass(frozen=True, slots=True)
class ModuleSummary:
    """One server's module, in a line."""

    specifier: str
    python_module: str
    server: str
    display_name: str
    tools: int | None
    """None when the server was never asked: it is when the module is first imported."""
    summary: str
    """From the server's instructions, or the names of its tools. The server's words, cleaned."""
    state: str | None
    """The state of the server, where it is known."""

    def as_json(self) -> dict[str, Any]:
        """For a model or a program to read."""
        return {
            "module": self.specifier,
            "python_module": self.python_module,
            "server": self.server,
            "display_name": self.display_name,
            "tools": self.tools,
            "summary": self.summary,
            "state": self.state,
        }


def list_modules(catalog: Catalog, known: Iterable[ServerStatusLike] = ()) -> tuple[ModuleSummary, ...]:
    """Every module, sorted by server: those of the catalog, and those of servers whose tools are not known yet."""
    status = {each.name: each for each in known}
    found = [_from_catalog(module, status.get(module.server)) for module in catalog.modules]
    listed = {module.server for module in catalog.modules}
    found += [_from_status(each) for each in status.values() if each.name not in listed]
    return tuple(sorted(found, key=lambda module: module.server))


def _from_catalog(module: ModuleSpec, status: ServerStatusLike | None) -> ModuleSummary:
    return ModuleSummary(
        specifier=module.specifier,
        python_module=module.python_module,
        server=module.server,
        display_name=shown_name(module.display_name) or module.server,
        tools=len(module.tools),
        summary=module_summary(module),
        state=None if status is None else status.state,
    )


def _from_status(status: ServerStatusLike) -> ModuleSummary:
    return ModuleSummary(
        specifier=module_specifier(status.name),
        python_module=python_module(status.name),
        server=status.name,
        display_name=shown_name(status.display_name) or status.name,
        tools=status.tools,
        summary="",
        state=status.state,
    )
