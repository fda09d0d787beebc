"""Instances of a guest image, and the copy-on-write instance pool that reuses them."""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Generator
from ctypes import c_uint8, c_uint64, c_void_p
from typing import Protocol, TypeAlias

from toolbridge.boundary import library
from toolbridge.boundary.imports import MAILBOX_BYTES, Asked, GuestMemory, Mailbox, current, epoch_callback
from toolbridge.boundary.run_state import RunOver, RunState, TextMemory
from toolbridge.errors import EngineError
from toolbridge.limits import MIB

# ── fibers: calls into a guest on a native stack of their own, suspended and resumed on any thread ─────────────────
#
# A short program takes less time than waking a guest thread, so a run begins on the caller's thread, on a fiber: the
# library switches to a native stack as large as a guest thread's, and back when the epoch advances: at a tick, or
# because the guest called `leave` (epoch interruption). A request in the mailbox is then answered, and the fiber
# resumes.
#
# No Python code runs on a fiber: the library wouldn't notice an exception raised there by a signal handler, debugger
# or timeout library, and Python ≥ 3.14 compares stack addresses with those of the thread.


_I32 = 0
_EACH_TICK = 1


class FiberCall:
    """One call of an export, number → number, on a fiber. Used by one thread at a time."""

    future: int | None = None
    """Polling it resumes the guest until it ends or the epoch advances."""

    def __init__(self, context: int, function: int, argument: int) -> None:
        self._argument = library.Value(_I32, argument)
        self._answer = library.Value()
        self._trap = c_void_p()
        self._error = c_void_p()
        library.context_epoch_deadline_async_yield_and_update(context, _EACH_TICK)
        library.context_set_epoch_deadline(context, _EACH_TICK)
        self.future = library.func_call_async(
            *(context, function, ctypes.addressof(self._argument), 1, ctypes.addressof(self._answer), 1),
            *(ctypes.byref(self._trap), ctypes.byref(self._error)),
        )

    def answer(self) -> tuple[int, int | None, int | None]:
        """Returns the result; or an error, or a trap, which the caller has to free."""
        return self._answer.number, self._error.value, self._trap.value

    def close(self) -> None:
        """Ends the call. Must precede the end of the store."""
        future, self.future = self.future, None
        if future is not None:
            library.call_future_delete(future)


STACK_OVERFLOW, _OUT_OF_BOUNDS = 0, 1
# The engine's own stack lies at the beginning of memory, so that overrunning it wraps around to its very end.
_BELOW_ZERO = re.compile(r"memory fault at wasm address 0xfff[0-9a-f]{5}\b")

# Structures that the library fills in, at most this large, used by address only.
_InstanceBuffer = c_uint64 * 2
_ExternBuffer = c_uint64 * 8
_EXTERN_PAYLOAD = 8
_UNLIMITED = -1

_NO_TICK = 1 << 40


class GuestTrap(Exception):  # noqa: N818  # a fact about the guest, not an error of the host
    """The guest was stopped. `code` is the trap's code, if WebAssembly itself trapped."""

    def __init__(self, code: int | None, message: str, *, denied: str = "") -> None:
        self.code = code
        self.denied = denied
        """The WASI function that it called, which the sandbox doesn't have."""
        super().__init__(message)

    @property
    def is_stack_overflow(self) -> bool:
        """Returns whether the guest overran its stack, or the engine's."""
        return self.code == STACK_OVERFLOW or (
            self.code == _OUT_OF_BOUNDS and _BELOW_ZERO.search(str(self)) is not None
        )


Steps: TypeAlias = Generator[Asked | None, int | None, tuple[int, int]]
"""A run in steps: yields requests of the guest and is sent the answers; yields None to continue on a guest thread.
`RunOver` is thrown in to end it. Returns pointer and length of the outcome frame."""


class GuestInstance(Protocol):
    """An instance of either kind of image, as a run uses it."""

    @property
    def memory(self) -> TextMemory:
        """Holds the outcome."""
        ...

    def run(self, state: RunState, frame: bytes, here: bool) -> Steps:
        """Runs a program; as `Instance.run`."""
        ...

    def abandon(self) -> None:
        """Drops the instance without freeing it."""
        ...

    def close(self) -> None:
        """Frees the instance."""
        ...


