"""parallel(): many host calls at once, for code that doesn't want asyncio.

Validates first: reading the list and writing the arguments can run the program's own code. So a mistake in the list is
found before any call has taken effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from . import wire
from .host_functions import HostFunction
from .tool_errors import ToolError

# The host has its own limit of pending calls, by default the same. Calls queued there would still be made after one has
# failed.
_AT_ONCE = 64
_EXAMPLE = 'such as parallel([(get_forecast, {"location": "Oslo"}), (get_forecast, {"location": "Rome"})])'


def parallel(calls: Iterable[Any], /, *, limit: int = _AT_ONCE, errors: str = "throw") -> list[Any]:
    """Makes all calls at once, or `limit` at a time, and blocks until all have ended; their results in the same order.

    parallel([(get_forecast, {"location": "Oslo"}), …]). Raises the first ToolError, after which no more calls begin;
    with errors="collect", each error is in its result's place. A mistake in the list is raised before any call.
    """
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError("the limit of parallel() is how many calls are made at once: a whole number from 1")
    if errors not in ("throw", "collect"):
        raise ValueError('the option errors of parallel() is "throw" or "collect"')
    if isinstance(calls, (str, bytes, Mapping)) or not isinstance(calls, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"parallel() takes a list of (function, input), {_EXAMPLE}; this is {_kind_of(calls)}")
    listed = [_validated(element, index) for index, element in enumerate(calls)]
    results = _make_calls(listed, limit, collects=errors == "collect")
    for result in results:
        if isinstance(result, _Raised):
            raise result.error
    return results


parallel.__module__ = "host.bridge"


class _Raised:
    """An error, as distinct from a result that happens to be one."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def _kind_of(value: Any) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"


def _validated(element: Any, index: int) -> tuple[HostFunction, str]:
    """Validates one element and encodes its arguments: the function and its call frame. TypeError for a mistake."""
    if not isinstance(element, (tuple, list)) or not element:
        advice = "write (function, input), the host function and its input, and don't call it"
        raise TypeError(f"parallel(): element [{index}] of the list is {_kind_of(element)}: {advice}, {_EXAMPLE}")
    function, *arguments = list(cast("Iterable[Any]", element))
    if not isinstance(function, HostFunction):
        raise TypeError(
            f"parallel(): element [{index}] of the list begins with something {_kind_of(function)}: only functions of "
            f"host modules can be called in parallel, {_EXAMPLE}"
        )
    return function, function._frame(tuple(arguments), {})


def _make_calls(calls: list[tuple[HostFunction, str]], limit: int, *, collects: bool) -> list[Any]:
    """Makes the calls, at most `limit` at a time, and blocks until all have ended; an error is in its result's place.

    Unless it `collects`, it begins no more calls after an error, which it wraps in `_Raised`.
    """
    results: list[Any] = [None] * len(calls)
    pending = 0
    stops = False

    def begin(index: int) -> None:
        """Starts the call at this index; it doesn't wait."""
        function, frame = calls[index]

        def settle(reply: dict[str, Any]) -> None:
            """Keeps the result or error at the call's index; the call is no longer pending."""
            nonlocal pending, stops
            pending -= 1
            try:
                results[index] = function._result(reply)
            except ToolError as error:
                results[index] = error if collects else _Raised(error)
                stops = stops or not collects

        wire.start(frame, settle)

    next_index = 0
    while True:
        while next_index < len(calls) and pending < limit and not stops:
            begin(next_index)
            next_index += 1
            pending += 1
        if not pending:
            return results
        wire.wait(None)
