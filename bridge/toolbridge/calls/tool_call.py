"""SECURITY: one call of a tool: checked, decided on, made, unwrapped, answered and recorded, in this order.

    guest ─► arguments ─► schema ─► gate ─► server ─► unwrap ─► reply ─► guest

The tool is looked up in the catalog by its identity, (server, original name), at the time of the call: what was
checked and decided on is what is called.
"""

from __future__ import annotations

import base64
import logging
import secrets
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import lru_cache, partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from anyio import to_thread

from toolbridge.boundary.host_call import CallFailed, HostFunction, Reply, RunClock, failed, outcome_of
from toolbridge.boundary.wire import ErrorFrame, HandleFrame, encode_handles, encode_value
from toolbridge.calls.handle_arguments import HandleArgumentError, with_handles
from toolbridge.calls.results import Blob, Replies, size_text
from toolbridge.config.policy import Errors
from toolbridge.describe.modules import signature_of
from toolbridge.errors import (
    ConnectionLimitError,
    MisuseError,
    ServerClosedError,
    ServerConnectError,
    ServerDisconnectedError,
    ServerEnvironmentError,
    ServerError,
    ServerNotApprovedError,
    ServerRespawnError,
    ServerTimeoutError,
    ToolBlockedError,
    ToolNotFoundError,
)
from toolbridge.events import CallEnded, CallProgressed, CallStarted, DecisionMade, Observer, shown
from toolbridge.json_codec import (
    WireError,
    encode_json,
    has_long_integer,
    json_text,
    scan_whole,
    without_large_integers,
    without_lone_surrogates,
)
from toolbridge.limits import Limits
from toolbridge.schema.validate import CheckStore, ToolChecks
from toolbridge.servers.manager import tell
from toolbridge.tools.server import begin
from toolbridge.trust.gate.gate import Decision, RunGate
from toolbridge.trust.text.sanitise import for_guest_error
from toolbridge_codegen.catalog import ToolSpec, module_specifier

if TYPE_CHECKING:
    from toolbridge.servers.manager import ServerManager
    from toolbridge.tools.tool import InProcessTool


# What holds for every call of a runtime.


class CallRules(NamedTuple):
    """Of the configuration, of the guest's language, and of the observers."""

    errors: Errors
    strict_results: bool
    exact_integers: bool
    """Whether the guest's language has integers of any size."""
    shows_arguments: bool
    """Whether an observer asked for arguments."""
    shows_progress: bool
    """Whether an observer wants to know how far calls are."""


# SECURITY: handles: results that stay on the host while guest code looks at parts of them, or passes them on.
#
# They belong to one run, or one session, and are gone with it. `add` is called on the event loop's thread, the
# functions that guest code calls run on the guest's thread.


_MOST_HANDLES = 10_000
# What a JavaScript number holds. Numbers are random so that no server can name another's handle in its data.
_MOST_IDENTITY = 2**53 - 1


class _Held(NamedTuple):
    """A handle's content: all of a result, or a part of one. Parts share its memory."""

    data: memoryview
    mime: str
    name: str
    is_part: bool = False