class Image:
    """A guest image, compiled and linked."""

    __slots__ = ("inbox", "pre")

    def __init__(self, pre: int) -> None:
        self.pre = pre
        self.inbox: tuple[int, int] | None = None
        """Address and capacity of the inbox for the run frame, known after the first instance. Capacity 0: none.

        The mailbox precedes it. Both were allocated before the image was baked, so they are the same in every instance.
        """


class Instance:
    """A guest. Used by one thread at a time; unusable after a trap."""

    _store: int | None = None

    def __init__(self, engine: int, image: Image, memory_bytes: int) -> None:
        self._image = image
        self._store = library.store_new(engine, None, library.NO_FINALIZER)
        self.limit(memory_bytes)
        self._context: int = library.store_context(self._store)
        self._instance = _InstanceBuffer()
        library.context_set_epoch_deadline(self._context, _EACH_TICK)
        try:
            self._instantiate()
            self._memory_export = self._export(b"memory")
            self.memory = GuestMemory(self._context, ctypes.addressof(self._memory_export) + _EXTERN_PAYLOAD)
            if image.inbox is None:  # before any program runs: its guest might lie
                image.inbox = self._find_inbox()
        except BaseException:
            self.close()
            raise

    def limit(self, memory_bytes: int) -> None:
        """Sets the memory limit."""
        library.store_limiter(self._store, memory_bytes, _UNLIMITED, 1, 4, 1)

    def _instantiate(self) -> None:
        """Instantiates the image; raises EngineError if the library or the image's own start fails."""
        trap = c_void_p()
        error = library.instance_pre_instantiate(
            self._image.pre, self._context, ctypes.addressof(self._instance), ctypes.byref(trap)
        )
        library.check(error, "instantiate the guest")
        if trap.value:
            raise EngineError("instantiate the guest", _describe_trap(trap.value).args[0])

    def _find_export(self, name: bytes) -> ctypes.Array[c_uint64] | None:
        """Looks up an export of the instance; None if there is none of this name."""
        found = _ExternBuffer()
        is_there = library.instance_export_get(
            self._context, ctypes.addressof(self._instance), name, len(name), ctypes.addressof(found)
        )
        return found if is_there else None

    def _export(self, name: bytes) -> ctypes.Array[c_uint64]:
        """Looks up an export of the instance; raises EngineError if there is none of this name."""
        found = self._find_export(name)
        if found is None:
            raise EngineError("instantiate the guest", f"the image doesn't export {name.decode()}")
        return found

    def _find_inbox(self) -> tuple[int, int]:
        """Asks the guest for the address and capacity of its inbox; zeros if it has none.

        Raises:
            EngineError: the inbox lies outside its memory.
        """
        function = self._find_export(b"inbox")
        if function is None:
            return 0, 0
        pointer, length = _unpack(self._call(function, 0, _NO_TICK))
        if pointer < MAILBOX_BYTES or pointer + length > self.memory.size:
            raise EngineError("instantiate the guest", "the image's inbox lies outside its memory")
        return pointer, length

    def _call(self, function: ctypes.Array[c_uint64], argument: int, ticks: int) -> int:
        """Calls an export on this thread's own stack; raises GuestTrap if the guest was stopped.

        `ticks`: epoch ticks until the callback.
        """
        slots = (c_uint64 * 2)(argument)
        trap = c_void_p()
        library.store_epoch_deadline_callback(self._store, epoch_callback, None, library.NO_FINALIZER)
        library.context_set_epoch_deadline(self._context, ticks)
        error = library.func_call_unchecked(
            *(self._context, ctypes.addressof(function) + _EXTERN_PAYLOAD),
            *(ctypes.addressof(slots), 1, ctypes.byref(trap)),
        )
        return _answer(slots[0], error, trap.value)

    def run(self, state: RunState, frame: bytes, here: bool) -> Steps:
        """Runs the program of a run frame; returns pointer and length of the outcome frame.

        `here`: in steps, on a thread that guest code must not block. Otherwise on a guest thread, to the end.

        Raises:
            GuestTrap: the guest was stopped; the instance must not be used again.
        """
        inbox = self._image.inbox
        if here and inbox is not None and inbox[1]:
            if len(frame) <= inbox[1]:
                self.memory.write(inbox[0], frame)
            return _unpack((yield from self._run_in_steps(state, len(frame), Mailbox(self.memory, inbox[0]))))
        if here:
            yield None
        return _unpack(self._run_through(state, len(frame)))

    def _run_through(self, state: RunState, frame_bytes: int) -> int:
        """Runs the program on this guest thread to its end, blocking; returns the packed place of the outcome."""
        function = self._export(b"run")
        state.memory = self.memory
        current.run = state
        state.enter_guest()
        try:
            packed = self._call(function, frame_bytes, _EACH_TICK)
            state.leave_guest()
        finally:
            current.run = None
            del state.memory
        return packed

    def _run_in_steps(
        self, state: RunState, frame_bytes: int, mailbox: Mailbox
    ) -> Generator[Asked | None, int | None, int]:
        """Runs the program on a fiber, in steps; returns the packed place of the outcome. Raises GuestTrap."""
        function = self._export(b"run_inbox")
        state.memory = self.memory
        call = FiberCall(self._context, ctypes.addressof(function) + _EXTERN_PAYLOAD, frame_bytes)
        try:
            while not _proceed(call, state):
                asked = mailbox.read()
                if asked is not None:
                    answer = yield asked
                    assert answer is not None
                    mailbox.answer(answer)
                elif state.has_ticked():  # else the epoch advanced for another guest's request
                    state.ensure_time()
                    yield None
            return _answer(*call.answer())
        except RunOver:
            raise GuestTrap(None, "ended") from None
        finally:
            call.close()
            del state.memory

    def abandon(self) -> None:
        """Drops the instance without freeing it: after a fork, its engine's threads don't exist."""
        self._store = None

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Frees the guest's memory."""
        store, self._store = self._store, None
        if store is not None:
            library.store_delete(store)


