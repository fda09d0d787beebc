"""Whatever is unknown because a type can't say it has a diagnostic; an honest `{}` or `true` needs none.

The judge is a second reading of the schemas that knows only the kinds of values: a schema that doesn't admit all of
them says something, so its type is not unknown, or there is a diagnostic.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen.chance import Chance
from codegen.notation import build, problems, result_model, written
from toolbridge_codegen.catalog import ToolDefinition
from toolbridge_codegen.model import ArrayType, NamedType, ObjectType, TypeNode, UnknownType
from toolbridge_codegen.read.kinds import ANY_KIND, KINDS, NULL, kind_of_value

TEXT = {"type": "string"}


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def having(name: str, schema: Any = None) -> dict[str, Any]:
    return {"type": "object", "properties": {name: schema or TEXT}}


def knotted(seed: int) -> dict[str, Any]:
    """Definitions that are choices of each other, and of themselves."""
    random = Random(seed)
    names = ["A", "B", "C"]

    def part() -> dict[str, Any]:
        match random.randrange(5):
            case 0:
                return having(random.choice("xyz"), random.choice([TEXT, *map(ref, names)]))
            case 1:
                return {"type": "array", "items": ref(random.choice(names))}
            case _:
                return ref(random.choice(names))

    return {
        name: {
            random.choice(["anyOf", "oneOf", "allOf"]): [part() for _ in range(random.randint(1, 3))]
            for _ in range(random.randint(1, 2))
        }
        for name in names
    }


def admitted(definitions: dict[str, Any]) -> dict[str, int]:
    """The kinds of values that definitions admit: the least that solves them."""
    found = dict.fromkeys(definitions, 0)
    while True:
        again = {name: _kinds(schema, found) for name, schema in definitions.items()}
        if again == found:
            return found
        found = again


def _kinds(schema: Any, known: dict[str, int]) -> int:
    if isinstance(schema, bool):
        return ANY_KIND if schema else 0
    declared = schema.get("type", [])
    kinds = 0
    for name in [declared] if isinstance(declared, str) else declared:
        kinds |= KINDS[name]
    kinds = kinds or ANY_KIND
    for values in ([schema["const"]] if "const" in schema else None, schema.get("enum")):
        if values is not None:
            kinds &= _any(kind_of_value(value) for value in values)
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            kinds &= _any(_kinds(branch, known) for branch in schema[keyword])
    for member in schema.get("allOf", ()):
        kinds &= _kinds(member, known)
    if "$ref" in schema:
        kinds &= known[schema["$ref"].removeprefix("#/$defs/")]
    return kinds | NULL if schema.get("nullable") else kinds


def _any(kinds: Any) -> int:
    together = 0
    for each in kinds:
        together |= each
    return together


def silently_unknown(definitions: dict[str, Any]) -> list[str]:
    """The definitions whose types are unknown, with no word about it, although they say something."""
    kinds = admitted(definitions)
    properties = {name: ref(name) for name in definitions}
    properties |= {f"{name}[]": {"type": "array", "items": ref(name)} for name in definitions}
    schema = {"type": "object", "properties": properties, "$defs": definitions}
    model, diagnostics = build(ToolDefinition("tool", schema))
    declared = {declaration.name: declaration.type for declaration in model.declarations}

    def resolved(node: TypeNode) -> TypeNode:
        return resolved(declared[node.name]) if isinstance(node, NamedType) else node

    inputs = resolved(model.functions[0].input)
    assert isinstance(inputs, ObjectType)
    found: list[str] = []
    for known in inputs.properties:
        node = resolved(known.type)
        if known.name.endswith("[]"):
            assert isinstance(node, ArrayType)
            node = resolved(node.items)
        if isinstance(node, UnknownType) and not diagnostics and kinds[known.name.removesuffix("[]")] != ANY_KIND:
            found.append(known.name)
    return found


@given(st.integers(0, 2**32))
def test_a_schema_that_says_something_is_not_unknown_without_a_diagnostic(seed: int) -> None:
    document = Chance(seed).document()
    definitions = document.pop("$defs")
    assert silently_unknown({**definitions, "whole": document}) == []


@given(st.integers(0, 2**32))
def test_choices_of_each_other_are_not_unknown_without_a_diagnostic(seed: int) -> None:
    assert silently_unknown(knotted(seed)) == []


def test_the_examples_have_unknown_types() -> None:
    """Definitions that admit some kinds, and some that admit none: a choice only of itself."""
    kinds = [each for seed in range(200) for each in admitted(knotted(seed)).values()]
    assert 100 < sum(each not in (0, ANY_KIND) for each in kinds) < 600
    assert kinds.count(0) > 100


X, Y = having("x"), having("y")


@pytest.mark.parametrize(
    ("definitions", "expected"),
    [
        ({"A": {"anyOf": [ref("A"), X]}}, "{x?: string}"),
        ({"A": {"oneOf": [ref("A"), X]}}, "{x?: string}"),
        ({"A": {"anyOf": [ref("B"), X]}, "B": {"anyOf": [ref("A"), TEXT]}}, "string | {x?: string}"),
        # Each holds because the other does: that says nothing.
        ({"A": {"allOf": [ref("B"), ref("C")]}, "B": {"anyOf": [ref("C"), X]}, "C": {"anyOf": [ref("B"), X]}}, ""),
    ],
)
def test_a_branch_that_is_the_choice_itself_adds_nothing(definitions: dict[str, Any], expected: str) -> None:
    schema = {**ref("A"), "$defs": definitions}
    assert written(schema) == (expected or "{x?: string}")
    assert problems(schema) == []


def test_a_choice_that_is_made_already_is_not_taken_for_the_choice_itself() -> None:
    """Of the first choice, either branch: the second one asks for the first, which is no circle."""
    definitions = {"A": {"oneOf": [X, Y]}, "B": {"oneOf": [ref("A"), having("z")]}}
    schema = {"allOf": [ref("A"), ref("B")], "$defs": definitions}
    assert written(schema) == "{x?: string} | {x?: string, z?: string} | {y?: string} | {y?: string, z?: string}"


def test_choices_only_of_each_other_are_unknown_and_reported() -> None:
    definitions = {"A": {"anyOf": [ref("B")], "oneOf": [ref("B")]}, "B": {"anyOf": [ref("A")]}}
    schema = {**ref("A"), "$defs": definitions}
    assert written(schema) == "unknown"
    assert "a choice only of itself: unknown" in {message for _, message in problems(schema)}


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$recursiveRef"])
@pytest.mark.parametrize("reference", [5, None, True, {}, ["#"]])
def test_a_reference_that_is_no_string_is_reported(keyword: str, reference: Any) -> None:
    schema = {"$defs": {"A": {keyword: reference}}, "properties": {"a": ref("A")}}
    assert written(schema) == "{a?: unknown}"
    assert problems(schema) == [(f"/outputSchema/$defs/A/{keyword}", f"'{keyword}' is not a string")]


def test_a_required_property_that_one_of_several_patterns_describes_is_reported() -> None:
    patterns = {"^a": TEXT, "b$": {"type": "number"}}
    schema = {"type": "object", "patternProperties": patterns, "required": ["ab"]}
    assert problems(schema) == [
        ("/outputSchema/required", "which of several schemas describes 'ab' is not known: unknown")
    ]
    assert problems({**schema, "additionalProperties": True}) == []


def test_an_object_that_is_open_because_too_many_branches_can_hold_at_once_is_reported() -> None:
    few, many = ({"anyOf": [having(f"p{number}") for number in range(count)]} for count in (9, 10))
    assert problems(few) == []
    assert problems(many) == [
        ("/outputSchema", "more than 8 other branches can hold at once: it may have any other property")
    ]


@pytest.mark.parametrize("schema", [True, {}, {"description": "anything"}, {"anyOf": [{}, TEXT]}])
def test_open_schemas_are_not_reported(schema: Any) -> None:
    assert result_model({"type": "object", "properties": {"a": schema}})[1] == ()
