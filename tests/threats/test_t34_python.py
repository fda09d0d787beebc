"""T34, poisoned compile cache: the Python image is a component, and its compiled code is guarded in the same way."""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import wasmtime

from threats.tiny_cache import entry
from toolbridge.boundary import library
from toolbridge.errors import GuestImageError
from toolbridge.sandbox import engine as engine_module
from toolbridge.sandbox.compile_cache import CompileCache
from toolbridge.sandbox.engine import Engine
from toolbridge_guest import GuestImage

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX's")

WAT = """(component
  (core module $m (memory (export "memory") 1) (func (export "run") (result i32) (i32.const 7)))
  (core instance $i (instantiate $m))
  (func (export "run") (result u32) (canon lift (core func $i "run"))))"""


class Loaded:
    """Which files were loaded, and how often code was compiled."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.files: list[Path] = []
        self.compilations = 0
        form = engine_module._component()

        def deserialise(engine: int, path: bytes, out: object) -> object:
            self.files.append(Path(os.path.realpath(os.fsdecode(path))))
            return form.deserialise(engine, path, out)

        def compile_it(*arguments: object) -> object:
            self.compilations += 1
            return form.compile(*arguments)

        spied = form._replace(deserialise=deserialise, compile=compile_it)
        monkeypatch.setattr(engine_module, "_component", lambda: spied)


@pytest.fixture
def component(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GuestImage:
    """A tiny image in place of Python's, which takes a dozen seconds to compile."""
    code = bytes(wasmtime.wat2wasm(WAT))
    (tmp_path / "tiny.wasm").write_bytes(code)
    image = GuestImage("python", str(tmp_path / "tiny.wasm"), hashlib.sha256(code).hexdigest())

    def find(_language: str) -> GuestImage:
        return image

    def runs_nothing(_engine: Engine, _component: int) -> None:
        """It is too small for the programs that Python is tried with."""

    monkeypatch.setattr(engine_module, "guest_image", find)
    monkeypatch.setattr(Engine, "_check_python", runs_nothing)
    return image


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> Loaded:
    return Loaded(monkeypatch)


def load(directory: Path) -> None:
    assert Engine(CompileCache(directory)).python_image().run


def other_code() -> bytes:
    """A component that this very engine has compiled: only its place in the cache is wrong."""
    engine = engine_module._new_engine()
    code = bytes(wasmtime.wat2wasm(WAT.replace("7", "666")))
    component = ctypes.c_void_p()
    form = engine_module._component()
    library.check(form.compile(engine, code, len(code), ctypes.byref(component)), "compile")
    assert component.value
    return engine_module._serialise(component.value, form)


def spoil_by_one_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def spoil_by_truncation(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def spoil_by_other_code(path: Path) -> None:
    path.write_bytes(other_code())


def spoil_by_group_access(path: Path) -> None:
    path.chmod(0o620)


def spoil_by_link(path: Path) -> None:
    target = path.with_name("target")
    path.rename(target)
    path.symlink_to(target)


def spoil_by_directory_for_all(path: Path) -> None:
    path.parent.chmod(0o777)


def test_compiled_code_of_our_own_is_loaded(directory: Path, component: GuestImage, loaded: Loaded) -> None:
    load(directory)
    load(directory)
    assert (loaded.compilations, loaded.files) == (1, [entry(directory)])


@pytest.mark.parametrize(
    "spoil",
    [
        *(spoil_by_one_bit, spoil_by_truncation, spoil_by_other_code),
        *(spoil_by_group_access, spoil_by_link, spoil_by_directory_for_all),
    ],
)
def test_code_that_somebody_could_have_changed_is_not_loaded(
    directory: Path, component: GuestImage, loaded: Loaded, spoil: Callable[[Path], None]
) -> None:
    load(directory)
    before = loaded.compilations
    spoil(entry(directory))
    before = loaded.compilations if spoil is spoil_by_other_code else before
    load(directory)
    assert (loaded.compilations, loaded.files) == (before + 1, [])


def test_a_module_in_a_components_place_is_refused(directory: Path, component: GuestImage, loaded: Loaded) -> None:
    """Right name, right digest, but of the other form: Wasmtime's own check is the last one."""
    module = wasmtime.Module(wasmtime.Engine(), "(module)").serialize()
    planted = CompileCache(directory).store(engine_module._cache_key(component), bytes(module))
    assert planted is not None
    load(directory)
    assert (loaded.compilations, loaded.files) == (1, [Path(planted)])
    assert not Path(planted).exists()


def test_an_image_that_is_not_what_its_manifest_says_is_never_compiled(
    directory: Path, component: GuestImage, loaded: Loaded
) -> None:
    Path(component.path).write_bytes(bytes(wasmtime.wat2wasm(WAT.replace("7", "8"))))
    with pytest.raises(GuestImageError, match="is damaged"):
        load(directory)
    assert (loaded.compilations, loaded.files) == (0, [])
