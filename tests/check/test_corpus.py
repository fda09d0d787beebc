"""The figures that the check must reach on the programs of fixtures/programs: what it catches, and whom it bothers."""

from __future__ import annotations

from collections import Counter

import pytest

from check.corpus import Corpus, read_corpus, world
from toolbridge import CheckReport, Sandbox
from toolbridge.check.checker import Checker
from toolbridge.sandbox.compiler import Answer, read_answer, request
from toolbridge_codegen.stubs import Language

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


LEAST_CAUGHT = 0.95
LANGUAGES = ("typescript", "python")


def corpus_of(language: str) -> Corpus:
    return read_corpus(f"{language}.txt")


async def reports(sources: list[str], language: str, stubs: Language) -> list[CheckReport]:
    with Sandbox() as sandbox:
        checker = Checker(sandbox)
        return [(await checker.check(source, language, world(stubs))).report for source in sources]


@pytest.mark.parametrize("language", LANGUAGES)
def test_there_are_150_programs_of_every_class(language: str) -> None:
    corpus = corpus_of(language)
    assert (len(corpus.correct), len(corpus.mistaken)) == (75, 75)
    kinds = Counter(seeded.kind for seeded in corpus.mistaken)
    wanted = {"module", "export", "name", "property", "result-use", "await"}
    wanted |= {"argument-name", "argument-type", "argument-value", "argument-missing"}
    assert wanted <= kinds.keys()
    assert len({seeded.source for seeded in corpus.mistaken} | set(corpus.correct.values())) == 150


@pytest.mark.parametrize("language", LANGUAGES)
async def test_no_correct_program_is_rejected(language: Language) -> None:
    correct = corpus_of(language).correct
    found = await reports(list(correct.values()), language, language)
    assert {title: str(each.failure) for title, each in zip(correct, found, strict=True) if not each.ok} == {}
    assert {each.warning for each in found} == {""}


@pytest.mark.parametrize("language", LANGUAGES)
async def test_nearly_all_mistakes_are_caught_on_their_own_line(language: Language) -> None:
    mistaken = corpus_of(language).mistaken
    found = await reports([seeded.source for seeded in mistaken], language, language)
    missed = [
        f"{seeded.kind}: {seeded.title}, line {seeded.line}, found {[each.line for each in report.problems]}"
        for seeded, report in zip(mistaken, found, strict=True)
        if seeded.line not in [each.line for each in report.problems]
    ]
    assert len(missed) <= len(mistaken) * (1 - LEAST_CAUGHT), missed


async def test_no_correct_program_is_rejected_as_javascript() -> None:
    with Sandbox() as sandbox:
        erased: dict[str, str] = {}
        for title, source in corpus_of("typescript").correct.items():
            answer = read_answer(await sandbox.ask_compiler(request(source, "typescript")))
            assert isinstance(answer, Answer)
            erased[title] = answer.code
            assert answer.code.count("\n") == source.count("\n"), title
    found = await reports(list(erased.values()), "javascript", "typescript")
    assert {title: str(each.failure) for title, each in zip(erased, found, strict=True) if not each.ok} == {}
