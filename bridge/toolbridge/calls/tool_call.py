"""SECURITY: one call of a tool: checked, decided on, made, unwrapped, answered and recorded, in this order.

    guest ─► arguments ─► schema ─► gate ─► server ─► unwrap ─► reply ─► guest

The tool is looked up in the catalog by its identity, (server, original name), at the time of the call: what was
checked and decided on is what is called.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from anyio import to_thread

from toolbridge.boundary.host_call import CallFailed, Reply, failed, outcome_of
from toolbridge.boundary.json_codec import json_text
from toolbridge.boundary.run_clock import RunClock
from toolbridge.boundary.wire import ErrorFrame, encode_value
from toolbridge.calls.call_arguments import CallArguments, CheckedCall
from toolbridge.calls.call_errors import call_error, may_quote
from toolbridge.calls.call_rules import CallRules
from toolbridge.calls.error_notes import error_notes
from toolbridge.calls.handles import HandleStore
from toolbridge.calls.replies import Replies
from toolbridge.errors import (
    ConnectionLimitError,
    MisuseError,
    ServerConnectError,
    ServerEnvironmentError,
    ServerError,
    ServerNotApprovedError,
    ServerRespawnError,
    ToolBlockedError,
    ToolNotFoundError,
)
from toolbridge.limits import Limits
from toolbridge.observe.argument_text import shown
from toolbridge.observe.events import CallEnded, CallProgressed, CallStarted, DecisionMade, Observer
from toolbridge.servers.events import tell
from toolbridge.servers.own_connection import begin
from toolbridge.servers.schema_checks import CheckStore
from toolbridge.trust.gate import RunGate
from toolbridge.trust.sanitise import argument_texts
from toolbridge.trust.tool_use import Decision
from toolbridge_codegen.catalog import ToolSpec

if TYPE_CHECKING:
    from toolbridge.servers.manager import ServerManager
    from toolbridge.servers.own_tool import InProcessTool

_log = logging.getLogger("toolbridge")


# A call that ended with one of these never left.
_NOT_SENT = (
    ConnectionLimitError,
    MisuseError,
    ServerConnectError,
    ServerEnvironmentError,
    ServerNotApprovedError,
    ServerRespawnError,
    ToolBlockedError,
    ToolNotFoundError,
)


class ToolCalls:
    """The calls of one run."""

    def __init__(
        self,
        run: str,
        manager: ServerManager,
        *,
        rules: CallRules,
        limits: Limits,
        checks: CheckStore,
        gate: RunGate,
        handles: HandleStore,
        clock: RunClock,
        observers: Sequence[Observer],
    ) -> None:
        self._run = run
        self._manager = manager
        self._rules = rules
        self._limits = limits
        self._arguments = CallArguments(manager, checks, handles, rules)
        self._gate = gate
        self._replies = Replies(manager, rules, limits, handles)
        self._clock = clock
        self._observers = observers
        self.count = 0
        """How many were started."""
        self._under_way: set[int] = set()
        self.servers: dict[str, None] = {}
        """Servers whose words guest code may have been given, in order."""

    def call(self, server: str, tool: str, given: Sequence[Any]) -> Reply | Awaitable[Reply]:
        """Calls a tool by its identity with what guest code passed: its reply, or what gives that when awaited.

        Neither raises but for cancellation. What is given to be awaited must be, at once.
        """
        self.count += 1
        if not self._observers:
            return self._begin(server, tool, given, self.count)
        return self._observed(server, tool, given, self.count)

    async def _observed(self, server: str, tool: str, given: Sequence[Any], number: int) -> Reply:
        """A call with its events around it."""
        began = perf_counter()
        text = self._argument_text(server, given) if self._rules.shows_arguments else ""
        tell(self._observers, CallStarted(self._run, number, server, tool, text))
        self._under_way.add(number)
        reply: Reply | None = None
        try:
            begun = self._begin(server, tool, given, number)
            reply = begun if isinstance(begun, Reply) else await begun
            return reply
        finally:
            self._under_way.discard(number)
            outcome = "cancelled" if reply is None else reply.outcome or outcome_of(reply.frame)
            sizes = (_size(given), 0 if reply is None else len(reply.frame))
            tell(
                self._observers,
                CallEnded(self._run, number, server, tool, outcome, perf_counter() - began, *sizes),
            )

    def _begin(self, server: str, tool: str, given: Sequence[Any], number: int) -> Reply | Awaitable[Reply]:
        """Takes the steps that need not be awaited, if the tool is the host's own and ready; all of them, if it can."""
        try:
            spec = self._manager.catalog.tool(server, tool)
            own = None if spec is None else self._manager.ready_tool(server, tool)
            if spec is None or own is None or self._clock.seconds_left() <= 0:
                return self._answer(server, tool, given, number)
            checked = self._arguments.checked(spec, given)
            decision = self._gate.decide_at_once(spec)
            if decision is None:
                return self._answer(server, tool, given, number)
            self._obey(decision, spec, number)
            self.servers[server] = None
            raw = begin(own, checked.arguments)
            if isinstance(raw, dict):
                return self._replies.reply(checked, raw)
        except Exception as error:
            return self._refused(error, server, tool, given)
        return self._finish(checked, own, raw, given)

    async def _finish(
        self,
        checked: CheckedCall,
        own: InProcessTool[..., Any],
        begun: Awaitable[dict[str, Any]],
        given: Sequence[Any],
    ) -> Reply:
        """The reply to a call that has begun."""
        server = checked.spec.server
        try:
            raw = await self._manager.finish_call(server, own, begun, self._seconds(server))
            return self._replies.reply(checked, raw)
        except Exception as error:
            return self._refused(error, server, own.name, given)

    async def _answer(self, server: str, tool: str, given: Sequence[Any], number: int) -> Reply:
        """The reply to a call that may have to wait for anything."""
        try:
            return await self._perform(server, tool, given, number)
        except Exception as error:
            problem, shown = error, self._error(error, server, tool, given)
        return self._failed(problem, shown, await to_thread.run_sync(error_notes, shown.message))

    def _refused(self, problem: Exception, server: str, tool: str, given: Sequence[Any]) -> Reply:
        """The reply for what was raised on the way."""
        error = self._error(problem, server, tool, given)
        return self._failed(problem, error, error_notes(error.message))

    def _error(self, problem: Exception, server: str, tool: str, given: Sequence[Any]) -> ErrorFrame:
        if isinstance(problem, CallFailed):
            error = problem.error
        elif isinstance(problem, ServerError):
            self.heard(problem, server)
            keep = (*argument_texts(given), *self._manager.configured_paths(server))
            error = call_error(problem, self._manager.secrets(server), keep)
        else:
            _log.error("The call of %r of server %r failed inside toolbridge", tool, server, exc_info=problem)
            error = ErrorFrame("failed", "toolbridge failed in the middle of this call; the host's log says why.")
        return error._replace(server=server, tool=tool)

    def _failed(self, problem: Exception, error: ErrorFrame, audited: tuple[str, ...]) -> Reply:
        is_returned = self._rules.errors == "return"
        frame = encode_value({"error": error.message}) if is_returned else failed(CallFailed(error))
        notes = (*problem.notes, *audited) if isinstance(problem, CallFailed) else audited
        return Reply(frame, error.kind, notes, sent=not isinstance(problem, _NOT_SENT))

    def heard(self, error: ServerError, server: str) -> None:
        """Guest code is given this error: what a server said when it could not be reached is a word of its, too."""
        if may_quote(error):
            self.servers[server] = None
            self._gate.heard(server)

    async def _perform(self, server: str, tool: str, given: Sequence[Any], number: int) -> Reply:
        spec = self._manager.catalog.tool(server, tool)
        if spec is None and server in self._manager.enabled_servers() and self._manager.listing(server) is None:
            await self._manager.connect(server)  # it was configured anew, and nobody has asked it for its tools yet
            spec = self._manager.catalog.tool(server, tool)
        if spec is None:
            raise self._gone(server, tool)
        checked = self._arguments.checked(spec, given)
        self._obey(await self._gate.decide(spec, checked.arguments), spec, number)
        return await self._replies.foreign_reply(checked, await self._sent(spec, checked.arguments, number))

    def _obey(self, decision: Decision, spec: ToolSpec, number: int) -> None:
        """Goes on only with what the gate lets through.

        Raises:
            CallFailed: it doesn't.
        """
        if self._observers:
            tell(
                self._observers,
                DecisionMade(self._run, number, spec.server, spec.name, decision.allowed, decision.rule),
            )
        if not decision.allowed:
            raise CallFailed(ErrorFrame("denied", f"The call of {spec.identifier} was denied: {decision.reason}"))

    def _gone(self, server: str, tool: str) -> ServerError:
        """A tool that the module was imported with: blocked since, or not there any more."""
        try:
            self._manager.check_exposed(server, tool)
        except ToolBlockedError as blocked:
            return blocked
        except ServerError:
            pass
        return ToolNotFoundError(server, f"no longer has the tool {tool!r}: its tools have changed")

    async def _sent(self, spec: ToolSpec, arguments: Mapping[str, Any], number: int) -> Mapping[str, Any]:
        """The raw result of a call that was allowed."""
        report = partial(self._progressed, number, spec) if self._rules.shows_progress else None
        seconds = self._seconds(spec.server)
        try:
            raw = await self._manager.call(spec.server, spec.name, arguments, timeout=seconds, on_progress=report)
        except _NOT_SENT as error:
            self._gate.not_sent(spec)
            if isinstance(error, MisuseError):  # arguments that have no form on the server's wire
                raise CallFailed(ErrorFrame("invalid_arguments", f"{spec.identifier}: {error}")) from None
            raise
        except BaseException:
            self.servers[spec.server] = None  # it may have taken effect, and the error is the server's word
            raise
        self.servers[spec.server] = None
        return raw

    def _seconds(self, server: str) -> float:
        """How long a call may take: what its server is given, else what every call is; never longer than the run."""
        left = self._clock.seconds_left()
        has_its_own = self._manager.config_of(server).call_timeout is not None
        return left if has_its_own else min(self._limits.call_seconds, left)

    def _progressed(self, number: int, spec: ToolSpec, done: float, total: float | None, message: str) -> None:
        if number in self._under_way:  # a function that was given up may still talk
            event = CallProgressed(self._run, number, spec.server, spec.name, done, total, message)
            tell(self._observers, event)

    def _argument_text(self, server: str, given: Sequence[Any]) -> str:
        is_usual = len(given) == 1 and type(given[0]) is dict
        arguments = cast("dict[str, Any]", given[0]) if is_usual else {"arguments": list(given)}
        return shown(arguments, self._manager.secrets(server))


def _size(given: Sequence[Any]) -> int:
    return len(json_text(list(given)))
