"""The check of an argument doesn't depend on the form of its name: `a`, "a", ["a"], get a(), and so on.

A metamorphic fuzz over the tools of real servers: every program is written once for each form of property name, and
each must get the same verdict, line by line. The tools of our own say that the verdicts are the right ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest

from check.corpus import world
from codegen.corpus import real_listings
from toolbridge import Sandbox
from toolbridge.check.checker import Checker, CheckReport, World
from toolbridge_codegen.catalog import ServerListing, ToolDefinition, build_catalog, identifier
from toolbridge_codegen.escaping import is_list, is_object
from toolbridge_codegen.stubs import generate

pytestmark = pytest.mark.anyio

Form = Callable[[str, str], str]
LANGUAGES = ("javascript", "typescript")
FORMS: dict[str, Form] = {
    "quoted": lambda key, value: f"{json.dumps(key)}: {value}",
    "in single quotes": lambda key, value: f"'{key}': {value}",
    "identifier": lambda key, value: f"{key}: {value}",
    "computed": lambda key, value: f"[{json.dumps(key)}]: {value}",
    "template": lambda key, value: f"[`{key}`]: {value}",
    "escaped": lambda key, value: f"\\u{ord(key[0]):04x}{key[1:]}: {value}",
    "quoted and escaped": lambda key, value: f'"\\u{{{ord(key[0]):x}}}{key[1:]}": {value}',
    "getter": lambda key, value: f"get {key}() {{ return {value}; }}",
    "quoted getter": lambda key, value: f"get {json.dumps(key)}() {{ return {value}; }}",
}
IS_NO_TEXT = {"identifier", "escaped", "getter"}
EXTRA = "zzyzx"
CALLS_IN_A_PROGRAM = 8
"""Fewer than the problems that are reported of one program."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def written(value: Any, form: str) -> str:
    """A JSON value as a literal whose objects have their names in one form."""
    if is_object(value):
        return "{ " + ", ".join(member(key, written(each, form), form) for key, each in value.items()) + " }"
    if is_list(value):
        return "[" + ", ".join(written(each, form) for each in value) + "]"
    return json.dumps(value)


def member(key: str, value: str, form: str) -> str:
    return FORMS["quoted" if form in IS_NO_TEXT and not key.isidentifier() else form](key, value)


def sample(schema: Any, defs: dict[str, Any], depth: int = 0) -> Any:  # noqa: PLR0911  # one for each kind
    """A value for a schema, most often a right one."""
    if not is_object(schema) or depth > 6:
        return "a"
    known = schema
    if "$ref" in known:
        return sample(defs.get(str(known["$ref"]).rpartition("/")[2]), defs, depth + 1)
    for keyword in ("anyOf", "oneOf"):
        if known.get(keyword):
            return sample(known[keyword][0], defs, depth + 1)
    if "const" in known or known.get("enum"):
        return known["const"] if "const" in known else known["enum"][0]
    kind = known["type"][0] if isinstance(known.get("type"), list) else known.get("type")
    if kind == "array":
        return [sample(known.get("items"), defs, depth + 1)] * max(1, known.get("minItems", 1))
    if kind == "object" or "properties" in known:
        names = [*known.get("required", ()), *list(known.get("properties", {}))[:2]]
        return {name: sample(known.get("properties", {}).get(name), defs, depth + 1) for name in names}
    return {"number": 1.5, "integer": 1, "boolean": True, "null": None}.get(str(kind), "a")


async def report_of(source: str, language: str, where: World) -> CheckReport:
    with Sandbox() as sandbox:
        report = (await Checker(sandbox).check(source, language, where)).report
    assert (report.is_checked, report.warning) == (True, ""), source
    return report


async def wrong_lines(source: str, language: str, where: World) -> set[int]:
    return {problem.line for problem in (await report_of(source, language, where)).problems}


