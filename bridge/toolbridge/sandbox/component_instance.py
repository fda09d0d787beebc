"""Instances of a component image, the Python guest: the counterpart of `instance.py`."""

from __future__ import annotations

import ctypes
import re
from ctypes import c_void_p
from typing import TYPE_CHECKING

from toolbridge.boundary import component_imports as components
from toolbridge.boundary import library
from toolbridge.boundary.component_imports import FIRST, ComponentExchange, define_component_imports
from toolbridge.boundary.host_call import HostSide
from toolbridge.boundary.imports import current, epoch_callback
from toolbridge.boundary.run_state import RunState
from toolbridge.errors import EngineError
from toolbridge.limits import Limits
from toolbridge.sandbox.execution import Execution
from toolbridge.sandbox.instance import STACK_OVERFLOW, GuestTrap, Steps
from toolbridge.sandbox.outcome import PYTHON, RunResult
from toolbridge.sandbox.scheduler import TaskScheduler

if TYPE_CHECKING:
    from toolbridge.sandbox.engine import Engine


_EACH_TICK = 1
_NO_TICK = 1 << 40
_UNLIMITED = -1
# CPython and its libraries are some thirty modules that share one memory.
_MOST_INSTANCES, _MOST_TABLES, _MOST_MEMORIES = 200, 50, 10

_STACK_EXHAUSTED = re.compile(r"wasm trap: call stack exhausted|memory fault at wasm address 0xff[0-9a-f]{6}\b")
"""The engine's stack, or the C code's, which lies where the guest's memory begins and overflows below address 0."""
_DENIED = re.compile(r"unknown import: `wasi:([a-z]+)/([a-z-]+)")
_RUN = b"run"


class ComponentImage:
    """A guest image, compiled and linked."""

    __slots__ = ("component", "linker", "run")

    def __init__(self, engine: int, component: int) -> None:
        self.component = component
        self.linker: int = components.component_linker_new(engine)
        define_component_imports(self.linker, component)
        self.run: int | None = components.component_get_export_index(component, None, _RUN, len(_RUN))
        if self.run is None:
            raise EngineError("link the guest image", "the image doesn't export run")


class ComponentInstance:
    """A guest. Used by one thread at a time; unusable after a trap."""

    _store: int | None = None

    def __init__(self, engine: int, image: ComponentImage, memory_bytes: int) -> None:
        self.memory = ComponentExchange()
        self._store = library.store_new(engine, None, library.NO_FINALIZER)
        limits = (memory_bytes, _UNLIMITED, _MOST_INSTANCES, _MOST_TABLES, _MOST_MEMORIES)
        library.store_limiter(self._store, *limits)
        self._context: int = library.store_context(self._store)
        self._instance = components.InstanceBuffer()
        self._function = components.FunctionBuffer()
        self._outcome = b""
        library.store_epoch_deadline_callback(self._store, epoch_callback, None, library.NO_FINALIZER)
        # Instantiating runs code of the image, before any run that an epoch tick could belong to.
        library.context_set_epoch_deadline(self._context, _NO_TICK)
        try:
            self._instantiate(image)
        except BaseException:
            self.close()
            raise

    def _instantiate(self, image: ComponentImage) -> None:
        """Instantiates the image and looks up its `run`; raises EngineError if either fails."""
        instance = ctypes.addressof(self._instance)
        error = components.component_linker_instantiate(image.linker, self._context, image.component, instance)
        if error:
            library.check(error, "instantiate the guest")
        function = ctypes.addressof(self._function)
        if not components.component_instance_get_func(instance, self._context, image.run, function):
            raise EngineError("instantiate the guest", "the image doesn't export run")

    def run(self, state: RunState, frame: bytes, here: bool) -> Steps:
        """Runs the program of a run frame; returns pointer and length of the outcome frame, for `memory.read`.

        `here`: on a thread that guest code must not block, so it yields first, to continue on a guest thread.

        Raises:
            GuestTrap: the guest was stopped; the instance must not be used again.
        """
        if here:
            yield None
        self.memory.begin(frame)
        state.memory = self.memory
        current.run = state
        state.enter_guest()
        try:
            self._outcome = self._call(frame)
            state.leave_guest()
        finally:
            current.run = None
            del state.memory
        self._kept = ctypes.c_char_p(self._outcome)
        address = ctypes.cast(self._kept, c_void_p).value
        return FIRST, self.memory.receive(address, len(self._outcome))

    def _call(self, frame: bytes) -> bytes:
        """Calls `run` on this thread and returns the outcome frame; raises GuestTrap if the guest was stopped."""
        argument, result = components.ComponentValue(), components.ComponentValue()
        components.set_string(argument, frame)
        library.context_set_epoch_deadline(self._context, _EACH_TICK)
        try:
            function = ctypes.addressof(self._function)
            error = components.component_func_call(
                *(function, self._context, ctypes.byref(argument), 1, ctypes.byref(result), 1)
            )
        finally:
            components.component_value_delete(ctypes.byref(argument))
        if error:
            raise _trap(library.take_error(error))
        content = ctypes.string_at(result.data, result.size) if result.data and result.size else b""
        components.component_value_delete(ctypes.byref(result))
        return content

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