class HandleStore:
    """The handles of one run or session."""

    def __init__(self, limits: Limits, *, exact_integers: bool = False) -> None:
        self._limits = limits
        self._exact_integers = exact_integers
        self._held: dict[int, _Held] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def add(self, path: tuple[str | int, ...], blob: Blob) -> HandleFrame:
        """Keeps a result; what the guest is told of it.

        Raises:
            CallFailed: there are too many handles, or they are too large together.
        """
        with self._lock:
            if self._bytes + len(blob.data) > self._limits.handle_bytes:
                most = size_text(self._limits.handle_bytes)
                size = size_text(len(blob.data))
                raise CallFailed(
                    ErrorFrame("limit", f"The result has {size}: with it, this run's handles would pass {most}.")
                )
            self._bytes += len(blob.data)
        return self._keep(path, _Held(memoryview(blob.data), blob.mime, blob.name))

    @property
    def is_empty(self) -> bool:
        """Whether there is none."""
        return not self._held

    def find(self, identity: int) -> Blob:
        """A handle's content.

        Raises:
            KeyError: there is none with this number.
        """
        held = self._held[identity]
        return Blob(held.data.tobytes(), held.mime, held.name)

    def close(self) -> None:
        """Frees all of them."""
        with self._lock:
            self._held.clear()
            self._bytes = 0

    def functions(self) -> dict[str, HostFunction]:
        """What the guest's Handle objects call."""
        offered: dict[str, Callable[..., Any]] = {
            "handle_text": self._text,
            "handle_json": self._json,
            "handle_bytes": self._base64,
            "handle_slice": self._slice,
        }
        return {
            name: HostFunction(function, is_async=False, is_recorded=False, is_quick=True)
            for name, function in offered.items()
        }

    # ---- called by guest code, on its thread: every argument is hostile

    def _text(self, identity: object = None, *_: object) -> str:
        held = self._readable(identity)
        if held.is_part:
            return str(held.data, "utf-8", "replace")  # it may begin or end inside a character
        try:
            return str(held.data, "utf-8")
        except UnicodeDecodeError:
            raise CallFailed(ErrorFrame("failed", f"This {held.mime} handle is not text: use bytes().")) from None

    def _json(self, identity: object = None, *_: object) -> Reply:
        text = without_lone_surrogates(self._text(identity))
        try:
            value = scan_whole(text)
        except WireError as error:
            raise CallFailed(ErrorFrame("failed", f"This handle does not hold JSON: {error}.")) from None
        data = text.encode("utf-8", "replace")
        if not self._exact_integers and has_long_integer(data):
            data = encode_json(without_large_integers(value)[0])
        return Reply(b'{"ok":%b}' % data, "ok")

    def _base64(self, identity: object = None, *_: object) -> str:
        return base64.b64encode(self._readable(identity, of=3, to=4).data).decode("ascii")

    def _slice(self, identity: object = None, start: object = 0, end: object = None, *_: object) -> Reply:
        held = self._get(identity)
        first, last = (bound if type(bound) is int else None for bound in (start, end))
        part = held._replace(data=held.data[first:last], is_part=True)
        return Reply(encode_handles([self._keep((), part)], encode_json(None)), "ok")

    def _get(self, identity: object) -> _Held:
        held = self._held.get(identity) if type(identity) is int else None
        if held is None:
            raise CallFailed(ErrorFrame("failed", "This handle is gone: handles end with the run that made them."))
        return held

    def _readable(self, identity: object, *, of: int = 1, to: int = 1) -> _Held:
        """A handle whose content, grown by `to` for every `of` bytes, fits into one frame."""
        held = self._get(identity)
        most = self._limits.frame_bytes * of // to
        if held.data.nbytes > most:
            raise CallFailed(
                ErrorFrame(
                    "limit",
                    f"This handle has {size_text(held.data.nbytes)}, and no more than {size_text(most)} can be read "
                    "at once: read parts of it with slice(start, end).",
                )
            )
        return held

    def _keep(self, path: tuple[str | int, ...], held: _Held) -> HandleFrame:
        with self._lock:
            if len(self._held) >= _MOST_HANDLES:
                raise CallFailed(ErrorFrame("limit", f"This run has {_MOST_HANDLES} handles, and may have no more."))
            identity = 0
            while identity in self._held or identity == 0:
                identity = secrets.randbelow(_MOST_IDENTITY)
            self._held[identity] = held
            return HandleFrame(path, identity, held.mime, held.data.nbytes, held.name)


# SECURITY: what guest code passes to a tool becomes what its server gets, or an error that says what to repair.


class CheckedCall(NamedTuple):
    """A call whose arguments fit."""

    spec: ToolSpec
    checks: ToolChecks
    arguments: Mapping[str, Any]
    """As the server gets them."""
    notes: tuple[str, ...]
    """What was changed."""


