"""Failures that a model can repair its code from: the place, the nearest name, hints, causes, calls."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from toolbridge import CallRecord, Failure, Sandbox
from toolbridge.boundary.wire import GuestError
from toolbridge.sandbox.outcome import describe_javascript as describe
from toolbridge.sandbox.outcome import excerpt, notes_of_calls


def get_forecast(city: str) -> str:
    return f"rain in {city}"


def fail() -> None:
    raise ValueError("no such city")


@pytest.fixture(scope="module")
def demo() -> Iterator[Sandbox]:
    with Sandbox({"host:mcp-weather": {"get_forecast": get_forecast, "fail": fail}}) as sandbox:
        yield sandbox


def failure_of(sandbox: Sandbox, program: str) -> Failure:
    failure = sandbox.run_sync(program).failure
    assert failure is not None
    return failure


# ---- the place


def test_an_exception_has_its_line_column_excerpt_and_trace(demo: Sandbox) -> None:
    program = "const a = 1;\nfunction fail(city) {\n  throw new Error('no such city');\n}\n\nfail('Oslo');\na"
    assert failure_of(demo, program) == Failure(
        kind="raised",
        message="Error: no such city",
        line=3,
        column=13,
        excerpt=(
            "  1 | const a = 1;\n"
            "  2 | function fail(city) {\n"
            "> 3 |   throw new Error('no such city');\n"
            "    |             ^\n"
            "  4 | }\n"
            "  5 | "
        ),
        trace=("fail (line 3, column 13)", "line 6, column 1"),
    )


def test_a_syntax_error_has_its_line_column_and_excerpt_and_no_trace(demo: Sandbox) -> None:
    assert failure_of(demo, "const a = 1;\nconst b = ;\nb") == Failure(
        kind="syntax",
        message="SyntaxError: unexpected token in expression: ';'",
        line=2,
        column=11,
        excerpt="  1 | const a = 1;\n> 2 | const b = ;\n    |           ^\n  3 | b",
    )


@pytest.mark.parametrize(
    ("program", "line", "column"),
    [
        ("null.x", 1, 1),
        ("const a = {};\n\n  a.b.c", 3, 3),
        ("let f = () => {\n  undefined_name\n}\nf()", 2, 3),
        ("await null;\nawait Promise.reject(new TypeError('x'))", 2, 26),
        ("setTimeout(() => {\n  throw new Error('late')\n}, 1)", 2, 13),
        ("'é😀';\nnull.x", 2, 1),
    ],
)
def test_the_place_is_that_of_the_error(demo: Sandbox, program: str, line: int, column: int) -> None:
    failure = failure_of(demo, program)
    assert (failure.line, failure.column) == (line, column)


@pytest.mark.parametrize(
    "program",
    [
        'throw new Error("outer", { cause: new TypeError("inner") })',
        "const city = 'Oslo'; throw new Error(`no ${city.name}`)",
        "throw new Error(\n  [1, 2].join(),\n)",
    ],
)
def test_the_place_of_an_error_is_its_own_and_not_that_of_its_arguments(demo: Sandbox, program: str) -> None:
    failure = failure_of(demo, program)
    assert (failure.line, failure.column) == (1, program.index("Error") + 1)


@pytest.mark.parametrize("text", ["a", "é", "€", "😀", "😀😀"])
@pytest.mark.parametrize("mistake", ["null.x", "let = 1"])
def test_the_caret_points_at_the_mistake_after_any_character(demo: Sandbox, text: str, mistake: str) -> None:
    program = f"'{text}'; {mistake}"
    failure = failure_of(demo, program)
    assert failure.column == program.index("null" if mistake == "null.x" else "=") + 1


@pytest.mark.parametrize(
    "program",
    [
        'import { fail } from "host:mcp-weather"\nfail()',
        'import { fail } from "host:mcp-weather/async"\nawait fail()',
        'import { gone } from "host:mcp-weather"',
        'require("host:nowhere")',
        "[1].map((n) => structuredClone(() => n))",
        "setTimeout('text')",
        "await import('host:nowhere')",
    ],
)
def test_no_frame_of_the_prelude_is_shown(demo: Sandbox, program: str) -> None:
    failure = failure_of(demo, program)
    text = str(failure)
    assert "prelude" not in text
    assert "native" not in text
    assert failure.line is not None


@pytest.mark.parametrize("module", ["host:mcp-weather", "host:mcp-weather/async"])
def test_a_failed_call_has_the_place_where_it_was_made(demo: Sandbox, module: str) -> None:
    program = f'import {{ fail }} from "{module}"\nfunction look() {{\n  return fail()\n}}\nawait look()'
    failure = failure_of(demo, program)
    assert (failure.message, failure.line) == ("ToolFailedError: ValueError: no such city", 3)
    assert failure.notes == ("Calls already made (their effects remain):\n  host:mcp-weather fail: failed",)


def test_a_deep_recursion_shows_a_few_frames_only(demo: Sandbox) -> None:
    failure = failure_of(demo, "function f() {\n  f()\n}\nf()")
    assert failure.message == "RangeError: Maximum call stack size exceeded"
    assert failure.line in (1, 2)
    assert len(failure.trace) <= 8


# ---- thrown values that are no errors


@pytest.mark.parametrize(
    ("thrown", "message"),
    [
        ("5", "Uncaught: 5"),
        ("'text'", "Uncaught: text"),
        ("null", "Uncaught: null"),
        ("undefined", "Uncaught: undefined"),
        ("{ code: 1 }", 'Uncaught: {"code":1}'),
        ("[1, 2]", "Uncaught: [1,2]"),
        ("Symbol('s')", "Uncaught: Symbol(s)"),
        ("10n", "Uncaught: 10"),
        ("{ get a() { throw 1 }, toString() { throw 2 } }", "Uncaught: an object"),
    ],
)
def test_any_thrown_value_has_a_text(demo: Sandbox, thrown: str, message: str) -> None:
    failure = failure_of(demo, f"throw {thrown}")
    assert (failure.kind, failure.message) == ("raised", message)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("throw Object.assign(new Error('a'), { name: 5 })", "Error: a"),
        ("class NoCity extends Error {} throw new NoCity('Oslo')", "Error: Oslo"),
        ("throw Object.assign(new Error('a'), { name: 'NoCity' })", "NoCity: a"),
        ("throw Object.defineProperty(new Error('a'), 'message', { get() { throw 1 } })", "Error: "),
        ("throw new AggregateError([new Error('one')], 'all')", "AggregateError: all"),
    ],
)
def test_an_unusual_error_has_a_text(demo: Sandbox, program: str, message: str) -> None:
    assert failure_of(demo, program).message == message


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("() => 5", "TypeError: the run's value is a function, which can't be returned: call it"),
        ("10n", "TypeError: BigInt are forbidden in JSON.stringify"),
        ("const a = {}; a.a = a; a", "TypeError: circular reference"),
        ("await new Promise(() => {})", "InternalError: deadlock: the program awaits a promise that nothing settles"),
        ("Promise.reject(new Error('nobody')); 5", "Error: nobody"),
    ],
)
def test_a_program_without_a_proper_end_says_why(demo: Sandbox, program: str, message: str) -> None:
    failure = failure_of(demo, program)
    assert (failure.kind, failure.message) == ("raised", message)


# ---- causes


def test_causes_are_listed_from_the_outside_in(demo: Sandbox) -> None:
    program = "throw new Error('a', { cause: new TypeError('b', { cause: { code: 3 } }) })"
    assert failure_of(demo, program).notes == ("Caused by: TypeError: b", 'Caused by: {"code":3}')


def test_all_of_several_errors_are_causes(demo: Sandbox) -> None:
    program = "await Promise.any([Promise.reject(new Error('one')), Promise.reject(new Error('two'))])"
    assert failure_of(demo, program).notes == ("Caused by: Error: one", "Caused by: Error: two")


def test_an_error_that_is_its_own_cause_ends(demo: Sandbox) -> None:
    program = "const error = new Error('a'); error.cause = error; throw error"
    assert len(failure_of(demo, program).notes) <= 5


# ---- names


@pytest.mark.parametrize(
    ("program", "hint"),
    [
        ('import "host:mcp-wether"', 'There is no module "host:mcp-wether". Did you mean "host:mcp-weather"?'),
        ('import "host:weather"', 'There is no module "host:weather". Did you mean "host:mcp-weather"?'),
        (
            'import { getForcast } from "host:mcp-weather"',
            'module "host:mcp-weather" has no export "getForcast". Did you mean "get_forecast"?',
        ),
        (
            'require("host:mcp-weather").get_forcast("Oslo")',
            'module "host:mcp-weather" has no export "get_forcast". Did you mean "get_forecast"?',
        ),
        (
            'import { delete_city } from "host:mcp-weather"',
            'module "host:mcp-weather" has no export "delete_city". It exports: get_forecast, fail.',
        ),
    ],
)
def test_a_misspelt_module_or_export_suggests_the_nearest(demo: Sandbox, program: str, hint: str) -> None:
    failure = failure_of(demo, program)
    assert (failure.kind, failure.line) == ("raised", 1)
    assert failure.message.split(": ", 1)[1] == hint


def test_a_misspelt_variable_suggests_the_nearest(demo: Sandbox) -> None:
    failure = failure_of(demo, "const counter = 1;\ncountr + 1")
    assert (failure.message, failure.notes) == (
        "ReferenceError: countr is not defined",
        ("Hint: did you mean counter?",),
    )


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("fetch", "Hint: There is no network here: call a tool of a host module."),
        ("process", "Hint: There is no process object here: no environment, no arguments, no exit."),
        ("window", "Hint: This is not a browser: use globalThis."),
        ("Buffer", "Hint: There is no Buffer here: use Uint8Array, TextEncoder and TextDecoder, atob and btoa."),
        ("module", "Hint: Give the run's value with `export default`, `return` or a last expression."),
    ],
)
def test_a_name_of_another_runtime_says_what_there_is_here(demo: Sandbox, name: str, hint: str) -> None:
    failure = failure_of(demo, f"{name}.x")
    assert (failure.message, failure.notes) == (f"ReferenceError: {name} is not defined", (hint,))


# ---- calls


def test_calls_that_took_effect_are_listed(demo: Sandbox) -> None:
    program = (
        'import { get_forecast, fail } from "host:mcp-weather"\nget_forecast("Oslo")\ntry { fail() } catch {}\nnope'
    )
    assert failure_of(demo, program).notes == (
        "Hint: declare it with const or let before it is used.",
        "Calls already made (their effects remain):\n"
        "  host:mcp-weather get_forecast: ok\n  host:mcp-weather fail: failed",
    )


def test_a_long_list_of_calls_is_cut() -> None:
    calls = [CallRecord("host:demo", "add", "ok", 0, 0, 0)] * 15
    assert notes_of_calls(calls)[0].split("\n")[-2:] == ["  host:demo add: ok", "  … and 5 more"]


def test_calls_that_never_took_effect_are_not_among_those_made() -> None:
    refused = [CallRecord("host:demo", "add", outcome, 0.1, 1, 1) for outcome in ("denied", "invalid_arguments")]
    assert notes_of_calls(refused) == ()
    assert notes_of_calls([refused[0]._replace(outcome="disconnected", sent=False)]) == ()


# ---- values that are no errors


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("\nthrow { a: 1 }", (2, 7)),
        ("const f = () => {\n  throw 'text'\n}\nf()", (2, 9)),
        ("async function f() {\n  throw 7\n}\nawait f()", (2, 9)),
        ("const one = {}\ntry {\n  throw one\n} catch (error) {\n  throw error\n}", (3, 9)),
        ("const one = {}\ntry {\n  throw one\n} finally {\n  f()\n}\nfunction f() {}", (3, 9)),
        ("try { throw 1 } catch {}\n\nthrow 2", (3, 7)),
        ("1\neval('throw 3')", (2, 1)),
        ("[1].forEach((n) => { throw n })", (1, 28)),
    ],
)
def test_a_thrown_value_that_is_no_error_has_its_place(source: str, place: tuple[int, int], demo: Sandbox) -> None:
    failure = demo.run_sync(source).failure
    assert failure is not None
    assert (failure.line, failure.column) == place
    assert f"> {place[0]} | " in failure.excerpt


def test_a_rejection_with_a_value_that_was_never_thrown_has_no_place(demo: Sandbox) -> None:
    failure = demo.run_sync("try { throw { a: 1 } } catch {}\nawait Promise.reject({ a: 1 })").failure
    assert failure is not None
    assert (failure.message, failure.line, failure.excerpt) == ('Uncaught: {"a":1}', None, "")


def test_what_one_run_of_a_session_threw_is_forgotten_in_the_next(demo: Sandbox) -> None:
    with demo.session() as session:
        assert session.run_sync("\n\nthrow 5").failure is not None
        failure = session.run_sync("await Promise.reject(5)").failure
    assert failure is not None
    assert failure.line is None


# ---- excerpts


def test_an_excerpt_of_a_long_line_shows_the_part_around_the_column() -> None:
    lines = excerpt("x" * 500 + "HERE" + "y" * 500, 1, 501).split("\n")
    assert lines[0].startswith("> 1 | …x")
    assert lines[0].endswith("y…")
    assert len(lines[0]) < 180
    assert lines[0][lines[1].index("^") :].startswith("HERE")


@pytest.mark.parametrize("line", [0, -1, 3, 10**9])
def test_an_excerpt_of_a_line_that_does_not_exist_is_empty(line: int) -> None:
    assert excerpt("one\ntwo", line, 1) == ""


def test_an_excerpt_points_through_tabs_and_windows_line_ends() -> None:
    assert excerpt("a\r\n\tb.c\r\n", 2, 3) == "  1 | a\n> 2 |  b.c\n    |   ^\n  3 | "


def test_line_numbers_are_aligned() -> None:
    source = "\n".join(str(number) for number in range(1, 12))
    assert excerpt(source, 9, None) == "   7 | 7\n   8 | 8\n>  9 | 9\n  10 | 10\n  11 | 11"


def test_a_hostile_stack_is_read_and_never_fails() -> None:
    stack = "    at f (main.js:999999999:1)\n    at main.js:0:0\n at (((main.js:1\n" + "    at g (main.js:1:1)\n" * 100
    failure = describe("raised", GuestError("E" * 10, "m", stack), "1", [])
    assert (failure.line, failure.excerpt) == (999999999, "")
    assert len(failure.trace) <= 8
