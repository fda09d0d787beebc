"""Host calls: a guest's request in, the reply frame out. Nothing here raises towards the guest.

A plain function runs on the guest's own thread, where a call costs least. Whatever must be awaited,
and every call that guest code started without waiting (`/async` modules), runs elsewhere, through
`Scheduler`, and its reply arrives in the run's inbox.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, NamedTuple, Protocol

from toolbridge.boundary.wire import (
    CallRequest,
    ErrorFrame,
    ImportRequest,
    WireError,
    encode_error,
    encode_module,
    encode_value,
)

ASYNC_SUFFIX = "/async"
MOST_MESSAGE = 4_000
_LONGEST_NAME = 64


class HostFunction(NamedTuple):
    """A function that guest code may call. `is_async`: calling it gives something to await."""

    function: Callable[..., Any]
    is_async: bool


HostModules = Mapping[str, Mapping[str, HostFunction]]


class CallRecord(NamedTuple):
    """One host call, as the run's result reports it."""

    module: str
    function: str
    outcome: str
    """`ok`, or the kind of error that guest code got."""
    seconds: float
    request_bytes: int
    reply_bytes: int


class CallFailed(Exception):  # noqa: N818  # not an error of the host: it carries the guest's
    """Raised by a host function that wants guest code to get exactly this error."""

    def __init__(self, error: ErrorFrame) -> None:
        self.error = error
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


class Scheduler(Protocol):
    """Runs calls away from the guest's thread, and delivers each one's reply exactly once."""

    def start(self, call: PendingCall, deliver: Callable[[PendingCall, bytes], None]) -> None:
        """Begins the call. Safe from any thread; must not block."""
        ...

    def start_awaiting(self, call: PendingCall, value: Any, deliver: Callable[[PendingCall, bytes], None]) -> None:
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


def reply_with(request: CallRequest, value: Any, most_bytes: int) -> bytes:
    """The reply for a value that a host function returned."""
    try:
        reply = encode_value(value)
    except WireError as error:
        return encode_error(ErrorFrame("protocol", f"The result of {request.function} has no JSON form: {error}."))
    if len(reply) > most_bytes:
        return too_large(f"The result of {request.function}", len(reply), most_bytes)
    return reply


def outcome_of(reply: bytes) -> str:
    """What a call record says of a reply that this module made."""
    if reply.startswith(b'{"ok":'):
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


def answer_import(modules: HostModules, request: ImportRequest) -> bytes:
    """The reply to an import: the module's functions, or which modules there are."""
    specifier = request.module
    base = specifier.removesuffix(ASYNC_SUFFIX)
    functions = modules.get(base)
    if functions is not None:
        return encode_module(base, list(functions), is_async=base != specifier)
    return encode_error(ErrorFrame("unknown", _no_such_module(modules, specifier), name="ModuleError"))


def _no_such_module(modules: HostModules, specifier: str) -> str:
    import difflib

    shown = specifier[:100]
    known = [*modules, "host:bridge"]
    base = shown.removesuffix(ASYNC_SUFFIX)
    names = [name.removeprefix("host:") for name in known]
    wanted = base.removeprefix("host:").lower().replace("_", "-")
    guesses = difflib.get_close_matches(wanted, names, n=1, cutoff=0.7) if len(wanted) <= _LONGEST_NAME else []
    if guesses:
        suffix = ASYNC_SUFFIX if base != shown else ""
        return f'There is no module "{shown}". Did you mean "host:{guesses[0]}{suffix}"?'
    listed = ", ".join(f'"{name}"' for name in known[:20]) + (", …" if len(known) > 20 else "")
    reason = "" if shown.startswith("host:") else " Only host modules can be imported here: no files, no packages."
    return f'There is no module "{shown}".{reason} There is: {listed}.'
