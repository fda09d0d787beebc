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
        form = engine_module._MODULE

        def spy_on_deserialise(engine: int, path: bytes, out: object) -> object:
            self.files.append(Path(os.path.realpath(os.fsdecode(path))))
            return form.deserialise(engine, path, out)

        def spy_on_compile(*arguments: object) -> object:
            self.compilations += 1
            return form.compile(*arguments)

        spied = form._replace(deserialise=spy_on_deserialise, compile=spy_on_compile)
        monkeypatch.setattr(engine_module, "_MODULE", spied)


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
    return engine_module._serialise(module.value, engine_module._MODULE)


def answer(directory: Path) -> int:
    """Loads or compiles the image in a new engine, and asks it who it is."""
    engine = Engine(CompileCache(directory))
    instance = Instance(engine.pointer, engine.image("javascript"), 2**20)
    answered = instance._call(instance._export(b"run"), 0, ticks=1000)
    instance.close()
    return answered


def entry(directory: Path) -> Path:
    (found,) = directory.glob("*" + SUFFIX)
    return found


def plant(directory: Path, image: GuestImage, content: bytes) -> Path:
    """An entry whose name is right in every respect, whatever is in it."""
    stored = CompileCache(directory).store(engine_module._cache_key(image), content)
    assert stored is not None
    return Path(stored)