def program(specifier: str, calls: Sequence[tuple[str, Any]], forms: Sequence[str]) -> str:
    lines = (f"tools.{name}({written(given, form)});" for (name, given), form in zip(calls, forms, strict=True))
    return "\n".join([f'import * as tools from "{specifier}";', *lines])


@cache
def batches() -> tuple[tuple[World, str, tuple[tuple[str, Any], ...]], ...]:
    """The tools of real servers with a value for each, a few at a time."""
    found: list[tuple[World, str, tuple[tuple[str, Any], ...]]] = []
    for real in real_listings():
        module = build_catalog([real.listing]).modules[0]
        where = World(generate(build_catalog([real.listing]), language="typescript").files, (module.specifier,))
        schemas = {tool.name: tool.input_schema for tool in real.listing.tools}
        calls = [
            (tool.identifier, sample({**schemas[tool.name], "type": "object"}, schemas[tool.name].get("$defs", {})))
            for tool in module.tools
        ]
        steps = range(0, len(calls), CALLS_IN_A_PROGRAM)
        found.extend((where, module.specifier, tuple(calls[at : at + CALLS_IN_A_PROGRAM])) for at in steps)
    return tuple(found)


@pytest.mark.parametrize("extra", [{}, {EXTRA: 3, "7": 3}], ids=["as it should be", "misspelt"])
async def test_the_verdict_on_a_call_is_the_same_for_every_form_of_its_names(extra: Any) -> None:
    names, right, wrong = list(FORMS), 0, 0
    for number, (where, specifier, calls) in enumerate(batches()):
        given = [(name, {**value, **extra}) for name, value in calls]
        forms = [names[(number + at) % len(names)] for at in range(len(given))]
        language = LANGUAGES[number % 2]
        plain = await wrong_lines(program(specifier, given, ["identifier"] * len(given)), language, where)
        assert await wrong_lines(program(specifier, given, forms), language, where) == plain, (specifier, forms)
        wrong += len(plain)
        right += len(given) - len(plain)
    assert (wrong if extra else right) >= 0.9 * (right + wrong), "most values are right, and most tools take no others"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("form", FORMS)
async def test_each_form_of_a_name_is_checked_by_its_meaning(form: str, language: str) -> None:
    tools = world("typescript")
    good: dict[str, Any] = {"query": "a", "options": {"case_sensitive": True, "max_results": 3}}
    cases: list[tuple[Any, str]] = [
        (good, ""),
        ({**good, "optins": 1}, "optins"),
        ({**good, "options": {"max_result": 3}}, "max_result"),
        ({**good, "query": 3}, "string"),
        ({"path": "a"}, "query"),
    ]
    for given, told in cases:
        source = program("host:mcp-files", [("search_files", given)], [form])
        problems = (await report_of(source, language, tools)).problems
        # An escaped first letter is shown as it is written.
        assert [told[1:] in problem.message for problem in problems] == [True] * bool(told), (source, problems)