def _proceed(call: FiberCall, state: RunState) -> bool:
    """Resumes a guest until it ends or suspends; returns whether it ended. Calling an import ends it."""
    before, current.run = current.run, None  # of an outer run, whose host function uses a sandbox
    try:
        state.enter_guest()
        ended = library.call_future_poll(call.future)
        state.leave_guest()
        return ended
    finally:
        current.run = before


def _answer(packed: int, error: int | None, trap: int | None) -> int:
    """Returns `packed`; raises GuestTrap for an error or trap, which it frees."""
    if error:
        raise GuestTrap(None, library.take_error(error))
    if trap:
        raise _describe_trap(trap)
    return packed


def _unpack(packed: int) -> tuple[int, int]:
    """Splits a packed place into pointer and length."""
    return packed & 0xFFFFFFFF, packed >> 32


def _describe_trap(trap: int) -> GuestTrap:
    """Makes a GuestTrap of the library's trap, which it frees."""
    code = c_uint8()
    has_code = library.trap_code(trap, ctypes.byref(code))
    message = library.ByteVector()
    library.trap_message(trap, ctypes.byref(message))
    text = library.take_bytes(message).rstrip(b"\0").decode("utf-8", "replace")
    library.trap_delete(trap)
    return GuestTrap(code.value if has_code else None, text)


# ── SECURITY: copy-on-write instance pool: an instance is reused once every byte is that of a fresh one (T33) ─────
#
# A guest begins as a copy-on-write mapping of its image. Copying pages, and unmapping them, takes most of the time of
# a short run, so an instance whose run ended well is restored instead: the pages written to get the image's content
# again. The kernel tells which those are (`/proc/self/pagemap`), not the guest.
#
# An instance has no other lasting state: its only mutable global is the stack pointer, which is reset when `run`
# returns, and no code of the image mutates a table (test_component_instance_image_state.py verifies that).
# An instance that has grown, or has written too much, is freed; so are all where there is no page map.


