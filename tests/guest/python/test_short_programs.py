"""Short programs of the kind that models write print the same in the sandbox as in CPython."""

from __future__ import annotations

import json
import subprocess
import sys

from guest.python_programs import programs_in
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


def native_outputs() -> list[str]:
    """Runs the programs in this test's own Python."""
    sources = json.dumps([program.source for program in PROGRAMS])
    done = subprocess.run([sys.executable, "-c", _DRIVER], input=sources, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_programs_print_the_same_as_in_cpython(sandbox: Sandbox) -> None:
    assert len(PROGRAMS) >= 200
    for program, output in zip(PROGRAMS, native_outputs(), strict=True):
        result = sandbox.run_sync(program.source, language="python")
        assert (program.title, result.failure, result.stdout, result.stderr) == (program.title, None, output, "")
