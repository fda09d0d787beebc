"""`toolbridge run` as a real process: what it prints, and how it exits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from growth import patience

COMMAND = [sys.executable, "-c", "from toolbridge.cli import main; main()", "run"]


def run(*arguments: str | Path, text: str | bytes = b"") -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    data = text.encode() if isinstance(text, str) else text
    words = [*COMMAND, *(str(argument) for argument in arguments)]
    done = subprocess.run(words, input=data, capture_output=True, timeout=60, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return tmp_path / "program.js"


# ---- values


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("1 + 1", "2\n"),
        ("'text'", "text\n"),
        ("null", ""),
        ("let a", ""),
        ("false", "false\n"),
        ("[1, { a: 'é' }]", '[\n  1,\n  {\n    "a": "é"\n  }\n]\n'),
        ("'😀'", "😀\n"),
        ("console.log('first'); 'then'", "first\nthen\n"),
    ],
)
def test_the_value_is_printed_text_as_it_is_and_the_rest_as_json(source: str, shown: str) -> None:
    assert run("-", text=source) == (0, shown, "")


def test_a_file_is_run(program: Path) -> None:
    program.write_text("export default [1, 2].length", encoding="utf-8")
    assert run(program) == (0, "2\n", "")


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(program: Path) -> None:
    program.write_bytes(b"\xef\xbb\xbfconst a = 1\r\nconst b = 2\r\na + b\r\n")
    assert run(program) == (0, "3\n", "")


def test_what_the_program_prints_goes_to_the_same_streams() -> None:
    assert run("-", text="console.log('out'); console.error('err')") == (0, "out\n", "err\n")


# ---- failures


def test_a_failure_is_printed_with_its_place_and_exits_with_one() -> None:
    code, out, err = run("-", text="const a = 1;\nnul.x")
    assert (code, out) == (1, "")
    assert err.split("\n")[:2] == ["ReferenceError: nul is not defined", "  at line 2, column 1"]
    assert "> 2 | nul.x\n    | ^\n" in err


@pytest.mark.parametrize(
    ("source", "code", "first_line"),
    [
        ("let = 1", 1, "SyntaxError: variable name expected"),
        ("throw new Error('no')", 1, "Error: no"),
        ("for (;;);", 3, "The run took longer than 0.2 s."),
        ("const all = []; for (;;) all.push(new Uint8Array(2 ** 20))", 3, "InternalError: out of memory"),
        ("'x'.repeat(9 * 2 ** 20)", 3, "The run's value is 9437205 bytes, more than the limit of 8388608."),
    ],
)
def test_the_exit_code_says_whose_fault_it_was(source: str, code: int, first_line: str) -> None:
    timeout = "0.2" if "for (;;);" in source else "20"
    exit_code, out, err = run("-", "--timeout", timeout, text=source)
    assert (exit_code, out) == (code, "")
    assert err.split("\n")[0].startswith(first_line)


# ---- languages


def test_a_python_file_is_run_as_python(program: Path) -> None:
    path = program.with_suffix(".py")
    path.write_bytes(
        b"\xef\xbb\xbfimport json, sys\r\nprint('out')\r\nprint('err', file=sys.stderr)\r\n{'a': (1, 2)}\r\n"
    )
    assert run(path) == (0, 'out\n{\n  "a": [\n    1,\n    2\n  ]\n}\n', "err\n")


def test_the_language_of_standard_input_is_an_option() -> None:
    assert run("-", "--language", "python", text="[n * n for n in range(4)][-1]") == (0, "9\n", "")
    assert run("-", "--language", "javascript", text="[1, 2].map((n) => n * n)[1]") == (0, "4\n", "")
    code, out, err = run("-", "--language", "cobol", text="1")
    assert (code, out) == (2, "")
    assert "'cobol' is not one of 'javascript', 'typescript', 'python'." in err


def test_the_option_wins_over_the_files_name(program: Path) -> None:
    path = program.with_suffix(".py")
    path.write_text("[1].map((n) => n)[0]", encoding="utf-8")
    code, out, err = run(path)
    assert (code, out) == (1, "")
    assert "SyntaxError" in err
    assert run(path, "--language", "javascript") == (0, "1\n", "")


def test_a_typescript_file_is_run_with_its_types_removed(program: Path) -> None:
    path = program.with_suffix(".ts")
    path.write_text("enum Size { Small = 2, Large }\nconst size: Size = Size.Large;\nsize as number", encoding="utf-8")
    assert run(path) == (0, "3\n", "")
    code, out, err = run(path, "--language", "javascript")
    assert (code, out) == (1, "")
    assert "SyntaxError" in err


def test_python_that_was_read_as_javascript_is_told_so(program: Path) -> None:
    hint = "It was read as JavaScript. If it is not: --language python, or typescript\n"
    source = "def f(x):\n    return x\nf(1)"
    code, out, err = run("-", text=source)
    assert (code, out) == (1, "")
    assert err.endswith(f"\n\n{hint}")
    program.write_text(source, encoding="utf-8")
    assert hint not in run(program)[2]


@pytest.mark.parametrize(
    ("source", "code", "words"),
    [
        (
            "total = 1\ntotl",
            1,
            "NameError: name 'totl' is not defined. Did you mean: 'total'?\n  at line 2, column 1\n",
        ),
        ("if True\n  1", 1, "SyntaxError: expected ':'\n  at line 1, column 8\n"),
        ("while True: pass", 3, "The run took longer than 0.5 s.\n"),
        ("open('/etc/passwd')", 1, "There are no files here"),
    ],
)
def test_a_failure_in_python_is_explained_and_exits_with_its_code(source: str, code: int, words: str) -> None:
    exit_code, out, err = run("-", "--language", "python", "--timeout", "0.5", text=source)
    assert (exit_code, out) == (code, "")
    assert words in err
    assert "Traceback" not in err


def test_json_of_a_python_program_has_the_same_form() -> None:
    code, result = json_of("--language", "python", text="print('a')\n1 / 0")
    assert (code, result["ok"], result["stdout"]) == (1, False, "a\n")
    assert result["failure"]["message"] == "ZeroDivisionError: division by zero"
    assert (result["failure"]["line"], result["failure"]["kind"]) == (2, "raised")


# ---- options


def json_of(*arguments: str, text: str) -> tuple[int, dict[str, Any]]:
    code, out, err = run("-", "--json", *arguments, text=text)
    assert err == ""
    assert out.count("\n") == 1
    return code, json.loads(out)


def test_json_is_the_whole_result_on_one_line() -> None:
    code, result = json_of(text="console.log('a'); console.error('é'); ({ b: [1] })")
    usage = result.pop("usage")
    assert (code, result) == (
        0,
        {
            "ok": True,
            "value": {"b": [1]},
            "stdout": "a\n",
            "stderr": "é\n",
            "failure": None,
            "calls": [],
            "servers": [],
            "warnings": [],
        },
    )
    assert usage.keys() == {"wall_seconds", "cpu_seconds", "memory_bytes", "output_bytes_dropped"}
    assert 0 < usage["wall_seconds"] < 30
    assert usage["memory_bytes"] > 0


def test_json_of_a_failure_has_its_parts_and_its_text() -> None:
    code, result = json_of(text="\nnull.x")
    assert (code, result["ok"], result["value"]) == (1, False, None)
    assert result["failure"] == {
        "kind": "raised",
        "message": "TypeError: cannot read property 'x' of null",
        "line": 2,
        "column": 1,
        "excerpt": "  1 | \n> 2 | null.x\n    | ^",
        "trace": ["line 2, column 1"],
        "notes": [],
        "text": "TypeError: cannot read property 'x' of null\n  at line 2, column 1\n  1 | \n> 2 | null.x\n    | ^",
    }


def test_json_of_a_timeout_exits_with_three() -> None:
    code, result = json_of("--timeout", "0.1", text="for (;;);")
    assert (code, result["failure"]["kind"], result["failure"]["line"]) == (3, "timeout", None)


def test_the_timeout_is_kept() -> None:
    began = time.perf_counter()
    code, _, err = run("-", "--timeout", "0.3", text="await new Promise((resolve) => setTimeout(resolve, 60_000))")
    assert (code, err) == (3, "The run took longer than 0.3 s.\n")
    assert time.perf_counter() - began < patience(5)


@pytest.mark.parametrize("size", ["32", "32M", "32MB", "32mib", "32768K", " 32 M ", "1G"])
def test_a_memory_size_can_be_written_in_these_forms(size: str) -> None:
    source = f"new Uint8Array({20 * 2**20}).length"
    assert run("-", "--memory", size, text=source) == (0, f"{20 * 2**20}\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--memory", "lots"], "'lots' is not a size: write 64, 64M or 1G."),
        (["--memory", "-5"], "'-5' is not a size: write 64, 64M or 1G."),
        (["--memory", "1.5G"], "'1.5G' is not a size: write 64, 64M or 1G."),
        (["--memory", ""], "'' is not a size: write 64, 64M or 1G."),
        (["--memory", "1"], "--memory takes 8M to 4095M."),
        (["--memory", "5G"], "--memory takes 8M to 4095M."),
        (["--memory", "31M", "--language", "python"], "--memory takes 32M to 4095M for Python."),
        (["--timeout", "soon"], "'soon' is not a valid float."),
        (["--timeout", "0"], "--timeout takes seconds above 0 and below"),
        (["--timeout", "-1"], "--timeout takes seconds above 0 and below"),
        (["--timeout", "nan"], "--timeout takes seconds above 0 and below"),
        (["--timeout", "inf"], "--timeout takes seconds above 0 and below"),
        (["--speed", "9"], "No such option"),
    ],
)
def test_a_bad_option_is_explained_and_exits_with_two(arguments: list[str], message: str) -> None:
    code, out, err = run("-", *arguments, text="1")
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_a_missing_argument_is_explained_and_exits_with_two() -> None:
    code, out, err = run()
    assert (code, out) == (2, "")
    assert "Missing argument 'FILE'." in err


# ---- ends that nobody planned


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("javascript", "for (;;);"),
        ("javascript", "await new Promise((resolve) => setTimeout(resolve, 60_000))"),
        ("javascript", "/(a+)+$/.test('a'.repeat(60) + 'b')"),
        ("python", "while True: pass"),
        ("python", "import time\ntime.sleep(60)"),
    ],
)
def test_an_interrupt_in_the_middle_exits_with_130_and_no_traceback(program: Path, language: str, source: str) -> None:
    module, kind = ("instance", "Instance") if language == "javascript" else ("component_instance", "ComponentInstance")
    started = program.with_name("started")
    # The program can't say that it runs, so the process says it, through its one seam for that.
    script = (
        f"import sys, pathlib; from toolbridge.sandbox.{module} import {kind} as Instance; run = Instance.run\n"
        f"def watched(*a): pathlib.Path({str(started)!r}).touch(); return run(*a)\n"
        "Instance.run = watched\n"
        "from toolbridge.cli import main; main()"
    )
    program.write_text(source, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-c", script, "run", str(program), "--language", language],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30
    while not started.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.05)
    began = time.perf_counter()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=90)
    # An empty line first: the terminal has shown ^C.
    assert (process.returncode, out, err.strip()) == (130, "", "Interrupted.")
    assert time.perf_counter() - began < patience(5)


@pytest.mark.parametrize("source", ["'x'.repeat(1_000_000)", "console.log('x'.repeat(500_000)); 1", "[1]"])
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_reader_that_has_gone_causes_no_traceback(program: Path, source: str, options: list[str]) -> None:
    program.write_text(source, encoding="utf-8")
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*COMMAND, str(program), *options], stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (4, b"")


@pytest.mark.parametrize("descriptor", [1, 2])
@pytest.mark.parametrize("source", ["'value'", "throw 1"])
def test_a_stream_that_is_closed_from_the_start_causes_no_traceback(descriptor: int, source: str) -> None:
    script = f"import os, sys; os.close({descriptor}); os.execv(sys.argv[1], sys.argv[1:])"
    words = [sys.executable, "-c", script, *COMMAND, "-"]
    done = subprocess.run(words, input=source.encode(), capture_output=True, timeout=60, check=False)
    assert b"Traceback" not in done.stdout + done.stderr
    assert done.returncode == (1 if source == "throw 1" else 0)


def test_output_that_can_not_be_encoded_is_escaped(program: Path) -> None:
    program.write_text("'é😀'", encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run([*COMMAND, str(program)], env=environment, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"\\xe9\\U0001f600\n", b"")


@pytest.mark.parametrize("language", ["javascript", "python"])
def test_a_missing_guest_image_is_explained_and_exits_with_four(tmp_path: Path, language: str) -> None:
    script = (
        f"import toolbridge_guest; toolbridge_guest._IMAGES = {str(tmp_path)!r}\n"
        "from toolbridge.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "run", "-", "--language", language],
        input=b"1",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (4, b"")
    assert done.stderr.decode() == (
        f"Error: The {language} guest image has not been built. In a checkout, run `make guest`; "
        "otherwise reinstall the toolbridge package.\n"
    )
