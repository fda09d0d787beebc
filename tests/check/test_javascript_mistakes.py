"""Mistakes in JavaScript and TypeScript, each reported with the line of the stubs that it violates."""

from __future__ import annotations

import pytest

from check.corpus import world
from toolbridge import Sandbox
from toolbridge.check.checker import Checker, Problem, SessionNames, World
from toolbridge_codegen.catalog import ServerListing, ToolDefinition, build_catalog
from toolbridge_codegen.stubs import generate

pytestmark = pytest.mark.anyio

HEAD = 'import { get_issue, create_issue, list_issues } from "host:mcp-tracker";\n'
LANGUAGES = ("typescript", "javascript")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def problems(source: str, language: str) -> tuple[Problem, ...]:
    with Sandbox() as sandbox:
        return (await Checker(sandbox).check(source, language, world("typescript"))).report.problems


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "mistake",
    [
        "get_issue(JSON.stringify({ id: 1 }))",
        "get_issue(Number('1'))",
        "get_issue({ id: null })",
        "get_issue({ id: undefined })",
        "get_issue({ id: new Date() })",
        "get_issue({ id: '7' })",
        "get_issue({ id: () => 1 })",
        "create_issue({ project: 'a', title: 'b', labels: { a: 1 } })",
        "const r = get_issue({ id: 1 }); if (r.title) create_issue({ project: 'a' })",
        "const look = (id) => get_issue({ id }); look(1); list_issues({ projekt: 'a' })",
    ],
)
async def test_an_invalid_argument_of_a_tool_is_found(mistake: str, language: str) -> None:
    (problem,) = await problems(HEAD + mistake, language)
    assert problem.line == 2
    assert "(mcp-tracker.d.ts, line " in problem.stub


@pytest.mark.parametrize(
    "mistake",
    [
        "const name: string = get_issue({ id: 1 }).id;",
        "let name: string;\nname = get_issue({ id: 1 }).id;",
        "interface Row { name: string }\nconst row: Row = { name: get_issue({ id: 1 }).id };",
        "function shout(name: string) { return name }\nshout(get_issue({ id: 1 }).id)",
        "class Shop { find(kind: 'tea' | 'cake') { return kind } }\nnew Shop().find('cakes')",
        "const name = (): string => get_issue({ id: 1 }).id",
        "function name(): string { return get_issue({ id: 1 }).id }",
        "const name: string = get_issue({ id: 1 })",
    ],
)
async def test_a_result_that_contradicts_its_annotation_is_found(mistake: str) -> None:
    (problem,) = await problems(HEAD + mistake, "typescript")
    assert problem.line == 1 + len(mistake.splitlines())


@pytest.mark.parametrize(
    "program",
    [
        "let name: string | null = null; name = get_issue({ id: 1 }).title; name",
        "const id: number | string = get_issue({ id: 1 }).id; id",
        "let id = ''; id = get_issue({ id: 1 }).id; id",
        "const id: unknown = get_issue({ id: 1 }).id; id",
        "function show<T>(value: T): T { return value } show(get_issue({ id: 1 }).id)",
        "const title: 'a' | 'b' = get_issue({ id: 1 }).title; title",
        "const label: string = (3).toFixed(1); const n: number = label; n",
    ],
)
async def test_unannotated_values_are_not_reported(program: str) -> None:
    assert await problems(HEAD + program, "typescript") == ()


