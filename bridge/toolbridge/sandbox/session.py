"""A session: several runs that share one guest's state."""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import TracebackType

from toolbridge.boundary.host_call import HostSide
from toolbridge.errors import SandboxClosedError, SessionBusyError
from toolbridge.limits import Limits
from toolbridge.sandbox.instance import GuestInstance
from toolbridge.sandbox.outcome import JAVASCRIPT, Dialect, RunResult, Usage

_STATE_LOST = "The session's state is lost: the next run starts afresh."


class Session:
    """Runs programs one after another in one guest: what one declares, the next can use.

    A run that is stopped (timeout, limit, crash) takes the guest's state with it; the failure says
    so, and the next run starts with a fresh guest. Made by `Sandbox.session`.
    """

    def __init__(
        self,
        run_sync: Callable[[str, Limits, bytes | None, Session], RunResult],
        run: Callable[..., Awaitable[RunResult]],
        limits: Limits,
        host: HostSide | None = None,
        dialect: Dialect = JAVASCRIPT,
    ) -> None:
        self.dialect = dialect
        self.host = host
        """What its runs are offered in place of the sandbox's modules."""
        self._run_sync = run_sync
        self._run = run
        self._limits = limits
        self._lock = threading.Lock()
        self._busy = False
        self._closed = False
        self._instance: GuestInstance | None = None
        self._process = os.getpid()

    def run_sync(self, source: str, *, seed: bytes | None = None) -> RunResult:
        """Runs a program in this session and waits for its result.

        Raises:
            ToolbridgeError: the session is closed or busy, or the installation is broken.
        """
        had_state = self._begin()
        try:
            return self._noted(self._run_sync(source, self._limits, seed, self), had_state)
        finally:
            self._end()

    async def run(
        self,
        source: str,
        *,
        seed: bytes | None = None,
        erased: str | None = None,
        spent: Usage | None = None,
        limits: Limits | None = None,
    ) -> RunResult:
        """Runs a program in this session. `erased` and `spent` are for the bridge, as `Sandbox.run` has them.

        `limits` are this run's in place of the session's, but for the memory: the guest has what it has.

        Raises:
            ToolbridgeError: the session is closed or busy, or the installation is broken.
        """
        own = self._limits if limits is None else limits.with_(memory_bytes=self._limits.memory_bytes)
        had_state = self._begin()
        try:
            ran = await self._run(source, own, seed, self, erased=erased, spent=spent or Usage())
            return self._noted(ran, had_state)
        finally:
            self._end()

    def check_open(self) -> None:
        """Checks that the session is open.

        Raises:
            SandboxClosedError: it is closed.
        """
        if self._closed:
            raise SandboxClosedError("session")

    def close(self) -> None:
        """Frees the guest, and refuses further runs. Doesn't wait for a run: its guest is freed when it ends."""
        with self._lock:
            self._closed = True
            instance, self._instance = self._instance, None
        if instance is not None:
            instance.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin(self) -> bool:
        """Marks the session as busy; returns whether a guest with state is there.

        Raises:
            SandboxClosedError: it is closed.
            SessionBusyError: another run is under way.
        """
        with self._lock:
            if self._closed:
                raise SandboxClosedError("session")
            if self._busy:
                raise SessionBusyError
            self._busy = True
            return self._instance is not None

    def _end(self) -> None:
        with self._lock:
            self._busy = False

    def _noted(self, result: RunResult, had_state: bool) -> RunResult:
        """Adds a note to a failed result if the guest's state was lost in that run."""
        if result.failure is None or not had_state or self._instance is not None:
            return result
        return replace(result, failure=replace(result.failure, notes=(*result.failure.notes, _STATE_LOST)))

    # ---- for the run, on whichever thread it is

    def take_instance(self, new_instance: Callable[[], GuestInstance]) -> GuestInstance:
        """Takes the session's guest for one run, or makes one: it comes back through `keep_instance`, or not at all."""
        with self._lock:
            instance, self._instance = self._instance, None
        if instance is not None and self._process != os.getpid():
            instance.abandon()  # after a fork nothing would stop what runs in it
            instance = None
        self._process = os.getpid()
        return instance if instance is not None else new_instance()

    def keep_instance(self, instance: GuestInstance) -> None:
        """Keeps a guest that survived its run; frees it if the session is closed."""
        with self._lock:
            if not self._closed and self._instance is None:
                self._instance = instance
                return
        instance.close()
