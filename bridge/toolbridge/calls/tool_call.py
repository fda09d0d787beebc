"""SECURITY: one tool call, top to bottom: validate, authorize, send, unwrap, reply, record.

    guest ─► arguments ─► schema ─► gate ─► server ─► unwrap ─► reply ─► guest

The tool is looked up in the catalog by its identity, (server, original name), once per call: the tool that was
validated and authorized is the tool that is called (no TOCTOU).
"""

from __future__ import annotations

import base64
import logging
import secrets
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from anyio import to_thread

from toolbridge.boundary.host_call import CallFailed, HostFunction, Reply, RunClock, failed, outcome_of
from toolbridge.boundary.wire import ErrorFrame, HandleFrame, encode_handles, encode_value
from toolbridge.calls.call_errors import NOT_SENT, call_error, error_notes, may_quote
from toolbridge.calls.content import Blob
from toolbridge.calls.handle_arguments import HandleArgumentError, with_handles
from toolbridge.calls.results import Replies, size_text
from toolbridge.config.policy import Errors
from toolbridge.describe.modules import signature_of
from toolbridge.errors import (
    MisuseError,
    ServerError,
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
from toolbridge.schema.validate import ToolValidator, ValidatorCache
from toolbridge.servers.registry import notify
from toolbridge.tools.server import begin
from toolbridge.trust.gate import Decision, RunGate
from toolbridge_codegen.catalog import ToolSpec, module_specifier

if TYPE_CHECKING:
    from toolbridge.servers.manager import ServerManager
    from toolbridge.tools.tool import InProcessTool


class CallRules(NamedTuple):
    """Rules of all calls of a runtime in one language."""

    errors: Errors
    strict_results: bool
    exact_integers: bool
    """Whether the guest's language has integers of any size."""
    shows_arguments: bool
    """Whether an observer wants arguments."""
    shows_progress: bool
    """Whether an observer wants progress."""


_MOST_HANDLES = 10_000
# The largest exact JavaScript number. Numbers are random so that no server can name another's handle in its data.
_MOST_IDENTITY = 2**53 - 1


class _Held(NamedTuple):
    """Content of a handle: a whole result, or a slice that shares its memory."""

    data: memoryview
    mime: str
    name: str
    is_part: bool = False


class HandleStore:
    """SECURITY: handles of one run or session: results that stay on the host while guest code reads parts of them.

    `add` is called on the event loop's thread, the functions for guest code on the guest's thread.
    """

    def __init__(self, limits: Limits, *, exact_integers: bool = False) -> None:
        self._limits = limits
        self._exact_integers = exact_integers
        self._held: dict[int, _Held] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def add(self, path: tuple[str | int, ...], blob: Blob) -> HandleFrame:
        """Stores a result; returns its handle for the guest.

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
        """Whether the run has no handles."""
        return not self._held

    def find(self, identity: int) -> Blob:
        """Copies the content of a handle.

        Raises:
            KeyError: there is no handle of this number.
        """
        held = self._held[identity]
        return Blob(held.data.tobytes(), held.mime, held.name)

    def close(self) -> None:
        """Frees all handles."""
        with self._lock:
            self._held.clear()
            self._bytes = 0

    def functions(self) -> dict[str, HostFunction]:
        """Returns the host functions behind the guest's Handle objects."""
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

    # ── host functions: called by guest code, with hostile arguments ──────────────────────────────────────────────

    def _text(self, identity: object = None, *_: object) -> str:
        """Decodes a handle's content; raises CallFailed if it isn't UTF-8 (in a slice, U+FFFD stands for bad bytes)."""
        held = self._readable(identity)
        if held.is_part:
            return str(held.data, "utf-8", "replace")  # a slice may begin or end inside a character
        try:
            return str(held.data, "utf-8")
        except UnicodeDecodeError:
            raise CallFailed(ErrorFrame("failed", f"This {held.mime} handle is not text: use bytes().")) from None

    def _json(self, identity: object = None, *_: object) -> Reply:
        """Makes a reply of a handle's JSON, large integers as strings for JavaScript; CallFailed if it has none."""
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
        """Stores a part of a handle, sharing its memory, as a new handle; ignores bounds that are not integers."""
        held = self._get(identity)
        first, last = (bound if type(bound) is int else None for bound in (start, end))
        part = held._replace(data=held.data[first:last], is_part=True)
        return Reply(encode_handles([self._keep((), part)], encode_json(None)), "ok")

    def _get(self, identity: object) -> _Held:
        """Looks up a handle; raises CallFailed if there is none of this number."""
        held = self._held.get(identity) if type(identity) is int else None
        if held is None:
            raise CallFailed(ErrorFrame("failed", "This handle is gone: handles end with the run that made them."))
        return held

    def _readable(self, identity: object, *, of: int = 1, to: int = 1) -> _Held:
        """Looks up a handle; raises CallFailed if it won't fit into one frame after encoding `of` bytes as `to`."""
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
        """Stores content under a random number; returns its handle. Raises CallFailed if there are too many."""
        with self._lock:
            if len(self._held) >= _MOST_HANDLES:
                raise CallFailed(ErrorFrame("limit", f"This run has {_MOST_HANDLES} handles, and may have no more."))
            identity = 0
            while identity in self._held or identity == 0:
                identity = secrets.randbelow(_MOST_IDENTITY)
            self._held[identity] = held
            return HandleFrame(path, identity, held.mime, held.data.nbytes, held.name)


class ValidCall(NamedTuple):
    """A call with validated arguments."""

    spec: ToolSpec
    checks: ToolValidator
    arguments: Mapping[str, Any]
    """In the form for the server."""
    notes: tuple[str, ...]
    """Changes made to the arguments."""


class CallArguments:
    """SECURITY: validates arguments from guest code before they reach a server."""

    def __init__(self, manager: ServerManager, checks: ValidatorCache, handles: HandleStore, rules: CallRules) -> None:
        self._manager = manager
        self._checks = checks
        self._handles = handles
        self._errors: Errors = rules.errors
        self._is_python = rules.exact_integers
        """Errors quote signatures in the program's own language."""

    def validate(self, spec: ToolSpec, given: Sequence[Any]) -> ValidCall:
        """Expands handles, and validates the arguments against the tool's input schema.

        Raises:
            CallFailed: they don't fit; the message says which and how, so that a model can repair its code.
        """
        if len(given) > 1 or (given and type(given[0]) is not dict):
            takes = "keyword arguments, or one dict" if self._is_python else "one object with named properties"
            raise self._invalid(spec, (f"it takes {takes}",))
        arguments = cast("dict[str, Any]", given[0]) if given else {}
        if not self._handles.is_empty:
            try:
                arguments = with_handles(arguments, spec, self._handles.find)
            except HandleArgumentError as error:
                raise self._invalid(spec, (str(error),)) from None
        checks = self._checks.of(spec)
        prepared = checks.prepare(arguments)
        if prepared.problems:
            raise self._invalid(spec, prepared.problems)
        return ValidCall(spec, checks, prepared.arguments, prepared.notes)

    def _invalid(self, spec: ToolSpec, problems: Sequence[str]) -> CallFailed:
        """Makes (doesn't raise) the error for arguments with these problems; it quotes the tool's declaration."""
        module = self._manager.catalog.module(module_specifier(spec.server))
        assert module is not None
        declared = signature_of(module, spec, "python" if self._is_python else "typescript", errors=self._errors)
        text = f"{spec.identifier}: {'; '.join(problems)}. It is declared as {declared}"
        return CallFailed(ErrorFrame("invalid_arguments", text))


_log = logging.getLogger("toolbridge")


class _Request(NamedTuple):
    """A call as guest code requests it."""

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
        checks: ValidatorCache,
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
        """Calls started so far."""
        self._pending: set[int] = set()
        self.servers: dict[str, None] = {}
        """Servers that the run is tainted by: their text may have reached guest code. In order."""

    def call(self, server: str, tool: str, given: Sequence[Any]) -> Reply | Awaitable[Reply]:
        """Calls a tool by its identity; returns the reply, or an awaitable of it, which must be awaited at once.

        Raises nothing but cancellation.
        """
        self.count += 1
        request = _Request(self.count, server, tool, given)
        return self._observed(request) if self._observers else self._start(request)

    async def _observed(self, request: _Request) -> Reply:
        """Makes a call, and notifies observers of its start and end."""
        number, server, tool, given = request
        began = perf_counter()
        text = self._argument_text(server, given) if self._rules.shows_arguments else ""
        notify(self._observers, CallStarted(self._run, number, server, tool, text))
        self._pending.add(number)
        reply: Reply | None = None
        try:
            started = self._start(request)
            reply = started if isinstance(started, Reply) else await started
            return reply
        finally:
            self._pending.discard(number)
            outcome = "cancelled" if reply is None else reply.outcome or outcome_of(reply.frame)
            sizes = (_size(given), 0 if reply is None else len(reply.frame))
            notify(
                self._observers,
                CallEnded(self._run, number, server, tool, outcome, perf_counter() - began, *sizes),
            )

    def _start(self, request: _Request) -> Reply | Awaitable[Reply]:
        """Takes the steps that need no waiting: all of them for a host tool (fast path). An error becomes the reply."""
        spec = self._manager.catalog.tool(request.server, request.tool)
        if spec is None:
            return self._complete(request)
        own = self._manager.ready_tool(request.server, request.tool)
        try:
            checked = self._arguments.validate(spec, request.given)
            decision = self._gate.authorize_at_once(spec)
            if own is None or decision is None or self._clock.seconds_left() <= 0:
                return self._complete(request, checked, decision)
            self._enforce(decision, spec, request.number)
            self.servers[request.server] = None
            raw = begin(own, checked.arguments)
            if isinstance(raw, dict):
                return self._replies.reply(checked, raw)
        except Exception as error:
            return self._error_reply(error, request) if own is None else self._host_tool_error(error, request)
        return self._await_host_tool(request, checked, own, raw)

    async def _await_host_tool(
        self,
        request: _Request,
        checked: ValidCall,
        own: InProcessTool[..., Any],
        begun: Awaitable[dict[str, Any]],
    ) -> Reply:
        """Awaits the result of a host tool within its timeout; an error becomes the reply."""
        try:
            raw = await self._manager.finish_call(request.server, own, begun, self._seconds(request.server))
            return self._replies.reply(checked, raw)
        except Exception as error:
            return self._host_tool_error(error, request)

    async def _complete(
        self, request: _Request, checked: ValidCall | None = None, decision: Decision | None = None
    ) -> Reply:
        """Takes the steps that wait: list the tool, ask a person, send, unwrap. An error becomes the reply."""
        try:
            if checked is None:
                checked = self._arguments.validate(await self._list_tool(request.server, request.tool), request.given)
            if decision is None:
                decision = await self._gate.authorize(checked.spec, checked.arguments)
            self._enforce(decision, checked.spec, request.number)
            return await self._replies.server_reply(checked, await self._send(request, checked))
        except Exception as error:
            problem = error
        return await self._error_reply(problem, request)

    def _host_tool_error(self, problem: Exception, request: _Request) -> Reply:
        """Makes the reply for the error of a host tool."""
        error = self._error_frame(problem, request)
        return self._failed(problem, error, error_notes(error.message))

    async def _error_reply(self, problem: Exception, request: _Request) -> Reply:
        """Makes the reply for the error of a server's tool, whose text may be long: audited on a worker thread."""
        error = self._error_frame(problem, request)
        return self._failed(problem, error, await to_thread.run_sync(error_notes, error.message))

    def _error_frame(self, problem: Exception, request: _Request) -> ErrorFrame:
        """Converts an exception to an error frame; a server's error taints the run, an unexpected one is logged."""
        _, server, tool, _ = request
        if isinstance(problem, CallFailed):
            error = problem.error
        elif isinstance(problem, ServerError):
            self.taint(problem, server)
            error = call_error(problem, self._manager.secrets(server))
        else:
            _log.error("The call of %r of server %r failed inside toolbridge", tool, server, exc_info=problem)
            error = ErrorFrame("failed", "toolbridge failed in the middle of this call; the host's log says why.")
        return error._replace(server=server, tool=tool)

    def _failed(self, problem: Exception, error: ErrorFrame, audited: tuple[str, ...]) -> Reply:
        """Makes the reply of a failed call; where errors are returned, it is the value `{"error": message}`."""
        is_returned = self._rules.errors == "return"
        frame = encode_value({"error": error.message}) if is_returned else failed(CallFailed(error))
        notes = (*problem.notes, *audited) if isinstance(problem, CallFailed) else audited
        return Reply(frame, error.kind, notes, sent=not isinstance(problem, NOT_SENT))

    def taint(self, error: ServerError, server: str) -> None:
        """Marks the run as tainted if an error that guest code gets may quote the server."""
        if may_quote(error):
            self.servers[server] = None
            self._gate.taint(server)

    async def _list_tool(self, server: str, tool: str) -> ToolSpec:
        """Looks a tool up; first connects its server if that is enabled and its tools aren't listed yet.

        Raises:
            ServerError: the server can't be connected, or no longer has the tool.
        """
        if server in self._manager.enabled_servers() and self._manager.listing(server) is None:
            await self._manager.connect(server)
        spec = self._manager.catalog.tool(server, tool)
        if spec is None:
            raise self._missing_tool(server, tool)
        return spec

    def _enforce(self, decision: Decision, spec: ToolSpec, number: int) -> None:
        """Enforces the gate's decision, and notifies observers of it.

        Raises:
            CallFailed: the call is denied.
        """
        if self._observers:
            notify(
                self._observers,
                DecisionMade(self._run, number, spec.server, spec.name, decision.allowed, decision.rule),
            )
        if not decision.allowed:
            raise CallFailed(ErrorFrame("denied", f"The call of {spec.identifier} was denied: {decision.reason}"))

    def _missing_tool(self, server: str, tool: str) -> ServerError:
        """Returns the error for a tool that was blocked or removed since its module was imported."""
        try:
            self._manager.check_exposed(server, tool)
        except ToolBlockedError as blocked:
            return blocked
        except ServerError:
            pass
        return ToolNotFoundError(server, f"no longer has the tool {tool!r}: its tools have changed")

    async def _send(self, request: _Request, checked: ValidCall) -> Mapping[str, Any]:
        """Sends an authorized call and awaits its raw result. If it was sent, taints the run, else tells the gate."""
        spec, server = checked.spec, request.server
        report = partial(self._progressed, request.number, spec) if self._rules.shows_progress else None
        seconds = self._seconds(server)
        try:
            raw = await self._manager.call(server, request.tool, checked.arguments, timeout=seconds, on_progress=report)
        except NOT_SENT as error:
            self._gate.retract(spec)
            if isinstance(error, MisuseError):  # arguments without a form on the server's wire
                raise CallFailed(ErrorFrame("invalid_arguments", f"{spec.identifier}: {error}")) from None
            raise
        except BaseException:
            self.servers[server] = None  # the call may have taken effect, and the error may quote the server
            raise
        self.servers[server] = None
        return raw

    def _seconds(self, server: str) -> float:
        """Returns the timeout of a call: the server's own, else the limit for calls; never longer than the run."""
        left = self._clock.seconds_left()
        has_its_own = self._manager.config_of(server).call_timeout is not None
        return left if has_its_own else min(self._limits.call_seconds, left)

    def _progressed(self, number: int, spec: ToolSpec, done: float, total: float | None, message: str) -> None:
        """Notifies observers of a call's progress, unless the call has ended."""
        if number in self._pending:  # an abandoned function may still report progress
            event = CallProgressed(self._run, number, spec.server, spec.name, done, total, message)
            notify(self._observers, event)

    def _argument_text(self, server: str, given: Sequence[Any]) -> str:
        """Formats a call's arguments for observers."""
        is_usual = len(given) == 1 and type(given[0]) is dict
        arguments = cast("dict[str, Any]", given[0]) if is_usual else {"arguments": list(given)}
        return shown(arguments, self._manager.secrets(server))


def _size(given: Sequence[Any]) -> int:
    return len(json_text(list(given)))
