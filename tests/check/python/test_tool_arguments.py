"""Arguments of tools in Python programs: every input that a run accepts passes, and certain mistakes are reported."""

from __future__ import annotations

from typing import Any

import pytest

from check.corpus import read_corpus, world
from toolbridge.check.checker import CheckReport, SessionNames, World
from toolbridge.check.python.text import checkable_stubs
from toolbridge.check.python.tool_arguments import ValueTypes
from toolbridge.check.python.ty import check_python
from toolbridge_codegen.catalog import ServerListing, ToolDefinition, build_catalog
from toolbridge_codegen.stubs import generate

pytestmark = pytest.mark.anyio

CORPUS = read_corpus("mistaken_python.txt")
TEXT: dict[str, Any] = {"type": "string"}
TOOLS: dict[str, dict[str, Any]] = {
    "dash": {"type": "object", "properties": {"a-b": TEXT, "c": {"type": "integer"}}, "required": ["a-b"]},
    "either": {
        "type": "object",
        "oneOf": [
            {"properties": {"a": TEXT}, "required": ["a"]},
            {"properties": {"b": TEXT}, "required": ["b"]},
        ],
    },
    "wide": {
        "type": "object",
        "properties": {"a": TEXT, "input": {"enum": ["x", ") -> None:", "y"]}, "n": {"type": "number"}},
        "required": ["a"],
        "additionalProperties": True,
    },
    "nothing": {"type": "object", "properties": {}},
    "loose": {"type": "object"},
    "many": {"type": "object", "properties": {"value": {"enum": [f"value {number}" for number in range(40)]}}},
}
IMPORT = f"from host.mcp_s import {', '.join(TOOLS)}\n"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def own_world() -> World:
    tools = tuple(ToolDefinition(name, schema) for name, schema in TOOLS.items())
    catalog = build_catalog([ServerListing("s", tools)])
    return World(generate(catalog, language="python").files, tuple(module.specifier for module in catalog.modules))


async def check(source: str) -> CheckReport:
    return await check_python(IMPORT + source, own_world(), None)


@pytest.mark.parametrize("title", CORPUS.correct)
async def test_the_right_program_passes(title: str) -> None:
    report = await check_python(CORPUS.correct[title], world("python"), None)
    assert (report.ok, report.warning) == (True, ""), str(report.failure)


@pytest.mark.parametrize("seeded", CORPUS.mistaken, ids=lambda seeded: seeded.title)
async def test_a_mistake_is_reported_once_on_its_line(seeded: Any) -> None:
    report = await check_python(seeded.source, world("python"), None)
    assert [problem.line for problem in report.problems] == [seeded.line], str(report.failure)


@pytest.mark.parametrize(
    "source",
    [
        "dash({'a-b': 'x', 'c': 1})",
        "dash(**{'a-b': 'x', 'c': 1})",
        "dash({'a-b': 'x'}, c=1)",
        "either(a='1')",
        "either({'a': '1'})",
        "either(**{'b': '1'})",
        "wide(a='1', more=2)",
        "wide({'a': '1', 'more': 2})",
        "wide({'a': '1'}, input='x')",
        "wide(a='1', input='x')",
        "wide(a='1', input=None)",
        "from decimal import Decimal\nwide(a='1', n=Decimal('1.5'))",
        "nothing()",
        "nothing({})",
        "loose(a=1)",
        "loose({'a': 1}, b=2)",
        "many(value='value 39')",
        "value = 'value 3'.lower()\nmany(value=value)",
    ],
)
async def test_keywords_one_mapping_or_both_pass_for_every_tool(source: str) -> None:
    report = await check(source)
    assert (report.ok, report.warning) == (True, ""), str(report.failure)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("dash(c=1)", "`a-b`"),
        ("dash({'a-b': 1})", "Wrong value for `a-b`"),
        ("dash({'c': 1})", "Missing required key 'a-b'"),
        ("dash(**{'a-b': 'x'}, d=1)", "`d`"),
        ("dash('x')", "`dash`: it takes keyword arguments, or one dict."),
        ("either('x')", "`either`: it takes keyword arguments, or one dict."),
        ("wide(a=1)", "Wrong argument for `a` of `wide`"),
        ("wide(more=1)", "`a`"),
        ("wide(a='1', input='z')", "Wrong argument for `input` of `wide`"),
        ("wide(a=None)", "Wrong argument for `a` of `wide`"),
        ("many(value='other')", "Wrong argument for `value` of `many`"),
        ("from host.mcp_s import aio\nawait aio.dash({'a-c': 'x'})", '`DashInput` has no key "a-c"'),
        ("from host.mcp_s import aio\nawait aio.wide(a=1)", "Wrong argument for `a` of `wide`"),
    ],
)
async def test_certain_mistakes_are_reported(source: str, message: str) -> None:
    (problem,) = (await check(source)).problems
    assert message in problem.message
    assert problem.stub.startswith("The stub says (host/mcp_s/__init__.pyi, line ")