UNSURE = """
import { get_issue, list_issues } from "host:mcp-tracker";
const key = "a", is = Math.random() > 0.5, either = is ? get_issue({ id: 1 }) : list_issues({ project: "a" });
class Reader { #own = 1; read() { return either; } }
"""
"""A result of one of two forms; a name that only the run knows."""
UNCOMMON: dict[str, str] = {
    "numeric, of either result": "const { 7: seven } = either;",
    "negative, of either result": "const { [-1]: last } = either;",
    "computed, of either result": 'const { [is ? "b" : "c"]: some } = either;',
    "template, of either result": "either[`zzyzx`]; const { [`zzyzx`]: one } = either;",
    "private, of either result": "class Other { #own; read() { return either.#own; } }",
    "symbol, of either result": "const { [Symbol.iterator]: each } = either; either[Symbol.iterator];",
    "getter under a chosen name": 'get_issue({ id: 1, get [is ? "a" : "b"]() { return 1; } });',
    "wrong getter under a name in parentheses": 'get_issue({ get [("id")]() { return "a"; } });',
    "wrong getter under a constant's name": 'const id = "id"; get_issue({ get [id]() { return "a"; } });',
    "getter under a name from a template": "get_issue({ id: 1, get [`${key}x`]() { return 1; } });",
    "methods": 'get_issue({ id() { return 1; }, async [`${key}`]() {}, *["id"]() {}, async *7() {} });',
    "setters": 'get_issue({ set id(value) {}, set [is ? "a" : "b"](value) {}, set 7(value) {} });',
    "numbers": "get_issue({ id: 1, 7: 1, 0x10: 1, 1_000: 1, 1e3: 1, .5: 1, [-1]: 1, 1n: 1 });",
    "spread": 'get_issue({ ...{ [is ? "id" : "a"]: 1 }, ...{ get [key]() { return 1; } }, ..."ab", ...[1] });',
    "spread of what isn't an object": "get_issue({ ...null, ...(is && { id: 1 }), ...either });",
    "prototypes": 'get_issue({ "__proto__": null, ["__proto__"]: 1, __proto__() {}, get [`__proto__`]() {} });',
    "inherited names": "get_issue({ constructor: 1, toString() {}, hasOwnProperty: null, __x: 1, ___y: 1 });",
    "empty and odd names": 'get_issue({ "": 1, "\\u2028": 1, "a b": 1, \\u0069d: 1, [""]: 1 });',
    "shorthand": "const id = 1; get_issue({ id, key });",
    "an unknown name read with a number": "either[7]; either[1n]; either[-1]; either[.5]; either?.[7];",
    "assigned in a pattern": "let a; ({ 7: a, [key]: a, [`b`]: a, ['c']: a } = either);",
    "in parameters": "[either].map(({ 7: seven, [key]: some, ['zzyzx']: other, ...rest }) => [some, rest]);",
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("title", UNCOMMON)
async def test_a_program_with_any_form_of_name_is_checked(title: str, language: str) -> None:
    await report_of(UNSURE + UNCOMMON[title], language, world("typescript"))


BRANCHES: tuple[dict[str, Any], ...] = (
    {"kind": "text", "body": "a"},
    {"kind": "link", "url": "a", "title": "b"},
    {"kind": "table", "rows": [{"cells": ["a"], "7": True}]},
)


def posting() -> World:
    """A tool whose input is one of three objects, with and without a property that tells them apart."""

    def branch(value: dict[str, Any], *, is_told: bool) -> dict[str, Any]:
        kinds: dict[str, Any] = {"body": "string", "url": "string", "title": "string"}
        row = {"type": "object", "properties": {"cells": {"type": "array"}, "7": {"type": "boolean"}}}
        properties = {
            name: {"type": kinds[name]} if name in kinds else {"type": "array", "items": row}
            for name in value
            if name != "kind"
        }
        told = {"kind": {"const": value["kind"]}} if is_told else {}
        return {"type": "object", "properties": {**told, **properties}, "required": [*told, *properties]}

    tools = [
        ToolDefinition(name, {"type": "object", "oneOf": [branch(each, is_told=is_told) for each in BRANCHES]})
        for name, is_told in (("post", True), ("put", False))
    ]
    catalog = build_catalog([ServerListing("board", tuple(tools))])
    assert [tool.identifier for tool in catalog.modules[0].tools] == [identifier("post"), identifier("put")]
    return World(generate(catalog, language="typescript").files, ("host:mcp-board",))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("form", FORMS)
async def test_an_input_of_three_shapes_takes_each_of_them(form: str, language: str) -> None:
    where = posting()
    calls = [
        (name, each if name == "post" else {k: v for k, v in each.items() if k != "kind"})
        for name in ("post", "put")
        for each in BRANCHES
    ]
    assert await wrong_lines(program("host:mcp-board", calls, [form] * len(calls)), language, where) == set()
    mistaken = [(name, {**value, EXTRA: 1}) for name, value in calls]
    lines = await wrong_lines(program("host:mcp-board", mistaken, [form] * len(calls)), language, where)
    assert lines == set(range(2, 2 + len(calls)))
