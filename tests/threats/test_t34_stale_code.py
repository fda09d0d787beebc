"""T34, poisoned compile cache: code of another version, engine or image is not loaded, and there need be no cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import wasmtime

from threats.tiny_cache import WAT, Loads, answer, entry, plant, use_image
from toolbridge.boundary import library
from toolbridge.sandbox import engine as engine_module
from toolbridge.sandbox.compile_cache import SUFFIX
from toolbridge_guest import GuestImage

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX's")


@pytest.mark.parametrize("change", ["version", "library", "settings", "image"])
def test_an_entry_of_another_version_settings_or_image_is_not_loaded(
    tmp_path: Path, image: GuestImage, loads: Loads, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    directory = tmp_path / "cache"
    answer(directory)
    if change == "version":
        monkeypatch.setattr(library, "WASMTIME_VERSION", "49.0.0")
    elif change == "library":
        shutil.copyfile(library.LIBRARY_PATH, tmp_path / "library.so")
        monkeypatch.setattr(library, "LIBRARY_PATH", str(tmp_path / "library.so"))
    elif change == "settings":
        monkeypatch.setattr(engine_module, "_SETTINGS", "others")
    else:
        code = bytes(wasmtime.wat2wasm(WAT.replace("7", "8")))
        (tmp_path / "other.wasm").write_bytes(code)
        other = GuestImage("javascript", str(tmp_path / "other.wasm"), hashlib.sha256(code).hexdigest())
        use_image(monkeypatch, other)
    assert answer(directory) == (8 if change == "image" else 7)
    assert (loads.files, loads.compilations) == ([], 2)


def test_code_for_another_engine_is_refused_removed_and_made_anew(
    directory: Path, image: GuestImage, loads: Loads
) -> None:
    """Right name, right digest, but made with other settings: Wasmtime's own check is the last one."""
    foreign = wasmtime.Module(wasmtime.Engine(), WAT).serialize()
    planted = plant(directory, image, bytes(foreign))
    assert answer(directory) == 7
    assert loads.files == [planted]
    assert loads.compilations == 1
    assert entry(directory) != planted


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"not code", b"\0" * 5000], ids=["empty", "ELF", "text", "zeros"])
def test_what_is_no_code_at_all_is_refused(directory: Path, image: GuestImage, loads: Loads, content: bytes) -> None:
    planted = plant(directory, image, content)
    assert answer(directory) == 7
    assert loads.compilations == 1
    assert not planted.exists()


# ---- without a cache, and with two at once


def test_a_directory_that_cannot_be_written_is_done_without(tmp_path: Path, image: GuestImage, loads: Loads) -> None:
    directory = Path("/proc/toolbridge-cache") if os.geteuid() == 0 else tmp_path / "read-only" / "cache"
    if os.geteuid() != 0:
        (tmp_path / "read-only").mkdir(mode=0o500)
    assert (answer(directory), answer(directory)) == (7, 7)
    assert (loads.files, loads.compilations) == ([], 2)


RUN = "from toolbridge import Sandbox; print(Sandbox().run_sync('6 * 7').value)"


def run_in_process(**environment: str) -> subprocess.Popen[str]:
    variables = {**os.environ, **environment}
    variables = {name: value for name, value in variables.items() if value}
    return subprocess.Popen(
        [sys.executable, "-c", RUN], env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    )


def test_two_processes_that_compile_at_once_do_not_collide(directory: Path) -> None:
    processes = [run_in_process(TOOLBRIDGE_CACHE_DIR=str(directory)) for _ in range(2)]
    outputs = [process.communicate(timeout=60) for process in processes]
    assert outputs == [("42\n", "")] * 2
    assert all(name.endswith(SUFFIX) for name in os.listdir(directory))
    entries = {path: path.stat().st_mtime_ns for path in directory.glob("*" + SUFFIX)}
    assert run_in_process(TOOLBRIDGE_CACHE_DIR=str(directory)).communicate(timeout=60) == ("42\n", "")
    assert {path: path.stat().st_mtime_ns for path in directory.glob("*" + SUFFIX)}.keys() == entries.keys()


def test_without_a_home_directory_it_works_without_a_cache() -> None:
    process = run_in_process(TOOLBRIDGE_CACHE_DIR="", XDG_CACHE_HOME="", HOME="/nonexistent")
    output, errors = process.communicate(timeout=60)
    assert output == "42\n"
    assert "Traceback" not in errors
