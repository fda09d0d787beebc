"""From `modules={"host:demo": {"add": add}}` to what the boundary looks calls up in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from types import FunctionType, MethodType
from typing import Any, cast

from toolbridge.boundary.host_call import HostFunction, HostModules
from toolbridge.boundary.python_names import python_name
from toolbridge.errors import HostModuleError, MisuseError

Modules = Mapping[str, Mapping[str, Callable[..., Any]]]

_SPECIFIER = re.compile(r"host:[a-z0-9][a-z0-9_-]{0,127}")
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_RESERVED_MODULES = {"host:bridge"}
# An export by one of these names would change what the module object itself means.
_RESERVED_EXPORTS = {
    *("__proto__", "constructor", "prototype", "then", "toJSON", "default", "__esModule"),
    *("toString", "valueOf", "hasOwnProperty"),
}
_CO_COROUTINE = 0x80  # inspect.CO_COROUTINE, without importing inspect


def host_modules(modules: Modules) -> HostModules:
    """The modules, checked.

    Raises:
        HostModuleError: a module or function can't be offered to guest code.
    """
    if not isinstance(modules, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise MisuseError("modules", modules, 'a mapping such as {"host:demo": {"add": add}}')
    checked: dict[str, dict[str, HostFunction]] = {}
    python_names: dict[str, str] = {}
    for specifier, functions in modules.items():
        if not isinstance(specifier, str) or not _SPECIFIER.fullmatch(specifier):  # pyright: ignore[reportUnnecessaryIsInstance]
            problem = 'a specifier is "host:" and lower-case letters, digits, "-" or "_", such as "host:demo"'
            raise HostModuleError(specifier, problem)
        if specifier in _RESERVED_MODULES:
            raise HostModuleError(specifier, "this name is taken by toolbridge")
        namesake = python_names.setdefault(python_name(specifier), specifier)
        if namesake != specifier:
            raise HostModuleError(specifier, f"in Python it has the same name as {namesake}: {python_name(specifier)}")
        if not isinstance(functions, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise HostModuleError(specifier, f"expected a mapping from name to function, found {functions!r}")
        checked[specifier] = {name: _host_function(specifier, name, value) for name, value in functions.items()}
    return checked


def _host_function(specifier: str, name: str, function: Callable[..., Any]) -> HostFunction:
    if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name) or name in _RESERVED_EXPORTS:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise HostModuleError(specifier, f"{name!r} can't be the name of an export")
    if not callable(function):
        raise HostModuleError(specifier, f"export {name!r} is {function!r}, which can't be called")
    return HostFunction(function, _is_coroutine_function(function))


def _is_coroutine_function(function: Any) -> bool:
    """Whether calling it gives a coroutine, as far as can be known without calling it."""
    for _ in range(10):
        if isinstance(function, MethodType):
            function = function.__func__
        elif isinstance(function, FunctionType):
            return bool(function.__code__.co_flags & _CO_COROUTINE)
        elif isinstance(function, partial):
            function = function.func
        else:  # an object that can be called, or something built in
            function = getattr(cast("type[Any]", type(function)), "__call__", None)  # noqa: B004  # the method itself is wanted
    return False
