"""Rewriting of Python programs for the checker: positions stay right, and time stays bounded."""

from __future__ import annotations

import pytest

from check.corpus import world
from growth import work_within
from toolbridge import CheckReport, Sandbox
from toolbridge.check.checker import Checker, SessionNames
from toolbridge.check.python.comparisons import Comparisons, constant_list_edits
from toolbridge.check.python.mistakes import unawaited_gathers
from toolbridge.check.python.program import Program
from toolbridge.check.python.rewriting import Edit, Rewriting, collection_edits, result_edits
from toolbridge.check.python.user_functions import argument_edits

pytestmark = pytest.mark.anyio

IMPORT = "import asyncio\nfrom host.mcp_tracker import get_issue, list_issues\n"
LONGEST = 20_000
MOST_SECONDS = 10
HOSTILE = (
    *(
        "(",
        "[",
        "{",
        ")",
        "f(",
        "a ",
        " ",
        "\n",
        "\\\n",
        "'\"",
        "f'{{{",
        "f'{f(a)}' ",
        "a,",
        ".a",
        "a[0].b(1)",
        "'''\n",
    ),
    *("a == 'b' ", "==", "a in ('b',) ", "'b' in a ", " in (", "match a:\n case 'b':\n  pass\n", "a if b else "),
    *(
        "def f(a): return f(a)\n",
        "def f(a, b):\n  return f(a, b)\n",
        "def g(x):\n  yield x\n  return\n",
        "lambda x: f(x, ",
    ),
    *("await f(", "asyncio.gather(", "a = asyncio.gather(b)\nfor x in a: pass\n", "for a in b ", "[x for x in f("),
    *("a[b].append(c)\n", "a.setdefault(b, []).append(c)\n", "a = ['b', 'c']\n", "filter(f, ", "map(f, ", "try:\n"),
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def check(source: str, session: SessionNames | None = None) -> CheckReport:
    with Sandbox() as sandbox:
        return (await Checker(sandbox).check(source, "python", world("python"), session)).report


def test_a_position_in_the_rewritten_text_maps_to_the_program() -> None:
    source = "a = f(b)\nc = d"
    rewriting = Rewriting(
        source, [Edit(6, 6, "(x := ("), Edit(7, 7, "))"), Edit(9, 9, "y\n"), Edit(13, 14, "ddd")], "head\n"
    )
    assert rewriting.text == "head\na = f((x := (b)))\ny\nc = ddd"
    assert rewriting.source_index(1, 1) is None
    assert rewriting.source_index(2, 5) == source.index("f")
    assert rewriting.source_index(2, 14) == source.index("b")
    assert rewriting.source_index(4, 1) == source.index("c")
    assert rewriting.position(source.index("c")) == (2, 1)


def test_an_overlapping_edit_is_dropped() -> None:
    assert Rewriting("abcdef", [Edit(1, 4, "-"), Edit(2, 3, "+")]).text == "a-ef"


@pytest.mark.parametrize("part", HOSTILE)
def test_reading_a_hostile_text_takes_bounded_time(part: str) -> None:
    source = (IMPORT + part * LONGEST)[:LONGEST]
    program = Program(source, world("python"), set())
    with work_within(MOST_SECONDS):
        edits = [
            *result_edits(program),
            *argument_edits(program),
            *constant_list_edits(program),
            *collection_edits(program),
        ]
        assert len(Rewriting(source, edits).text) < 100 * LONGEST
        assert Comparisons([], program).mistakes({}) == []
        assert len(list(unawaited_gathers(program))) <= LONGEST


async def test_a_mistake_after_an_edit_keeps_its_column() -> None:
    source = IMPORT + "def each(rows):\n    for row in rows:\n        yield row\n"
    source += "for x in each(list_issues(project='a')['issues']): print(x['titel'])\n"
    (problem,) = (await check(source)).problems
    line = source.split("\n")[5]
    assert (problem.line, problem.column) == (6, line.index("'titel'") + 1)


async def test_a_program_that_can_not_be_rewritten_is_checked_unchanged() -> None:
    # Nothing may be assigned where a comprehension in a class goes through something.
    source = IMPORT + "def first(rows):\n    return rows[0]\nclass A:\n    x = [y for y in first(first([[1]]))]\n"
    (problem,) = (await check(source + "get_issue(idd=1)\n")).problems
    assert problem.line == 7


async def test_a_function_of_an_earlier_program_has_an_unknown_result() -> None:
    session = SessionNames()
    first = IMPORT + "def load(number):\n    return get_issue(id=number)\nissue = load(1)\n"
    assert (await check(first, session)).ok
    session.add(first, "python", ())
    assert (await check("list_issues(project='a')['total'], load(2)['anything'], issue['more']", session)).ok
    (problem,) = (
        await check("x = load(2)\ndef g():\n    yield get_issue(id=1)\n[i['x'] for i in g()]", session)
    ).problems
    assert problem.line == 4
