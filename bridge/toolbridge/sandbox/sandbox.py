"""The sandbox: runs programs, each in a fresh guest, with plain Python functions as its modules."""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Callable
from types import TracebackType

from toolbridge.boundary.host_call import Scheduler
from toolbridge.errors import MisuseError, SandboxClosedError, SeedError, ToolbridgeError
from toolbridge.limits import Limits
from toolbridge.sandbox.engine import CompileNotice, shared_engine
from toolbridge.sandbox.execution import Execution, fresh_seed, wait_for, wait_for_async
from toolbridge.sandbox.host_modules import Modules, host_modules
from toolbridge.sandbox.instance import Instance
from toolbridge.sandbox.outcome import Failure, RunResult
from toolbridge.sandbox.scheduler import BackgroundLoop, LoopInbox, TaskScheduler
from toolbridge.sandbox.session import Session


class Sandbox:
    """Runs untrusted programs.

        sandbox = Sandbox(modules={"host:demo": {"add": lambda a, b: a + b}})
        result = sandbox.run_sync('import { add } from "host:demo"; add(1, 2)')
        result.value  # 3

    A function of a module may be plain or a coroutine function. Plain ones run on the guest's own
    thread and can't be interrupted: make those that wait for something coroutine functions.
    Safe to use from several threads and tasks at once.
    """

    def __init__(
        self,
        modules: Modules | None = None,
        *,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.time,
        on_compile: CompileNotice | None = None,
    ) -> None:
        self._modules = host_modules(modules or {})
        self._limits = limits or Limits()
        self._clock = clock
        self._on_compile = on_compile
        self._loop = BackgroundLoop()
        self._runs: set[Execution] = set()
        self._sessions: weakref.WeakSet[Session] = weakref.WeakSet()
        self._closed = False

    def run_sync(self, source: str, *, limits: Limits | None = None, seed: bytes | None = None) -> RunResult:
        """Runs a program and waits for its result. Coroutine functions run on a loop of the sandbox.

        Raises:
            ToolbridgeError: the sandbox is closed, or the installation is broken.
        """
        return self._run_sync(source, limits, seed, None)

    async def run(self, source: str, *, limits: Limits | None = None, seed: bytes | None = None) -> RunResult:
        """Runs a program. Coroutine functions run on the caller's event loop; cancelling ends the guest.

        Raises:
            ToolbridgeError: the sandbox is closed, or the installation is broken.
        """
        return await self._run(source, limits, seed, None)

    def session(self, *, limits: Limits | None = None) -> Session:
        """A guest that keeps its state from one program to the next. Its limits hold for each run."""
        self._check_open()
        session = Session(self._run_sync, self._run, limits or self._limits)
        self._sessions.add(session)
        return session

    def close(self) -> None:
        """Ends every run, session and call. The sandbox can't be used afterwards."""
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

    def _run_sync(self, source: str, limits: Limits | None, seed: bytes | None, session: Session | None) -> RunResult:
        limits = limits or self._limits
        _check_types(source, limits, seed)
        refused = _too_large(source, limits)
        if refused is not None:
            return refused
        scheduler = TaskScheduler(limits, self._loop.post)
        execution = self._execution(source, limits, seed, session, scheduler)
        try:
            return wait_for(execution)
        finally:
            self._runs.discard(execution)
            with contextlib.suppress(RuntimeError):  # the sandbox was closed, and so the calls ended
                scheduler.cancel()

    async def _run(self, source: str, limits: Limits | None, seed: bytes | None, session: Session | None) -> RunResult:
        from anyio import create_task_group

        limits = limits or self._limits
        _check_types(source, limits, seed)
        refused = _too_large(source, limits)
        if refused is not None:
            return refused
        outcome: RunResult | ToolbridgeError | None = None
        async with create_task_group() as calls:
            try:
                inbox = LoopInbox()
                scheduler = TaskScheduler(limits, inbox.post)
                execution = self._execution(source, limits, seed, session, scheduler)
                try:
                    outcome = await wait_for_async(execution, inbox, calls)
                finally:
                    self._runs.discard(execution)
            except ToolbridgeError as error:  # raised below, outside the group, which would wrap it
                outcome = error
            calls.cancel_scope.cancel()
        assert outcome is not None
        if isinstance(outcome, ToolbridgeError):
            raise outcome
        return outcome

    def _execution(
        self, source: str, limits: Limits, seed: bytes | None, session: Session | None, scheduler: Scheduler
    ) -> Execution:
        self._check_open()
        if seed is not None and len(seed) != 32:
            raise SeedError(len(seed))
        engine = shared_engine()
        image = engine.image("javascript", self._on_compile)

        def new_instance() -> Instance:
            return Instance(engine.pointer, image, limits.memory_bytes)

        execution = Execution(
            engine=engine,
            source=source,
            seed=seed if seed is not None else fresh_seed(),
            limits=limits,
            modules=self._modules,
            scheduler=scheduler,
            clock=self._clock,
            new_instance=new_instance if session is None else lambda: session.take_instance(new_instance),
            keep_instance=None if session is None else session.keep_instance,
        )
        self._runs.add(execution)
        return execution


def _check_types(source: object, limits: object, seed: object) -> None:
    if not isinstance(source, str):
        raise MisuseError("source", source, "the program's text, a str")
    if not isinstance(limits, Limits):
        raise MisuseError("limits", limits, "a toolbridge.Limits")
    if seed is not None and not isinstance(seed, bytes):
        raise MisuseError("seed", seed, "32 bytes")


def _too_large(source: str, limits: Limits) -> RunResult | None:
    # Escaped as JSON a program grows; what counts is what would cross the boundary.
    if len(source) <= limits.frame_bytes // 8:
        return None
    size = len(source.encode("utf-8", "surrogatepass"))
    if size <= limits.frame_bytes:
        return None
    message = f"The program is {size} bytes, more than the limit of {limits.frame_bytes}."
    return RunResult(failure=Failure("limit", message))
