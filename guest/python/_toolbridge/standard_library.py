"""The standard library in memory: compiled while the image is made, imported on demand."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import marshal
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, ModuleType
from typing import Any

# Modules that can't work here, or are of no use to a program: processes, screens, installers, tests.
_LEFT_OUT = {
    *("__main__", "__pycache__", "antigravity", "cProfile", "ctypes", "curses", "dbm", "distutils", "ensurepip"),
    *("ftplib", "idlelib", "imaplib", "lib-dynload", "lib2to3", "mailbox", "msilib", "multiprocessing", "poplib"),
    *("profile", "profiling", "pty", "pydoc", "pydoc_data", "_pyrepl", "readline", "site", "site-packages", "smtplib"),
    *("ssl", "test", "tests", "this", "tkinter", "trace", "tty", "turtle", "turtledemo", "venv", "webbrowser"),
    *("wsgiref", "xmlrpc", "zipapp", "_aix_support", "_android_support", "_apple_support", "_ios_support"),
    *("_osx_support", "__hello__", "__phello__", "nturl2path"),
    # for other systems, or for parts of the interpreter that aren't there
    *("asyncio.tools", "asyncio.windows_events", "asyncio.windows_utils", "bz2", "compression.bz2", "compression.lzma"),
    *("compression.zstd", "concurrent.futures.interpreter", "concurrent.futures.process", "concurrent.interpreters"),
    *("doctest", "http.server", "lzma", "pdb", "rlcompleter", "encodings._win_cp_codecs", "encodings.bz2_codec"),
    *("encodings.mbcs", "encodings.oem"),
}

_modules: dict[str, tuple[bool, bytes]] = {}
_after: dict[str, Callable[[ModuleType], None]] = {}
_ZONES: dict[str, bytes] = {}


def read_library() -> None:
    """Reads and compiles every module that isn't left out; called while the image is made."""
    root = next(path for path in sys.path if os.path.exists(f"{path}/json/__init__.py"))
    for name, is_package, path in _found(root, ""):
        with open(path, "rb") as file:
            source = file.read()
        try:
            code = compile(source, f"<stdlib>/{name.replace('.', '/')}.py", "exec", dont_inherit=True, optimize=0)
        except (SyntaxError, ValueError):
            continue
        _modules[name] = (is_package, zlib.compress(marshal.dumps(code), 9))


def _found(directory: str, prefix: str) -> Iterator[tuple[str, bool, str]]:
    """Yields name, whether it is a package, and path of each module in a directory, recursively."""
    for entry in sorted(os.listdir(directory)):
        path = f"{directory}/{entry}"
        name = entry.removesuffix(".py")
        if name in _LEFT_OUT or f"{prefix}{name}" in _LEFT_OUT or name.startswith(("config-", "_sysconfigdata")):
            continue
        if entry == "__init__.py":
            yield prefix.removesuffix("."), True, path
        elif entry.endswith(".py"):
            yield f"{prefix}{name}", False, path
        elif os.path.exists(f"{path}/__init__.py"):
            yield from _found(path, f"{prefix}{entry}.")


def read_zones(directory: str) -> None:
    """Reads the time zones of the tzdata package; called while the image is made.

    Sorted, because the order of directory entries differs between file systems, and the image has to be reproducible.
    """
    for name, _, files in sorted(os.walk(directory)):
        for file in sorted(files):
            path = f"{name}/{file}"
            with open(path, "rb") as opened:
                content = opened.read()
            if content.startswith(b"TZif"):
                _ZONES[os.path.relpath(path, directory)] = zlib.compress(content, 9)


def after_import(name: str, change: Callable[[ModuleType], None]) -> None:
    """Applies a change to a module once it has been imported; at once if it is imported already."""
    if name in sys.modules:
        change(sys.modules[name])
    else:
        _after[name] = change


def library_modules() -> list[str]:
    """Names the modules that can be imported from memory."""
    return sorted(_modules)


class MemoryFinder(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds the standard library in memory."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns a spec for modules of the library, else None."""
        del path, target
        found = _modules.get(fullname)
        if found is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, origin="<stdlib>", is_package=found[0])

    def is_package(self, fullname: str) -> bool:
        """Whether a module has submodules."""
        return _modules[fullname][0]

    def get_source(self, fullname: str) -> None:
        """Returns None: sources are not kept."""

    def get_code(self, fullname: str) -> CodeType:
        """Returns the compiled module."""
        return marshal.loads(zlib.decompress(_modules[fullname][1]))  # noqa: S302  # our own

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """Returns None, for an ordinary module."""

    def exec_module(self, module: ModuleType) -> None:
        """Executes the module, then applies its pending change."""
        exec(self.get_code(module.__name__), module.__dict__)  # noqa: S102  # how a loader works
        change = _after.pop(module.__name__, None)
        if change is not None:
            change(module)


def patch_zones(module: ModuleType) -> None:
    """Makes zoneinfo read its data from memory, not from files."""
    import io
    import zoneinfo

    def load_tzdata(key: str) -> Any:
        """Opens a zone's data; raises ZoneInfoNotFoundError for an unknown one."""
        found = _ZONES.get(key)
        if found is None:
            raise zoneinfo.ZoneInfoNotFoundError(f"No time zone found with key {key}")
        return io.BytesIO(zlib.decompress(found))

    def available_timezones() -> set[str]:
        return {name for name in _ZONES if not name.startswith(("posix/", "right/"))}

    module._common.load_tzdata = load_tzdata  # type: ignore[attr-defined]
    module.available_timezones = available_timezones  # type: ignore[attr-defined]
