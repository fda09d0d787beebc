"""Host calls: a guest's request in, the reply frame out. Nothing here raises towards the guest.

A plain function runs on the guest's own thread, where a call costs least. Whatever must be awaited,
and every call that guest code started without waiting (`/async` modules), runs elsewhere, through
`Scheduler`, and its reply arrives in the run's inbox.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from math import inf
from time import monotonic, perf_counter
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from toolbridge.boundary.wire import (
    CallRequest,
    ErrorFrame,
    ImportRequest,
    WireError,
    encode_error,
    encode_module,
    encode_settled,
    encode_value,
)
from toolbridge.errors import nearest

# A run's wall clock, stopped while a person is asked about one of its calls.


class Stoppable(Protocol):
    """A run that can be given more time, from any thread."""

    deadline: float
    """When it ends, by the monotonic clock."""

    def prolong(self, seconds: float) -> None:
        """Moves its deadline; negative seconds take time back."""
        ...


class RunClock:
    """Belongs to one run or session, and is used on the event loop's thread. At most so long is it stopped at once."""

    def __init__(self, most_seconds: float) -> None:
        self._most = most_seconds
        self._run: Stoppable | None = None
        self._asking = 0
        self._since = 0.0

    def attach(self, run: Stoppable) -> None:
        """A run begins."""
        self._run = run
        self._asking = 0

    def seconds_left(self) -> float:
        """Until the run that is under way ends. What came before it, such as a compilation, is not its time."""
        return inf if self._run is None else self._run.deadline - monotonic()

    @contextlib.contextmanager
    def stopped(self) -> Generator[None]:
        """The run's time stands still meanwhile. Several questions at once stop it once."""
        run = self._run
        self._asking += 1
        if self._asking == 1:
            self._since = monotonic()
            if run is not None:
                run.prolong(self._most)
        try:
            yield
        finally:
            if run is self._run:
                self._asking -= 1
                if self._asking == 0:
                    waited = min(monotonic() - self._since, self._most)
                    if run is not None:
                        run.prolong(waited - self._most)


ASYNC_SUFFIX = "/async"
BRIDGE = "host:bridge"
"""The module that the guest has in itself; only what it asks of its host for that is a host function."""
MOST_MESSAGE = 4_000


class HostFunction(NamedTuple):
    """A function that guest code may call."""

    function: Callable[..., Any]
    is_async: bool
    """Whether calling it gives something to await."""
    keeps_time: bool = False
    """Whether it ends in time by itself, so that waiting in a line of its own doesn't count."""
    is_recorded: bool = True
    server: str = ""
    tool: str = ""
    is_quick: bool = False
    """Whether it never waits for anything, so that it may run on an event loop's thread."""
    may_answer: bool = False
    """Of an async one: whether calling it may give the `Reply` itself, where there is nothing to await."""


HostModules = Mapping[str, Mapping[str, HostFunction]]
Importer = Callable[[str], Awaitable[None] | None]
"""Puts a module into the modules of a run before it is looked up there; may raise `CallFailed`.

It gives an awaitable only if something has to be awaited, such as a connection."""


class HostSide(NamedTuple):
    """What a run is offered."""

    modules: HostModules
    importer: Importer | None = None
    clock: RunClock | None = None
    """What the run's own clock obeys."""


class CallRecord(NamedTuple):
    """One host call, as the run's result reports it."""

    module: str
    function: str
    outcome: str
    """`ok`, or the kind of error that guest code got."""
    seconds: float
    request_bytes: int
    reply_bytes: int
    server: str = ""
    """The MCP server, if the function is a tool of one."""
    tool: str = ""
    """The tool's original name."""
    started: float = 0.0
    """Seconds since the run began."""
    notes: tuple[str, ...] = ()
    """What is odd about the result, such as a mismatch with its schema."""
    sent: bool = True
    """False for a call that failed before its server could have seen it: it has no effect."""


class Reply(NamedTuple):
    """The answer to a call, ready for the guest: a host function may return one in place of a value."""

    frame: bytes
    outcome: str = ""
    """For the record; empty: as the frame says."""
    notes: tuple[str, ...] = ()
    sent: bool = True
    """False when the server can't have seen the call."""


