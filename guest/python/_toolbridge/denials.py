"""Denials: files, network, processes, threads and missing modules raise errors that name the alternative.

Security doesn't rest on this: a program that gets around it meets the boundary, where every import that isn't granted
ends the run. Errors with advice let a model repair its program, and let the program go on where it can.
"""

from __future__ import annotations

import builtins
import errno
import importlib.abc
import importlib.machinery
import io
import os
import sys
import time
from collections.abc import Callable, Sequence
from types import ModuleType, TracebackType
from typing import Any, NoReturn

from . import wire

_NO_FILES = "There are no files here: keep data in variables, or use io.StringIO and io.BytesIO."
_NO_NETWORK = "There is no network here: call a tool of a host module (from host.mcp_<server> import …)."
_NO_THREADS = (
    "There are no threads here: use parallel() from host.bridge, or the functions of host.mcp_<server>.aio "
    "with asyncio.gather()."
)
_NO_PROCESSES = "There are no processes here: call a tool of a host module."
_NO_VARIABLES = "There are no environment variables here: put the value into the program."
_NO_USER = "There is no user inside a run: put the value into the program."
_NO_HELP = "There is no help() here: dir(module) lists its names, and the stubs have the types of tools."
_NUMBERS = "Only the standard library is here: use statistics, math, fractions, decimal or plain lists and dicts."
_DATABASE = "There is no database here but sqlite3.connect(':memory:'): or call a tool of a host module."
_NO_COMPRESSION = "Of the compressions there is zlib, with gzip and zipfile."
_SYSTEM = "The operating system can't be reached from here."

_MODULES = {
    **dict.fromkeys(("requests", "httpx", "aiohttp", "urllib3", "websockets", "ssl", "_ssl"), _NO_NETWORK),
    **dict.fromkeys(("ftplib", "smtplib", "imaplib", "poplib"), _NO_NETWORK),
    **dict.fromkeys(("xmlrpc", "http.server", "wsgiref", "flask", "fastapi", "webbrowser", "mcp"), _NO_NETWORK),
    **dict.fromkeys(("multiprocessing", "_multiprocessing", "pty", "fcntl", "termios", "pwd", "grp"), _NO_PROCESSES),
    **dict.fromkeys(("numpy", "pandas", "scipy", "matplotlib", "polars", "sklearn", "sympy"), _NUMBERS),
    **dict.fromkeys(("dbm", "psycopg2", "sqlalchemy"), _DATABASE),
    **dict.fromkeys(("ctypes", "_ctypes", "cffi", "mmap", "resource", "readline", "curses"), _SYSTEM),
    **dict.fromkeys(("tkinter", "turtle", "idlelib"), _NO_USER),
    **dict.fromkeys(
        ("concurrent.futures.process", "concurrent.futures.interpreter", "concurrent.interpreters"), _NO_THREADS
    ),
    **dict.fromkeys(("bz2", "lzma", "compression.bz2", "compression.lzma", "compression.zstd"), _NO_COMPRESSION),
    **dict.fromkeys(("bs4", "lxml", "html5lib"), "Use html.parser, or xml.etree.ElementTree."),
    "typing_extensions": "Use typing: this is Python 3.14, which has all of it.",
    "pytz": "Use zoneinfo: zoneinfo.ZoneInfo('Europe/Oslo').",
    "dateutil": "Use datetime and zoneinfo; datetime.fromisoformat() reads ISO dates.",
    "yaml": "There is no yaml here: use json, csv, tomllib or configparser.",
    "pydantic": "Use dataclasses, or plain dicts.",
    "pytest": "Use assert, or unittest.",
}


class MissingModules(importlib.abc.MetaPathFinder):
    """The last finder: raises ModuleNotFoundError with the reason and the alternative."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns None, for Python's own message, or raises an error with advice."""
        del target
        top = fullname.partition(".")[0]
        advice = _MODULES.get(fullname) or _MODULES.get(top)
        if advice is None and fullname in sys.stdlib_module_names:
            advice = "This part of the standard library is not here."
        if advice is None and top.startswith("mcp_"):
            advice = f"Modules of the host are imported from the package host: from host.{top} import …"
        if advice is None and not path and top == fullname:
            advice = "Only the standard library and the modules of the host are here: no other package."
        if advice is None:
            return None
        raise ModuleNotFoundError(f"No module named {fullname!r}. {advice}", name=fullname)


def _denied(message: str, error: type[BaseException] = OSError) -> Callable[..., NoReturn]:
    """Returns a function that takes any arguments and raises `error(message)`."""

    def denied(*_arguments: Any, **_named: Any) -> NoReturn:
        raise error(message)

    return denied


def _open(file: Any, mode: str = "r", *_more: Any, **_named: Any) -> NoReturn:
    """Replaces open(): raises PermissionError."""
    del file, mode
    raise PermissionError(_NO_FILES)


