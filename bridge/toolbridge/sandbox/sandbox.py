"""The sandbox: runs programs, each in a fresh guest, with Python functions as its modules."""

from __future__ import annotations

import contextlib
import re
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from types import FunctionType, MethodType, TracebackType
from typing import Any, cast

from toolbridge.boundary.host_call import HostFunction, HostModules, HostSide, Scheduler, python_name
from toolbridge.errors import (
    HostModuleError,
    LanguageError,
    LimitsError,
    MisuseError,
    SandboxClosedError,
    SeedError,
    ToolbridgeError,
    reports_misuse,
)
from toolbridge.limits import Limits
from toolbridge.sandbox.engine import CompileNotice, Guests, shared_engine
from toolbridge.sandbox.execution import CANCEL_SECONDS, Execution, LoopRun, fresh_seed
from toolbridge.sandbox.outcome import DIALECTS, Dialect, Failure, RunResult, SandboxLanguage, Usage
from toolbridge.sandbox.scheduler import BackgroundLoop, LoopTasks, TaskScheduler
from toolbridge.sandbox.session import Session

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
    """Validates `modules={"host:demo": {"add": add}}`, and tells plain from async functions.

    Raises:
        HostModuleError: a module or function can't be offered to guest code.
        MisuseError: it is not a mapping.
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
            raise HostModuleError(specifier, "this name is reserved by toolbridge")
        namesake = python_names.setdefault(python_name(specifier), specifier)
        if namesake != specifier:
            raise HostModuleError(specifier, f"in Python it has the same name as {namesake}: {python_name(specifier)}")
        if not isinstance(functions, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise HostModuleError(specifier, f"expected a mapping from name to function, found {functions!r}")
        checked[specifier] = {name: _host_function(specifier, name, value) for name, value in functions.items()}
    return checked


def _host_function(specifier: str, name: str, function: Callable[..., Any]) -> HostFunction:
    """Validates one export of a module; raises HostModuleError if its name or value can't be one."""
    if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name) or name in _RESERVED_EXPORTS:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise HostModuleError(specifier, f"{name!r} can't be the name of an export")
    if not callable(function):
        raise HostModuleError(specifier, f"export {name!r} is {function!r}, which can't be called")
    return HostFunction(function, _is_coroutine_function(function))


def _is_coroutine_function(function: Any) -> bool:
    """Returns whether a callable returns a coroutine, as far as that can be told without calling it."""
    for _ in range(10):
        if isinstance(function, MethodType):
            function = function.__func__
        elif isinstance(function, FunctionType):
            return bool(function.__code__.co_flags & _CO_COROUTINE)
        elif isinstance(function, partial):
            function = function.func
        else:  # a callable object, or a built-in
            function = getattr(cast("type[Any]", type(function)), "__call__", None)  # noqa: B004  # the method itself is wanted
    return False


_USUAL_LIMITS = Limits()
_NOTHING_SPENT = Usage()