class CallFailed(Exception):  # noqa: N818  # not an error of the host: it carries the guest's
    """Raised by a host function that wants guest code to get exactly this error."""

    def __init__(self, error: ErrorFrame, notes: tuple[str, ...] = ()) -> None:
        self.error = error
        self.notes = notes
        """For the call's record."""
        super().__init__(error.message)


class PendingCall:
    """A call whose reply arrives later, through the inbox.

    `may_begin`: whether there is room for one more reply; not asked for a call that the guest waits for.
    """

    __slots__ = ("arguments", "began", "function", "identity", "may_begin", "request", "request_bytes")

    def __init__(
        self,
        identity: int,
        function: HostFunction,
        request: CallRequest,
        request_bytes: int,
        may_begin: Callable[[], bool] | None = None,
    ) -> None:
        self.may_begin = may_begin
        self.identity = identity
        self.function = function
        self.request = request
        self.arguments = request.arguments
        self.request_bytes = request_bytes
        self.began = perf_counter()


Deliver = Callable[[PendingCall, Reply], None]


class Scheduler(Protocol):
    """Runs calls away from the guest's thread, and delivers each one's reply exactly once."""

    def start(self, call: PendingCall, deliver: Deliver) -> None:
        """Begins the call. Safe from any thread; must not block."""
        ...

    def start_awaiting(self, call: PendingCall, value: Any, deliver: Deliver) -> None:
        """The same for a call that has already given something to await."""
        ...


def failed(error: BaseException) -> bytes:
    """The reply for a host function that raised: type and message, no traceback."""
    if isinstance(error, CallFailed):
        try:
            return encode_error(error.error)
        except WireError:  # its data has no JSON form
            return encode_error(ErrorFrame(error.error.kind, error.error.message))
    try:
        text = str(error)
    except BaseException:
        text = ""
    name = type(error).__name__
    return encode_error(ErrorFrame("failed", f"{name}: {text}"[:MOST_MESSAGE] if text else name))


def timed_out(request: CallRequest, seconds: float) -> bytes:
    """The reply for a call that took too long."""
    message = f"{request.function} did not answer within {seconds:g} s. It may or may not have taken effect."
    return encode_error(ErrorFrame("timeout", message))


def too_large(what: str, size: int, most: int) -> bytes:
    """The reply for a frame over the limit."""
    return encode_error(ErrorFrame("limit", f"{what} is {size} bytes, more than the limit of {most}."))


_NOTHING = Reply(b'{"ok":null}', "ok")


def reply_with(request: CallRequest, value: Any, most_bytes: int) -> Reply:
    """The reply for what a host function returned."""
    if type(value) is Reply:
        reply = value
    elif value is None:
        return _NOTHING
    else:
        try:
            reply = Reply(encode_value(value), "ok")
        except WireError as error:
            message = f"The result of {request.function} has no JSON form: {error}."
            return Reply(encode_error(ErrorFrame("protocol", message)))
    if len(reply.frame) > most_bytes:
        return Reply(too_large(f"The result of {request.function}", len(reply.frame), most_bytes))
    return reply


def outcome_of(reply: bytes) -> str:
    """What a call record says of a reply that this module made."""
    if reply.startswith((b'{"ok":', b'{"handles":')):
        return "ok"
    head = b'{"error":{"kind":"'
    return reply[len(head) : reply.index(b'"', len(head))].decode()


def is_awaitable(value: object) -> bool:
    """Whether a value must be awaited (what inspect.isawaitable says, without its import)."""
    return hasattr(type(value), "__await__")


def find_function(modules: HostModules, request: CallRequest) -> HostFunction | None:
    """The function that a call names."""
    functions = modules.get(request.module)
    return functions.get(request.function) if functions is not None else None


def unknown_function(request: CallRequest) -> bytes:
    """The reply for a call of something that is not there (any more)."""
    message = f'There is no function "{request.function}" in module "{request.module}".'
    return encode_error(ErrorFrame("unknown", message))


# ── module names in Python: `host.mcp_weather` is the module `host:mcp-weather` ───────────────────────────────────

# A Python name has no dash, so it is resolved by the modules that the host knows.
_DOT = "host."


def is_python_name(asked: str) -> bool:
    """Whether a module is named as in Python."""
    return asked.startswith(_DOT)