async def test_an_argument_forwarded_to_a_tool_is_found() -> None:
    (problem,) = await problems(HEAD + "const look = (id: number) => get_issue({ id });\nlook('4')", "typescript")
    assert problem.line == 3


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "read",
    [
        "const { titel } = get_issue({ id: 1 })",
        "let titel; ({ titel } = get_issue({ id: 1 }))",
        "list_issues({ project: 'a' }).issues.map(({ titel }) => titel)",
        "const { issues: [{ titel }] } = list_issues({ project: 'a' })",
        "get_issue({ id: 1 })['titel']",
    ],
)
async def test_a_misspelt_property_comes_with_a_suggestion(read: str, language: str) -> None:
    (problem,) = await problems(HEAD + read, language)
    assert "Did you mean 'title'?" in problem.message
    assert problem.stub.endswith(": title: string;")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("mistake", "instead"),
    [
        ("get_issue({ number: 1 })", " It takes: id."),
        ("get_issue({ id: 1 }).headline", " It has: id, "),
        ("const { headline } = get_issue({ id: 1 }); headline", " It has: id, "),
        ('list_issues({ project: "a" }).issues.map((issue) => issue.headline)', " It has: id, "),
    ],
)
async def test_an_unknown_property_comes_with_the_known_ones(mistake: str, instead: str, language: str) -> None:
    (problem,) = await problems(HEAD + mistake, language)
    assert instead in problem.message
    assert problem.message.count(" It ") == 1


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "mistake", ["get_issue({ id: 1 }).title.headline", "list_issues({ project: 'a' }).issues.headline"]
)
async def test_members_of_the_language_are_not_listed(mistake: str, language: str) -> None:
    (problem,) = await problems(HEAD + mistake, language)
    assert " It has:" not in problem.message


@pytest.mark.parametrize("language", LANGUAGES)
async def test_an_unknown_key_of_a_result_comes_with_its_type(language: str) -> None:
    (problem,) = await problems(HEAD + "list_issues({ project: 'a' })[0]", language)
    assert problem.stub.endswith(": interface ListIssuesOutput {")


@pytest.mark.parametrize("language", LANGUAGES)
async def test_an_unknown_required_export_comes_with_a_suggestion(language: str) -> None:
    (problem,) = await problems('const { get_isue } = require("host:mcp-tracker"); get_isue({ id: 1 })', language)
    assert problem.message == 'module "host:mcp-tracker" has no export "get_isue". Did you mean "get_issue"?'
    assert "export function get_issue(" in problem.stub


@pytest.mark.parametrize("language", LANGUAGES)
async def test_an_export_with_overloads_is_named_once(language: str) -> None:
    (problem,) = await problems('require("host:bridge").nope()', language)
    assert "It exports: " in problem.message
    assert problem.message.count("parallel") == 1


@pytest.mark.parametrize("language", LANGUAGES)
async def test_lines_are_counted_as_in_editors(language: str) -> None:
    (problem,) = await problems(f"{HEAD}const s = 'a\u2028b';\r\nget_issue({{ idd: 1 }})", language)
    assert (problem.line, problem.column) == (3, 13)


def answer_of_two_shapes() -> ToolDefinition:
    texts = {"type": "array", "items": {"type": "string"}}
    found = {"type": "object", "properties": {"ok": {"const": True}, "items": texts}, "required": ["ok", "items"]}
    failed = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    return ToolDefinition("find", {"type": "object", "properties": {}}, output_schema={"anyOf": [found, failed]})


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("errors", ["raise", "return"])
async def test_a_result_of_several_shapes_may_be_destructured(language: str, errors: str) -> None:
    catalog = build_catalog([ServerListing("s", (answer_of_two_shapes(),))])
    files = generate(catalog, language="typescript", errors="return" if errors == "return" else "raise").files
    source = 'import { find } from "host:mcp-s";\nconst { ok, error, items } = find();\nok ? items.length : error'
    with Sandbox() as sandbox:
        checker = Checker(sandbox)
        right = (await checker.check(source, language, World(files, ("host:mcp-s",)))).report
        wrong = (await checker.check(source.replace("items }", "itms }"), language, World(files, ()))).report
    assert right.ok, str(right.failure)
    assert "itms" in wrong.problems[0].message


