"""A compile cache with a tiny image, for attacks on it: what is loaded, and who answers."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest
import wasmtime

from toolbridge.boundary import library
from toolbridge.sandbox import engine as engine_module
from toolbridge.sandbox.compile_cache import SUFFIX, CompileCache
from toolbridge.sandbox.engine import Engine
from toolbridge.sandbox.instance import Instance
from toolbridge_guest import GuestImage

WAT = '(module (memory (export "memory") 1) (func (export "run") (param i32) (result i64) (i64.const 7)))'
EVIL_WAT = WAT.replace("7", "666")


class Loads:
    """Which files were loaded, and how often code was compiled."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.files: list[Path] = []
        self.compilations = 0
        deserialise, compile_module = library.module_deserialize_file, library.module_new

        def spy_on_deserialise(engine: int, path: bytes, out: object) -> object:
            self.files.append(Path(os.fsdecode(path)))
            return deserialise(engine, path, out)

        def spy_on_compile(*arguments: object) -> object:
            self.compilations += 1
            return compile_module(*arguments)

        monkeypatch.setattr(library, "module_deserialize_file", spy_on_deserialise)
        monkeypatch.setattr(library, "module_new", spy_on_compile)


def use_image(monkeypatch: pytest.MonkeyPatch, image: GuestImage) -> None:
    """Makes an image the one for JavaScript."""

    def find(_language: str) -> GuestImage:
        return image

    monkeypatch.setattr(engine_module, "guest_image", find)


def compiled(wat: str) -> bytes:
    """What this engine makes of a module: code that it would load without complaint."""
    engine = engine_module._new_engine()
    code = bytes(wasmtime.wat2wasm(wat))
    module = ctypes.c_void_p()
    library.check(library.module_new(engine, code, len(code), ctypes.byref(module)), "compile")
    assert module.value
    return engine_module._serialise(module.value)


def answer(directory: Path) -> int:
    """Loads or compiles the image in a new engine, and asks it who it is."""
    engine = Engine(CompileCache(directory))
    instance = Instance(engine.pointer, engine.image("javascript"), 2**20)
    slots = (ctypes.c_uint64 * 2)()
    trap = ctypes.c_void_p()
    export = ctypes.addressof(instance._run_export) + 8
    error = library.func_call_unchecked(instance._context, export, ctypes.addressof(slots), 1, ctypes.byref(trap))
    assert not error
    assert not trap.value
    instance.close()
    return slots[0]


def entry(directory: Path) -> Path:
    (found,) = directory.glob("*" + SUFFIX)
    return found


def plant(directory: Path, image: GuestImage, content: bytes) -> Path:
    """An entry whose name is right in every respect, whatever is in it."""
    stored = CompileCache(directory).store(engine_module._cache_key(image), content)
    assert stored is not None
    return Path(stored)
