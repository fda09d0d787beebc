"""Agreement on random schemas: no valid instance is rejected; where types can say all, the verdicts are the same.

Read to the letter, a schema is judged by the validator alone. As it is intended, an object that lists properties has no
others: `closed_rule` says so to the validator.

The schemas are the same in every run. `TOOLBRIDGE_EXPLORE=500` draws as many new ones of each sort.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from jsonschema import Draft7Validator

from codegen import closed_rule
from codegen.hypothesis_instances import instances_of
from codegen.interrogation import CHECKERS, Objections, ask, is_beyond, probes_for, tools_for
from codegen.programs import Probe
from codegen.random_schemas import Sort, random_schema
from toolbridge_codegen.catalog import Reading
from toolbridge_codegen.escaping import is_list, is_object

EXPLORING = int(os.environ.get("TOOLBRIDGE_EXPLORE", "0"))
SCHEMAS = EXPLORING or 30
"""Of each sort: hundreds of instances, and still only one run of each checker for both sorts."""

MOST_AT_ONCE = 120
"""Samples in one run of the checkers: pyright gives up on a program of many thousands of lines."""

LONGEST = 300
"""Characters of an instance: pyright lets errors pass in literals with many entries."""

READINGS: tuple[Reading, ...] = ("intended", "literal")
SORTS: Mapping[Reading, tuple[Sort, ...]] = {"intended": ("usual", "plain"), "literal": ("usual", "odd")}
"""What odd schemas mean as intended is a matter of opinion."""

drawing = settings(
    max_examples=6,  # the first of them is always the simplest
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


@dataclass(frozen=True, slots=True)
class Sample:
    """A schema with instances of it."""

    name: str
    sort: Sort
    schema: dict[str, Any]
    instances: tuple[Any, ...]


def _is_valid_to_the_letter(schema: Mapping[str, Any], instance: Any) -> bool:
    validator: Any = Draft7Validator(dict(schema))
    return validator.is_valid(instance)


JUDGES: Mapping[Reading, Callable[[Mapping[str, Any], Any], bool]] = {
    "intended": closed_rule.is_valid,
    "literal": _is_valid_to_the_letter,
}


def draw_samples(reading: Reading, sort: Sort) -> list[Sample]:
    """Drawn first and asked about together: a checker's start takes longer than a thousand of its answers."""
    first = secrets.randbelow(2**32) if EXPLORING else 0
    drawn = [draw_sample(f"{sort}_{number}", reading, sort, first + number) for number in range(SCHEMAS)]
    return [sample for sample in drawn if sample.instances]


def draw_sample(name: str, reading: Reading, sort: Sort, number: int) -> Sample:
    """The sample of a number, with the largest of the instances that were drawn for it; there may be none."""
    found = random_schema(number, sort)
    drawn: dict[str, Any] = {}

    @seed(number)
    @drawing
    @given(instances_of(found.inlined if reading == "literal" else closed_rule.under_rules(found.inlined)))
    def draw(instance: Any) -> None:
        drawn[json.dumps(instance)] = instance

    with suppress(Unsatisfiable):
        draw()
    short = [drawn[text] for text in sorted(drawn, key=len) if len(text) < LONGEST]
    valid = [instance for instance in short if JUDGES[reading](found.schema, instance)]
    return Sample(name, sort, found.schema, tuple(valid[-3:]))


def spoiled(instance: Any) -> list[Any]:
    """The instance with one thing changed: something missing, something unknown, something of another kind."""
    changed: list[Any] = [[], {}, "other", None]
    if is_object(instance):
        for name, value in instance.items():
            changed.append({key: kept for key, kept in instance.items() if key != name})
            changed += [{**instance, name: other} for other in spoiled(value)[:6]]
        changed.append({**instance, "unknown": "x"})
    elif is_list(instance) and instance:
        changed += [[*instance[:-1], other] for other in spoiled(instance[-1])[:6]]
    return changed


@cache
def samples(reading: Reading) -> list[Sample]:
    return [sample for sort in SORTS[reading] for sample in draw_samples(reading, sort)]