def _trap(message: str) -> GuestTrap:
    """Makes a GuestTrap of the library's message: a stack overflow, a denied WASI function, or a crash."""
    if _STACK_EXHAUSTED.search(message):
        return GuestTrap(STACK_OVERFLOW, message)
    denied = _DENIED.search(message)
    asked = f"{denied[1]}/{denied[2]}" if denied else ""
    # A crashing interpreter reports that on stderr.
    return GuestTrap(None, message, denied=asked if asked != "cli/stderr" else "")


# SECURITY: tries that a compiled Python image can't block its host or read real clocks, before it is cached (T31).
#
# CPython imports WASI functions that block, or tell the real time. Whether they are ours, or traps, depends on how
# image and Wasmtime spell the names and versions of WASI interfaces, so each compiled image is tried once; those in the
# compile cache have been tried.


_LIMITS = Limits(wall_seconds=30.0, cpu_seconds=20.0)
_TIME = 1_234_567_890.0
_CLOCKS_AND_RANDOM = "import os, time\n[time.time(), time.monotonic() < 60, len(os.urandom(8))]"
# CPython's own `time` module, without our replacements.
_SLEEP = """
import _imp, importlib.machinery
module = _imp.create_builtin(importlib.machinery.ModuleSpec("time", importlib.machinery.BuiltinImporter))
_imp.exec_builtin(module)
module.sleep(1)
"""


def check_component(engine: Engine, image: ComponentImage) -> None:
    """Tries a compiled image with two small programs; blocks until they have run.

    Raises:
        EngineError: it can block its host, or has clocks or random numbers that were not granted.
    """
    result = _run(engine, image, _CLOCKS_AND_RANDOM)
    if result.value != [_TIME, True, 8]:
        found = result.failure.message if result.failure is not None else repr(result.value)
        raise EngineError("give the python guest image its clocks and random numbers", found)
    result = _run(engine, image, _SLEEP)
    if result.failure is None or result.failure.kind != "denied":
        found = (
            result.failure.message if result.failure is not None else "it slept at the system, and so it can block us"
        )
        raise EngineError("keep the python guest image from blocking its host", found)


def _run(engine: Engine, image: ComponentImage, source: str) -> RunResult:
    """Runs a program in a new guest without host functions, and blocks until its result."""
    from toolbridge.sandbox.sandbox import wait_for  # which imports the engine, and so this module

    def no_loop(_task: object) -> None:
        raise RuntimeError("nothing is called here")

    execution = Execution(
        engine=engine,
        dialect=PYTHON,
        source=source,
        seed=bytes(32),
        limits=_LIMITS,
        host=HostSide({}),
        scheduler=TaskScheduler(_LIMITS, no_loop),
        clock=lambda: _TIME,
        new_instance=lambda: ComponentInstance(engine.pointer, image, _LIMITS.memory_bytes),
    )
    return wait_for(execution)
