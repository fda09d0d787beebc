"""SECURITY: the complete list of what a guest may call. What isn't here, it can't reach.

A host function never raises: whatever happens becomes an answer or a trap. The functions are
defined once, on one linker; each finds its run through the thread it is called on.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from toolbridge.boundary import library
from toolbridge.boundary.run_state import RunEnded, RunState

IMPORT_MODULE = b"toolbridge"
I32, I64 = 0, 1

# Arguments and results sit in slots of 16 bytes, read here as 32-bit words.
_SLOT = 4
_LOW = 0xFFFFFFFF


class _Current(threading.local):
    run: RunState | None = None


_current = _Current()


def set_current_run(run: RunState | None) -> RunState | None:
    """The run that host functions called on this thread belong to; answers with the one before."""
    before, _current.run = _current.run, run
    return before


def _run() -> RunState:
    run = _current.run
    if run is None:
        raise RunEnded
    return run


def _signed64(slots: Any, index: int) -> int:
    value = slots[index] | slots[index + 1] << 32
    return value - (1 << 64) if value >> 63 else value


def _trap(error: BaseException) -> int:
    """Ends the guest. Why is in the run's state; the trap's own text is for nobody."""
    run = _current.run
    if run is not None:
        run.end_for(error)
    return library.trap_new(b"ended", 5)


def _call(_data: int, _caller: int, slots: Any, _count: int) -> int:
    try:
        run = _current.run
        if run is None:
            raise RunEnded
        run.leave_guest()
        slots[0] = run.call(slots[0], slots[_SLOT], slots[2 * _SLOT], slots[3 * _SLOT]) & _LOW
        run.enter_guest()
        return 0
    except BaseException as error:
        return _trap(error)


def _start(_data: int, _caller: int, slots: Any, _count: int) -> int:
    try:
        run = _run()
        run.leave_guest()
        slots[0] = run.start(slots[0], slots[_SLOT]) & _LOW
        run.enter_guest()
        return 0
    except BaseException as error:
        return _trap(error)


def _wait(_data: int, _caller: int, slots: Any, _count: int) -> int:
    try:
        run = _run()
        run.leave_guest()
        slots[0] = run.wait(_signed64(slots, 0), slots[_SLOT], slots[2 * _SLOT]) & _LOW
        run.enter_guest()
        return 0
    except BaseException as error:
        return _trap(error)


def _take(_data: int, _caller: int, slots: Any, _count: int) -> int:
    try:
        slots[0] = _run().take(slots[0], slots[_SLOT]) & _LOW
        return 0
    except BaseException as error:
        return _trap(error)


def _log(_data: int, _caller: int, slots: Any, _count: int) -> int:
    try:
        _run().log(slots[0], slots[_SLOT], slots[2 * _SLOT])
        return 0
    except BaseException as error:
        return _trap(error)


def _now(_data: int, _caller: int, slots: Any, _count: int) -> int:
    try:
        nanoseconds = _run().now(slots[0])
        slots[0] = nanoseconds & _LOW
        slots[1] = nanoseconds >> 32 & _LOW
        return 0
    except BaseException as error:
        return _trap(error)


class Import(NamedTuple):
    """One function that the guest imports: its name, its WebAssembly type, our side of it."""

    name: bytes
    parameters: tuple[int, ...]
    results: tuple[int, ...]
    function: Callable[[int, int, Any, int], int]


IMPORTS = (
    Import(b"call", (I32, I32, I32, I32), (I32,), _call),
    Import(b"start", (I32, I32), (I32,), _start),
    Import(b"wait", (I64, I32, I32), (I32,), _wait),
    Import(b"take", (I32, I32), (I32,), _take),
    Import(b"log", (I32, I32, I32), (), _log),
    Import(b"now", (I32,), (I64,), _now),
)

# The library keeps addresses only, so the callbacks must stay alive with the process.
_callbacks = tuple(library.HostFunction(item.function) for item in IMPORTS)

# `leave()` advances the epoch, and that makes a guest that runs on its caller's thread put itself aside
# (sandbox/fiber_call.py). It is a function of the library that gets the engine as its data, and not a function of ours,
# because no Python code may run there: an exception that a signal handler raises in it would be lost.
LEAVE = b"leave"
_leave = library.LibraryFunction(library.engine_increment_epoch)


def _value_types(kinds: tuple[int, ...]) -> library.ByteVector:
    vector = library.ByteVector()
    types = (ctypes.c_void_p * len(kinds))(*(library.valtype_new(kind) for kind in kinds))
    library.valtype_vector_new(ctypes.byref(vector), len(kinds), types)
    return vector


def define_imports(linker: int, engine: int) -> None:
    """Defines the guest's imports on a linker: the single grant of capability."""
    for item, callback in zip(IMPORTS, _callbacks, strict=True):
        _define(linker, item.name, (item.parameters, item.results), callback, None)
    _define(linker, LEAVE, ((), ()), ctypes.cast(_leave, library.HostFunction), engine)


def _define(
    linker: int, name: bytes, signature: tuple[tuple[int, ...], tuple[int, ...]], callback: Any, data: int | None
) -> None:
    parameters, results = _value_types(signature[0]), _value_types(signature[1])
    kind = library.functype_new(ctypes.byref(parameters), ctypes.byref(results))
    error = library.linker_define_func_unchecked(
        *(linker, IMPORT_MODULE, len(IMPORT_MODULE), name, len(name)),
        *(kind, callback, data, library.NO_FINALIZER),
    )
    library.functype_delete(kind)
    library.check(error, f"define {name.decode()}")


# ---- epochs: called on the guest's thread when the epoch has advanced

_CONTINUE = 0


def _epoch_advanced(_context: int, _data: int, ticks: Any, kind: Any) -> int:
    try:
        ticks[0] = 1
        kind[0] = _CONTINUE
        _run().tick()
        return 0
    except BaseException as error:
        if not isinstance(error, RunEnded) and _current.run is not None:
            _current.run.end("crashed", f"The epoch check failed: {type(error).__name__}.")
        return library.error_new(b"ended")


epoch_callback = library.EpochCallback(_epoch_advanced)
