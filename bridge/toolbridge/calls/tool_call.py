"""SECURITY: one call of a tool: checked, decided on, made, unwrapped, answered and recorded, in this order.

    guest ─► arguments ─► schema ─► gate ─► server ─► unwrap ─► reply ─► guest

The tool is looked up in the catalog by its identity, (server, original name), at the time of the call: what was
checked and decided on is what is called.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from toolbridge.boundary.host_call import CallFailed, Reply, failed, outcome_of
from toolbridge.boundary.json_codec import json_text
from toolbridge.boundary.run_clock import RunClock
from toolbridge.boundary.wire import ErrorFrame, encode_handles, encode_value
from toolbridge.calls.call_errors import call_error, may_quote
from toolbridge.calls.handles import HandleStore
from toolbridge.calls.sizes import size_text
from toolbridge.config.policy import Errors
from toolbridge.describe.signatures import signature_of
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
from toolbridge.servers.handle_arguments import HandleArgumentError, with_handles
from toolbridge.servers.results import Unwrapped, unwrap
from toolbridge.servers.schema_checks import CheckStore
from toolbridge.trust.gate import RunGate
from toolbridge.trust.sanitise import argument_texts
from toolbridge_codegen.catalog import ToolSpec, module_specifier

if TYPE_CHECKING:
    from toolbridge.servers.manager import ServerManager

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


class CallRules(NamedTuple):
    """What holds for every call of a runtime."""

    errors: Errors
    strict_results: bool
    exact_integers: bool
    """Whether the guest's language has integers of any size."""
    shows_arguments: bool
    """Whether an observer asked for arguments."""
    shows_progress: bool
    """Whether an observer wants to know how far calls are."""


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
        self._checks = checks
        self._gate = gate
        self._handles = handles
        self._clock = clock
        self._observers = observers
        self.count = 0
        """How many were started."""
        self._under_way: set[int] = set()
        self.servers: dict[str, None] = {}
        """Servers whose words guest code may have been given, in order."""

    async def call(self, server: str, tool: str, given: Sequence[Any]) -> Reply:
        """Calls a tool by its identity with what guest code passed; never raises but for cancellation."""
        self.count += 1
        number, began = self.count, perf_counter()
        if self._observers:
            text = self._argument_text(server, given) if self._rules.shows_arguments else ""
            tell(self._observers, CallStarted(self._run, number, server, tool, text))
            self._under_way.add(number)
        reply: Reply | None = None
        try:
            reply = await self._answer(server, tool, given, number)
            return reply
        finally:
            if self._observers:
                self._under_way.discard(number)
                outcome = "cancelled" if reply is None else reply.outcome or outcome_of(reply.frame)
                sizes = (_size(given), 0 if reply is None else len(reply.frame))
                tell(
                    self._observers,
                    CallEnded(self._run, number, server, tool, outcome, perf_counter() - began, *sizes),
                )

    async def _answer(self, server: str, tool: str, given: Sequence[Any], number: int) -> Reply:
        try:
            return await self._perform(server, tool, given, number)
        except CallFailed as failure:
            error = failure.error
        except ServerError as problem:
            self.heard(problem, server)
            error = call_error(problem, self._manager.secrets(server), argument_texts(given))
        except Exception:
            _log.exception("The call of %r of server %r failed inside toolbridge", tool, server)
            error = ErrorFrame("failed", "toolbridge failed in the middle of this call; the host's log says why.")
        error = error._replace(server=server, tool=tool)
        if self._rules.errors == "return":
            return Reply(encode_value({"error": error.message}), error.kind)
        return Reply(failed(CallFailed(error)), error.kind)

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
        arguments, notes = self._checked(spec, given)
        decision = await self._gate.decide(spec, arguments)
        if self._observers:
            tell(self._observers, DecisionMade(self._run, number, server, tool, decision.allowed, decision.rule))
        if not decision.allowed:
            raise CallFailed(ErrorFrame("denied", f"The call of {spec.identifier} was denied: {decision.reason}"))
        raw = await self._sent(spec, arguments, number)
        result = unwrap(
            raw,
            spec,
            inline_bytes=self._limits.result_bytes,
            secrets=self._manager.secrets(server),
            exact_integers=self._rules.exact_integers,
            keep=_texts(arguments),
        )
        if result.error is not None:
            raise CallFailed(ErrorFrame("failed", result.error))
        return self._reply(spec, result, notes)

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

    @property
    def _is_python(self) -> bool:
        """How a function is called, and declared, is told in the program's own language."""
        return self._rules.exact_integers

    def _checked(self, spec: ToolSpec, given: Sequence[Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        """The arguments as the server gets them, and what was changed.

        Raises:
            CallFailed: they don't fit; the words say which and how, for a model to repair its code from.
        """
        if len(given) > 1 or (given and type(given[0]) is not dict):
            takes = "keyword arguments, or one dict" if self._is_python else "one object with named properties"
            raise self._bad_arguments(spec, (f"it takes {takes}",))
        arguments = cast("dict[str, Any]", given[0]) if given else {}
        if not self._handles.is_empty:
            try:
                arguments = with_handles(arguments, spec, self._handles.find)
            except HandleArgumentError as error:
                raise self._bad_arguments(spec, (str(error),)) from None
        prepared = self._checks.of(spec).prepared(arguments)
        if prepared.problems:
            raise self._bad_arguments(spec, prepared.problems)
        return prepared.arguments, prepared.notes

    def _bad_arguments(self, spec: ToolSpec, problems: Sequence[str]) -> CallFailed:
        module = self._manager.catalog.module(module_specifier(spec.server))
        assert module is not None
        declared = signature_of(module, spec, "python" if self._is_python else "typescript")
        text = f"{spec.identifier}: {'; '.join(problems)}. It is declared as {declared}"
        return CallFailed(ErrorFrame("invalid_arguments", text))

    def _reply(self, spec: ToolSpec, result: Unwrapped, notes: tuple[str, ...]) -> Reply:
        notes = (*notes, *result.notes)
        if spec.definition.output_schema is not None and not result.blobs:
            problem = self._checks.of(spec).result_problem(result.value)
            if problem and self._rules.strict_results:
                raise CallFailed(ErrorFrame("failed", f"The result of {spec.identifier} is not as declared: {problem}"))
            if problem:
                notes = (*notes, f"The result is not as its schema says: {problem}")
        if not result.blobs:
            reply = Reply(b'{"ok":%b}' % result.encoded, "ok", notes)
        else:
            handles = [self._handles.add(path, blob) for path, blob in result.blobs]
            reply = Reply(encode_handles(handles, result.encoded), "ok", notes)
        if len(reply.frame) > self._limits.frame_bytes:
            sizes = f"{size_text(len(reply.frame))}, more than {size_text(self._limits.frame_bytes)}"
            raise CallFailed(ErrorFrame("limit", f"The result of {spec.identifier} has {sizes}. Ask for less."))
        return reply

    def _argument_text(self, server: str, given: Sequence[Any]) -> str:
        is_usual = len(given) == 1 and type(given[0]) is dict
        arguments = cast("dict[str, Any]", given[0]) if is_usual else {"arguments": list(given)}
        return shown(arguments, self._manager.secrets(server))


def _texts(arguments: object) -> Iterator[str]:
    """The strings in a call's arguments, not looked for unless they are wanted: of a success, nobody asks."""
    yield from argument_texts(arguments)


def _size(given: Sequence[Any]) -> int:
    return len(json_text(list(given)))