def _exit(code: Any = None) -> NoReturn:
    """Replaces exit(): ends the program by SystemExit."""
    raise SystemExit(code)


def _times() -> os.times_result:
    """Replaces os.times(): real time, as there is no other."""
    spent = time.monotonic()
    return os.times_result((spent, 0.0, 0.0, 0.0, spent))


# Reading or removing a file finds none; creating one is denied. So programs that try, and go on without, do that.
_FINDING_FUNCTIONS = (
    *("stat", "lstat", "listdir", "scandir", "readlink", "chmod", "chdir", "truncate", "utime"),
    *("remove", "unlink", "rmdir", "rename", "replace"),
)
_MAKING_FUNCTIONS = ("mkdir", "symlink", "link")


def _not_found(path: Any = ".", *_more: Any, **_named: Any) -> NoReturn:
    """Replaces functions that look for a file: raises FileNotFoundError."""
    raise FileNotFoundError(errno.ENOENT, _NO_FILES.removesuffix("."), path)


def _no_access(*_arguments: Any, **_named: Any) -> bool:
    """Replaces os.access(): no file can be accessed."""
    return False


class _MissingVariableError(KeyError):
    """A KeyError with advice."""

    def __str__(self) -> str:
        return f"{self.args[0]!r}. {_NO_VARIABLES}"


_MissingVariableError.__name__ = "KeyError"


def _with_advice(find: Callable[[Any, Any], str]) -> Callable[[Any, Any], str]:
    """Wraps the look-up of an environment variable: its KeyError gets advice."""

    def variable(environment: Any, name: Any) -> str:
        """Finds a variable, or raises a KeyError with advice."""
        try:
            return find(environment, name)
        except KeyError:
            raise _MissingVariableError(name) from None

    return variable


# There are no open file descriptors: asking the system about one would end the run.
_DESCRIPTOR_FUNCTIONS = (
    *("read", "write", "pread", "pwrite", "readv", "writev", "fstat", "isatty", "lseek", "dup", "dup2", "ftruncate"),
    *("fsync", "fdatasync", "close", "closerange", "get_terminal_size", "fdopen", "set_blocking", "get_blocking"),
    *("open", "pipe", "posix_fadvise", "posix_fallocate", "sendfile", "ttyname"),
)


def install() -> None:
    """Replaces the denied functions, process-wide. Called while the image is made: every program has the denials."""
    builtins.open = _open  # type: ignore[assignment]
    io.open = _open  # type: ignore[assignment]
    builtins.input = _denied(_NO_USER)  # type: ignore[assignment]
    builtins.breakpoint = _denied(_NO_USER)  # type: ignore[assignment]
    builtins.help = _denied(_NO_HELP)  # type: ignore[assignment]
    for name in ("exit", "quit"):
        setattr(builtins, name, _exit)
    for module in (os, sys.modules["posix"]):
        for name in _DESCRIPTOR_FUNCTIONS:
            if hasattr(module, name):
                setattr(module, name, _denied(_NO_FILES, PermissionError))
        for name in _FINDING_FUNCTIONS:
            setattr(module, name, _not_found)
        module.access = _no_access  # type: ignore[attr-defined]
        for name in _MAKING_FUNCTIONS:
            setattr(module, name, _denied(_NO_FILES, PermissionError))
        module._exit = _exit  # type: ignore[attr-defined]
        module.abort = _denied("abort() ends the run: raise an exception instead.", RuntimeError)  # type: ignore[attr-defined]
    for name in ("system", "popen", "fork", "execv", "execve", "execvp", "spawnv", "kill", "wait", "waitpid"):
        setattr(os, name, _denied(_NO_PROCESSES, PermissionError))
    environment: Any = type(os.environ)
    environment.__getitem__ = _with_advice(environment.__getitem__)
    time.sleep = wire.sleep
    # The system's own clocks count from the making of the image, on another machine.
    time.process_time, time.process_time_ns = time.monotonic, time.monotonic_ns
    for module in (os, sys.modules["posix"]):
        module.times = _times  # type: ignore[attr-defined]
    _install_for_modules()


def _install_for_modules() -> None:
    """Registers the changes to modules, made once they are imported."""
    from .standard_library import after_import, patch_zones

    after_import("_thread", _without_threads)
    after_import("threading", _without_threading)
    after_import("subprocess", _without_processes)
    after_import("select", _without_select)
    after_import("socket", _without_sockets)
    after_import("urllib.request", _without_unknown_addresses)
    after_import("asyncio.base_events", _without_child_processes)
    after_import("zoneinfo", patch_zones)
    after_import("concurrent.futures.thread", _without_pool)
    after_import("signal", _without_signals)
    after_import("tempfile", _without_temporary_files)
    after_import("sqlite3", _without_databases_in_files)
    after_import("http.client", _without_https)


