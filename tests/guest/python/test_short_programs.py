"""Short programs of the kind that models write: they print what they print in CPython."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from guest.python_programs import ProgramText, programs_in
from toolbridge import Sandbox

PROGRAMS = programs_in("short.txt")

# Runs every program in a fresh namespace of one process, as its own __main__.
_DRIVER = """
import contextlib, io, json, sys, types
outputs = []
for source in json.load(sys.stdin):
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(source, "main.py", "exec"), module.__dict__)
    outputs.append(out.getvalue())
json.dump(outputs, sys.stdout)
"""


@pytest.fixture(scope="module")
def native() -> dict[str, str]:
    """Title → what this test's own Python prints."""
    sources = json.dumps([program.source for program in PROGRAMS])
    done = subprocess.run([sys.executable, "-c", _DRIVER], input=sources, capture_output=True, text=True, check=True)
    outputs: list[str] = json.loads(done.stdout)
    return {program.title: output for program, output in zip(PROGRAMS, outputs, strict=True)}


def test_there_are_as_many_as_were_asked_for() -> None:
    assert len(PROGRAMS) >= 200


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.title)
def test_a_program_prints_what_cpython_prints(program: ProgramText, native: dict[str, str], sandbox: Sandbox) -> None:
    result = sandbox.run_sync(program.source, language="python")
    assert result.failure is None, str(result.failure)
    assert result.stdout == native[program.title]
    assert result.stderr == ""
