"""The package `host`: one submodule for each module of the host, made when it is first imported.

`from host.mcp_weather import get_forecast`, `from host.mcp_weather.aio import get_forecast`, `host.bridge`, and by
specifier `importlib.import_module("host:mcp-weather")`.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.abc
import importlib.machinery
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from . import wire
from .handles import Handle
from .host_functions import AwaitedFunction, HostFunction
from .parallel import parallel
from .tool_errors import CLASSES, tool_error

_PACKAGE = "host"
_COLON = "host:"
_AIO = "aio"
_ASYNC = "/async"


class HostModule(ModuleType):
    """A module of the host; a missing name raises AttributeError with the nearest one."""

    def __getattr__(self, name: str) -> Any:
        if name == _AIO and self.__name__.count(".") == 1:
            return importlib.import_module(f"{self.__name__}.{_AIO}")
        if name.startswith("__"):
            raise AttributeError(name)
        known = [each for each in vars(self) if not each.startswith("__")]
        guesses = difflib.get_close_matches(name[:64], known, n=1, cutoff=0.6)
        if guesses:
            advice = f"Did you mean {guesses[0]!r}?"
        else:
            advice = f"It has: {', '.join(known[:20]) or 'nothing'}{', …' if len(known) > 20 else ''}."
        raise AttributeError(f"module {self.__name__!r} has no function {name!r}. {advice}")


class _HostPackage(ModuleType):
    """The package itself: imports a submodule on first access, for `import host` alone."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return importlib.import_module(f"{_PACKAGE}.{name}")
        except ModuleNotFoundError as error:
            raise AttributeError(str(error)) from None


class HostFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and loads modules of the host by `import` requests."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns a spec for `host`, `host.…` and `host:…`, else None."""
        del path, target
        if fullname == _PACKAGE or fullname.startswith((f"{_PACKAGE}.", _COLON)):
            is_package = fullname == _PACKAGE or (fullname.count(".") == 1 and fullname != f"{_PACKAGE}.bridge")
            return importlib.machinery.ModuleSpec(fullname, self, origin="host", is_package=is_package)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Returns an empty module: the package, or one of its submodules."""
        return _HostPackage(spec.name) if spec.name == _PACKAGE else HostModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Defines the module's functions; blocks until the host has listed them."""
        name = module.__name__
        if name == _PACKAGE:
            return
        if name in (f"{_PACKAGE}.bridge", f"{_COLON}bridge"):
            _fill_bridge(module)
        elif name.startswith(_COLON):
            _fill_by_specifier(module)
        else:
            _fill(module)


def _fill_bridge(module: ModuleType) -> None:
    """Adds parallel, Handle and the error classes to `host.bridge`."""
    vars(module).update({"parallel": parallel, "Handle": Handle})
    vars(module).update({each.__name__: each for each in CLASSES})


def _fill(module: ModuleType) -> None:
    """Adds the functions of `host.mcp_weather` or `host.mcp_weather.aio`; ModuleNotFoundError for a longer name."""
    name = module.__name__
    parts = name.split(".")
    is_aio = len(parts) == 3 and parts[2] == _AIO
    if len(parts) > 2 and not is_aio:
        raise ModuleNotFoundError(f"No module named {name!r}. Tools are functions of {'.'.join(parts[:2])}.", name=name)
    _add_functions(module, ".".join(parts[:2]), AwaitedFunction if is_aio else HostFunction)


def _fill_by_specifier(module: ModuleType) -> None:
    """Adds the functions of `host:mcp-weather` or `host:mcp-weather/async`."""
    name = module.__name__
    _add_functions(module, name, AwaitedFunction if name.endswith(_ASYNC) else HostFunction)


def _add_functions(module: ModuleType, asked: str, kind: type[HostFunction]) -> None:
    """Asks the host for a module's functions (blocking), and adds them as objects of `kind`.

    Raises:
        ModuleNotFoundError: the host has no such module.
        ToolError: its server can't be reached, for instance.
    """
    reply = wire.request(wire.dumps({"op": "import", "module": asked}))
    if "error" in reply:
        error = reply["error"]
        if error.get("kind") == "unknown":
            raise ModuleNotFoundError(error["message"], name=module.__name__)
        raise tool_error(error, asked, "import")
    found = reply["ok"]
    for function in found["functions"]:
        vars(module)[function] = kind(module.__name__, found["module"], function)
    vars(module)["__all__"] = list(found["functions"])
