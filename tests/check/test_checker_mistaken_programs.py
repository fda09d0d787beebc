"""JavaScript and TypeScript programs with a mistake that the type-check must find, and without it."""

from __future__ import annotations

import pytest

from check.corpus import Seeded, read_corpus, world
from toolbridge import CheckReport, Sandbox
from toolbridge.check.checker import Checker

pytestmark = pytest.mark.anyio

FILES = [
    ("mistaken_scripts.txt", "javascript"),
    ("mistaken_scripts.txt", "typescript"),
    ("mistaken_typescript.txt", "typescript"),
]
PROGRAMS = [
    pytest.param(seeded, correct, language, id=f"{language}: {seeded.title}")
    for file, language in FILES
    for corpus in [read_corpus(file)]
    for seeded, correct in zip(corpus.mistaken, corpus.correct.values(), strict=True)
]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def check(source: str, language: str) -> CheckReport:
    with Sandbox() as sandbox:
        return (await Checker(sandbox).check(source, language, world("typescript"))).report


@pytest.mark.parametrize(("seeded", "correct", "language"), PROGRAMS)
async def test_a_mistake_is_reported_on_its_line(seeded: Seeded, correct: str, language: str) -> None:
    report = await check(correct, language)
    assert (report.ok, report.warning) == (True, ""), str(report.failure)
    assert seeded.line in [each.line for each in (await check(seeded.source, language)).problems]
