"""Failures of Python programs: the program's own lines, the nearest name, the caret; none of the runner's lines."""

from __future__ import annotations

import pytest

from toolbridge import Failure, Limits, Sandbox


def failure_of(sandbox: Sandbox, source: str) -> Failure:
    failure = sandbox.run_sync(source, language="python").failure
    assert failure is not None
    assert "_toolbridge" not in str(failure)
    return failure


def test_a_traceback_has_the_program_s_own_lines(sandbox: Sandbox) -> None:
    failure = failure_of(
        sandbox,
        "import json\ndef inner(text):\n    return json.loads(text)\ndef outer():\n    return inner('{')\nouter()\n",
    )
    assert failure.kind == "raised"
    assert failure.message.startswith("JSONDecodeError: ")
    assert failure.trace == ("inner (line 3, column 12)", "outer (line 5, column 12)", "line 6, column 1")
    assert failure.excerpt.splitlines()[2:4] == ["> 3 |     return json.loads(text)", "    |            ^"]


def test_columns_count_characters(sandbox: Sandbox) -> None:
    failure = failure_of(sandbox, 'x = "日本語" + 1 // 0')
    assert (failure.line, failure.column) == (1, 13)


@pytest.mark.parametrize(
    ("source", "message", "line", "column"),
    [
        ("x = (1,\ny = 2", "SyntaxError: '(' was never closed", 1, 5),
        ("for x in range(3)\n    print(x)", "SyntaxError: expected ':'", 1, 18),
        ("if True:\nprint(1)", "IndentationError: expected an indented block after 'if' statement on line 1", 2, 1),
        ("x = 5 5", "SyntaxError: invalid syntax", 1, 7),
        ('é = "ü" +', "SyntaxError: invalid syntax", 1, 10),
        ("print 'x'", "SyntaxError: Missing parentheses in call to 'print'. Did you mean print(...)?", 1, 1),
        ("return 5", "SyntaxError: 'return' outside function", 1, 1),
        ("'\\ud800' = 1", "SyntaxError: cannot assign to literal here. Maybe you meant '==' instead of '='?", 1, 1),
    ],
)
def test_a_syntax_error_points_at_its_place(
    sandbox: Sandbox, source: str, message: str, line: int, column: int
) -> None:
    failure = failure_of(sandbox, source)
    assert (failure.kind, failure.message, failure.line, failure.column) == ("syntax", message, line, column)
    assert "^" in failure.excerpt
    assert failure.trace == ()


