"""T31, resource exhaustion by a program's mere length: describing its error is part of its run, and has to end with it.

The programs are made here rather than kept in fixtures/hostile: each is megabytes of line ends.
"""

from __future__ import annotations

import time

import pytest

from growth import patience
from threats.hostile_programs import MOST_LATENESS
from toolbridge import Limits, Sandbox
from toolbridge.sandbox.outcome import SandboxLanguage

LINES = 3_900_000
# Eight frames, which is as many as are shown.
JAVASCRIPT = "function f(n) { if (n === 0) throw new Error('x'); f(n - 1) }\nf(6)"
PYTHON = "def f(n):\n    if n == 0: 1 / 0\n    f(n - 1)\nf(6)"
PROGRAMS: dict[str, tuple[SandboxLanguage, str, str]] = {
    "newlines in JavaScript": ("javascript", "\n" * LINES + JAVASCRIPT, "Error: x"),
    "carriage returns in JavaScript": ("javascript", "\r" * LINES + JAVASCRIPT, "Error: x"),
    "newlines in Python": ("python", "\n" * LINES + PYTHON, "ZeroDivisionError: division by zero"),
    "one long line in JavaScript": ("javascript", ";" * LINES + JAVASCRIPT.replace("\n", ";"), "Error: x"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_error_of_a_very_long_program_is_described_in_time(name: str) -> None:
    language, source, message = PROGRAMS[name]
    limits = Limits(wall_seconds=20.0, memory_bytes=256 * 2**20)
    with Sandbox(limits=limits) as sandbox:
        sandbox.run_sync("1", language=language)
        result = sandbox.run_sync(source, language=language)
        assert result.failure is not None
        assert result.failure.message == message
        assert len(result.failure.trace) > 1
        # What the guest itself needs for such a program, on this machine at this moment.
        harmless = source.replace("throw new Error('x')", "return").replace("1 / 0", "return")
        assert best(sandbox, source, language) < best(sandbox, harmless, language) + patience(MOST_LATENESS)


def best(sandbox: Sandbox, source: str, language: SandboxLanguage) -> float:
    """The seconds of the quickest of three runs."""

    def seconds() -> float:
        began = time.perf_counter()
        sandbox.run_sync(source, language=language)
        return time.perf_counter() - began

    return min(seconds() for _ in range(3))
