"""Agreement: a validator and three type checkers accept the same instances."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from codegen import corpus
from codegen.closed_rule import is_valid
from codegen.interrogation import CHECKERS, Objections, ask, is_beyond, probes_for, tools_for
from codegen.programs import Probe

REJECTED_BY = {
    "valid": (),
    "invalid": CHECKERS,
    "unexpressed": (),
    "unexpressed_in_python": ("tsc",),
    "unexpressed_in_typescript": ("pyright", "mypy"),
}
"""Which checkers must object. None may object to what is valid; of what a language can't express, nothing is asked."""


@dataclass(frozen=True, slots=True)
class Question:
    """One instance in one place, and what is known of it."""

    case: str
    verdict: str
    probe: Probe

    def __str__(self) -> str:
        return f"{self.case}: {self.verdict} {self.probe.place} {json.dumps(self.probe.instance)}"


@cache
def cases() -> tuple[Mapping[str, Any], ...]:
    return tuple(corpus.read_cases("agreement"))


def judgements() -> Iterator[tuple[Mapping[str, Any], str, Any]]:
    for case in cases():
        for verdict in REJECTED_BY:
            for instance in case.get(verdict, ()):
                yield case, verdict, instance


@cache
def questions() -> tuple[Question, ...]:
    return tuple(
        Question(case["name"], verdict, probe)
        for case, verdict, instance in judgements()
        for probe in probes_for(case["name"], case["schema"], instance)
    )


@pytest.fixture(scope="module")
def objections(tmp_path_factory: pytest.TempPathFactory) -> Objections:
    tools = [tool for case in cases() for tool in tools_for(case["name"], case["schema"])]
    return ask(tmp_path_factory.mktemp("agreement"), tools, [question.probe for question in questions()])


def test_the_corpus_is_as_large_as_promised() -> None:
    assert len(list(judgements())) >= 250


def test_the_validator_says_what_the_corpus_says() -> None:
    wrong = [
        f"{case['name']}: {json.dumps(instance)} is called {verdict}"
        for case, verdict, instance in judgements()
        if is_valid(case["schema"], instance) is not (verdict == "valid")
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("checker", CHECKERS)
def test_no_valid_instance_is_rejected(objections: Objections, checker: str) -> None:
    wrong = [
        f"{questions()[index]}\n    {said.splitlines()[0]}"
        for index, said in objections[checker].items()
        if questions()[index].verdict == "valid" and said is not None and not is_beyond(checker, said)
    ]
    assert not wrong, f"{len(wrong)} rejected:\n" + "\n".join(wrong)


@pytest.mark.parametrize("checker", CHECKERS)
def test_what_types_can_express_is_rejected(objections: Objections, checker: str) -> None:
    wrong = [
        str(questions()[index])
        for index, said in objections[checker].items()
        if checker in REJECTED_BY[questions()[index].verdict] and said is None
    ]
    assert not wrong, f"{len(wrong)} accepted:\n" + "\n".join(wrong)


def test_nearly_every_question_can_be_asked_in_both_languages(objections: Objections) -> None:
    """A keyword argument can't have every name; what is left out must stay the exception."""
    assert len(objections["tsc"]) == len(questions())
    assert len(objections["pyright"]) >= 0.95 * len(questions())