@cache
def questions(reading: Reading) -> list[tuple[Sample, Any, bool]]:
    """Every instance with what the judge says of it; plain schemas are asked about spoiled ones too."""
    asked = [(sample, instance, True) for sample in samples(reading) for instance in sample.instances]
    for sample in samples(reading):
        if sample.sort == "plain":
            wrong = {json.dumps(other): other for instance in sample.instances for other in spoiled(instance)}
            asked += [(sample, other, JUDGES[reading](sample.schema, other)) for other in list(wrong.values())[:12]]
    return asked


@dataclass(frozen=True, slots=True)
class Answers:
    """For each probe its question, and what the checkers say of it."""

    reading: Reading
    owners: list[int]
    objections: Objections

    def described(self, index: int, said: str | None) -> str:
        sample, instance, _ = questions(self.reading)[self.owners[index]]
        return f"{json.dumps(sample.schema)}\n  {json.dumps(instance)}\n  {(said or 'accepted').splitlines()[0]}"

    def is_valid(self, index: int) -> bool:
        return questions(self.reading)[self.owners[index]][2]


@pytest.fixture(scope="module", params=READINGS)
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    reading: Reading = request.param
    found = Answers(reading, [], {checker: {} for checker in CHECKERS})
    for first in range(0, len(samples(reading)), MOST_AT_ONCE):
        names = {sample.name for sample in samples(reading)[first : first + MOST_AT_ONCE]}
        ask_about(found, names, tmp_path_factory.mktemp(reading))
    return found


def ask_about(found: Answers, names: set[str], directory: Path) -> None:
    """Adds what the checkers say of these samples."""
    chosen = [sample for sample in samples(found.reading) if sample.name in names]
    tools = [tool for sample in chosen for tool in tools_for(sample.name, sample.schema)]
    probes: list[Probe] = []
    before = len(found.owners)
    for number, (sample, instance, _) in enumerate(questions(found.reading)):
        if sample.name in names:
            for probe in probes_for(sample.name, sample.schema, instance):
                found.owners.append(number)
                probes.append(probe)
    for checker, said in ask(directory, tools, probes, reading=found.reading).items():
        found.objections[checker].update({before + index: objection for index, objection in said.items()})


def shortest(problems: list[str]) -> str:
    """The three that are easiest to understand."""
    return f"{len(problems)}, of which the shortest:\n" + "\n".join(sorted(set(problems), key=len)[:3])


@pytest.mark.parametrize("reading", READINGS)
def test_there_is_something_to_ask(reading: Reading) -> None:
    for sort in SORTS[reading]:
        assert sum(sample.sort == sort for sample in samples(reading)) >= SCHEMAS // 2
    if "plain" in SORTS[reading]:
        assert sum(not valid for _, _, valid in questions(reading)) >= SCHEMAS


def test_instances_to_the_letter_are_not_only_those_that_are_intended() -> None:
    """Else the literal reading would be tried on nothing that the other doesn't do as well."""
    refused = [
        instance
        for sample in samples("literal")
        for instance in sample.instances
        if sample.sort == "usual" and not closed_rule.is_valid(sample.schema, instance)
    ]
    assert len(refused) >= SCHEMAS // 10


@pytest.mark.parametrize("checker", CHECKERS)
def test_no_valid_instance_of_a_random_schema_is_rejected(answers: Answers, checker: str) -> None:
    wrong = [
        answers.described(index, said)
        for index, said in answers.objections[checker].items()
        if answers.is_valid(index) and said is not None and not is_beyond(checker, said)
    ]
    assert not wrong, shortest(wrong)


@pytest.mark.parametrize("checker", CHECKERS)
def test_no_invalid_instance_of_a_plain_schema_is_accepted(answers: Answers, checker: str) -> None:
    """Both languages say exactly what the validator says: so they agree with each other."""
    wrong = [
        answers.described(index, said)
        for index, said in answers.objections[checker].items()
        if not answers.is_valid(index) and said is None
    ]
    assert not wrong, shortest(wrong)
