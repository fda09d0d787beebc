"""The warmed checker: state from the image's build is valid for every program."""

from __future__ import annotations

import pytest

from check.corpus import world
from toolbridge import CheckReport, Sandbox
from toolbridge.check.checker import Checker, SessionNames

pytestmark = pytest.mark.anyio

TRACKER = 'import { list_issues } from "host:mcp-tracker";\n'


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def check(source: str, language: str, *before: str) -> CheckReport:
    """The report on a program, after earlier ones of its session."""
    session = SessionNames() if before else None
    stubs = world("typescript")
    with Sandbox() as sandbox:
        checker = Checker(sandbox)
        for each in before:
            assert session is not None
            checked = await checker.check(each, language, stubs, session)
            session.add(each, language, checked.names)
        return (await checker.check(source, language, stubs, session)).report


DECLARED = "declare global { var limits: { most: number } }\nglobalThis.limits = { most: 3 };\n"
ADDED = "globalThis.counted = 0;\n"


@pytest.mark.parametrize(
    ("language", "additions", "use"),
    [
        ("typescript", DECLARED, "list_issues({ project: 'a', limit: limits.most }).total"),
        ("javascript", ADDED, "counted += list_issues({ project: 'a' }).total"),
    ],
)
async def test_a_program_may_add_to_what_the_library_declares(language: str, additions: str, use: str) -> None:
    report = await check(TRACKER + additions + use, language)
    assert (report.ok, report.is_checked) == (True, True), str(report.failure)
    report = await check(TRACKER + additions + use + ";\nlist_issues({ projekt: 'a' })", language)
    assert [problem.line for problem in report.problems] == [(TRACKER + additions + use).count("\n") + 2]


async def test_names_of_a_session_shadow_globals() -> None:
    first = (
        TRACKER + "const Map = list_issues({ project: 'a' }).issues, Promise = { mine: 1 }, URL = 'https://a.example';"
    )
    second = "Map.length + Promise.mine + URL.split('/').length + list_issues({ project: 'a' }).total"
    report = await check(second, "javascript", first)
    assert report.ok, str(report.failure)
    report = await check("list_issues({ project: 'a' }).totals", "javascript", first)
    assert ["totals" in problem.message for problem in report.problems] == [True]


@pytest.mark.parametrize("name", ["Row", "rows", "get", "later", "byState", "earlier"])
async def test_names_of_the_warm_up_programs_are_unknown(name: str) -> None:
    report = await check(f"{TRACKER}list_issues({{ project: 'a' }});\n{name}.length", "typescript")
    assert [(problem.line, name in problem.message) for problem in report.problems] == [(3, True)]


async def test_modules_of_the_warm_up_programs_are_unknown() -> None:
    report = await check('import { get } from "host:warm";\nget({ place: "a" })', "typescript")
    assert [problem.line for problem in report.problems] == [1]