@reports_misuse
class Sandbox:
    """Runs untrusted programs.

        sandbox = Sandbox(modules={"host:demo": {"add": lambda a, b: a + b}})
        result = sandbox.run_sync('import { add } from "host:demo"; add(1, 2)')
        result.value  # 3

    A function of a module may be plain or async. Plain ones run on the guest's thread and can't be interrupted: make
    functions that wait async. Safe to use from several threads and tasks at once.
    """

    def __init__(
        self,
        modules: Modules | None = None,
        *,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.time,
        on_compile: CompileNotice | None = None,
    ) -> None:
        self._host = HostSide(host_modules(modules or {}))
        self._limits = limits or _USUAL_LIMITS
        self._clock = clock
        self._on_compile = on_compile
        self._loop = BackgroundLoop()
        self._runs: set[Execution] = set()
        self._sessions: weakref.WeakSet[Session] = weakref.WeakSet()
        self._closed = False

    def run_sync(
        self,
        source: str,
        *,
        language: SandboxLanguage = "javascript",
        limits: Limits | None = None,
        seed: bytes | None = None,
    ) -> RunResult:
        """Runs a program and blocks until its result. Async functions run on an event loop of the sandbox.

        Raises:
            ToolbridgeError: the sandbox is closed, or the installation is broken.
        """
        return self._run_sync(source, limits, seed, None, _dialect(language))

    async def run(
        self,
        source: str,
        *,
        language: SandboxLanguage = "javascript",
        limits: Limits | None = None,
        seed: bytes | None = None,
        host: HostSide | None = None,
        erased: str | None = None,
        spent: Usage = _NOTHING_SPENT,
    ) -> RunResult:
        """Runs a program. Async functions run on the caller's event loop; cancelling ends the guest.

        Pending calls are cancelled at the end, and awaited: one that shields its clean-up from cancellation delays the
        result beyond `wall_seconds`.

        For the bridge: `host` replaces the sandbox's modules for this run, `erased` is the program without types if
        already known, `spent` the time of its type-check.

        Raises:
            ToolbridgeError: the sandbox is closed, or the installation is broken.
        """
        return await self._run(source, limits, seed, None, _dialect(language), host=host, erased=erased, spent=spent)

    def session(
        self,
        *,
        language: SandboxLanguage = "javascript",
        limits: Limits | None = None,
        host: HostSide | None = None,
    ) -> Session:
        """Opens a guest that keeps its state from one program to the next. Limits apply to each run.

        Raises:
            SandboxClosedError: the sandbox is closed.
        """
        self._check_open()
        session = Session(self._run_sync, self._run, limits or self._limits, host, _dialect(language))
        self._sessions.add(session)
        return session

    def close(self) -> None:
        """Ends every run, session and call, for good, without waiting for them."""
        self._closed = True
        for execution in list(self._runs):
            execution.cancel()
        for session in list(self._sessions):
            session.close()
        self._loop.close()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise SandboxClosedError("sandbox")

    def _run_sync(
        self,
        source: str,
        limits: Limits | None,
        seed: bytes | None,
        session: Session | None,
        dialect: Dialect | None = None,
    ) -> RunResult:
        """Runs a program and blocks until its result; TypeScript's types are removed before, in a run of their own.

        Raises:
            ToolbridgeError: an argument is invalid, the sandbox is closed, or the installation is broken.
        """
        limits = limits or self._limits
        check_types(source, limits, seed)
        refused = _too_large(source, limits)
        if refused is not None:
            return refused
        dialect = _dialect_of(session, dialect)
        erased, spent = None, _NOTHING_SPENT
        if dialect.has_types:
            from toolbridge.sandbox import typescript as compiler

            done = self._run_sync(*compiler.erasing(source, limits, is_session=session is not None))
            erased, spent = compiler.erased(done, source), done.usage
            if isinstance(erased, RunResult):
                return erased
        scheduler = TaskScheduler(limits, self._loop.post)
        execution = self._new_execution(
            source, limits, seed, session, scheduler, dialect=dialect, erased=erased, spent=spent
        )
        try:
            return wait_for(execution)
        finally:
            self._runs.discard(execution)
            with contextlib.suppress(RuntimeError):  # the sandbox was closed, and so the calls ended
                scheduler.cancel()

    async def _run(
        self,
        source: str,
        limits: Limits | None,
        seed: bytes | None,
        session: Session | None,
        dialect: Dialect | None = None,
        *,
        host: HostSide | None = None,
        erased: str | None = None,
        spent: Usage = _NOTHING_SPENT,
    ) -> RunResult:
        """Runs a program; its calls are tasks of this event loop. Otherwise as `_run_sync`."""
        from anyio import create_task_group

        limits = limits or self._limits
        check_types(source, limits, seed)
        refused = _too_large(source, limits)
        if refused is not None:
            return refused
        dialect = _dialect_of(session, dialect)
        if dialect.has_types and erased is None:
            from toolbridge.sandbox import typescript as compiler

            done = await self._run(*compiler.erasing(source, limits, is_session=session is not None))
            code = compiler.erased(done, source)
            if isinstance(code, RunResult):
                return code
            erased, spent = code, spent + done.usage
        guests = await self._prepare(dialect, limits)
        outcome: RunResult | ToolbridgeError | None = None
        async with create_task_group() as calls:
            inbox = LoopTasks(calls)
            try:
                scheduler = TaskScheduler(limits, inbox.post)
                execution = self._new_execution(
                    *(source, limits, seed, session, scheduler),
                    dialect=dialect,
                    host=host,
                    erased=erased,
                    spent=spent,
                    guests=guests,
                )
                try:
                    outcome = await wait_for_async(execution, inbox, scheduler)
                finally:
                    self._runs.discard(execution)
            except ToolbridgeError as error:  # raised below, outside the group, which would wrap it
                outcome = error
            finally:
                inbox.close()
            calls.cancel_scope.cancel()
        assert outcome is not None
        if isinstance(outcome, ToolbridgeError):
            raise outcome
        return outcome

    async def _prepare(self, dialect: Dialect, limits: Limits) -> Guests:
        """Loads an image, compiling it if need be, on a worker thread; returns the supply of its guests."""
        engine = shared_engine()
        if not engine.is_ready(dialect.image):
            from anyio import to_thread

            self._check_open()
            if dialect.image == "python":
                await to_thread.run_sync(engine.python_image, self._on_compile, abandon_on_cancel=True)
            else:
                await to_thread.run_sync(engine.image, dialect.image, self._on_compile, abandon_on_cancel=True)
        return engine.guests(dialect.image, limits.memory_bytes, self._on_compile)

    async def prepare_compiler(self) -> None:
        """Loads the TypeScript compiler's image for the bridge, outside the time of any run; may take seconds.

        Raises:
            ToolbridgeError: the sandbox is closed, or there is no such image.
        """
        from toolbridge.sandbox.typescript import COMPILER

        await self._prepare(COMPILER, self._limits)

    async def ask_compiler(self, request: str, run: Limits = _USUAL_LIMITS) -> RunResult:
        """Sends a request to a fresh TypeScript compiler for the bridge, within the time of a run with these limits.

        Raises:
            ToolbridgeError: the sandbox is closed, or there is no such image.
        """
        from toolbridge.sandbox import typescript as compiler

        return await self._run(request, compiler.checking(run), compiler.COMPILER_SEED, None, compiler.COMPILER)

    def _new_execution(
        self,
        source: str,
        limits: Limits,
        seed: bytes | None,
        session: Session | None,
        scheduler: Scheduler,
        *,
        dialect: Dialect,
        host: HostSide | None = None,
        erased: str | None = None,
        spent: Usage = _NOTHING_SPENT,
        guests: Guests | None = None,
    ) -> Execution:
        """Validates seed and memory limit, and registers a run in `_runs`, without starting it.

        Without `guests`, blocks while the image is loaded or compiled.

        Raises:
            ToolbridgeError: the sandbox is closed, an argument is invalid, or there is no such image.
        """
        self._check_open()
        if seed is not None and len(seed) != 32:
            raise SeedError(len(seed))
        if limits.memory_bytes < dialect.least_memory:
            expected = f"at least {dialect.least_memory} bytes for {dialect.language}"
            raise LimitsError("memory_bytes", limits.memory_bytes, expected)
        guests = guests or shared_engine().guests(dialect.image, limits.memory_bytes, self._on_compile)
        execution = Execution(
            engine=guests.engine,
            dialect=dialect,
            source=source,
            erased=erased,
            seed=seed if seed is not None else fresh_seed(),
            limits=limits,
            host=host or (session and session.host) or self._host,
            scheduler=scheduler,
            clock=self._clock,
            spent=(spent.wall_seconds, spent.cpu_seconds),
            new_instance=guests.take if session is None else partial(session.take_instance, guests.take),
            keep_instance=guests.put if session is None else session.keep_instance,
        )
        self._runs.add(execution)
        return execution