async def test_an_imported_type_is_not_asked_for_when_a_session_runs() -> None:
    first = 'import { GetIssueInput, get_issue } from "host:mcp-tracker";'
    with Sandbox() as sandbox:
        checked = await Checker(sandbox).check(first, "typescript", world("typescript"), SessionNames())
    assert checked.erased is not None
    assert "GetIssueInput" not in checked.erased
    assert "get_issue" in checked.erased


async def test_an_imported_type_may_share_its_name_with_a_parameter() -> None:
    program = "const f = (GetIssueInput: number) => GetIssueInput;\nf(1)"
    source = f'import {{ GetIssueInput }} from "host:mcp-tracker";\n{program}'
    with Sandbox() as sandbox:
        checked = await Checker(sandbox).check(source, "typescript", world("typescript"))
    assert checked.report.ok
    assert (checked.erased or "").split("\n")[0].strip() == ";"


@pytest.mark.parametrize(("name", "use"), [("Issue", "new Issue()"), ("get_isue", "get_isue({ id: 1 })")])
async def test_an_unknown_export_is_found_where_a_value_is_needed(name: str, use: str) -> None:
    source = f'import {{ {name} }} from "host:mcp-tracker";\nconst it: {name} = {use}; it'
    (problem,) = await problems(source, "typescript")
    assert problem.line == 1
    assert problem.message.startswith(f'module "host:mcp-tracker" has no export "{name}".')


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("specifier", ["fs", "host:mcp-trackr", "host:mcp-trackr/async"])
async def test_an_unknown_required_module_is_reported_like_an_imported_one(specifier: str, language: str) -> None:
    (required,) = await problems(f'require("{specifier}")', language)
    (imported,) = await problems(f'import * as it from "{specifier}"; it', language)
    assert (required.message, required.stub, required.rule) == (imported.message, "", imported.rule)
    assert f'There is no module "{specifier}".' in required.message


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("given", ["limit: pageSize", "limit"])
async def test_an_undefined_name_is_reported_without_a_stub(given: str, language: str) -> None:
    (problem,) = await problems(HEAD + f"list_issues({{ project: 'a', {given} }})", language)
    assert given.rsplit(maxsplit=1)[-1] in problem.message
    assert problem.stub == ""


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("read", ["find().place.lat", "const { lat } = find().place"])
async def test_members_of_arrays_are_not_suggested_for_properties(read: str, language: str) -> None:
    pair = {"type": "array", "prefixItems": [{"type": "number"}] * 2, "items": False, "minItems": 2}
    found = {"type": "object", "properties": {"place": pair}, "required": ["place"]}
    tool = ToolDefinition("find", {"type": "object", "properties": {}}, output_schema=found)
    files = generate(build_catalog([ServerListing("s", (tool,))]), language="typescript").files
    with Sandbox() as sandbox:
        source = f'import {{ find }} from "host:mcp-s";\n{read}'
        report = (await Checker(sandbox).check(source, language, World(files, ("host:mcp-s",)))).report
    (problem,) = report.problems
    assert problem.message == "Property 'lat' does not exist on type '[number, number]'."


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("first", "later"),
    [
        ('const { get_issue } = require("host:mcp-tracker");', "get_issue({ idd: 1 })"),
        ('const { get_issue: look } = require("host:mcp-tracker");', "look({ idd: 1 })"),
        ('const tracker = require("host:mcp-tracker");', "tracker.get_issue({ idd: 1 })"),
        ('const { get_issue } = await import("host:mcp-tracker/async");', "await get_issue({ idd: 1 })"),
    ],
)
async def test_required_modules_keep_their_types_in_a_session(first: str, later: str, language: str) -> None:
    session = SessionNames()
    with Sandbox() as sandbox:
        checker = Checker(sandbox)
        checked = await checker.check(first, language, world("typescript"), session)
        session.add(first, language, checked.names)
        assert session.is_used_in(later)
        assert (await checker.check(later.replace("idd", "id"), language, world("typescript"), session)).report.ok
        (problem,) = (await checker.check(later, language, world("typescript"), session)).report.problems
    assert "idd" in problem.message
