"""The engine: Wasmtime configured for hostile code, one per process, with epoch interruption and compiled images."""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from toolbridge.boundary import library
from toolbridge.boundary.imports import define_imports
from toolbridge.boundary.run_time import Ticks
from toolbridge.errors import EngineError, GuestImageError
from toolbridge.limits import MOST_STACK
from toolbridge.sandbox.compile_cache import CompileCache, entry_key
from toolbridge.sandbox.instance import Image, InstancePool
from toolbridge.sandbox.scheduler import STACK_HEADROOM, GuestThreads
from toolbridge_guest import GuestImage, guest_image

if TYPE_CHECKING:
    from toolbridge.sandbox.component_instance import ComponentImage
    from toolbridge.sandbox.instance import GuestInstance


TICK_SECONDS = 0.005
# Idle ticks before the ticker sleeps: consecutive runs needn't wake it each time.
_LINGER_TICKS = 10


class EpochTicker:
    """Thread that advances the engine's epoch while runs are active (epoch interruption), and sleeps otherwise."""

    def __init__(self, engine: int) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._active = 0
        self.ticks = Ticks(TICK_SECONDS)

    @property
    def is_ticking(self) -> bool:
        """Whether the epoch is advancing."""
        return self._thread is not None and self._wake.is_set()

    def enter(self) -> None:
        """Counts a run as active, and starts or wakes the ticker."""
        with self._lock:
            self._active += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._tick, name="toolbridge-ticker", daemon=True)
                self._thread.start()
            if not self._wake.is_set():
                self._wake.set()

    def leave(self) -> None:
        """Counts a run as ended; the ticker sleeps soon after the last."""
        with self._lock:
            self._active -= 1

    def _tick(self) -> None:
        """Runs forever on the ticker's thread: advances epoch and ticks while runs are active, else sleeps."""
        idle = 0
        counted_until = time.monotonic()
        while True:
            if not self._wake.is_set():
                self._wake.wait()
                counted_until = time.monotonic()
            time.sleep(TICK_SECONDS)
            library.engine_increment_epoch(self._engine)
            # Where the host's threads are busy, this thread is late: it counts missed ticks too.
            passed = max(1, int((time.monotonic() - counted_until) / TICK_SECONDS))
            counted_until += passed * TICK_SECONDS
            self.ticks.count += passed
            if self._active:
                idle = 0
                continue
            idle += 1
            if idle > _LINGER_TICKS:
                with self._lock:
                    if not self._active:
                        self._wake.clear()


# Measured: with a native stack of 32 times the engine's own, no recursion overruns it first.
WASM_STACK_BYTES = 32 * MOST_STACK
# Stack of a fiber (instance.py). The library's own code runs on it too.
_FIBER_STACK_BYTES = WASM_STACK_BYTES + STACK_HEADROOM
_OPTIMISE_FOR_SPEED = 1

# Part of the cache key: change it with the configuration below.
_SETTINGS = f"epoch speed core-1 fixed-memory stack={WASM_STACK_BYTES}"

CompileNotice = Callable[[str], object]
"""A plain or async function, called with an image's language before a compilation that takes seconds."""


class _Form(NamedTuple):
    """Functions that compile, serialise and load an image of one form: module or component."""

    compile: Callable[..., Any]
    serialise: Callable[..., Any]
    deserialise: Callable[..., Any]


_MODULE = _Form(library.module_new, library.module_serialize, library.module_deserialize_file)


def _component() -> _Form:
    """Returns the functions for components; imported here, as only Python runs need them."""
    from toolbridge.boundary import component_imports as components

    return _Form(components.component_new, components.component_serialize, components.component_deserialize_file)


def _new_engine() -> int:
    """Creates Wasmtime's engine with our settings; raises EngineError where it has no support."""
    config = library.config_new()
    library.config_epoch_interruption_set(config, True)
    library.config_async_stack_size_set(config, _FIBER_STACK_BYTES)
    library.config_max_wasm_stack_set(config, WASM_STACK_BYTES)
    library.config_cranelift_opt_level_set(config, _OPTIMISE_FOR_SPEED)
    library.config_memory_may_move_set(config, False)  # GuestMemory relies on it
    # Our images need plain WebAssembly; other features only add attack surface.
    for switch_off in (
        library.config_wasm_threads_set,
        library.config_wasm_tail_call_set,
        library.config_wasm_exceptions_set,
        library.config_wasm_gc_set,
        library.config_wasm_function_references_set,
        library.config_wasm_relaxed_simd_set,
        library.config_wasm_simd_set,
        library.config_wasm_multi_memory_set,
        library.config_wasm_memory64_set,
    ):
        switch_off(config, False)
    engine = library.engine_new_with_config(config)
    if not engine:
        raise EngineError("start", "no engine for this platform")
    return engine