def _dialect(language: str) -> Dialect:
    """Looks up a language; raises LanguageError for an unknown one."""
    dialect = DIALECTS.get(language)
    if dialect is None:
        raise LanguageError(language, tuple(DIALECTS))
    return dialect


def _dialect_of(session: Session | None, dialect: Dialect | None) -> Dialect:
    """Returns the session's dialect, or the given one if there is no session."""
    found = session.dialect if session is not None else dialect
    assert found is not None
    return found


def check_types(source: object, limits: object, seed: object) -> None:
    """Raises MisuseError for arguments of a wrong type."""
    if not isinstance(source, str):
        raise MisuseError("source", source, "the program's text, a str")
    if not isinstance(limits, Limits):
        raise MisuseError("limits", limits, "a toolbridge.Limits")
    if seed is not None and not isinstance(seed, bytes):
        raise MisuseError("seed", seed, "32 bytes")


def _too_large(source: str, limits: Limits) -> RunResult | None:
    """Returns the failed result of a program over the limit of frames, else None."""
    # Escaped as JSON a program grows; what counts is what would cross the boundary.
    if len(source) <= limits.frame_bytes // 8:
        return None
    size = len(source.encode("utf-8", "surrogatepass"))
    if size <= limits.frame_bytes:
        return None
    message = f"The program is {size} bytes, more than the limit of {limits.frame_bytes}."
    return RunResult(failure=Failure("limit", message))


# ── waiting ───────────────────────────────────────────────────────────────────────────────────────────────────────


def wait_for(execution: Execution) -> RunResult:
    """Starts a run and blocks until its result; an exception meanwhile (Ctrl-C) cancels it.

    Raises:
        ToolbridgeError: the host's own installation failed, not the guest.
    """
    done = threading.Lock()
    done.acquire()
    try:
        if not execution.run_until_wait():
            execution.begin(done.release)
            while not done.acquire(timeout=execution.poll_seconds()):
                if execution.abandon_if_stuck():
                    break
    except BaseException:  # Ctrl-C: the guest goes first
        execution.cancel()
        if not execution.discard():
            done.acquire(timeout=CANCEL_SECONDS)
        raise
    return execution.result()


async def wait_for_async(execution: Execution, inbox: LoopTasks, scheduler: TaskScheduler) -> RunResult:
    """Starts a run and awaits its result; its calls run on this event loop. Cancelling ends the guest.

    Raises:
        ToolbridgeError: the host's own installation failed, not the guest.
    """
    if execution.can_run_on_loop():
        return await LoopRun(execution, inbox, scheduler).result()

    from anyio import move_on_after

    def on_done() -> None:
        with contextlib.suppress(RuntimeError):  # the event loop is gone: nobody waits
            inbox.wake()

    execution.begin(on_done)
    try:
        while not execution.is_done:
            with move_on_after(execution.poll_seconds()):
                await inbox.wait()
            if execution.abandon_if_stuck():
                break
    except BaseException:
        execution.cancel()
        with move_on_after(CANCEL_SECONDS, shield=True):
            while not execution.is_done:
                await inbox.wait()
        raise
    return execution.result()
