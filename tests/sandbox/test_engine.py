"""The engine: one per process, images compiled once and kept."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import toolbridge_guest
from toolbridge.errors import GuestImageError
from toolbridge.limits import MOST_STACK, Limits
from toolbridge.sandbox import engine as engine_module
from toolbridge.sandbox.compile_cache import CompileCache
from toolbridge.sandbox.engine import WASM_STACK_BYTES, Engine, shared_engine
from toolbridge.sandbox.instance import Instance


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> CompileCache:
    """A cache that holds the compiled image, so that only one of these tests pays for compiling it."""
    directory = tmp_path_factory.mktemp("compiled") / "cache"
    cache = CompileCache(directory)
    Engine(cache).image("javascript")
    return cache


def test_there_is_one_engine_per_process() -> None:
    assert shared_engine() is shared_engine()


def test_an_image_is_loaded_once() -> None:
    assert shared_engine().image("javascript") == shared_engine().image("javascript")


def test_a_cached_image_is_not_compiled_again(cache: CompileCache) -> None:
    notices: list[str] = []
    assert Engine(cache).image("javascript", notices.append)
    assert notices == []


def test_a_compilation_is_announced_and_its_code_kept(tmp_path: Path, tiny_image: None) -> None:
    notices: list[str] = []
    cache = CompileCache(tmp_path / "cache")
    assert Engine(cache).image("tiny", notices.append)
    assert Engine(cache).image("tiny", notices.append)
    assert notices == ["tiny"]
    assert [name.endswith(".cwasm") for name in os.listdir(tmp_path / "cache")] == [True]


def test_an_image_is_used_without_a_cache_when_there_is_no_place_for_one(tmp_path: Path, tiny_image: None) -> None:
    (tmp_path / "file").touch()
    assert Engine(CompileCache(tmp_path / "file" / "cache")).image("tiny")


def test_every_guest_thread_has_room_for_the_deepest_recursion() -> None:
    assert WASM_STACK_BYTES >= 32 * MOST_STACK
    assert shared_engine().threads._stack_bytes > WASM_STACK_BYTES


# ---- images that are not there, or not as they should be


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(toolbridge_guest, "_IMAGES", str(tmp_path))
    return tmp_path


def put_image(images: Path, code: bytes, digest: str | None = None) -> None:
    (images / "tiny.wasm").write_bytes(code)
    facts = {"language": "tiny", "sha256": digest or hashlib.sha256(code).hexdigest()}
    (images / "tiny.json").write_text(json.dumps(facts), encoding="utf-8")


@pytest.fixture
def tiny_image(images: Path) -> None:
    put_image(images, b"\0asm\1\0\0\0")


def test_a_language_without_an_image_is_an_error_that_says_what_to_do(images: Path) -> None:
    with pytest.raises(GuestImageError) as caught:
        shared_engine().image("cobol")
    assert str(caught.value) == (
        "The cobol guest image has not been built. In a checkout, run `make guest`; "
        "otherwise reinstall the toolbridge package."
    )
    assert caught.value.language == "cobol"


@pytest.mark.parametrize("manifest", ["", "[]", "{}", '{"sha256": 5}', '{"sha256": "abc"}', "\x00"])
def test_a_damaged_manifest_is_a_guest_image_error(images: Path, manifest: str) -> None:
    (images / "tiny.json").write_text(manifest, encoding="utf-8")
    with pytest.raises(GuestImageError, match=r"^The tiny guest image has a damaged manifest \("):
        shared_engine().image("tiny")


def test_an_image_that_is_not_what_its_manifest_says_is_not_compiled(images: Path, tmp_path: Path) -> None:
    put_image(images, b"\0asm\1\0\0\0", digest="0" * 64)
    with pytest.raises(GuestImageError, match=r"is damaged: its content doesn't match its manifest"):
        Engine(CompileCache(tmp_path / "cache")).image("tiny")


def test_an_image_whose_file_is_missing_is_a_guest_image_error(images: Path, tmp_path: Path) -> None:
    put_image(images, b"\0asm\1\0\0\0")
    (images / "tiny.wasm").unlink()
    with pytest.raises(GuestImageError, match=r"can't be read \(No such file or directory\)"):
        Engine(CompileCache(tmp_path / "cache")).image("tiny")


def test_an_image_that_imports_anything_else_is_not_linked(images: Path, tmp_path: Path) -> None:
    import wasmtime

    code = wasmtime.wat2wasm('(module (import "wasi_snapshot_preview1" "fd_write" (func)))')
    put_image(images, bytes(code))
    with pytest.raises(engine_module.EngineError, match=r"^Wasmtime failed to link the guest image: .*wasi_snapshot"):
        Engine(CompileCache(tmp_path / "cache")).image("tiny")


@pytest.mark.parametrize(
    "wat",
    [
        "(module (memory 1) (memory 1))",
        "(module (memory i64 1))",
        "(module (memory 1 1 shared))",
        "(module (func (result v128) (v128.const i64x2 0 0)))",
    ],
)
def test_webassembly_that_our_images_do_not_need_is_switched_off(images: Path, tmp_path: Path, wat: str) -> None:
    import wasmtime

    put_image(images, bytes(wasmtime.wat2wasm(wat)))
    with pytest.raises(engine_module.EngineError, match=r"^Wasmtime failed to compile the tiny guest image"):
        Engine(CompileCache(tmp_path / "cache")).image("tiny")


def test_an_image_without_the_exports_that_we_use_is_an_engine_error(tiny_image: None, tmp_path: Path) -> None:
    engine = Engine(CompileCache(tmp_path / "cache"))
    with pytest.raises(engine_module.EngineError, match="the image doesn't export memory"):
        Instance(engine.pointer, engine.image("tiny"), Limits().memory_bytes)


FORK = """
import os, warnings
warnings.simplefilter("ignore")
from toolbridge import Sandbox
with Sandbox() as sandbox:
    assert sandbox.run_sync("1").value == 1
    child = os.fork()
    value = sandbox.run_sync("6 * 7").value
    if child == 0:
        os._exit(value)
    print(value, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is for POSIX")
def test_a_forked_child_makes_an_engine_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, encoding="utf-8", timeout=30, check=True)
    assert (done.stdout, done.stderr) == ("42 42\n", "")
