"""SECURITY: the complete list of host functions that a component may call; it can reach nothing else.

The Python image is a component, and CPython imports much of WASI: files, sockets, streams, clocks. Wasmtime's own
WASI is never linked. The functions below are ours, with the run's clock and random numbers; every other import is a
trap, which ends the run.

As in `imports.py`, a host function never raises, and is defined once, on one linker.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Mapping
from ctypes import c_bool, c_char_p, c_size_t, c_uint8, c_uint64, c_void_p
from typing import Any, cast

from toolbridge.boundary import library
from toolbridge.boundary.imports import current
from toolbridge.boundary.library import Address, ByteVector, Finalizer, OutAddress, _declare
from toolbridge.boundary.run_state import NOTHING, REFUSED, OutOfBoundsError, RunOver, RunState

# ── exchange: strings instead of addresses in guest memory ────────────────────────────────────────────────────────
#
# Wasmtime copies a component's strings, and checks that they lie in guest memory and are UTF-8. The run's state reads
# and writes them through `ComponentExchange`, as it does the memory of a JavaScript guest.


# Addresses begin here: 0 is no address.
FIRST = 1
# The longest frame that is passed at once. A guest without memory for a frame dies in the middle of the call, so longer
# ones are announced first: its program can catch the error.
MOST_AT_ONCE = 65_536


def room_for(frame: bytes) -> int:
    """Returns the bytes of memory that a guest needs to take a frame: a copy of it, and the decoded text.

    Python stores every character of a text in as many bytes as the widest one needs.
    """
    if frame.isascii():
        return 2 * len(frame)
    text = frame.decode("utf-8", "replace")
    widest = max(text)
    return len(frame) * 2 + len(text) * (1 if widest < "\u0100" else 2 if widest < "\U00010000" else 4)


class ComponentExchange:
    """One text in and one out at a time, and the run's random numbers, which derive from its seed."""

    __slots__ = ("_address", "_counter", "_key", "_size", "reply")

    def __init__(self) -> None:
        self._address: int | None = None
        self._size = 0
        self._key = b""
        self._counter = 0
        self.reply = b""

    @property
    def size(self) -> int:
        """Size of guest memory: unknown, 0."""
        return 0

    def begin(self, frame: bytes) -> None:
        """Begins a run: seeds its random numbers from the frame, which holds an unpredictable or chosen seed."""
        self._key = hashlib.sha256(frame).digest()
        self._counter = 0

    def receive(self, address: int | None, size: int) -> int:
        """Takes a text of the guest, kept until it is answered; returns its length."""
        self._address = address
        self._size = size
        return size

    def read(self, pointer: int, length: int) -> bytes:
        """Copies `length` bytes of the text.

        Raises:
            OutOfBoundsError: the text is shorter.
        """
        start = pointer - FIRST
        if start < 0 or length < 0 or start + length > self._size:
            raise OutOfBoundsError(f"{length} bytes at {pointer}")
        if not length or self._address is None:
            return b""
        return ctypes.string_at(self._address + start, length)

    def write(self, pointer: int, data: bytes) -> None:
        """Sets the answer for the guest; `pointer` is ignored."""
        del pointer
        self.reply = data

    def random(self, length: int) -> bytes:
        """Returns the next random bytes of this run."""
        made = bytearray()
        while len(made) < length:
            made += hashlib.sha256(self._key + self._counter.to_bytes(8, "little")).digest()
            self._counter += 1
        return bytes(made[:length])


# ── Wasmtime's C library for components ───────────────────────────────────────────────────────────────────────────
#
# Not in `library.py`, so that a JavaScript run doesn't pay for these declarations.
# `tests/boundary/test_component_imports_library.py` compares each with the package's own.


U8, U32, S32, U64, S64, STRING, LIST, RECORD = 2, 6, 5, 8, 7, 12, 13, 14


class ComponentValue(ctypes.Structure):
    """wasmtime_component_val_t, as far as numbers, strings, lists and records need it"""

    # A number is in `size`, at `_CONTENT`; a string, list or record has a size and the address of its content.
    _fields_ = (("kind", c_uint8), ("size", c_uint64), ("data", c_void_p), ("_rest", c_uint64))
    kind: int
    size: int
    data: int | None


class RecordEntry(ctypes.Structure):
    """wasmtime_component_valrecord_entry_t"""

    _fields_ = (("name", ByteVector), ("value", ComponentValue))
    name: ByteVector
    value: ComponentValue


Values = ctypes.POINTER(ComponentValue)
# (data, context, type, arguments, how many, results, how many) → error or 0
ComponentFunction = ctypes.CFUNCTYPE(c_size_t, c_void_p, c_void_p, c_void_p, Values, c_size_t, Values, c_size_t)
# The structures that the library fills in, used by address only.
InstanceBuffer = c_uint64 * 2
FunctionBuffer = c_uint64 * 4

byte_vector_new = _declare("wasm_byte_vec_new", None, Address, c_size_t, c_char_p)

