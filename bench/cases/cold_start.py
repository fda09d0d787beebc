"""The command in a new process, everything cached: what a script that calls it pays."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from bench.case import MOST, SPAWN, Bench
from bench.measure import against_constant, batch, compare, take_turns
from bench.peer_packages import CACHE
from bench.report import Finding, Row

_MOST_HELP_CPU = 0.3


def measure(bench: Bench) -> Iterable[Finding]:
    """`toolbridge run` against a bare interpreter; `toolbridge --help` in CPU time against its most."""
    command = _command()
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory) / "program.js"
        program.write_text("1+1\n", "utf-8")
        contenders = {
            "run": batch(lambda: _output([*command, "run", str(program)])),
            SPAWN: batch(lambda: _output([sys.executable, "-c", "pass"])),
            "help": lambda: _cpu_seconds([*command, "--help"]),
        }
        samples = take_turns(contenders, bench.rounds(25))
    return [
        Row("toolbridge run of 1+1, new process", SPAWN, compare(samples["run"], samples[SPAWN]), 8.0),
        Row("toolbridge --help, CPU time", MOST, against_constant(samples["help"], _MOST_HELP_CPU), 1.0),
    ]


def _command() -> list[str]:
    """The installed command of this interpreter's environment."""
    installed = shutil.which("toolbridge", path=str(Path(sys.executable).parent))
    return [installed] if installed else [sys.executable, "-c", "from toolbridge.cli import main; main()"]


def _output(command: list[str]) -> str:
    """With bytecode kept apart: what is compiled is then always of the sources as they are now."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(CACHE / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout


def _cpu_seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _output(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
