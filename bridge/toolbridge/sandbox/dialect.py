"""What differs between the languages of programs: which image runs them, and how their errors are described."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from toolbridge.limits import LEAST_MEMORY, MIB
from toolbridge.sandbox import javascript_failure
from toolbridge.sandbox.outcome import Failure

SandboxLanguage: TypeAlias = Literal["javascript", "typescript", "python"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """One language."""

    language: SandboxLanguage
    image: str
    """Which of the guest images runs it."""
    program_file: str
    describe: Callable[..., Failure]
    """As `javascript_failure.describe`."""
    least_memory: int
    """What an instance needs to exist at all."""
    words_of_calls: tuple[str, ...] | None
    """A program that holds one of these will need its host, and so a guest thread: moving to one in the middle costs
    more than to begin there. A wrong guess costs time and nothing else. None: it can't begin anywhere else."""
    has_types: bool = False
    """Whether a program's types are removed before it runs."""


JAVASCRIPT = Dialect(
    language="javascript",
    image="javascript",
    program_file=javascript_failure.PROGRAM_FILE,
    describe=javascript_failure.describe,
    least_memory=LEAST_MEMORY,
    words_of_calls=("host:", "console.", "setTimeout", "setInterval", "Date", "performance"),
)

# What is left when the types are gone has every line and column in its place, and so the author's own lines are shown.
TYPESCRIPT = replace(JAVASCRIPT, language="typescript", has_types=True)


def _describe_python(*arguments: object, **named: object) -> Failure:
    from toolbridge.sandbox import python_failure

    return python_failure.describe(*arguments, **named)  # pyright: ignore[reportArgumentType]


PYTHON = Dialect(
    language="python",
    image="python",
    program_file="main.py",
    describe=_describe_python,
    least_memory=32 * MIB,
    words_of_calls=None,
)

DIALECTS: dict[str, Dialect] = {"javascript": JAVASCRIPT, "typescript": TYPESCRIPT, "python": PYTHON}