# ---- components
component_new = _declare("wasmtime_component_new", Address, Address, c_char_p, c_size_t, OutAddress)
component_serialize = _declare("wasmtime_component_serialize", Address, Address, ctypes.POINTER(ByteVector))
component_deserialize_file = _declare("wasmtime_component_deserialize_file", Address, Address, c_char_p, OutAddress)
component_get_export_index = _declare(
    "wasmtime_component_get_export_index", Address, Address, Address, c_char_p, c_size_t
)

# ---- linking
component_linker_new = _declare("wasmtime_component_linker_new", Address, Address)
component_linker_root = _declare("wasmtime_component_linker_root", Address, Address)
component_linker_instantiate = _declare(
    "wasmtime_component_linker_instantiate", Address, Address, Address, Address, Address
)
component_linker_define_unknown_imports_as_traps = _declare(
    "wasmtime_component_linker_define_unknown_imports_as_traps", Address, Address, Address
)
linker_instance_add_instance = _declare(
    "wasmtime_component_linker_instance_add_instance", Address, Address, c_char_p, c_size_t, OutAddress
)
linker_instance_add_func = _declare(
    "wasmtime_component_linker_instance_add_func",
    *(Address, Address, c_char_p, c_size_t, ComponentFunction, c_void_p, Finalizer),
)
linker_instance_delete = _declare("wasmtime_component_linker_instance_delete", None, Address)

# ---- instances
component_instance_get_func = _declare(
    "wasmtime_component_instance_get_func", c_bool, Address, Address, Address, Address
)
component_func_call = _declare(
    "wasmtime_component_func_call", Address, Address, Address, Values, c_size_t, Values, c_size_t
)

# ---- values
component_value_delete = _declare("wasmtime_component_val_delete", None, Values)
component_list_new = _declare("wasmtime_component_vallist_new_uninit", None, Address, c_size_t)
component_record_new = _declare("wasmtime_component_valrecord_new_uninit", None, Address, c_size_t)

_CONTENT = 8


def content_address(value: Any) -> int:
    """The address of a value's own vector."""
    return ctypes.addressof(value) + _CONTENT


def set_string(value: Any, text: bytes) -> None:
    """Sets a value to a string: UTF-8, copied."""
    value.kind = STRING
    byte_vector_new(ctypes.addressof(value) + _CONTENT, len(text), text)


def fill_byte_list(value: Any, data: bytes) -> None:
    """Copies `data` into a component list that was allocated with the same length, each byte as a u8."""
    each = ctypes.sizeof(ComponentValue)
    elements = bytearray(each * len(data))
    elements[::each] = bytes((U8,)) * len(data)
    elements[_CONTENT::each] = data
    ctypes.memmove(value.data, bytes(elements), len(elements))


_MOST_RANDOM_BYTES = 65_536
_SECOND = 1_000_000_000
_LOW = 0xFFFFFFFF

Answer = Callable[[RunState, Any, Any], None]
"""(run, arguments, results); an exception ends the guest."""


def _exchange(run: RunState) -> ComponentExchange:
    return cast(ComponentExchange, run.memory)


def _receive(run: RunState, value: Any) -> int:
    return _exchange(run).receive(value.data, value.size)


# ── our functions: guest/python/guest.wit ─────────────────────────────────────────────────────────────────────────


def _call(run: RunState, arguments: Any, results: Any) -> None:
    """Performs a call or import and blocks until its reply; gives the reply, or announces a long one."""
    request = _receive(run, arguments[0])
    run.leave_guest()
    length = run.call(FIRST, request, FIRST, MOST_AT_ONCE)
    set_string(results[0], _reply(run, length))
    run.enter_guest()


def _reply(run: RunState, length: int) -> bytes:
    """The reply, or the announcement of a long one."""
    return _exchange(run).reply if length <= MOST_AT_ONCE else b"+%d %d" % (length, room_for(run.held))


def _start(run: RunState, arguments: Any, results: Any) -> None:
    """Starts a call without waiting for it; the result is its number, or REFUSED."""
    request = _receive(run, arguments[0])
    run.leave_guest()
    results[0].size = run.start(FIRST, request) & _LOW
    results[0].kind = S32
    run.enter_guest()


def _wait(run: RunState, arguments: Any, results: Any) -> None:
    """Blocks until a started call settles: its frame; "" after the timeout; "-" if no call is pending."""
    run.leave_guest()
    microseconds = arguments[0].size
    length = run.wait(microseconds - (1 << 64) if microseconds >> 63 else microseconds, FIRST, MOST_AT_ONCE)
    reply = b"" if length == NOTHING else b"-" if length == REFUSED else _reply(run, length)
    set_string(results[0], reply)
    run.enter_guest()


def _take(run: RunState, arguments: Any, results: Any) -> None:
    """Gives the guest the held frame; "" if it asks for a wrong length."""
    is_taken = run.take(FIRST, arguments[0].size & _LOW) != REFUSED
    set_string(results[0], _exchange(run).reply if is_taken else b"")


def _log(run: RunState, arguments: Any, _results: Any) -> None:
    run.log(arguments[0].size & _LOW, FIRST, _receive(run, arguments[1]))