_MOST_INSTANCES = 4
# More pages than this are cheaper to map anew.
_MOST_PAGES = 192
# The pool holds a second copy of the image's memory.
_MOST_MEMORY = 32 * MIB
_ENTRY_BYTES = 8
_PAGE_MAP = "/proc/self/pagemap"
_RUNS_BEFORE, _MOST_TRIES = 2, 10
# Highest byte of an entry. 0: untouched. Present and of the file: only read. Anything else: written.
_PRESENT_OF_FILE, _NOT_SHARED = 0xA0, 0x01
_IS_WRITTEN = bytes(flags & ~_NOT_SHARED not in (0, _PRESENT_OF_FILE) for flags in range(256))
_WRITTEN = re.compile(rb"\x01+")


class InstancePool:
    """Copy-on-write instance pool of one image. Thread-safe."""

    def __init__(self, engine: int, image: Image) -> None:
        self._engine = engine
        self._image = image
        self._lock = threading.Lock()
        self._instances: list[Instance] = []
        self._fresh: ctypes.Array[ctypes.c_char] | None = None
        self._runs = 0
        self._works: bool | None = None
        """Whether restoring works on this system; None until tried."""

    def take(self, memory_bytes: int) -> Instance:
        """Takes a fresh instance, or one restored to be indistinguishable from it."""
        try:
            instance = self._instances.pop()
        except IndexError:
            return Instance(self._engine, self._image, memory_bytes)
        instance.limit(memory_bytes)
        return instance

    def put(self, instance: GuestInstance) -> None:
        """Returns an instance whose run has ended well; it is restored or freed."""
        if isinstance(instance, Instance) and self._can_reuse(instance):
            self._instances.append(instance)
        else:
            instance.close()

    def _can_reuse(self, instance: Instance) -> bool:
        """Restores an instance if the pool has room; False if that failed, or first has to be tried."""
        if self._works is None:
            with self._lock:
                if self._works is None:
                    self._try(instance)
            return False
        return self._works and len(self._instances) < _MOST_INSTANCES and self._restore(instance)

    def _try(self, instance: Instance) -> None:
        """Tries whether restoring works here, by comparing all memory with a fresh instance's: sets `_works`.

        Does nothing at a process's first run. The instance can't be reused: reading its memory has mapped all of it.
        """
        self._runs += 1
        if self._runs < _RUNS_BEFORE:
            return
        if not os.path.exists(_PAGE_MAP) or instance.memory.size > _MOST_MEMORY:
            self._works = False
            return
        fresh = Instance(self._engine, self._image, instance.memory.size)
        content = fresh.memory.read(0, fresh.memory.size)
        fresh.close()
        self._fresh = ctypes.create_string_buffer(content, len(content))
        restored = self._restore(instance)
        if restored or self._runs > _MOST_TRIES:  # else it has grown, or has written much: try with another
            self._works = restored and instance.memory.read(0, len(content)) == content

    def _restore(self, instance: Instance) -> bool:
        """Restores every written page; returns whether it could: not if the instance has grown or written much."""
        fresh, memory = self._fresh, instance.memory
        assert fresh is not None
        size = len(fresh)
        if memory.size != size:
            return False
        page = os.sysconf("SC_PAGESIZE")
        count = size // page
        entries = _read_page_map(memory.base // page * _ENTRY_BYTES, _ENTRY_BYTES * count)
        if len(entries) != _ENTRY_BYTES * count:
            return False
        written = entries[_ENTRY_BYTES - 1 :: _ENTRY_BYTES].translate(_IS_WRITTEN)
        if written.count(1) > _MOST_PAGES:
            return False
        source = ctypes.addressof(fresh)
        for match in _WRITTEN.finditer(written):
            first, end = match.span()
            ctypes.memmove(memory.base + first * page, source + first * page, (end - first) * page)
        return True


def _read_page_map(at: int, size: int) -> bytes:
    """Reads the page map, opened anew each time: after a fork, an open one still describes the parent.

    Returns nothing where it can't be read.
    """
    try:
        page_map = os.open(_PAGE_MAP, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.pread(page_map, size, at)
    except OSError:
        return b""
    finally:
        os.close(page_map)