class CallArguments:
    """The arguments of a run's calls."""

    def __init__(self, manager: ServerManager, checks: CheckStore, handles: HandleStore, rules: CallRules) -> None:
        self._manager = manager
        self._checks = checks
        self._handles = handles
        self._errors: Errors = rules.errors
        self._is_python = rules.exact_integers
        """How a function is called, and declared, is told in the program's own language."""

    def checked(self, spec: ToolSpec, given: Sequence[Any]) -> CheckedCall:
        """A call with its arguments as the server gets them.

        Raises:
            CallFailed: they don't fit; the words say which and how, for a model to repair its code from.
        """
        if len(given) > 1 or (given and type(given[0]) is not dict):
            takes = "keyword arguments, or one dict" if self._is_python else "one object with named properties"
            raise self._bad(spec, (f"it takes {takes}",))
        arguments = cast("dict[str, Any]", given[0]) if given else {}
        if not self._handles.is_empty:
            try:
                arguments = with_handles(arguments, spec, self._handles.find)
            except HandleArgumentError as error:
                raise self._bad(spec, (str(error),)) from None
        checks = self._checks.of(spec)
        prepared = checks.prepared(arguments)
        if prepared.problems:
            raise self._bad(spec, prepared.problems)
        return CheckedCall(spec, checks, prepared.arguments, prepared.notes)

    def _bad(self, spec: ToolSpec, problems: Sequence[str]) -> CallFailed:
        module = self._manager.catalog.module(module_specifier(spec.server))
        assert module is not None
        declared = signature_of(module, spec, "python" if self._is_python else "typescript", errors=self._errors)
        text = f"{spec.identifier}: {'; '.join(problems)}. It is declared as {declared}"
        return CallFailed(ErrorFrame("invalid_arguments", text))


# From what went wrong on the host to the error that guest code gets: a kind to branch on, words to repair from.


# The first that fits. Whatever is in none of these is a failure of the tool.
_KINDS: tuple[tuple[type[ServerError], str], ...] = (
    (ServerNotApprovedError, "denied"),
    (ToolBlockedError, "denied"),
    (ServerTimeoutError, "timeout"),
    (ServerDisconnectedError, "disconnected"),
    (ServerClosedError, "disconnected"),
    (ServerConnectError, "disconnected"),
    (ServerRespawnError, "disconnected"),
    (ServerEnvironmentError, "disconnected"),
    (ConnectionLimitError, "limit"),
)

# These are told in our own words; any other may repeat what the server said: on stderr, in a status, in an error.
_OUR_WORDS = (
    ConnectionLimitError,
    ServerClosedError,
    ServerEnvironmentError,
    ServerNotApprovedError,
    ToolBlockedError,
    ToolNotFoundError,
)


def may_quote(error: ServerError) -> bool:
    """Whether words of the server may be in it (T3, T22)."""
    return not isinstance(error, _OUR_WORDS)


def kind_of(error: ServerError) -> str:
    """The kind of a server's trouble, as guest code knows it."""
    return next((kind for errors, kind in _KINDS if isinstance(error, errors)), "failed")


def call_error(error: ServerError, secrets: Collection[str]) -> ErrorFrame:
    """A server's trouble, for guest code."""
    return ErrorFrame(kind_of(error), for_guest_error(str(error), secrets))


def import_failed(error: ServerError, server: str, manager: ServerManager) -> CallFailed:
    """The same for a module whose server can't be connected."""
    frame = call_error(error, manager.secrets(server))
    return CallFailed(frame._replace(name="ModuleError", server=server))


# What the audit finds in the words of an error: a note in the call's record, since a model gets to read them (T3).


@lru_cache(maxsize=256)
def error_notes(message: str) -> tuple[str, ...]:
    """A note for each grave finding. Programs repeat what fails: the same words are read once."""
    from toolbridge.trust.audit.detector import findings_in  # its rules are compiled for those who need them

    grave = [found.rule for found in findings_in(message) if found.severity == "high"]
    return tuple(f"The audit finds {rule.id} in the error's text: it {rule.why}" for rule in grave)


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


