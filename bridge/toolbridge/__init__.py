"""toolbridge: a model writes ordinary code against MCP servers, in a sandbox that can reach nothing else.

The public names are in `__init__.pyi`. Each is imported on first use, so that a command pays only for its own.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False  # typing's own costs a command a tenth of its start-up to import
if TYPE_CHECKING:
    from typing import Any

_MODULES = ("approval", "errors", "events", "pins", "plugins", "prompt")
"""The other public modules."""


def _public_names() -> dict[str, str]:
    """Reads `__init__.pyi` and returns the module of each public name: `from <module> import <name> as <name>`."""
    with open(f"{__path__[0]}/__init__.pyi", encoding="utf-8") as stub:
        return {words[3]: words[1] for words in map(str.split, stub) if words[:1] == ["from"]}


def __getattr__(name: str) -> Any:
    import importlib

    names = _public_names()
    if name == "__all__":
        value: Any = sorted(names)
    elif name in names:
        value = getattr(importlib.import_module(names[name]), name)
    else:
        raise AttributeError(f"module 'toolbridge' has no attribute {name!r}{_elsewhere(name)}")
    globals()[name] = value
    return value


def _elsewhere(name: str) -> str:
    """Returns in which public module a name is, for an error's end; "" if in none. Imports these modules.

    A submodule is asked for here before its import: that must stay cheap.
    """
    import importlib.util

    if not name.startswith("_") and importlib.util.find_spec(f"toolbridge.{name}") is None:
        for module in _MODULES:
            found = getattr(importlib.import_module(f"toolbridge.{module}"), name, None)
            if getattr(found, "__module__", "").startswith("toolbridge."):
                return f": it is toolbridge.{module}.{name}"
    return ""


def __dir__() -> list[str]:
    return sorted({*globals(), *_public_names()})
