"""One mitigation is taken away from a copy of the source, and the tests that should notice are run against it.

What fails then must pass against an unchanged copy: a test that fails anyway has noticed nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from threats.selftest.switched_off import NotFoundError, SwitchedOff, applied

Verdict: TypeAlias = Literal["noticed", "unnoticed", "fails anyway", "broken", "hung", "not found"]
"""`broken`: the tests could not be run at all, which tells nothing."""

SOURCES = ("bridge", "codegen")
MOST_SECONDS = 300.0
_TRIES = 3
"""Of a test that should pass: on a busy machine, one that measures time may need a second chance."""
# pytest's own exit codes.
_ALL_PASSED, _SOME_FAILED = 0, 1


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of it."""

    verdict: Verdict
    seconds: float
    first: str = ""
    """The first test that failed, or what went wrong."""


@dataclass(frozen=True, slots=True)
class _Run:
    code: int | None
    """pytest's; None if it had to be ended."""
    failed: tuple[str, ...]
    words: str


def copy_of_sources(root: Path, directory: Path) -> Path:
    """A copy of what is under test. The working tree itself is never changed."""
    for name in SOURCES:
        shutil.copytree(root / name, directory / name)  # with compiled files, which stay valid: times are kept
    return directory


def switch_off_and_run(switched: SwitchedOff, root: Path) -> Trial:
    """Whether the tests notice."""
    began = time.perf_counter()
    try:
        changed = applied(switched, root)
    except NotFoundError as error:
        return Trial("not found", 0.0, str(error))
    with tempfile.TemporaryDirectory(prefix="toolbridge-selftest-") as scratch:
        copy = copy_of_sources(root, Path(scratch))
        whole = (copy / switched.file).read_text(encoding="utf-8")
        (copy / switched.file).write_text(changed, encoding="utf-8")
        run = _run_tests([f"tests/threats/{test}" for test in switched.tests], root, copy)
        verdict, first = _verdict(run)
        if verdict == "noticed":
            (copy / switched.file).write_text(whole, encoding="utf-8")
            verdict = "noticed" if _passes(first, root, copy) else "fails anyway"
    return Trial(verdict, time.perf_counter() - began, first.rpartition("threats/")[2])


def _passes(test: str, root: Path, source: Path) -> bool:
    return any(_run_tests([test], root, source).code == _ALL_PASSED for _ in range(_TRIES))


def _verdict(run: _Run) -> tuple[Verdict, str]:
    if run.code is None:
        return "hung", f"nothing failed within {MOST_SECONDS:g} s"
    if run.code == _ALL_PASSED:
        return "unnoticed", ""
    if run.code == _SOME_FAILED and run.failed:
        return "noticed", run.failed[0]
    return "broken", run.words


def _run_tests(tests: Sequence[str], root: Path, source: Path) -> _Run:
    """Run tests against a copy of the source, until one fails."""
    cache = source / "pytest-cache"
    shutil.rmtree(cache, ignore_errors=True)
    options = ["-x", "-q", "-rf", "--tb=no", "--rootdir", str(root), "-o", f"cache_dir={cache}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, *(str(root / test) for test in tests)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(source / name) for name in SOURCES)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # so that all of it can be ended
    )
    try:
        shown, _ = process.communicate(timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return _Run(None, (), "")
    words = " ".join(line for line in shown.splitlines()[-4:] if line.strip())[-400:]
    return _Run(process.returncode, _failed(cache) if "\nFAILED " in shown else (), words)


def _failed(cache: Path) -> tuple[str, ...]:
    """pytest's own note of what failed: its summary cuts names that are long."""
    try:
        noted = json.loads((cache / "v" / "cache" / "lastfailed").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ()
    return tuple(noted)