def _now(run: RunState, arguments: Any, results: Any) -> None:
    results[0].size = run.now(arguments[0].size & _LOW)
    results[0].kind = S64


# ── WASI functions ────────────────────────────────────────────────────────────────────────────────────────────────


def _monotonic(run: RunState, _arguments: Any, results: Any) -> None:
    results[0].size = run.now(1)
    results[0].kind = U64


def _resolution(_run: RunState, _arguments: Any, results: Any) -> None:
    results[0].size = 1
    results[0].kind = U64


def _set_datetime(value: Any, nanoseconds: int) -> None:
    """Sets a value to a WASI datetime: a record of seconds and nanoseconds."""
    value.kind = RECORD
    component_record_new(content_address(value), 2)
    entries = ctypes.cast(value.data, ctypes.POINTER(RecordEntry))
    facts = (
        (b"seconds", U64, nanoseconds // _SECOND),
        (b"nanoseconds", U32, nanoseconds % _SECOND),
    )
    for entry, (name, kind, number) in zip((entries[0], entries[1]), facts, strict=True):
        byte_vector_new(ctypes.byref(entry.name), len(name), name)
        entry.value.kind = kind
        entry.value.size = number


def _wall_clock(run: RunState, _arguments: Any, results: Any) -> None:
    _set_datetime(results[0], run.now(0))


def _wall_resolution(_run: RunState, _arguments: Any, results: Any) -> None:
    _set_datetime(results[0], 1)


def _random_bytes(run: RunState, arguments: Any, results: Any) -> None:
    """Gives random bytes that derive from the run's seed; ends the run if it asks for too many at once."""
    length = arguments[0].size
    if length > _MOST_RANDOM_BYTES:
        run.end("limit", f"The program asked for more than {_MOST_RANDOM_BYTES} random bytes at once.")
        raise RunOver
    value = results[0]
    value.kind = LIST
    component_list_new(content_address(value), length)
    fill_byte_list(value, _exchange(run).random(length))


def _random_number(run: RunState, _arguments: Any, results: Any) -> None:
    results[0].size = int.from_bytes(_exchange(run).random(8), "little")
    results[0].kind = U64


def _empty_list(_run: RunState, _arguments: Any, results: Any) -> None:
    results[0].kind = LIST
    component_list_new(content_address(results[0]), 0)


# Versions are the image's. A wrong one is harmless: it makes the import a trap.
_WASI = "@0.2.9"

IMPORTS: Mapping[str, Mapping[str, Answer]] = {
    "": {"call": _call, "start": _start, "wait": _wait, "take": _take, "log": _log, "now": _now},
    f"wasi:clocks/monotonic-clock{_WASI}": {"now": _monotonic, "resolution": _resolution},
    f"wasi:clocks/wall-clock{_WASI}": {"now": _wall_clock, "resolution": _wall_resolution},
    f"wasi:random/random{_WASI}": {"get-random-bytes": _random_bytes, "get-random-u64": _random_number},
    f"wasi:cli/environment{_WASI}": {"get-environment": _empty_list, "get-arguments": _empty_list},
    f"wasi:filesystem/preopens{_WASI}": {"get-directories": _empty_list},
}
"""Interface ("" is the world itself) → function → its implementation."""


def _guarded(answer: Answer) -> Any:
    """Wraps a host function for the library: it never raises; an exception ends the guest."""

    def function(
        _data: int, _context: int, _kind: int, arguments: Any, _count: int, results: Any, _result_count: int
    ) -> int:
        """Calls `answer` for this thread's run; returns an error, after ending the run, if it raises."""
        run = current.run
        try:
            if run is None:
                raise RunOver
            answer(run, arguments, results)
            return 0
        except BaseException as error:
            if run is not None:
                run.end_for(error)
            return library.error_new(b"ended")

    return ComponentFunction(function)


# The library keeps addresses only, so the callbacks must stay alive with the process.
_callbacks = {
    interface: {name: _guarded(answer) for name, answer in answers.items()} for interface, answers in IMPORTS.items()
}


def define_component_imports(linker: int, component: int) -> None:
    """Defines a component's imports on a linker, the single grant of capability; all others become traps.

    Raises:
        EngineError: the library refuses a definition.
    """
    root = component_linker_root(linker)
    try:
        for interface, functions in _callbacks.items():
            if not interface:
                _define(root, functions)
                continue
            name, inner = interface.encode(), ctypes.c_void_p()
            error = linker_instance_add_instance(root, name, len(name), ctypes.byref(inner))
            library.check(error, f"define {interface}")
            _define(inner.value, functions)
            linker_instance_delete(inner.value)
    finally:
        linker_instance_delete(root)
    library.check(component_linker_define_unknown_imports_as_traps(linker, component), "close the imports")


def _define(instance: int | None, functions: Mapping[str, Any]) -> None:
    """Defines functions of one interface; raises EngineError if the library refuses one."""
    for name, callback in functions.items():
        text = name.encode()
        error = linker_instance_add_func(instance, text, len(text), callback, None, library.NO_FINALIZER)
        library.check(error, f"define {name}")