def test_a_syntax_error_in_source_compiled_by_a_program_is_raised(sandbox: Sandbox) -> None:
    failure = failure_of(sandbox, "x = 1\neval('1 +')")
    assert (failure.kind, failure.line) == ("raised", 2)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("total_count = 1\ntotal_cuont", "Did you mean: 'total_count'?"),
        ("'x'.uper()", "Did you mean: 'upper'?"),
        ("import json\njson.lods('1')", "Did you mean: 'loads'?"),
        ("from collections import Countr", "Did you mean: 'Counter'?"),
        ("class A:\n    def __init__(self): self.x = 1\n    def f(self): return x\nA().f()", "Did you mean: 'self.x'?"),
        ("import jsn", "Only the standard library and the modules of the host are here"),
    ],
)
def test_the_nearest_name_is_suggested(sandbox: Sandbox, source: str, said: str) -> None:
    assert said in failure_of(sandbox, source).message


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("```python\n1\n```", "Markdown fence"),
        ("return 5", "as the last expression, or in a variable named result"),
        ("import asyncio\nasync def f(): pass\nawait f()\nasyncio.run(f())", "write await in place of asyncio.run"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_hint_says_how_to_repair(sandbox: Sandbox, source: str, hint: str) -> None:
    assert any(hint in note for note in failure_of(sandbox, source).notes)


def test_causes_are_told(sandbox: Sandbox) -> None:
    failure = failure_of(
        sandbox,
        "try:\n    {}['x']\nexcept KeyError as error:\n    raise ValueError('no x') from error",
    )
    assert failure.message == "ValueError: no x"
    assert failure.notes == ("Caused by: KeyError: 'x'",)


def test_each_error_of_a_group_is_told(sandbox: Sandbox) -> None:
    failure = failure_of(
        sandbox,
        "import asyncio\nasync def f(n): raise ValueError(n)\n"
        "async with asyncio.TaskGroup() as group:\n    group.create_task(f(1))\n    group.create_task(f(2))",
    )
    assert failure.message.startswith("ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)")
    assert failure.notes == ("Caused by: ValueError: 1", "Caused by: ValueError: 2")


def test_notes_of_an_exception_are_told(sandbox: Sandbox) -> None:
    failure = failure_of(sandbox, "error = ValueError('a')\nerror.add_note('in row 5')\nraise error")
    assert failure.message == "ValueError: a\nin row 5"


def test_memory_that_runs_out_says_how_much_there_is(sandbox: Sandbox) -> None:
    failure = failure_of(sandbox, "x = [0] * 10 ** 8")
    assert failure.kind == "out_of_memory"
    assert failure.line == 1
    assert failure.notes == ("The program may use 64 MiB of memory.",)


def test_what_was_printed_before_a_crash_is_kept(sandbox: Sandbox) -> None:
    result = sandbox.run_sync("print('before')\nwhile True: pass", language="python", limits=Limits(wall_seconds=0.3))
    assert result.failure is not None
    assert result.stdout == "before\n"


def test_a_system_call_below_the_shadow_is_a_denied_run(sandbox: Sandbox) -> None:
    failure = failure_of(sandbox, "import _io\n_io.FileIO(1, 'w').write(b'x')")
    assert failure.kind == "denied"
    assert failure.message == "The program asked the system for cli/stdout, which doesn't exist in the sandbox."


def test_a_program_can_print_its_own_traceback(sandbox: Sandbox) -> None:
    result = sandbox.run_sync(
        "import traceback\ndef f():\n    return 1 / 0\ntry: f()\nexcept Exception: traceback.print_exc()",
        language="python",
    )
    assert result.ok
    assert "line 3, in f\n    return 1 / 0" in result.stderr
    assert result.stderr.endswith("ZeroDivisionError: division by zero\n")


def nested(depth: int, clause: str = "for a in [1]", opening: str = "[", closing: str = "]") -> str:
    """Comprehensions, each the element of the next."""
    return opening * depth + "1" + f" {clause}{closing}" * depth


TRIES = "".join(f"{' ' * depth}try:\n" for depth in range(15))
EXCEPTS = "".join(f"{' ' * depth}except ValueError as error: pass\n" for depth in reversed(range(15)))
TOO_DEEP = {
    "comprehensions": f"x = 1\ny = {nested(60)}",
    "comprehensions of dictionaries": f"x = 1\ny = {nested(23, opening='{1: ', closing='}')}",
    "comprehensions that are gone through": f"x = 1\ny = {'[a for a in ' * 23}[1]{']' * 23}",
    "comprehensions in a function": f"def f():\n  return {nested(30)}",
    "comprehensions that wait": f"async def f(g):\n  return {nested(20, clause='async for a in g()')}",
    "comprehensions in blocks": f"{TRIES}{' ' * 15}x = {nested(10)}\n{EXCEPTS}",
    "brackets": "x = 1\n" + "(" * 500 + "1" + ")" * 500,
    "objects": "x = 1\n" + "{1: " * 500 + "1" + "}" * 500,
    "functions": "x = 1\n" + "lambda: " * 5000 + "1",
    "signs": "x = 1\n" + "-" * 5000 + "1",
    "choices": "x = 1\n" + "1 if x else " * 5000 + "1",
    "sums": "x = 1\n" + "x" + " + x" * 20_000,
    "attributes": "x = 1\n" + "x" + ".real" * 20_000,
    "texts": "x = 1\n" + "f'{" * 150 + "1" + "}'" * 150,
}


@pytest.mark.parametrize("title", TOO_DEEP)
def test_what_is_nested_too_deeply_is_a_syntax_failure_with_its_line(sandbox: Sandbox, title: str) -> None:
    source = TOO_DEEP[title]
    failure = failure_of(sandbox, f"{source}\nz = 3\n")
    assert (failure.kind, failure.line) == ("syntax", 16 if title.endswith("blocks") else 2), failure
    assert failure.message.startswith("SyntaxError: ")
    assert "deep" in failure.message


@pytest.mark.parametrize("title", TOO_DEEP)
def test_the_same_in_a_text_that_a_program_compiles_is_its_own_error(sandbox: Sandbox, title: str) -> None:
    source = TOO_DEEP[title]
    failure = failure_of(sandbox, f"x = 1\nexec({source!r})")
    assert (failure.kind, failure.line) == ("raised", 2)
    caught = f"try:\n  exec({source!r})\nexcept Exception as error:\n  print('caught')"
    assert sandbox.run_sync(caught, language="python").stdout == "caught\n"


def test_an_expression_that_is_evaluated_is_held_to_the_same(sandbox: Sandbox) -> None:
    failure = failure_of(sandbox, f"x = 1\neval({'  ' + nested(60)!r})")
    assert (failure.kind, failure.line) == ("raised", 2)


@pytest.mark.parametrize(
    "source", [nested(20), nested(30, opening="list(", closing=")"), f"[{nested(9)} for a in [1]]"]
)
def test_what_the_interpreter_can_take_is_taken(sandbox: Sandbox, source: str) -> None:
    result = sandbox.run_sync(f"len({source})", language="python")
    assert (result.failure, result.value) == (None, 1)


@pytest.mark.parametrize("each", ["map(str, each)", "map(int.__add__, each, [1])"])
def test_deep_recursion_in_the_interpreter_s_own_code_is_no_crash(sandbox: Sandbox, each: str) -> None:
    failure = failure_of(sandbox, f"each = iter([1])\nfor _ in range(30_000):\n  each = {each}\nnext(each)")
    assert (failure.kind, failure.message) == ("limit", "The program recursed too deeply.")


@pytest.mark.parametrize("grown", ["rows.append({'a': 1})", "rows = [rows]", "rows = {'a': rows}", "rows += [[], {}]"])
def test_memory_that_the_program_still_holds_is_no_crash_when_it_runs_out(sandbox: Sandbox, grown: str) -> None:
    failure = failure_of(sandbox, f"rows = []\nwhile True:\n  {grown}")
    assert (failure.kind, failure.message) == ("out_of_memory", "MemoryError")


def test_a_session_that_ran_out_of_memory_says_so_each_time(sandbox: Sandbox) -> None:
    with sandbox.session(language="python") as session:
        kinds: list[str] = []
        for _ in range(3):
            failure = session.run_sync("rows = []\nwhile True:\n  rows.append({'a': 1})").failure
            kinds.append(failure.kind if failure else "")
    assert kinds == ["out_of_memory"] * 3