class _Request(NamedTuple):
    """One call as guest code asked for it."""

    number: int
    server: str
    tool: str
    given: Sequence[Any]


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
        """Calls a tool by its identity: the reply, or an awaitable of it, which must be awaited at once.

        Neither raises but for cancellation.
        """
        self.count += 1
        request = _Request(self.count, server, tool, given)
        return self._observed(request) if self._observers else self._begin(request)

    async def _observed(self, request: _Request) -> Reply:
        """A call with its events around it."""
        number, server, tool, given = request
        began = perf_counter()
        text = self._argument_text(server, given) if self._rules.shows_arguments else ""
        tell(self._observers, CallStarted(self._run, number, server, tool, text))
        self._under_way.add(number)
        reply: Reply | None = None
        try:
            begun = self._begin(request)
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

    def _begin(self, request: _Request) -> Reply | Awaitable[Reply]:
        """Takes the steps that need no waiting; for a host tool that may be all of them."""
        spec = self._manager.catalog.tool(request.server, request.tool)
        if spec is None:
            return self._answer(request)
        own = self._manager.ready_tool(request.server, request.tool)
        try:
            checked = self._arguments.checked(spec, request.given)
            decision = self._gate.authorize_at_once(spec)
            if own is None or decision is None or self._clock.seconds_left() <= 0:
                return self._answer(request, checked, decision)
            self._obey(decision, spec, request.number)
            self.servers[request.server] = None
            raw = begin(own, checked.arguments)
            if isinstance(raw, dict):
                return self._replies.reply(checked, raw)
        except Exception as error:
            return self._audited(error, request) if own is None else self._refused(error, request)
        return self._finish(request, checked, own, raw)

    async def _finish(
        self,
        request: _Request,
        checked: CheckedCall,
        own: InProcessTool[..., Any],
        begun: Awaitable[dict[str, Any]],
    ) -> Reply:
        """Awaits the result of a host tool."""
        try:
            raw = await self._manager.finish_call(request.server, own, begun, self._seconds(request.server))
            return self._replies.reply(checked, raw)
        except Exception as error:
            return self._refused(error, request)

    async def _answer(
        self, request: _Request, checked: CheckedCall | None = None, decision: Decision | None = None
    ) -> Reply:
        """Awaits the remaining steps of a call: listing the tool, a person's decision, the server's result."""
        try:
            if checked is None:
                checked = self._arguments.checked(await self._listed(request.server, request.tool), request.given)
            if decision is None:
                decision = await self._gate.authorize(checked.spec, checked.arguments)
            self._obey(decision, checked.spec, request.number)
            return await self._replies.foreign_reply(checked, await self._sent(request, checked))
        except Exception as error:
            problem = error
        return await self._audited(problem, request)

    def _refused(self, problem: Exception, request: _Request) -> Reply:
        """The reply for an error of a host tool's call."""
        error = self._error(problem, request)
        return self._failed(problem, error, error_notes(error.message))

    async def _audited(self, problem: Exception, request: _Request) -> Reply:
        """The reply for any other call's error: its text may be long, so it is audited on a worker thread."""
        error = self._error(problem, request)
        return self._failed(problem, error, await to_thread.run_sync(error_notes, error.message))

    def _error(self, problem: Exception, request: _Request) -> ErrorFrame:
        _, server, tool, _ = request
        if isinstance(problem, CallFailed):
            error = problem.error
        elif isinstance(problem, ServerError):
            self.heard(problem, server)
            error = call_error(problem, self._manager.secrets(server))
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
        """Marks a server whose words are in an error that guest code is given, also one of a failed connection."""
        if may_quote(error):
            self.servers[server] = None
            self._gate.taint(server)

    async def _listed(self, server: str, tool: str) -> ToolSpec:
        """Connects a server that was configured anew, whose tools aren't listed yet; gives the tool.

        Raises:
            ServerError: it can't be connected, or has no such tool any more.
        """
        if server in self._manager.enabled_servers() and self._manager.listing(server) is None:
            await self._manager.connect(server)
        spec = self._manager.catalog.tool(server, tool)
        if spec is None:
            raise self._gone(server, tool)
        return spec

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

    async def _sent(self, request: _Request, checked: CheckedCall) -> Mapping[str, Any]:
        """Sends a call that was allowed; gives the raw result."""
        spec, server = checked.spec, request.server
        report = partial(self._progressed, request.number, spec) if self._rules.shows_progress else None
        seconds = self._seconds(server)
        try:
            raw = await self._manager.call(server, request.tool, checked.arguments, timeout=seconds, on_progress=report)
        except _NOT_SENT as error:
            self._gate.retract(spec)
            if isinstance(error, MisuseError):  # arguments that have no form on the server's wire
                raise CallFailed(ErrorFrame("invalid_arguments", f"{spec.identifier}: {error}")) from None
            raise
        except BaseException:
            self.servers[server] = None  # it may have taken effect, and the error is the server's word
            raise
        self.servers[server] = None
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
