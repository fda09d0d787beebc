"""SECURITY: the complete list of what a component may call. What isn't here, it can't reach.

The Python image is a component, and CPython asks for much of WASI: files, sockets, streams, clocks. Wasmtime's own
WASI is never linked. What stands below is answered by us, with the run's clock and random numbers; everything else
that the image imports is a trap, which ends the run.

As in `imports.py`, a host function never raises, and is defined once, on one linker.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any, cast

from toolbridge.boundary import component_library as components
from toolbridge.boundary import library
from toolbridge.boundary.component_exchange import FIRST, MOST_AT_ONCE, ComponentExchange, room_for
from toolbridge.boundary.imports import _current, _run
from toolbridge.boundary.run_state import NOTHING, REFUSED, RunEnded, RunState

_MOST_RANDOM_BYTES = 65_536
_SECOND = 1_000_000_000
_LOW = 0xFFFFFFFF

Answer = Callable[[RunState, Any, Any], None]
"""(run, arguments, results): may raise; then the guest is ended."""


def _exchange(run: RunState) -> ComponentExchange:
    return cast(ComponentExchange, run.memory)


def _receive(run: RunState, value: Any) -> int:
    return _exchange(run).receive(value.data, value.size)


# ---- ours: guest/python/guest.wit


def _call(run: RunState, arguments: Any, results: Any) -> None:
    run.leave_guest()
    length = run.call(FIRST, _receive(run, arguments[0]), FIRST, MOST_AT_ONCE)
    components.set_string(results[0], _reply(run, length))
    run.enter_guest()


def _reply(run: RunState, length: int) -> bytes:
    """The reply, or that a long one waits."""
    return _exchange(run).reply if length <= MOST_AT_ONCE else b"+%d %d" % (length, room_for(run.held))


def _start(run: RunState, arguments: Any, results: Any) -> None:
    run.leave_guest()
    results[0].size = run.start(FIRST, _receive(run, arguments[0])) & _LOW
    results[0].kind = components.S32
    run.enter_guest()


def _wait(run: RunState, arguments: Any, results: Any) -> None:
    """The settled frame; "" when the time is over; "-" when nothing can come."""
    run.leave_guest()
    microseconds = arguments[0].size
    length = run.wait(microseconds - (1 << 64) if microseconds >> 63 else microseconds, FIRST, MOST_AT_ONCE)
    reply = b"" if length == NOTHING else b"-" if length == REFUSED else _reply(run, length)
    components.set_string(results[0], reply)
    run.enter_guest()


def _take(run: RunState, arguments: Any, results: Any) -> None:
    is_taken = run.take(FIRST, arguments[0].size & _LOW) != REFUSED
    components.set_string(results[0], _exchange(run).reply if is_taken else b"")


def _log(run: RunState, arguments: Any, _results: Any) -> None:
    run.log(arguments[0].size & _LOW, FIRST, _receive(run, arguments[1]))


def _now(run: RunState, arguments: Any, results: Any) -> None:
    results[0].size = run.now(arguments[0].size & _LOW)
    results[0].kind = components.S64


# ---- WASI's


def _monotonic(run: RunState, _arguments: Any, results: Any) -> None:
    results[0].size = run.now(1)
    results[0].kind = components.U64


def _resolution(_run: RunState, _arguments: Any, results: Any) -> None:
    results[0].size = 1
    results[0].kind = components.U64


def _set_datetime(value: Any, nanoseconds: int) -> None:
    value.kind = components.RECORD
    components.component_record_new(components.content_address(value), 2)
    entries = ctypes.cast(value.data, ctypes.POINTER(components.RecordEntry))
    facts = (
        (b"seconds", components.U64, nanoseconds // _SECOND),
        (b"nanoseconds", components.U32, nanoseconds % _SECOND),
    )
    for entry, (name, kind, number) in zip((entries[0], entries[1]), facts, strict=True):
        components.byte_vector_new(ctypes.byref(entry.name), len(name), name)
        entry.value.kind = kind
        entry.value.size = number


def _wall_clock(run: RunState, _arguments: Any, results: Any) -> None:
    _set_datetime(results[0], run.now(0))


def _wall_resolution(_run: RunState, _arguments: Any, results: Any) -> None:
    _set_datetime(results[0], 1)


def _random_bytes(run: RunState, arguments: Any, results: Any) -> None:
    length = arguments[0].size
    if length > _MOST_RANDOM_BYTES:
        run.end("limit", f"The program asked for more than {_MOST_RANDOM_BYTES} random bytes at once.")
        raise RunEnded
    value = results[0]
    value.kind = components.LIST
    components.component_list_new(components.content_address(value), length)
    components.fill_byte_list(value, _exchange(run).random(length))


def _random_number(run: RunState, _arguments: Any, results: Any) -> None:
    results[0].size = int.from_bytes(_exchange(run).random(8), "little")
    results[0].kind = components.U64


def _empty_list(_run: RunState, _arguments: Any, results: Any) -> None:
    results[0].kind = components.LIST
    components.component_list_new(components.content_address(results[0]), 0)


# The version is that of the image. A wrong one is no danger: what isn't answered here is a trap.
_WASI = "@0.2.9"

IMPORTS: Mapping[str, Mapping[str, Answer]] = {
    "": {"call": _call, "start": _start, "wait": _wait, "take": _take, "log": _log, "now": _now},
    f"wasi:clocks/monotonic-clock{_WASI}": {"now": _monotonic, "resolution": _resolution},
    f"wasi:clocks/wall-clock{_WASI}": {"now": _wall_clock, "resolution": _wall_resolution},
    f"wasi:random/random{_WASI}": {"get-random-bytes": _random_bytes, "get-random-u64": _random_number},
    f"wasi:cli/environment{_WASI}": {"get-environment": _empty_list, "get-arguments": _empty_list},
    f"wasi:filesystem/preopens{_WASI}": {"get-directories": _empty_list},
}
"""Interface ("" is the world itself) → function → our side of it."""


def _guarded(answer: Answer) -> Any:
    """A host function as the library calls it: whatever happens becomes an answer or ends the guest."""

    def function(
        _data: int, _context: int, _kind: int, arguments: Any, _count: int, results: Any, _result_count: int
    ) -> int:
        try:
            answer(_run(), arguments, results)
            return 0
        except BaseException as error:
            run = _current.run
            if run is not None:
                run.end_for(error)
            return library.error_new(b"ended")

    return components.ComponentFunction(function)


# The library keeps addresses only, so the callbacks must stay alive with the process.
_callbacks = {
    interface: {name: _guarded(answer) for name, answer in answers.items()} for interface, answers in IMPORTS.items()
}


def define_component_imports(linker: int, component: int) -> None:
    """Defines a component's imports on a linker: the single grant of capability. All others become traps."""
    root = components.component_linker_root(linker)
    try:
        for interface, functions in _callbacks.items():
            if not interface:
                _define(root, functions)
                continue
            name, inner = interface.encode(), ctypes.c_void_p()
            error = components.linker_instance_add_instance(root, name, len(name), ctypes.byref(inner))
            library.check(error, f"define {interface}")
            _define(inner.value, functions)
            components.linker_instance_delete(inner.value)
    finally:
        components.linker_instance_delete(root)
    library.check(components.component_linker_define_unknown_imports_as_traps(linker, component), "close the imports")


def _define(instance: int | None, functions: Mapping[str, Any]) -> None:
    for name, callback in functions.items():
        text = name.encode()
        error = components.linker_instance_add_func(instance, text, len(text), callback, None, library.NO_FINALIZER)
        library.check(error, f"define {name}")
