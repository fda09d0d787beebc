"""The Python image: its build, errors without it, and the host's checks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import build as guest_build
import toolbridge_guest
from build import OPTIONAL, RECIPES, BuildError, Workshop
from python import recipe
from toolbridge import Limits, Sandbox
from toolbridge.errors import GuestImageError, LanguageError, LimitsError
from toolbridge.sandbox import engine as engine_module
from toolbridge.sandbox.compile_cache import CompileCache
from toolbridge.sandbox.engine import Engine
from toolbridge.sandbox.outcome import DIALECTS, PYTHON


@pytest.fixture
def empty_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CACHE", "IMAGES", "NOTICES"):
        monkeypatch.setattr(guest_build, name, tmp_path / name.lower())
    return tmp_path


def fail(_workshop: Workshop) -> bytes:
    raise BuildError("no network")


def test_every_language_that_can_be_run_has_a_recipe() -> None:
    assert RECIPES.keys() == DIALECTS.keys()
    assert OPTIONAL.keys() == {"python", "typescript"}


def test_what_is_fetched_is_pinned_by_version_and_hash() -> None:
    text = (recipe.HERE / "builder.txt").read_text(encoding="utf-8")
    wanted = re.findall(r"^([a-z-]+)==[\d.]+ \\$", text, re.MULTILINE)
    assert wanted == ["componentize-py", "tzdata"]
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}", text)) == 6


def test_every_file_of_the_runner_is_an_input() -> None:
    names = {path.name for path in recipe.inputs()}
    assert {"guest.wit", "builder.txt", "recipe.py", "runner.py", "values.py"} <= names
    assert set((recipe.HERE / "_toolbridge").glob("*.py")) <= set(recipe.inputs())


def test_an_image_that_can_t_be_built_is_a_warning_and_the_old_one_is_gone(
    empty_tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = empty_tree / "images"
    images.mkdir()
    for suffix in ("json", "wasm"):
        (images / f"python.{suffix}").write_text("old", encoding="utf-8")
    monkeypatch.setattr(recipe, "make", fail)
    problem = guest_build.build_if_possible("python")
    assert problem.startswith("no network")
    assert "only programs in Python can't be run" in problem
    assert list(images.iterdir()) == []


def test_the_command_goes_on_without_it_but_not_when_it_is_asked_for(
    empty_tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(recipe, "make", fail)
    monkeypatch.setattr(guest_build, "RECIPES", {"python": "python.recipe"})
    monkeypatch.setattr("sys.argv", ["build.py"])
    assert guest_build.main() == 0
    assert capsys.readouterr().err.startswith("warning: no network")
    monkeypatch.setattr("sys.argv", ["build.py", "python"])
    assert guest_build.main() == 1
    assert capsys.readouterr().err.startswith("error: no network")


def test_the_builder_sees_nothing_of_the_user_s_environment(empty_tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "planted")
    environment = recipe._clean_environment(empty_tree / "packages", empty_tree / "build")
    assert "planted" not in str(environment)
    assert environment.keys() <= {"PYTHONPATH", "VIRTUAL_ENV", "PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR"}


# ---- the host


def test_a_missing_image_is_an_error_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolbridge_guest, "_IMAGES", str(tmp_path))
    with pytest.raises(
        GuestImageError, match=r"The python guest image has not been built\. In a checkout, run `make guest`"
    ):
        Engine(CompileCache(tmp_path / "cache")).python_image()


def test_an_image_that_differs_from_its_manifest_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolbridge_guest, "_IMAGES", str(tmp_path))
    (tmp_path / "python.json").write_text('{"sha256": "%s"}' % ("0" * 64), encoding="utf-8")
    (tmp_path / "python.wasm").write_bytes(b"something else")
    with pytest.raises(GuestImageError, match="is damaged"):
        Engine(CompileCache(tmp_path / "cache")).python_image()


def test_compiled_code_is_announced_kept_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hashlib

    import wasmtime

    code = bytes(
        wasmtime.wat2wasm(
            """(component
                 (core module $m (func (export "run") (result i32) i32.const 7))
                 (core instance $i (instantiate $m))
                 (func (export "run") (result u32) (canon lift (core func $i "run"))))"""
        )
    )
    monkeypatch.setattr(toolbridge_guest, "_IMAGES", str(tmp_path))
    (tmp_path / "python.wasm").write_bytes(code)
    (tmp_path / "python.json").write_text(f'{{"sha256": "{hashlib.sha256(code).hexdigest()}"}}', encoding="utf-8")

    def runs_nothing(_engine: Engine, _component: int) -> None:
        """Too small for the programs that probe the image."""

    monkeypatch.setattr(Engine, "_check_python", runs_nothing)
    notices: list[str] = []
    cache = CompileCache(tmp_path / "cache")
    for _ in range(2):
        assert Engine(cache).python_image(notices.append).run
    assert notices == ["python"]
    (entry,) = (tmp_path / "cache").iterdir()
    entry.write_bytes(entry.read_bytes()[:-1] + b"x")  # tampered with: never loaded
    assert Engine(cache).python_image(notices.append).run
    assert notices == ["python", "python"]


def test_too_little_memory_is_said_to_be_too_little(sandbox: Sandbox) -> None:
    with pytest.raises(LimitsError, match=r"memory_bytes is 16777216: expected at least 33554432 bytes for python"):
        sandbox.run_sync("1", language="python", limits=Limits(memory_bytes=16 * 2**20))


def test_the_least_memory_is_enough_for_a_program(sandbox: Sandbox) -> None:
    limits = Limits(memory_bytes=PYTHON.least_memory)
    source = "import statistics, json\njson.dumps([statistics.mean(range(1000)), sum(range(10 ** 5))])"
    assert sandbox.run_sync(source, language="python", limits=limits).value == "[499.5, 4999950000]"


def test_an_unknown_language_is_refused(sandbox: Sandbox) -> None:
    with pytest.raises(LanguageError):
        sandbox.run_sync("1", language="cobol")  # pyright: ignore[reportArgumentType]
    with pytest.raises(LanguageError):
        sandbox.session(language="cobol")  # pyright: ignore[reportArgumentType]


def test_the_declarations_for_components_are_not_loaded_for_javascript() -> None:
    import subprocess
    import sys

    program = """
import sys
from toolbridge import Sandbox
assert Sandbox().run_sync("1 + 1").value == 2
print([name for name in sys.modules if "component" in name or name == "wasmtime"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert engine_module._MODULE.compile is not None