def python_name(specifier: str) -> str:
    """The Python name of a module."""
    return specifier.replace("host:", _DOT, 1).replace("-", "_")


def known_specifier(asked: str, known: Iterable[str]) -> str:
    """Resolves a Python name to a known specifier; returns other names as they are."""
    if not is_python_name(asked):
        return asked
    return next((specifier for specifier in known if python_name(specifier) == asked), asked)


def answer_import(modules: HostModules, request: ImportRequest) -> bytes:
    """The reply to an import: the module's functions, or which modules there are."""
    specifier = request.module
    base = specifier.removesuffix(ASYNC_SUFFIX)
    if base not in modules:
        specifier = known_specifier(specifier, modules)
        base = specifier.removesuffix(ASYNC_SUFFIX)
    functions = modules.get(base) if base != BRIDGE else None
    if functions is not None:
        return encode_module(base, list(functions), is_async=base != specifier)
    return encode_error(no_such_module(modules, specifier))


def no_such_module(known: Iterable[str], specifier: str) -> ErrorFrame:
    """The error for an import of something that is not there: the nearest, or which modules there are."""
    return ErrorFrame("unknown", _no_such_module(list(dict.fromkeys((*known, BRIDGE))), specifier), name="ModuleError")


def _no_such_module(known: list[str], specifier: str) -> str:
    shown = specifier[:100]
    if is_python_name(specifier):
        return _no_such_python_module([python_name(name) for name in known], shown)
    base = shown.removesuffix(ASYNC_SUFFIX)
    names = [name.removeprefix("host:") for name in known]
    guess = nearest(base.removeprefix("host:"), names)
    if guess:
        suffix = ASYNC_SUFFIX if base != shown else ""
        return f'There is no module "{shown}". Did you mean "host:{guess}{suffix}"?'
    listed = ", ".join(f'"{name}"' for name in known[:20]) + (", …" if len(known) > 20 else "")
    reason = "" if shown.startswith("host:") else " Only host modules can be imported here: no files, no packages."
    return f'There is no module "{shown}".{reason} There is: {listed}.'


def _no_such_python_module(known: list[str], shown: str) -> str:
    guess = nearest(shown, known)
    if guess:
        return f"There is no module {shown!r}. Did you mean {guess!r}?"
    listed = ", ".join(known[:20]) + (", …" if len(known) > 20 else "")
    return f"There is no module {shown!r}. There is: {listed}."


# The record of a run's calls: one entry for each, whatever became of it.


class CallLog:
    """Written by the guest's thread; read when the run is over."""

    __slots__ = ("_began", "ended")

    def __init__(self) -> None:
        self._began = perf_counter()
        self.ended: list[CallRecord] = []

    def add(self, function: HostFunction, request: CallRequest, reply: Reply, began: float, request_bytes: int) -> None:
        """A call has its reply."""
        if not function.is_recorded:
            return
        self.ended.append(
            CallRecord(
                request.module,
                request.function,
                reply.outcome or outcome_of(reply.frame),
                perf_counter() - began,
                request_bytes,
                len(reply.frame),
                function.server,
                function.tool,
                began - self._began,
                reply.notes,
                reply.sent,
            )
        )

    def with_unfinished(self, calls: Iterable[PendingCall]) -> tuple[CallRecord, ...]:
        """All calls, and at the end those that have no reply: they may still take effect."""
        return (*self.ended, *(self.unfinished(call) for call in calls))

    def unfinished(self, call: PendingCall) -> CallRecord:
        """The record of a call that has no reply."""
        return CallRecord(
            call.request.module,
            call.request.function,
            "unfinished",
            perf_counter() - call.began,
            call.request_bytes,
            0,
            call.function.server,
            call.function.tool,
            call.began - self._began,
        )


# Where one thread waits for what others hand it, until a moment that it names.
#
# Not a `queue.SimpleQueue`: of a wait that is nearly over, that one can make an endless wait (its `get` looks at the
# clock between two tries, and takes a time that is over by then for none at all), and a run would outlive its
# deadline.


T = TypeVar("T")
# The longest that a lock can be waited for at once is not endless, and differs between systems.
_LONGEST_WAIT = 3600.0


class NothingArrivedError(Exception):
    """The time was over first."""


