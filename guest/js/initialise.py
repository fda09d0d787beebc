"""Initialises a compiled engine, runs the build's own programs in it, and bakes its memory into an image."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from bake import bake

KEEP_EXPORTS = frozenset({"memory", "run", "inbox", "run_inbox"})
IMPORT_MODULE = "toolbridge"
_STACK_BYTES = 1 << 20
_SEED = "0" * 64


def initialise(raw: bytes, *, garbage_bytes: int, programs: Iterable[tuple[str, str]] = ()) -> bytes:
    """Bakes the image of the engine after its prelude and then each program (name, source) have run.

    `garbage_bytes`: a run's allocations before its first garbage collection.

    Raises:
        ValueError: the engine imports more than it may, or a program fails.
    """
    engine = _Engine(raw)
    engine.call("_initialize")
    engine.call("prepare")
    for name, source in programs:
        engine.run(name, source)
    engine.call("settle", garbage_bytes)
    return bake(raw, engine.memory_bytes(), engine.global_value, KEEP_EXPORTS)


class _Engine:
    """An instance of the compiled engine, whose only imports are the log and a stopped clock."""

    def __init__(self, raw: bytes) -> None:
        import wasmtime

        config = wasmtime.Config()
        config.max_wasm_stack = 2_000_000
        engine = wasmtime.Engine(config)
        module = wasmtime.Module(engine, raw)
        self._wasmtime = wasmtime
        self._store = wasmtime.Store(engine)
        self._messages: list[str] = []
        self._held = b""
        answers: dict[str, Callable[..., int | None]] = {"log": self._log, "now": _stopped_clock, "take": self._take}
        linker = wasmtime.Linker(engine)
        for item in module.imports:
            kind, name = item.type, item.name or ""
            if item.module != IMPORT_MODULE or not isinstance(kind, wasmtime.FuncType):
                raise ValueError(f"the image imports {item.module}.{name}: only {IMPORT_MODULE}.* is allowed")
            linker.define_func(IMPORT_MODULE, name, kind, answers.get(name, _refuse))
        self._exports = linker.instantiate(self._store, module).exports(self._store)

    @property
    def _memory(self) -> Any:
        memory = self._exports["memory"]
        assert isinstance(memory, self._wasmtime.Memory)
        return memory

    def _log(self, _stream: int, pointer: int, length: int) -> None:
        text = self._memory.read(self._store, pointer, pointer + length)
        self._messages.append(text.decode("utf-8", "replace"))

    def _take(self, pointer: int, length: int) -> int:
        self._memory.write(self._store, self._held, pointer)
        return length

    def _function(self, name: str) -> Any:
        function = self._exports[name]
        assert isinstance(function, self._wasmtime.Func)
        return function

    def call(self, name: str, *arguments: int) -> None:
        """Calls an export; raises ValueError unless it returns 0 or nothing."""
        status = self._function(name)(self._store, *arguments)
        if status:
            raise ValueError(f"{name}() answered {status}: " + "\n".join(self._messages))

    def run(self, name: str, source: str) -> None:
        """Runs a program by a run frame (guest/WIRE.md); its declarations stay. Raises ValueError if it fails."""
        frame = {"wire": 1, "source": source, "file": name, "seed": _SEED, "stack": _STACK_BYTES}
        self._held = json.dumps(frame).encode()
        packed = self._function("run")(self._store, len(self._held)) & (2**64 - 1)
        pointer, length = packed & 0xFFFFFFFF, packed >> 32
        if not pointer:
            raise ValueError(f"{name}: there was not enough memory to read the program")
        outcome = json.loads(bytes(self._memory.read(self._store, pointer, pointer + length)))
        if "failure" in outcome:
            raise ValueError(f"{name} failed: {outcome['failure']} " + "\n".join(self._messages))

    def memory_bytes(self) -> bytes:
        """Returns a copy of the memory."""
        return bytes(self._memory.read(self._store))

    def global_value(self, name: str) -> int:
        """Returns the value of an exported global."""
        value = self._exports[name]
        assert isinstance(value, self._wasmtime.Global)
        return int(value.value(self._store))


def _stopped_clock(_clock: int) -> int:
    return 0


def _refuse(*_arguments: int) -> int:
    raise RuntimeError("the image called the host while it was made")