class Guests(NamedTuple):
    """Supply of guest instances for one run."""

    engine: Engine
    take: Callable[[], GuestInstance]
    """Takes or makes a fresh instance."""
    put: Callable[[Any], None]
    """Takes back the instance of a run that has ended well."""


class Engine:
    """Wasmtime's engine with its ticker, guest threads, compiled images and instance pools."""

    def __init__(self, cache: CompileCache | None = None) -> None:
        self.pointer = _new_engine()
        self.ticker = EpochTicker(self.pointer)
        self.threads = GuestThreads(WASM_STACK_BYTES)
        self._cache = cache or CompileCache()
        self._linker = library.linker_new(self.pointer)
        define_imports(self._linker, self.pointer)
        # One per image: a small image doesn't wait while a large one is compiled.
        self._locks: dict[str, threading.Lock] = {}
        self._ready: dict[str, Image] = {}
        self._pools: dict[str, InstancePool] = {}
        self._python: ComponentImage | None = None

    def image(self, language: str, on_compile: CompileNotice | None = None) -> Image:
        """Loads the image of a language, compiled and linked. Blocks while it is compiled. Thread-safe.

        Raises:
            GuestImageError: the image is missing or damaged.
            EngineError: it can't be compiled or linked.
        """
        ready = self._ready.get(language)
        if ready is None:
            with self._lock_of(language):
                ready = self._ready.get(language)
                if ready is None:
                    ready = self._link(self._load(_find_image(language), _MODULE, on_compile))
                    self._ready[language] = ready
        return ready

    def guests(self, language: str, memory_bytes: int, on_compile: CompileNotice | None = None) -> Guests:
        """Returns the guests of a language, each with at most so much memory. Blocks while its image is compiled.

        Raises:
            GuestImageError: the image is missing or damaged.
        """
        if language == "python":
            from toolbridge.sandbox.component_instance import ComponentInstance

            image = self.python_image(on_compile)
            take = partial(ComponentInstance, self.pointer, image, memory_bytes)
            return Guests(self, take, ComponentInstance.close)
        pool = self.pool(language, on_compile)
        return Guests(self, partial(pool.take, memory_bytes), pool.put)

    def pool(self, language: str, on_compile: CompileNotice | None = None) -> InstancePool:
        """Returns the instance pool of a language, made on first use. Blocks while its image is compiled.

        Raises:
            GuestImageError: the image is missing or damaged.
        """
        pool = self._pools.get(language)
        if pool is None:
            pool = self._pools.setdefault(language, InstancePool(self.pointer, self.image(language, on_compile)))
        return pool

    def is_ready(self, language: str) -> bool:
        """Returns whether an image is loaded already: loading may take a dozen seconds."""
        return self._python is not None if language == "python" else language in self._ready

    def python_image(self, on_compile: CompileNotice | None = None) -> ComponentImage:
        """Loads the Python image, which is a component. Blocks while it is compiled. Thread-safe.

        Raises:
            GuestImageError: the image is missing or damaged.
            EngineError: it can't be compiled or linked.
        """
        if self._python is None:
            with self._lock_of("python"):
                if self._python is None:
                    from toolbridge.sandbox.component_instance import ComponentImage

                    image = _find_image("python")
                    component = self._load(image, _component(), on_compile, check=self._check_python)
                    self._python = ComponentImage(self.pointer, component)
        return self._python

    def _check_python(self, component: int) -> None:
        """Raises EngineError if a compiled Python image can block its host, or has clocks that were not granted."""
        from toolbridge.sandbox.component_instance import ComponentImage, check_component

        check_component(self, ComponentImage(self.pointer, component))

    def _lock_of(self, language: str) -> threading.Lock:
        return self._locks.setdefault(language, threading.Lock())

    def _link(self, module: int) -> Image:
        """Resolves the imports of a compiled image; raises EngineError for one that we don't define."""
        pre = ctypes.c_void_p()
        library.check(library.linker_instantiate_pre(self._linker, module, ctypes.byref(pre)), "link the guest image")
        assert pre.value
        return Image(pre.value)

    def _load(
        self,
        image: GuestImage,
        form: _Form,
        on_compile: CompileNotice | None,
        *,
        check: Callable[[int], None] | None = None,
    ) -> int:
        """Loads code from the cache, or compiles it (blocking) and stores it, after calling `on_compile`.

        `check` raises if newly compiled code must not be used.

        Raises:
            GuestImageError: the image can't be read, or is damaged.
            EngineError: it can't be compiled.
        """
        key = _cache_key(image)
        module = self._find(key, form)
        if module is not None:
            return module
        if on_compile is not None:
            from toolbridge.callbacks import call_in_thread

            call_in_thread(on_compile, image.language)
        with self._cache.turn(key):
            module = self._find(key, form)  # compiled by another process meanwhile
            if module is None:
                module = self._compile(image, form)
                if check is not None:
                    check(module)
                self._cache.store(key, _serialise(module, form))
        return module

    def _find(self, key: str, form: _Form) -> int | None:
        """Loads code from the cache; None if there is none. Discards an entry that can't be loaded."""
        with self._cache.find(key) as entry:
            if entry is None:
                return None
            module = self._deserialise(entry.loadable, form)
            if module is None:
                self._cache.discard(entry.path)  # compiled for another processor, for instance
            return module

    def _deserialise(self, path: str, form: _Form) -> int | None:
        """Loads compiled code from a file; None if the library refuses it."""
        module = ctypes.c_void_p()
        error = form.deserialise(self.pointer, os.fsencode(path), ctypes.byref(module))
        if error:
            library.error_delete(error)
            return None
        return module.value

    def _compile(self, image: GuestImage, form: _Form) -> int:
        """Reads, verifies and compiles an image, for seconds; raises GuestImageError if it is unreadable or damaged."""
        try:
            with open(image.path, "rb") as file:
                code = file.read()
        except OSError as error:
            raise GuestImageError(image.language, f"can't be read ({error.strerror})") from error
        if hashlib.sha256(code).hexdigest() != image.sha256:
            raise GuestImageError(image.language, "is damaged: its content doesn't match its manifest")
        module = ctypes.c_void_p()
        error = form.compile(self.pointer, code, len(code), ctypes.byref(module))
        library.check(error, f"compile the {image.language} guest image")
        assert module.value
        return module.value


