"""Programs that a type checker would complain about, and that run all the same: none of them may be stopped."""

from __future__ import annotations

import pytest

from check.corpus import read_programs, world
from toolbridge import CheckReport, Sandbox
from toolbridge.check.checker import Checker
from toolbridge.check.world import SessionNames, World

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
async def test_nothing_is_said_of_a_module_that_nothing_is_known_of(language: str, source: str) -> None:
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
