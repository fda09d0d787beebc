"""Detection and false-positive rates of the type-check on the programs of fixtures/programs."""

from __future__ import annotations

from collections import Counter

import pytest

from check.corpus import FIRST, Corpus, read_corpus, world
from toolbridge import CheckReport, Sandbox
from toolbridge.check.checker import Checker, World
from toolbridge.sandbox.typescript import Answer, read_answer, request
from toolbridge_codegen.stubs import Language

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


LEAST_CAUGHT = 0.95
"""What is demanded of the check, on programs that it was built with and on those of authors who didn't know it."""

NUMBER_OF_PROGRAMS = {
    FIRST: 75,
    "clinic": 45,
    "greenhouse": 45,
    "boxoffice": 45,
    "archive": 40,
    "workshops": 45,
    "depot": 40,
}
ONLY_PYTHON = {"workshops"}
EVERY_CORPUS = pytest.mark.parametrize(
    ("author", "language"),
    [
        (author, language)
        for author in NUMBER_OF_PROGRAMS
        for language in ("typescript", "python")
        if language == "python" or author not in ONLY_PYTHON
    ],
)


def corpus_of(author: str, language: str) -> Corpus:
    return read_corpus(f"{author}/{language}.txt")


async def reports(sources: list[str], language: str, stubs: World) -> list[CheckReport]:
    with Sandbox() as sandbox:
        checker = Checker(sandbox)
        return [(await checker.check(source, language, stubs)).report for source in sources]


@EVERY_CORPUS
def test_there_are_programs_of_every_class_half_of_them_mistaken(author: str, language: str) -> None:
    corpus = corpus_of(author, language)
    number = NUMBER_OF_PROGRAMS[author]
    assert (len(corpus.correct), len(corpus.mistaken)) == (number, number)
    kinds = Counter(seeded.kind for seeded in corpus.mistaken)
    wanted = {"module", "export", "name", "property", "result-use", "await"}
    wanted |= {"argument-name", "argument-type", "argument-value", "argument-missing"}
    assert wanted <= kinds.keys()
    assert len({seeded.source for seeded in corpus.mistaken} | set(corpus.correct.values())) == 2 * number


@EVERY_CORPUS
async def test_no_correct_program_is_rejected(author: str, language: Language) -> None:
    correct = corpus_of(author, language).correct
    found = await reports(list(correct.values()), language, world(language, author))
    assert {title: str(each.failure) for title, each in zip(correct, found, strict=True) if not each.ok} == {}
    assert {each.warning for each in found} == {""}


@EVERY_CORPUS
async def test_nearly_all_mistakes_are_caught_on_their_own_line(author: str, language: Language) -> None:
    mistaken = corpus_of(author, language).mistaken
    found = await reports([seeded.source for seeded in mistaken], language, world(language, author))
    missed = [
        f"{seeded.kind}: {seeded.title}, line {seeded.line}, found {[each.line for each in report.problems]}"
        for seeded, report in zip(mistaken, found, strict=True)
        if seeded.line not in [each.line for each in report.problems]
    ]
    assert len(mistaken) - len(missed) >= len(mistaken) * LEAST_CAUGHT, missed


@pytest.mark.parametrize("author", sorted(NUMBER_OF_PROGRAMS.keys() - ONLY_PYTHON))
async def test_no_correct_program_is_rejected_as_javascript(author: str) -> None:
    with Sandbox() as sandbox:
        erased: dict[str, str] = {}
        for title, source in corpus_of(author, "typescript").correct.items():
            answer = read_answer(await sandbox.ask_compiler(request(source, "typescript")))
            assert isinstance(answer, Answer)
            erased[title] = answer.code
            assert answer.code.count("\n") == source.count("\n"), title
    found = await reports(list(erased.values()), "javascript", world("typescript", author))
    assert {title: str(each.failure) for title, each in zip(erased, found, strict=True) if not each.ok} == {}
