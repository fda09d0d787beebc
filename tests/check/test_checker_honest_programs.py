"""Programs that a type checker rejects and that run all the same: the type-check accepts them all."""

from __future__ import annotations

import pytest

from check.corpus import read_programs, world
from toolbridge import CheckReport, Sandbox
from toolbridge.check.checker import Checker, SessionNames, World
from toolbridge_codegen.catalog import ServerListing, ToolDefinition, build_catalog
from toolbridge_codegen.stubs import Errors, generate

pytestmark = pytest.mark.anyio

TRACKER = 'import { list_issues } from "host:mcp-tracker";\n'
FILES = {
    "javascript": ("honest_javascript.txt", "honest_scripts.txt"),
    "typescript": ("honest_typescript.txt", "honest_scripts.txt"),
    "python": ("honest_python.txt",),
}
HONEST = {
    f"{language}: {title}": (language, source)
    for language, files in FILES.items()
    for file in files
    for title, source in read_programs(file).items()
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def check(source: str, language: str, where: World | None = None) -> CheckReport:
    stubs = where or world("python" if language == "python" else "typescript")
    with Sandbox() as sandbox:
        return (await Checker(sandbox).check(source, language, stubs)).report


@pytest.mark.parametrize("title", HONEST)
async def test_an_honest_program_passes(title: str) -> None:
    language, source = HONEST[title]
    report = await check(source, language)
    assert (report.ok, report.warning) == (True, ""), str(report.failure)


OF_ANY_KIND = {
    "javascript": (
        "JSON.parse(fine()).rows[0].id",
        "for (const row of fine()) console.log(row.id)",
        "const [first, ...rest] = fine(); first.id + rest.length",
        "fine().trim().split('\\n').map(Number)",
        "const { rows, total = fine() + 1 } = fine(); rows.length * total",
        "(await require('host:mcp-x/async').fine()).rows",
    ),
    "python": (
        "import json\njson.loads(fine())['rows'][0]",
        "for row in fine(): print(row['id'])",
        "first, *rest = fine()\nfirst['id'] + len(rest)",
        "[int(line) for line in fine().strip().split()]",
        "fine()['rows']\nfine() + 1",
        "from host.mcp_x import aio\n(await aio.fine())['rows']",
        "import typing\nif typing.TYPE_CHECKING:\n    from host.mcp_x import FineOutput\n"
        "def size(given: 'FineOutput'): return given.rows + len(given)\nsize(fine())",
    ),
    "typescript": (
        "const rows: { id: number }[] = fine(); const text: string = fine(); rows[0].id + text",
        "import type { FineOutput } from 'host:mcp-x'; const given: FineOutput = fine(); given.trim() + given[0].id",
        "type Given = ReturnType<typeof fine>; const given: Given = fine(); for (const row of given) row.id",
    ),
}


@pytest.mark.parametrize("errors", ["raise", "return"])
@pytest.mark.parametrize(("language", "source"), [(name, each) for name in OF_ANY_KIND for each in OF_ANY_KIND[name]])
async def test_a_result_without_a_schema_may_be_used_as_anything(language: str, source: str, errors: Errors) -> None:
    catalog = build_catalog([ServerListing("x", (ToolDefinition("fine", {"type": "object", "properties": {}}),))])
    files = generate(catalog, language="python" if language == "python" else "typescript", errors=errors).files
    head = "from host.mcp_x import fine\n" if language == "python" else "import { fine } from 'host:mcp-x';\n"
    report = await check(head + source, language, World(files, ("host:mcp-x",)))
    assert (report.ok, report.warning) == (True, ""), str(report.failure)


@pytest.mark.parametrize(
    ("language", "source"),
    [
        (
            "typescript",
            'import { some } from "host:mcp-new";\nconst a: number = some(1).b;\nrequire("host:mcp-new").x()',
        ),
        ("python", "from host.mcp_new import some\nfrom host.mcp_new.aio import other\nsome(1)['b'].c"),
    ],
)
async def test_a_module_without_stubs_is_not_checked(language: str, source: str) -> None:
    report = await check(source, language, World({}, ("host:mcp-new",), untyped=("host:mcp-new",)))
    assert report.ok, str(report.failure)


@pytest.mark.parametrize("language", ["typescript", "python"])
async def test_a_sessions_earlier_names_are_known_and_its_imports_keep_their_types(language: str) -> None:
    session = SessionNames()
    first, second, third = {
        "typescript": (
            TRACKER + "const project = 'a'; enum Size { Small }",
            "list_issues({ project }).total + Size.Small",
            "list_issues({ projekt: project }).total",
        ),
        "python": (
            "from host.mcp_tracker import (\n    list_issues,\n    get_issue)\nproject = 'a'",
            "list_issues(project=project)['total']",
            "x = 1\nlist_issues(projekt=project)['total']",
        ),
    }[language]
    with Sandbox() as sandbox:
        checker = Checker(sandbox)
        stubs = world("python" if language == "python" else "typescript")
        checked = await checker.check(first, language, stubs, session)
        session.add(first, language, checked.names)
        assert session.is_used_in(second)
        assert not session.is_used_in("1 + 1")
        assert (await checker.check(second, language, stubs, session)).report.ok
        (problem,) = (await checker.check(third, language, stubs, session)).report.problems
    assert problem.line == third.count("\n") + 1
    assert "projekt" in problem.message
