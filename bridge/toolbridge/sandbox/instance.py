"""One instance of a guest image: a store, its memory, and the one call that runs a program in it."""

from __future__ import annotations

import ctypes
import re
from ctypes import c_uint8, c_uint64, c_void_p

from toolbridge.boundary import library
from toolbridge.boundary.imports import epoch_callback, set_current_run
from toolbridge.boundary.memory import GuestMemory
from toolbridge.boundary.run_state import RunState
from toolbridge.errors import EngineError

_STACK_OVERFLOW, _OUT_OF_BOUNDS = 0, 1
# The engine's own stack lies at the beginning of memory, so that overrunning it wraps around to its very end.
_BELOW_ZERO = re.compile(r"memory fault at wasm address 0xfff[0-9a-f]{5}\b")

# The structures that the library fills in: at most this large, used by address only.
_INSTANCE_BYTES = 16
_EXTERN_BYTES = 64
_EXTERN_PAYLOAD = 8
_UNLIMITED = -1


class GuestTrap(Exception):  # noqa: N818  # a fact about the guest, not an error of the host
    """The guest's code was stopped. `code` says how, where WebAssembly itself did."""

    def __init__(self, code: int | None, message: str) -> None:
        self.code = code
        super().__init__(message)

    @property
    def is_stack_overflow(self) -> bool:
        """Whether the guest recursed deeper than its stack, or the engine's own, allows."""
        return self.code == _STACK_OVERFLOW or (
            self.code == _OUT_OF_BOUNDS and _BELOW_ZERO.search(str(self)) is not None
        )


def _new_store(engine: int, memory_bytes: int) -> int:
    store = library.store_new(engine, None, library.NO_FINALIZER)
    library.store_limiter(store, memory_bytes, _UNLIMITED, 1, 4, 1)
    library.store_epoch_deadline_callback(store, epoch_callback, None, library.NO_FINALIZER)
    return store


class Instance:
    """A fresh guest. Used by one thread at a time; dead after a trap."""

    _store: int | None = None

    def __init__(self, engine: int, image: int, memory_bytes: int) -> None:
        self._store = _new_store(engine, memory_bytes)
        self._context: int = library.store_context(self._store)
        self._run_export = ctypes.create_string_buffer(_EXTERN_BYTES)
        self._memory_export = ctypes.create_string_buffer(_EXTERN_BYTES)
        self._slots = (c_uint64 * 2)()
        library.context_set_epoch_deadline(self._context, 1)
        try:
            self._instantiate(image)
        except BaseException:
            self.close()
            raise
        self.memory = GuestMemory(self._context, ctypes.addressof(self._memory_export) + _EXTERN_PAYLOAD)

    def _instantiate(self, image: int) -> None:
        instance = ctypes.create_string_buffer(_INSTANCE_BYTES)
        trap = c_void_p()
        error = library.instance_pre_instantiate(image, self._context, ctypes.addressof(instance), ctypes.byref(trap))
        library.check(error, "instantiate the guest")
        if trap.value:
            raise EngineError("instantiate the guest", _describe_trap(trap.value).args[0])
        for name, out in ((b"memory", self._memory_export), (b"run", self._run_export)):
            if not library.instance_export_get(
                self._context, ctypes.addressof(instance), name, len(name), ctypes.addressof(out)
            ):
                raise EngineError("instantiate the guest", f"the image doesn't export {name.decode()}")

    def run(self, state: RunState, frame_bytes: int) -> tuple[int, int]:
        """Runs the program whose frame `state` holds: pointer and length of the outcome frame.

        Raises:
            GuestTrap: the guest was stopped; the instance must not be used again.
        """
        state.memory = self.memory
        set_current_run(state)
        state.enter_guest()
        trap = c_void_p()
        self._slots[0] = frame_bytes
        try:
            library.context_set_epoch_deadline(self._context, 1)
            error = library.func_call_unchecked(
                self._context,
                ctypes.addressof(self._run_export) + _EXTERN_PAYLOAD,
                ctypes.addressof(self._slots),
                1,
                ctypes.byref(trap),
            )
            state.leave_guest()
        finally:
            set_current_run(None)
            del state.memory
        if error:
            raise GuestTrap(None, library.take_error(error))
        if trap.value:
            raise _describe_trap(trap.value)
        packed = self._slots[0]
        return packed & 0xFFFFFFFF, packed >> 32

    def abandon(self) -> None:
        """Gives the instance up without freeing it: its engine's threads don't exist in this process."""
        self._store = None

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Frees the guest's memory."""
        store, self._store = self._store, None
        if store is not None:
            library.store_delete(store)


def _describe_trap(trap: int) -> GuestTrap:
    code = c_uint8()
    has_code = library.trap_code(trap, ctypes.byref(code))
    message = library.ByteVector()
    library.trap_message(trap, ctypes.byref(message))
    text = library.take_bytes(message).rstrip(b"\0").decode("utf-8", "replace")
    library.trap_delete(trap)
    return GuestTrap(code.value if has_code else None, text)
