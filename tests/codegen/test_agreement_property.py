"""Agreement on random schemas: no valid instance is rejected; where types can say all, the verdicts are the same."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from codegen.closed_rule import is_valid, under_rules
from codegen.hypothesis_instances import instances_of
from codegen.interrogation import CHECKERS, Objections, ask, is_beyond, probes_for, tools_for
from codegen.programs import Probe
from codegen.random_schemas import RandomSchema, random_schemas
from toolbridge_codegen.json_values import is_list, is_object

SCHEMAS = 60
"""Of each sort: hundreds of instances, and still only one run of each checker."""

LONGEST = 300
"""Characters of an instance: pyright lets errors pass in literals with many entries."""

drawing = settings(
    max_examples=SCHEMAS,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


@dataclass(frozen=True, slots=True)
class Sample:
    """A schema with instances of it."""

    name: str
    schema: dict[str, Any]
    instances: tuple[Any, ...]


def draw_samples(prefix: str, *, plain: bool) -> list[Sample]:
    """Drawn first and asked about together: a checker's start takes longer than a thousand of its answers."""
    samples: dict[str, Sample] = {}

    @drawing
    @given(random_schemas(plain=plain), st.data())
    def draw(found: RandomSchema, data: st.DataObject) -> None:
        strategy = instances_of(under_rules(found.inlined))
        drawn = [data.draw(strategy) for _ in range(3)]
        short = [instance for instance in drawn if len(json.dumps(instance)) < LONGEST]
        valid = [instance for instance in short if is_valid(found.schema, instance)]
        key = json.dumps(found.schema, sort_keys=True)
        if key not in samples and valid:
            instances = {json.dumps(instance): instance for instance in valid}
            samples[key] = Sample(f"{prefix}_{len(samples)}", found.schema, tuple(instances.values()))

    draw()
    return list(samples.values())


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
def samples() -> tuple[list[Sample], list[Sample]]:
    return draw_samples("any", plain=False), draw_samples("plain", plain=True)


@cache
def questions() -> list[tuple[Sample, Any, bool]]:
    """Every instance with what the validator says of it; plain schemas are asked about spoiled ones too."""
    anything, plain = samples()
    asked = [(sample, instance, True) for sample in [*anything, *plain] for instance in sample.instances]
    for sample in plain:
        wrong = {json.dumps(other): other for instance in sample.instances for other in spoiled(instance)}
        asked += [(sample, other, is_valid(sample.schema, other)) for other in list(wrong.values())[:12]]
    return asked


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[int], Objections]:
    """For each probe its question, and what the checkers say of it."""
    anything, plain = samples()
    tools = [tool for sample in [*anything, *plain] for tool in tools_for(sample.name, sample.schema)]
    owners: list[int] = []
    probes: list[Probe] = []
    for number, (sample, instance, _) in enumerate(questions()):
        for probe in probes_for(sample.name, sample.schema, instance):
            owners.append(number)
            probes.append(probe)
    directory: Path = tmp_path_factory.mktemp("random")
    return owners, ask(directory, tools, probes)


def described(number: int, said: str | None) -> str:
    sample, instance, _ = questions()[number]
    return f"{json.dumps(sample.schema)}\n  {json.dumps(instance)}\n  {(said or 'accepted').splitlines()[0]}"


def shortest(problems: list[str]) -> str:
    """The three that are easiest to understand."""
    return f"{len(problems)}, of which the shortest:\n" + "\n".join(sorted(set(problems), key=len)[:3])


def test_there_is_something_to_ask() -> None:
    anything, plain = samples()
    assert len(anything) >= SCHEMAS // 2
    assert len(plain) >= SCHEMAS // 2
    assert sum(not valid for _, _, valid in questions()) >= SCHEMAS


@pytest.mark.parametrize("checker", CHECKERS)
def test_no_valid_instance_of_a_random_schema_is_rejected(answers: tuple[list[int], Objections], checker: str) -> None:
    owners, objections = answers
    wrong = [
        described(owners[index], said)
        for index, said in objections[checker].items()
        if questions()[owners[index]][2] and said is not None and not is_beyond(checker, said)
    ]
    assert not wrong, shortest(wrong)


@pytest.mark.parametrize("checker", CHECKERS)
def test_no_invalid_instance_of_a_plain_schema_is_accepted(answers: tuple[list[int], Objections], checker: str) -> None:
    """Both languages say exactly what the validator says: so they agree with each other."""
    owners, objections = answers
    wrong = [
        described(owners[index], said)
        for index, said in objections[checker].items()
        if not questions()[owners[index]][2] and said is None
    ]
    assert not wrong, shortest(wrong)
