"""A session of a runtime: several programs in one guest, each of them checked and allowed like any other."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from toolbridge.errors import SessionBusyError

if TYPE_CHECKING:
    from toolbridge.boundary.host_call import HostSide
    from toolbridge.calls.checked_run import CheckedRuns
    from toolbridge.calls.run_scope import RunScope
    from toolbridge.check.world import SessionNames
    from toolbridge.limits import Limits
    from toolbridge.runtime import Language
    from toolbridge.sandbox.outcome import RunResult, Usage
    from toolbridge.sandbox.sandbox import Sandbox


class RuntimeSession:
    """Several programs, one after another, in one guest. Use it with `async with`, or close it."""

    def __init__(
        self,
        sandbox: Sandbox,
        scope: RunScope,
        language: Language,
        checked_runs: CheckedRuns | None,
        *,
        is_advisory: bool = False,
    ) -> None:
        self._scope = scope
        self._language: Language = language
        self._checked_runs = checked_runs
        self._is_advisory = is_advisory
        self._names: SessionNames | None = None
        self._is_busy = False
        self._session = sandbox.session(language=language, limits=scope.limits, host=scope.host)

    async def run(
        self, code: str, *, seed: bytes | None = None, limits: Limits | None = None, keeps_answers: bool = True
    ) -> RunResult:
        """Run a program with what earlier ones left; `limits` are for this one, but memory is the session's.

        Without `keeps_answers`, what `can_use_tool` answered to earlier programs is asked again.

        Raises:
            ToolbridgeError: the session or runtime is closed, the session is busy, or the installation is broken.
        """

        self._session.check_open()
        # Before anything of the run under way is replaced; the sandbox would say so only after that.
        if self._is_busy:
            raise SessionBusyError

        async def run(erased: str | None, spent: Usage | None) -> RunResult:
            return await self._session.run(code, seed=seed, erased=erased, spent=spent, limits=limits)

        async def execute(_: HostSide) -> RunResult:
            if self._checked_runs is None:
                return await run(None, None)
            if self._names is None:
                from toolbridge.check.world import SessionNames

                self._names = SessionNames()
            return await self._checked_runs.run(
                code,
                self._language,
                self._scope,
                run,
                limits=limits or self._scope.limits,
                session=self._names,
                is_advisory=self._is_advisory,
            )

        self._is_busy = True
        try:
            return await self._scope.run(code, self._language, execute, limits, keeps_answers=keeps_answers)
        finally:
            self._is_busy = False

    def close(self) -> None:
        """Free the guest and its handles."""
        self._session.close()
        self._scope.close()

    async def __aenter__(self) -> RuntimeSession:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