class Inbox(Generic[T]):
    """Items in the order in which they came. Any thread may `put`, one may `take`."""

    __slots__ = ("_arrived", "_items")

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._arrived = threading.Lock()
        """Held, except when something has come since it was last taken: to wait is to take it."""
        self._arrived.acquire()

    def put(self, item: T) -> None:
        """Hands an item over."""
        self._items.append(item)
        if self._arrived.locked():
            with contextlib.suppress(RuntimeError):  # another thread was first
                self._arrived.release()

    def take(self, until: float) -> T:
        """The next item.

        Raises:
            NothingArrivedError: there was none before that time (monotonic clock).
        """
        while True:
            try:
                return self._items.popleft()
            except IndexError:
                left = until - monotonic()
            if left <= 0 or not self._arrived.acquire(timeout=min(left, _LONGEST_WAIT)):
                if self._items or monotonic() < until:
                    continue
                raise NothingArrivedError from None


# The calls of a run whose replies arrive later: those under way, and those whose reply the guest hasn't fetched.


# How many of the largest frames a run may have under way, and as many unfetched, in bytes.
_FRAMES_HELD = 4


class Interrupted(Exception):  # noqa: N818  # control flow inside the boundary, not an error
    """Somebody wants the guest's thread to look up from waiting."""


class StartedCalls:
    """Used by the guest's thread, except for `deliver` and `interrupt`, which any thread may call."""

    def __init__(self, frame_bytes: int) -> None:
        self.most_bytes = _FRAMES_HELD * frame_bytes
        self._under_way: dict[int, PendingCall] = {}
        self._inbox: Inbox[tuple[PendingCall, Reply] | None] = Inbox()
        self._settled: deque[bytes] = deque()
        self._request_bytes = 0
        self._reply_bytes = 0
        self._reply_lock = threading.Lock()
        self.on_delivery: Callable[[], None] | None = None
        """Told that a reply has arrived, on the thread that delivered it."""

    def request_bytes_with(self, length: int) -> int:
        """What the calls under way were passed, and one more would be."""
        return self._request_bytes + length

    def has_room(self) -> bool:
        """Whether the host may hold one more reply for a guest that doesn't fetch them."""
        return self._reply_bytes < self.most_bytes

    def can_settle(self) -> bool:
        """Whether a reply is there, or can come."""
        return bool(self._settled or self._under_way)

    def add(self, call: PendingCall) -> None:
        """A call begins."""
        self._under_way[call.identity] = call
        self._request_bytes += call.request_bytes

    def deliver(self, call: PendingCall, reply: Reply) -> None:
        """A scheduled call is done. From any thread."""
        self._hold(len(reply.frame))
        self._inbox.put((call, reply))
        if self.on_delivery is not None:
            self.on_delivery()

    def interrupt(self) -> None:
        """Ends a wait. From any thread."""
        self._inbox.put(None)

    def receive(self, until: float) -> tuple[PendingCall, Reply] | None:
        """The next reply that arrives; None when the time (monotonic clock) comes first.

        Raises:
            Interrupted: so it was.
        """
        while True:
            try:
                arrived = self._inbox.take(until)
            except NothingArrivedError:
                return None
            if arrived is None:
                raise Interrupted
            call, reply = arrived
            if self.remove(call):
                self._hold(-len(reply.frame))
                return arrived

    def remove(self, call: PendingCall) -> bool:
        """A call is no longer under way; whether it was."""
        if self._under_way.pop(call.identity, None) is None:
            return False
        self._request_bytes -= call.request_bytes
        return True

    def settle(self, call: int, reply: bytes) -> None:
        """Keeps a reply until the guest asks for it."""
        frame = encode_settled(call, reply)
        self._hold(len(frame))
        self._settled.append(frame)

    def next_settled(self) -> bytes | None:
        """The oldest reply that was kept."""
        if not self._settled:
            return None
        frame = self._settled.popleft()
        self._hold(-len(frame))
        return frame

    def unfinished(self) -> list[PendingCall]:
        """Calls that have no reply: they may still take effect."""
        return [call for call in self._under_way.values() if call.function.is_recorded]

    def _hold(self, size: int) -> None:
        with self._reply_lock:
            self._reply_bytes += size
