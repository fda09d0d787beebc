"""Schema bombs: bounded time and memory, and other tools are unaffected."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codegen.notation import problems, written
from codegen.schema_bombs import BOMBS, chain, nested
from growth import work_within
from toolbridge_codegen.catalog import ServerListing, ToolDefinition, build_catalog
from toolbridge_codegen.read.kinds import TOO_SLOW, Bounds, Budget
from toolbridge_codegen.stubs import StubSet, generate

STRING = {"type": "string"}
GOOD = ToolDefinition("good", {"type": "object", "properties": {"a": STRING}, "required": ["a"]})


def stubs_of(schema: Any, language: Any) -> StubSet:
    bad = ToolDefinition("bad", schema, output_schema=schema)
    return generate(build_catalog([ServerListing("server", (bad, GOOD))]), language=language)


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_bounded_time_and_space_and_other_tools_are_unaffected(name: str) -> None:
    schema = BOMBS[name]()
    for language, file, expected in [
        ("typescript", "mcp-server.d.ts", "interface GoodInput { a: string }"),
        ("python", "host/mcp_server/__init__.pyi", "class GoodInput(TypedDict):\n a: str"),
    ]:
        with work_within(5):
            stubs = stubs_of(schema, language)
        assert len(stubs.files[file]) < 300_000
        assert expected in stubs.files[file]
        assert {item.tool for item in stubs.diagnostics} <= {"bad"}


def test_no_bomb_takes_much_memory() -> None:
    """Each in a process of its own, as a server could send it: as JSON, which can't be too deep."""
    code = """
import json, sys
sys.path.insert(0, sys.argv[1])
from codegen.peak_memory import peak_kilobytes
from codegen.read.test_kinds_bounds import stubs_of
schema = json.load(sys.stdin)
before = peak_kilobytes()
for language in ("typescript", "python"):
    stubs_of(schema, language)
print(peak_kilobytes() - before)
"""
    tests = str(Path(__file__).parents[2])
    for name in ("a web of objects", "10,000 objects", "maps of references 5,000 deep", "20 megabytes of descriptions"):
        done = subprocess.run(
            [sys.executable, "-c", code, tests],
            input=json.dumps(BOMBS[name]()),
            capture_output=True,
            text=True,
            check=True,
        )
        assert int(done.stdout) < 256 * 1024, name  # kilobytes


@pytest.mark.parametrize(
    ("bounds", "schema", "expected", "problem"),
    [
        (
            Bounds(depth=2),
            {"type": "object", "properties": {"a": {"properties": {"b": {"properties": {"c": {"items": STRING}}}}}}},
            "{a?: {b?: {c?: unknown}}}",
            ("/outputSchema/properties/a/properties/b/properties/c", "nested more than 2 levels deep: unknown"),
        ),
        (
            Bounds(properties=2),
            {"type": "object", "properties": {"a": STRING, "b": STRING, "c": STRING, "d": STRING}},
            "{a?: string, b?: string, *: unknown}",
            ("/outputSchema", "2 properties are left out: too many, or their names too long"),
        ),
        (
            Bounds(name=3),
            {"type": "object", "properties": {"abcd": STRING, "abc": {"enum": ["abc", "abcd"]}}, "required": ["abcd"]},
            "{abc?: string, *: unknown}",
            ("/outputSchema", "1 properties are left out: too many, or their names too long"),
        ),
        (
            Bounds(union=2),
            {"anyOf": [STRING, {"type": "array"}, {"type": "boolean"}]},
            "unknown[] | string | boolean",
            ("/outputSchema", "a union of more than 2 types: unknown"),
        ),
        (
            Bounds(literals=2),
            {"enum": ["a", "b", 1]},
            "string | integer",
            ("/outputSchema/enum", "more than 2 constants: only their types are kept"),
        ),
        (
            Bounds(literals=2),
            {"anyOf": [{"enum": ["a", "b"]}, {"enum": ["c", 1]}]},
            "string | integer",
            ("/outputSchema", "more than 2 constants: only their types are kept"),
        ),
        (
            Bounds(literals=2),
            {"type": "object", "anyOf": [{"properties": {name: STRING}} for name in "abc"]},
            "{*: unknown}",
            ("/outputSchema/anyOf", "more than 2 branches: unknown"),
        ),
        (
            Bounds(union=3),
            {"allOf": [{"anyOf": [{"properties": {name: STRING}} for name in pair]} for pair in ("ab", "cd")]},
            "unknown",
            ("/outputSchema", "too many alternatives: unknown"),
        ),
        (
            Bounds(nodes=7),
            {"type": "object", "properties": {"a": STRING, "b": {"type": "array"}, "c": {"type": "array"}}},
            "{a?: string, b?: unknown, *: unknown}",
            ("/outputSchema/properties/b", "the schema has more than 7 parts: this and what follows is unknown"),
        ),
    ],
)
def test_a_type_beyond_a_bound_is_unknown_and_reported(
    bounds: Bounds, schema: Any, expected: str, problem: tuple[str, str]
) -> None:
    assert written(schema, bounds=bounds) == expected
    assert problem in problems(schema, bounds)