@pytest.mark.parametrize(("name", "advice"), [("DashInput", "Write dict"), ("DashOutput", "Leave the annotation out")])
async def test_an_imported_type_is_reported_with_a_replacement(name: str, advice: str) -> None:
    (problem,) = (await check(f"from host.mcp_s import {name}\nx: {name} = dash({{'a-b': 'x'}})")).problems
    assert f"no member `{name}` when it runs: types are only in its stub. {advice}, or import it" in problem.message


@pytest.mark.parametrize(
    ("expected", "fitting", "others"),
    [
        ("str", ["str", "date", "UUID", "Unknown", "str | None", "Own", 'Literal[b"a"]'], ["int", "list[str]", "None"]),
        ("int", ["float", "Decimal", "int*", "str", 'Literal["1234567890123456"]'], ['Literal["5"]', "bool", "date"]),
        ("bool", ["bool", "Literal[True]"], ["int", "str", 'Literal["true"]']),
        ("list[str]", ["set[str]", "tuple[()]", "dict_keys[str, int]", "list[str | None]"], ["str", "list[int]"]),
        ("list[str]", ["dict_values[int, str]", "dict_items[str, int]"], ["range", "tuple[str, int]", "map[str]"]),
        ("Thing", ["dict[str, int]", "Thing", "Own"], ["list[Thing]", "str", "CoroutineType[Any, Any, Thing]"]),
        ('Literal["a", "b"]', ["str", 'Literal["a", "z"]', "Literal[Own.A]"], ['Literal["z"]', "int", "Literal[1]"]),
        ('Literal["a | b", "]"] | int', ['Literal["]"]', "int"], ['Literal["a"]', "None"]),
        ('Literal["a", ... omitted 3 literals]', ['Literal["b", "c"]', "str"], ['Literal["z"]']),
        ("Any", ["int", "def f() -> int | str"], []),
        ("str | list[str]", ["tuple[str, ...]"], ["def f() -> int | str", "dict[str, str]"]),
    ],
)
def test_values_are_compared_as_json(expected: str, fitting: list[str], others: list[str]) -> None:
    types = ValueTypes(lambda name: name == "Thing", lambda name: name == "Own")
    assert [found for found in fitting if not types.may_assign(expected, found)] == []
    assert [found for found in others if types.may_assign(expected, found)] == []
    assert types.may_assign(expected, "None", none_allowed=True)


@pytest.mark.parametrize(
    "second",
    [
        "def need(name):\n    return name",
        "class need:\n    pass",
        "need = print",
        "other, need = 1, print",
        "for need in [print]:\n    pass",
        "import json as need",
        "need: object = print",
        "del need\ndef need(x): return x",
        "if (need := print):\n    pass",
    ],
)
@pytest.mark.parametrize("first", ["from host.mcp_s import dash as need", "from host.mcp_s import *\nneed = dash"])
async def test_a_name_rebound_in_a_session_has_any_type(first: str, second: str) -> None:
    session = SessionNames()
    for program in (first, second):
        session.add(program, "python", ())
    assert (await check_python("need('y', 1)", own_world(), session)).ok


async def test_a_name_that_a_session_imports_again_has_its_type_again() -> None:
    session = SessionNames()
    for program in ("from host.mcp_s import dash", "dash = 1", "from host.mcp_s import dash\ndash(c=2) == 3"):
        session.add(program, "python", ())
    report = await check_python("from __future__ import annotations\ndash(d=1)", own_world(), session)
    assert [problem.line for problem in report.problems] == [2]


def test_the_stubs_for_the_checker_have_every_function_once() -> None:
    stubs = checkable_stubs(own_world().stubs)
    for name in ("host/mcp_s/__init__.pyi", "host/mcp_s/aio.pyi"):
        assert "@overload" not in stubs[name]
        for tool in TOOLS:
            assert stubs[name].count(f"def {tool}(") == 1


async def test_a_function_with_overloads_is_named_once() -> None:
    report = await check("import host.bridge\nhost.bridge.nope\n")
    (problem,) = report.problems
    assert problem.message == "Module `host.bridge` has no member `nope`. It has: parallel."
