"""The build of the guest images: nothing rebuilt without a change, and failures with advice."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

import build as guest_build
import js.recipe
from build import BuildError, Workshop, build
from js.patches import PATCHES, Patch, patched
from js.recipe import HERE, PRELUDE, inputs, prelude_source


@pytest.fixture
def nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Records commands instead of running them; each one fails."""
    commands: list[list[str]] = []

    def command(workshop: Workshop, arguments: Sequence[str | Path]) -> None:
        commands.append([str(argument) for argument in arguments])
        raise BuildError("no network\npip ended with exit code 1.")

    monkeypatch.setattr(Workshop, "command", command)
    return commands


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CACHE", "IMAGES", "NOTICES"):
        monkeypatch.setattr(guest_build, name, tmp_path / name.lower())
    return tmp_path


def use_recipe(
    monkeypatch: pytest.MonkeyPatch, inputs: Callable[[], list[Path]], make: Callable[[Workshop], bytes]
) -> None:
    def import_module(name: str) -> SimpleNamespace:
        return SimpleNamespace(inputs=inputs, make=make)

    monkeypatch.setattr(guest_build, "import_module", import_module)


def test_the_image_in_the_tree_is_up_to_date_and_building_it_does_nothing_silently(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def make(workshop: Workshop) -> bytes:
        raise BuildError("the image is not up to date: run `make guest`")

    monkeypatch.setattr(js.recipe, "make", make)
    monkeypatch.setattr(sys, "argv", ["build.py"])
    code = guest_build.main()
    assert (code, *capsys.readouterr()) == (0, "", "")


def test_a_build_with_nothing_changed_does_nothing(
    nothing_is_run: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = 0

    def make(workshop: Workshop) -> bytes:
        nonlocal made
        made += 1
        return b"image"

    use_recipe(monkeypatch, inputs, make)
    monkeypatch.setattr(guest_build, "IMAGES", tmp_path)
    path = build("javascript")
    assert (made, path.read_bytes()) == (1, b"image")
    digest = hashlib.sha256(b"image").hexdigest()
    assert capsys.readouterr().err == f"guest/javascript: 0.0 MB, sha256 {digest}\n"
    assert build("javascript") == path
    assert (made, capsys.readouterr().err, nothing_is_run) == (1, "", [])
    build("javascript", force=True)
    assert made == 2


@pytest.mark.parametrize("damage", ["missing image", "short image", "missing manifest", "broken manifest", "stamp"])
def test_a_build_repairs_missing_and_damaged_files(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(workshop: Workshop) -> bytes:
        return b"image"

    use_recipe(monkeypatch, list[Path], make)
    monkeypatch.setattr(guest_build, "IMAGES", tmp_path)
    image, manifest = build("javascript"), tmp_path / "javascript.json"
    facts = manifest.read_text(encoding="utf-8")
    match damage:
        case "missing image":
            image.unlink()
        case "short image":
            image.write_bytes(b"im")
        case "missing manifest":
            manifest.unlink()
        case "broken manifest":
            manifest.write_text("{")
        case _:
            manifest.write_text(facts.replace('"stamp": "', '"stamp": "0'))
    build("javascript")
    assert (image.read_bytes(), manifest.read_text(encoding="utf-8")) == (b"image", facts)
    assert {path.name for path in tmp_path.iterdir()} == {"javascript.wasm", "javascript.json"}


def test_an_unknown_language_is_refused_by_the_command() -> None:
    done = subprocess.run(
        [sys.executable, str(guest_build.GUEST / "build.py"), "cobol"],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 2
    assert "no such image: cobol" in done.stderr


def test_a_failed_fetch_names_the_step_and_gives_advice(
    nothing_is_run: list[list[str]], empty_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BuildError) as caught:
        build("javascript")
    lines = str(caught.value).split("\n")
    assert lines[:3] == [
        "guest/javascript: step 'fetch the engine' failed.",
        "no network",
        "pip ended with exit code 1.",
    ]
    assert "PIP_INDEX_URL" in lines[3]
    assert lines[3].endswith("then run the build again.")
    assert capsys.readouterr().err == "guest/javascript: fetch the engine …\n"
    assert nothing_is_run[0][:3] == [sys.executable, "-m", "pip"]
    assert {"--require-hashes", "--no-deps"} <= set(nothing_is_run[0])


def test_a_failed_build_leaves_no_image_and_no_scratch_files(
    nothing_is_run: list[list[str]], empty_cache: Path
) -> None:
    with pytest.raises(BuildError):
        build("javascript")
    assert [path for path in empty_cache.rglob("*") if path.is_file()] == []


def test_a_failed_build_ends_the_command_with_a_message_and_no_traceback(
    nothing_is_run: list[list[str]],
    empty_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["build.py"])
    assert guest_build.main() == 1
    shown = capsys.readouterr().err
    assert "error: guest/javascript: step 'fetch the engine' failed.\n" in shown
    assert "Traceback" not in shown


def test_an_interrupted_build_ends_the_command_quietly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(language: str, *, force: bool) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(guest_build, "build", interrupted)
    monkeypatch.setattr(sys, "argv", ["build.py"])
    assert guest_build.main() == 130
    assert capsys.readouterr().err == "\ninterrupted\n"


def test_an_unexpected_error_in_a_step_names_the_step(capsys: pytest.CaptureFixture[str]) -> None:
    workshop = Workshop("javascript")
    with (
        pytest.raises(BuildError, match=r"^guest/javascript: step 'stir' failed: KeyError: 'spoon'$"),
        workshop.step("stir"),
    ):
        raise KeyError("spoon")


def test_a_command_that_fails_shows_its_output_and_exit_code() -> None:
    program = "import sys; print('one'); print('two', file=sys.stderr); sys.exit(3)"
    with pytest.raises(BuildError) as caught:
        Workshop("javascript").command([sys.executable, "-c", program])
    assert str(caught.value) == f"one\ntwo\n{Path(sys.executable).name} ended with exit code 3."


def test_a_program_that_is_not_there_is_a_failed_step(capsys: pytest.CaptureFixture[str]) -> None:
    workshop = Workshop("javascript")
    with pytest.raises(BuildError, match="step 'compile' failed: FileNotFoundError"), workshop.step("compile"):
        workshop.command(["/nowhere/zig"])


# ---- patches


def source_with_every_anchor() -> str:
    return "\n/* code */\n".join(patch.anchor for patch in PATCHES)


def test_every_patch_is_applied_once() -> None:
    source = patched(source_with_every_anchor())
    for patch in PATCHES:
        assert source.count(patch.before if patch.replace else patch.before + patch.anchor) == 1
        assert (patch.anchor in source) is not patch.replace or patch.anchor in patch.before


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.why)
def test_a_patch_whose_anchor_is_not_found_fails_with_its_reason(patch: Patch) -> None:
    source = source_with_every_anchor().replace(patch.anchor, "")
    with pytest.raises(ValueError) as caught:
        patched(source)
    assert str(caught.value) == f'patch "{patch.why}": its anchor occurs 0 times instead of once: {patch.anchor!r}'


def test_a_patch_whose_anchor_is_found_twice_fails_with_its_reason() -> None:
    with pytest.raises(ValueError) as caught:
        patched(source_with_every_anchor() + "\n" + PATCHES[0].anchor)
    assert str(caught.value).startswith(f'patch "{PATCHES[0].why}": its anchor occurs 2 times instead of once: ')


# ---- the prelude


def test_the_prelude_becomes_a_table_of_its_files_in_order() -> None:
    source = prelude_source()
    positions = [source.index(f'"prelude/{name}"') for name in PRELUDE]
    assert positions == sorted(positions)
    assert f"const uint32_t prelude_count = {len(PRELUDE)};\n" in source


def test_a_prelude_file_is_wrapped_on_its_first_line_so_that_line_numbers_hold() -> None:
    source = prelude_source(["errors.js"])
    numbers = source.split("(const char[]){ ", 1)[1].split(" }", 1)[0].split(",")
    text = bytes(int(number) for number in numbers)
    body = (HERE / "prelude" / "errors.js").read_bytes()
    assert text == b"(function (native, shared) { " + body + b"\n})\0"


def test_every_file_of_the_prelude_is_an_input_of_the_image() -> None:
    names = {path.relative_to(HERE).as_posix() for path in inputs()}
    assert {f"prelude/{name}" for name in PRELUDE} <= names
    assert {"recipe.py", "patches.py", "engine.txt", "compiler.txt", "shim/run.c", "shim/program_syntax.c"} <= names


def test_every_file_in_the_prelude_directory_is_used() -> None:
    assert {path.name for path in (HERE / "prelude").glob("*.js")} == set(PRELUDE)