def test_references_start_counting_depth_anew() -> None:
    schema = chain(100, lambda to, _: {"type": "object", "properties": {"a": to}})
    assert problems(schema) == []
    assert written(schema).count("{") == 101


def test_the_bound_is_exact() -> None:
    schema = nested(33, lambda inner: {"type": "array", "items": inner}, {"type": "array", "items": STRING})
    assert written(schema).count("[]") == 33
    assert problems(schema) == [
        ("/outputSchema" + "/items" * 33, "nested more than 32 levels deep: unknown"),
    ]


def test_many_hostile_tools_share_a_budget() -> None:
    hostile = BOMBS["a web of objects"]()
    tools = [ToolDefinition(f"bad{index}", hostile) for index in range(50)]
    with work_within(15):
        stubs = generate(build_catalog([ServerListing("server", (*tools, GOOD))]), language="typescript")
    assert "interface GoodInput { a: string }" in stubs.files["mcp-server.d.ts"]


def test_many_tools_that_multiply_choices_take_little_time_and_memory() -> None:
    code = """
import sys
sys.path.insert(0, sys.argv[1])
from codegen.peak_memory import peak_kilobytes
from codegen.read.test_kinds_bounds import GOOD
from growth import work_within
from threats.schema_bombs import multiplied
from toolbridge_codegen.catalog import ServerListing, ToolDefinition, build_catalog
from toolbridge_codegen.stubs import generate
tools = [ToolDefinition(f"bad{index}", multiplied(20)) for index in range(20)]
with work_within(5):
    stubs = generate(build_catalog([ServerListing("server", (*tools, GOOD))]), language="typescript")
assert "interface GoodInput { a: string }" in stubs.files["mcp-server.d.ts"]
assert {item.tool for item in stubs.diagnostics} == {tool.name for tool in tools}
print(peak_kilobytes())
"""
    tests = str(Path(__file__).parents[2])
    done = subprocess.run([sys.executable, "-c", code, tests], capture_output=True, text=True, check=True, timeout=120)
    assert float(done.stdout) < 256 * 1024


def test_when_time_is_exhausted_only_expensive_tools_are_cut_short() -> None:
    large = ToolDefinition("bad", BOMBS["a web of objects"]())
    catalog = build_catalog([ServerListing("server", (large, GOOD))])
    stubs = generate(catalog, language="typescript", bounds=Bounds(module_seconds=0, least_seconds=0))
    assert {item.tool for item in stubs.diagnostics} == {"bad"}
    assert all(item.message.startswith(TOO_SLOW) for item in stubs.diagnostics)
    assert "interface GoodInput { a: string }" in stubs.files["mcp-server.d.ts"]


def test_a_choice_cut_short_by_the_clock_says_so() -> None:
    """What a busy machine left out isn't kept in the cache: it is known by this message."""
    branches = [{"properties": {f"p{index}": STRING}} for index in range(90)]
    schema = {"type": "object", "properties": {"z": STRING}, "anyOf": [{"anyOf": [one]} for one in branches]}
    found = problems(schema, Bounds(seconds=0))
    assert ("/outputSchema", f"{TOO_SLOW}: unknown") in found


def test_each_tool_has_a_minimum_of_time() -> None:
    now = [0.0]
    budget = Budget(Bounds(least_seconds=0.5), nodes_left=20_000, seconds_left=-5, clock=lambda: now[0])
    now[0] = 0.4
    assert budget.visit(1000)
    now[0] = 0.6
    assert not budget.visit(1000)


def test_each_tool_has_a_minimum_of_steps() -> None:
    assert Budget(Bounds(), nodes_left=-5).visit(500)
    assert not Budget(Bounds(), nodes_left=-5).visit(501)


def test_time_bounds_work_that_steps_do_not() -> None:
    now = [0.0]
    budget = Budget(Bounds(seconds=4), nodes_left=20_000, clock=lambda: now[0])
    assert budget.visit(1000)
    now[0] = 4.1
    assert not budget.visit(1000)
    assert budget.exhausted == TOO_SLOW
    now[0] = 0
    assert not budget.visit(1000)


def test_comments_have_half_of_the_room_and_types_are_written_without_them() -> None:
    long = {"type": "string", "description": "d" * 100}
    schema = {"type": "object", "properties": dict.fromkeys("abcd", long)}
    assert written(schema, bounds=Bounds(characters=600)) == "{a?: string, b?: string, c?: string, d?: string}"
    assert problems(schema, Bounds(characters=600)) == [
        ("", "there is no room for all descriptions; some are left out")
    ]


def test_the_number_of_diagnostics_is_bounded() -> None:
    schema = {"type": "object", "properties": {f"p{index}": {"type": 5} for index in range(100)}}
    found = problems(schema, Bounds(diagnostics=3))
    assert [message for _, message in found] == [
        *["'type' is neither a string nor a list"] * 3,
        "more than 3 diagnostics; the others are left out",
    ]