def _find_image(language: str) -> GuestImage:
    """Returns the built image of a language; raises GuestImageError if it is missing or its manifest damaged."""
    try:
        image = guest_image(language)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise GuestImageError(language, f"has a damaged manifest ({error})") from error
    if image is None:
        raise GuestImageError(language, "has not been built")
    return image


def _cache_key(image: GuestImage) -> str:
    """Returns the key of an image in the compile cache: a hash of image, library, settings and platform."""
    facts = os.stat(library.LIBRARY_PATH)
    build = f"{library.WASMTIME_VERSION} {facts.st_size} {facts.st_mtime_ns}"
    machine = os.uname().machine if hasattr(os, "uname") else os.environ.get("PROCESSOR_ARCHITECTURE", "")
    return entry_key(image.sha256, build, _SETTINGS, sys.platform, machine)


def _serialise(module: int, form: _Form) -> bytes:
    """Returns a compiled image as bytes for the cache; raises EngineError if the library can't."""
    vector = library.ByteVector()
    library.check(form.serialise(module, ctypes.byref(vector)), "serialise the compiled image")
    return library.take_bytes(vector)


_shared: Engine | None = None
_shared_lock = threading.Lock()


def shared_engine() -> Engine:
    """Returns the engine of this process, created on first use. Thread-safe."""
    global _shared
    if _shared is None:
        with _shared_lock:
            if _shared is None:
                _shared = Engine()
    return _shared


def _forget_engine() -> None:
    """Forgets the engine after a fork: the child has none of its threads, and creates its own on first use."""
    global _shared, _shared_lock
    _shared = None
    _shared_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_engine)
