"""What a run, or a session of several, has to itself: modules, handles, what it was granted and whom it called."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

from anyio import move_on_after

from toolbridge.boundary.host_call import HostSide
from toolbridge.boundary.run_clock import RunClock
from toolbridge.calls.call_rules import CallRules
from toolbridge.calls.handles import HandleStore
from toolbridge.calls.hidden_tools import hidden_tool_warnings
from toolbridge.calls.run_modules import RunModules
from toolbridge.calls.tool_call import ToolCalls
from toolbridge.limits import Limits
from toolbridge.observe.events import Observer, RunEnded, RunStarted, new_run
from toolbridge.sandbox.outcome import RunResult
from toolbridge.servers.events import tell
from toolbridge.servers.schema_checks import CheckStore
from toolbridge.trust.gate import PermissionGate

if TYPE_CHECKING:
    from toolbridge.servers.manager import ServerManager


class RunScope:
    """One run, or one session."""

    def __init__(
        self,
        manager: ServerManager,
        *,
        rules: CallRules,
        limits: Limits,
        checks: CheckStore,
        gate: PermissionGate,
        observers: Sequence[Observer],
        session: str | None = None,
    ) -> None:
        self.limits = limits
        self._manager = manager
        self._rules = rules
        self._checks = checks
        self._clock = RunClock(limits.ask_seconds)
        self._gate = gate.open_run(self._clock.stopped)
        self._rule_warnings = lambda: (*gate.warnings(manager.catalog), *manager.filter_warnings)
        self._observers = observers
        self._session = session
        self._handles = HandleStore(limits, exact_integers=rules.exact_integers)
        self._modules = RunModules(manager, self._handles, self._clock)
        self._servers: dict[str, None] = {}

    @property
    def host(self) -> HostSide:
        """What guest code is offered."""
        return self._modules.host

    async def wait_for_approvals(self, code: str) -> None:
        """Until everybody who is asked about the servers that a program names has answered, or nobody will."""
        with move_on_after(self.limits.ask_seconds):
            await self._modules.wait_for_approvals(code)

    async def connect_named(self, code: str) -> tuple[str, ...]:
        """Connects the servers whose modules a program names; those that are connected now."""
        return await self._modules.connect_named(code)

    async def run(
        self,
        code: str,
        language: str,
        execute: Callable[[HostSide], Awaitable[RunResult]],
        limits: Limits | None = None,
        *,
        keeps_answers: bool = True,
    ) -> RunResult:
        """Runs a program, with its events around it; the result says whose words may be in it."""
        await self._manager.follow_revocations()
        if not keeps_answers:
            self._gate.forget_answers()
        run, began = new_run(), perf_counter()
        calls = ToolCalls(
            run,
            self._manager,
            rules=self._rules,
            limits=limits or self.limits,
            checks=self._checks,
            gate=self._gate,
            handles=self._handles,
            clock=self._clock,
            observers=self._observers,
        )
        self._modules.begin(code, calls)
        size = len(code.encode("utf-8", "surrogatepass"))
        tell(self._observers, RunStarted(run, language, size, self._session))
        result: RunResult | None = None
        try:
            result = await execute(self.host)
            if result.failure is not None:
                hidden = hidden_tool_warnings(self._manager, code, str(result.failure))
                result = replace(result, warnings=(*result.warnings, *hidden))
            rules = self._rule_warnings()
            if rules:
                result = replace(result, warnings=(*result.warnings, *rules))
            return replace(result, servers=tuple({**self._servers, **calls.servers}))
        finally:
            self._servers |= calls.servers
            self._tell_end(run, began, calls, result)

    def close(self) -> None:
        """Frees the handles."""
        self._handles.close()

    def _tell_end(self, run: str, began: float, calls: ToolCalls, result: RunResult | None) -> None:
        if result is None:
            outcome, cpu_seconds = "cancelled", 0.0
        else:
            outcome = "ok" if result.failure is None else result.failure.kind
            cpu_seconds = result.usage.cpu_seconds
        ended = RunEnded(run, outcome, perf_counter() - began, cpu_seconds, calls.count, tuple(self._servers))
        tell(self._observers, ended)
