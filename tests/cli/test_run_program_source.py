"""Reading a program: each thing that can be wrong with a file has its message, and exits with 2."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from toolbridge import Limits
from toolbridge.cli.run_program import language_of, read_source

LIMITS = Limits()


def message_of(path: Path | str, limits: Limits = LIMITS) -> str:
    with pytest.raises(click.ClickException) as caught:
        read_source(str(path), limits)
    return caught.value.message


def run(*arguments: str | Path, data: bytes = b"") -> tuple[int, str, str]:
    words = [sys.executable, "-c", "from toolbridge.cli import main; main()", "run", *(str(word) for word in arguments)]
    done = subprocess.run(words, input=data, capture_output=True, timeout=60, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_a_file_is_read_as_utf8_with_or_without_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.js"
    for data in ("'é'".encode(), "'é'".encode("utf-8-sig")):
        path.write_bytes(data)
        assert read_source(str(path), LIMITS) == "'é'"


@pytest.mark.parametrize("name", ["a.js", "a.mjs", "a.cjs", "a.py", "a.txt", "a", "my program.js", "-a.js", "ä.js"])
def test_a_file_of_any_name_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("1", encoding="utf-8")
    assert read_source(str(tmp_path / name), LIMITS) == "1"


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("a.js", "javascript"),
        ("a.mjs", "javascript"),
        ("a.CJS", "javascript"),
        ("a.py", "python"),
        ("dir.js/A.PY", "python"),
        ("a.js.txt", None),
        ("py", None),
        (".py", None),
        ("-", None),
        ("", None),
    ],
)
def test_a_files_name_tells_its_language_or_does_not(name: str, language: str | None) -> None:
    assert language_of(name) == language


def test_a_missing_file(tmp_path: Path) -> None:
    assert message_of(tmp_path / "no.js") == f"There is no file {tmp_path / 'no.js'}."


def test_a_directory(tmp_path: Path) -> None:
    assert message_of(tmp_path) == f"{tmp_path} is a directory: give a program's file."


def test_a_file_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.js").touch()
    path = tmp_path / "a.js" / "b.js"
    assert message_of(path) == f"{path} can't be read: Not a directory."


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "latin.js"
    path.write_bytes("const a = 1\nconst b = 'é'".encode("latin-1"))
    assert message_of(path) == f"{path} is not UTF-8 text: byte 0xe9 in line 2. Save it as UTF-8."


@pytest.mark.parametrize("data", [b"", b" \n\t\r\n", b"\xef\xbb\xbf"])
def test_an_empty_file(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "empty.js"
    path.write_bytes(data)
    assert message_of(path) == f"{path} is empty: there is no program to run."


def test_a_file_of_fifty_megabytes(tmp_path: Path) -> None:
    path = tmp_path / "large.js"
    with path.open("wb") as file:
        file.truncate(50_000_000)
    assert message_of(path) == f"{path} is larger than 8 MiB, the most that a program may be."


def test_a_file_as_large_as_may_be(tmp_path: Path) -> None:
    path = tmp_path / "large.js"
    path.write_bytes(b"1".ljust(1000))
    assert read_source(str(path), Limits(frame_bytes=1000)) == "1".ljust(1000)
    path.write_bytes(b"1".ljust(1001))
    assert "is larger than" in message_of(path, Limits(frame_bytes=1000))


def test_an_endless_file_is_not_read_to_its_end() -> None:
    assert message_of("/dev/zero") == "/dev/zero is larger than 8 MiB, the most that a program may be."


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "secret.js"
    path.write_text("1")
    path.chmod(0)
    assert message_of(path) == f"{path} can't be read: Permission denied."


@pytest.mark.parametrize("name", ["a.ts", "a.MTS", "a.cts"])
def test_a_program_in_typescript(name: str) -> None:
    assert language_of(name) == "typescript"


@pytest.mark.parametrize("name", ["a.tsx", "a.JSX"])
def test_a_program_with_markup_is_refused(name: str) -> None:
    with pytest.raises(click.ClickException) as caught:
        language_of(name)
    assert caught.value.message == f"{name}: JSX can't be run. Give a JavaScript, TypeScript or Python file."


# ---- as a command


def test_standard_input_is_read_for_a_dash() -> None:
    assert run("-", data=b"1 + 1") == (0, "2\n", "")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "Standard input is empty: there is no program to run."),
        (b"\xff", "Standard input is not UTF-8 text: byte 0xff in line 1. Save it as UTF-8."),
        (b"/" * 9_000_000, "Standard input is larger than 8 MiB, the most that a program may be."),
    ],
)
def test_bad_standard_input_is_explained_and_exits_with_two(data: bytes, message: str) -> None:
    assert run("-", data=data) == (2, "", f"Error: {message}\n")


def test_a_file_that_can_not_be_used_is_explained_and_exits_with_two(tmp_path: Path) -> None:
    assert run(tmp_path / "no.js") == (2, "", f"Error: There is no file {tmp_path / 'no.js'}.\n")
    assert run(tmp_path) == (2, "", f"Error: {tmp_path} is a directory: give a program's file.\n")


def test_a_program_just_under_the_limit_runs(tmp_path: Path) -> None:
    path = tmp_path / "large.js"
    path.write_bytes(b"1 + 1 //" + b"x" * (8 * 2**20 - 8))
    assert run(path) == (0, "2\n", "")


def test_standard_input_that_is_closed_is_explained() -> None:
    script = "import os, sys; os.close(0); os.execv(sys.argv[1], sys.argv[1:])"
    words = [sys.executable, "-c", "from toolbridge.cli import main; main()", "run", "-"]
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, timeout=60, check=False)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