def _without_threads(module: Any) -> None:
    """Makes starting a thread raise RuntimeError."""
    for name in ("start_new_thread", "start_new", "start_joinable_thread"):
        setattr(module, name, _denied(_NO_THREADS, RuntimeError))


_DEADLOCK = "deadlock: there is no other thread here to release the lock or fill the queue"


class SingleThreadLock:
    """Replaces threading.Lock, also in Condition, Event, Semaphore and Queue: a deadlock is an error of the program."""

    def __init__(self) -> None:
        self._is_locked = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquires the lock; if it is taken, waits out the timeout and returns False.

        Raises:
            RuntimeError: it is taken and there is no timeout, so that no other thread could ever release it.
        """
        if self._is_locked:
            if blocking and timeout < 0:
                raise RuntimeError(_DEADLOCK)
            if blocking:
                wire.sleep(timeout)
            return False
        self._is_locked = True
        return True

    def release(self) -> None:
        """Releases the lock; raises RuntimeError if it isn't acquired."""
        if not self._is_locked:
            raise RuntimeError("release unlocked lock")
        self._is_locked = False

    def locked(self) -> bool:
        """Whether it is acquired."""
        return self._is_locked

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _at_fork_reinit(self) -> None:
        self._is_locked = False


def _without_threading(module: Any) -> None:
    """Makes Thread.start raise RuntimeError; locks become SingleThreadLock."""
    module.Thread.start = _denied(_NO_THREADS, RuntimeError)
    module.Lock = module._allocate_lock = SingleThreadLock
    for name in ("_start_joinable_thread", "_start_new_thread"):
        setattr(module, name, _denied(_NO_THREADS, RuntimeError))


def _without_pool(module: Any) -> None:
    module.ThreadPoolExecutor.submit = _denied(_NO_THREADS, RuntimeError)


def _without_processes(module: Any) -> None:
    module.Popen.__init__ = _denied(_NO_PROCESSES, PermissionError)


def _without_select(module: Any) -> None:
    """Makes waiting for descriptors raise PermissionError."""
    for name in ("select", "poll", "epoll", "kqueue"):
        if hasattr(module, name):
            setattr(module, name, _denied(_NO_NETWORK, PermissionError))


def _without_sockets(module: Any) -> None:
    """Makes creating sockets and looking up names raise PermissionError."""
    denied = _denied(_NO_NETWORK, PermissionError)
    module.socket.__init__ = denied
    inner = sys.modules["_socket"]
    for name in ("getaddrinfo", "gethostbyname", "gethostbyaddr", "gethostname", "getnameinfo", "create_connection"):
        for holder in (module, inner):
            if hasattr(holder, name):
                setattr(holder, name, denied)
    for name in ("create_server", "socketpair", "fromfd", "getfqdn", "gethostbyname_ex"):
        if hasattr(module, name):
            setattr(module, name, denied)


def _without_unknown_addresses(module: Any) -> None:
    """Denies https addresses, which are "unknown" without ssl."""
    module.UnknownHandler.unknown_open = _denied(_NO_NETWORK, PermissionError)


def _without_child_processes(module: Any) -> None:
    module.BaseEventLoop._make_subprocess_transport = _denied(_NO_PROCESSES, PermissionError)


def _without_temporary_files(module: Any) -> None:
    module._get_default_tempdir = _denied(_NO_FILES, PermissionError)


def _without_databases_in_files(module: Any) -> None:
    """Adds advice to the error of sqlite3.connect() for a file."""
    connect = module.connect

    def connect_with_advice(*arguments: Any, **named: Any) -> Any:
        """Connects; adds advice to an OperationalError."""
        try:
            return connect(*arguments, **named)
        except module.OperationalError as error:
            raise module.OperationalError(f"{error}. {_DATABASE}") from None

    module.connect = sys.modules["sqlite3.dbapi2"].connect = connect_with_advice  # type: ignore[attr-defined]


def _without_https(module: Any) -> None:
    """Adds advice to the missing HTTPSConnection; a class of that name would be used by urllib.request."""

    def without(name: str) -> NoReturn:
        """Raises AttributeError, with advice for HTTPSConnection."""
        advice = f". {_NO_NETWORK}" if name == "HTTPSConnection" else ""
        # Given an object that has nothing like it, Python suggests nothing.
        raise AttributeError(f"module 'http.client' has no attribute {name!r}{advice}", name=name, obj=None)

    module.__getattr__ = without


def _without_signals(module: Any) -> None:
    """Makes timers and sending of signals raise PermissionError."""
    for name in ("alarm", "setitimer", "pause", "raise_signal", "sigwait", "pthread_kill"):
        if hasattr(module, name):
            setattr(module, name, _denied("There are no signals here.", PermissionError))
