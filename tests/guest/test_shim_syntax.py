"""Program syntax: `import`, `export` and `return` at the top level, and where they are not allowed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from toolbridge import Failure, Sandbox


def add(a: int, b: int) -> int:
    return a + b


@pytest.fixture(scope="module")
def demo() -> Iterator[Sandbox]:
    with Sandbox({"host:demo": {"add": add, "if": add}}) as sandbox:
        yield sandbox


def value_of(sandbox: Sandbox, program: str) -> Any:
    result = sandbox.run_sync(program)
    assert result.failure is None, str(result.failure)
    return result.value


def failure_of(sandbox: Sandbox, program: str) -> Failure:
    failure = sandbox.run_sync(program).failure
    assert failure is not None
    return failure


# ---- import


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ('import { add } from "host:demo"; add(1, 2)', 3),
        ("import { add } from 'host:demo'\nadd(1, 2)", 3),
        ('import { add as plus, } from "host:demo"; plus(1, 2)', 3),
        ('import { "add" as plus } from "host:demo"; plus(1, 2)', 3),
        ('import { if as when } from "host:demo"; when(1, 2)', 3),
        ('import { default as demo } from "host:demo"; demo.add(1, 2)', 3),
        ('import * as demo from "host:demo"; demo.add(1, 2)', 3),
        ('import demo from "host:demo"; demo.add(1, 2)', 3),
        ('import demo, { add } from "host:demo"; demo.add === add', True),
        ('import demo, * as same from "host:demo"; demo === same', True),
        ('import { add } from "host:demo" with { type: "json" }; add(1, 2)', 3),
        ('import from from "host:demo"; from.add(1, 2)', 3),
        ('import { add as from } from "host:demo"; from(1, 2)', 3),
        ('import "host:demo"; 3', 3),
        ('import {} from "host:demo"; 3', 3),
        ('const a = 1; import { add } from "host:demo"; add(a, 2)', 3),
        ('import\n{\nadd\n}\nfrom\n"host:demo"\nadd(1, 2)', 3),
        ('import /* a */ { add /* b */ } from "host:demo" // c\nadd(1, 2)', 3),
        ('const { add } = await import("host:demo"); add(1, 2)', 3),
        ('import("host:demo").then((demo) => demo.add(1, 2))', 3),
        ('function f() { return add(1, 2) } import { add } from "host:demo"; f()', 3),
    ],
)
def test_every_form_of_import_can_be_used(demo: Sandbox, program: str, value: object) -> None:
    assert value_of(demo, program) == value


def test_an_import_is_done_before_any_other_statement(demo: Sandbox) -> None:
    assert value_of(demo, 'const sum = add(1, 2)\nimport { add } from "host:demo"\nsum') == 3


def test_a_module_that_is_missing_is_known_before_any_call_is_made(demo: Sandbox) -> None:
    program = 'import { add } from "host:demo"\nadd(1, 2)\nimport { other } from "host:nowhere"'
    result = demo.run_sync(program)
    assert result.failure is not None
    assert result.calls == ()


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import", "import clause expected"),
        ("import {", "identifier or string expected"),
        ('import { add as } from "host:demo"', "identifier expected"),
        ('import { "add" } from "host:demo"', "'as' and a name expected"),
        ('import * from "host:demo"', "expecting 'as'"),
        ('import { add } "host:demo"', "from clause expected"),
        ("import { add } from demo", 'module specifier expected: a string such as "host:mcp-weather"'),
        ('import { add as eval } from "host:demo"', "invalid import binding"),
        ('import { add, add } from "host:demo"', "invalid redefinition of lexical identifier"),
        ('import { add } from "host:demo"; const add = 1', "invalid redefinition of lexical identifier"),
        ("import.meta", "import.meta only valid in module code"),
    ],
)
def test_a_malformed_import_is_a_syntax_error_that_names_the_missing_part(
    demo: Sandbox, program: str, message: str
) -> None:
    failure = failure_of(demo, program)
    assert (failure.kind, failure.message, failure.line) == ("syntax", f"SyntaxError: {message}", 1)


@pytest.mark.parametrize(
    "program",
    [
        'import { if } from "host:demo"',
        'import { add as if } from "host:demo"',
        'import * as class from "host:demo"',
        'import { add as await } from "host:demo"',
    ],
)
def test_a_reserved_word_can_not_be_bound(demo: Sandbox, program: str) -> None:
    assert failure_of(demo, program).kind == "syntax"


@pytest.mark.parametrize(
    "program",
    [
        'function f() { import { add } from "host:demo" }',
        'if (true) { import { add } from "host:demo" }',
        '{ import { add } from "host:demo" }',
        '() => { import "host:demo" }',
        "function f() { export const a = 1 }",
        "if (true) { export default 1 }",
        "eval('import \"host:demo\"')",
        "new Function('import \"host:demo\"')",
    ],
)
def test_import_and_export_are_syntax_errors_below_the_top_level(demo: Sandbox, program: str) -> None:
    assert failure_of(demo, program).message.startswith("SyntaxError: ")


def test_an_imported_name_can_not_be_assigned(demo: Sandbox) -> None:
    failure = failure_of(demo, 'import { add } from "host:demo"\nadd = 1')
    assert (failure.kind, failure.message, failure.line) == ("raised", "TypeError: 'add' is read-only", 2)


# ---- export


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("export default 5", 5),
        ("export default 5; 7", 5),
        ("export default { a: 1 }.a", 1),
        ("export default [1, 2].map((n) => n * 2)", [2, 4]),
        ("export default await Promise.resolve(5)", 5),
        ("export default (1, 2)", 2),
        ("const a = 1; export { a }; a", 1),
        ("const a = 1, b = 2; export { a, b as c, }; a + b", 3),
        ('const a = 1; export { a as "a b" }; a', 1),
        ("const a = 1; export { a as if }; a", 1),
        ("export { a }; const a = 2; a", 2),
        ("export {}; 3", 3),
        ("export const a = 4; a", 4),
        ("export let a = 4, b = 5; a + b", 9),
        ("export var a = 4; a", 4),
        ("export const { a, b: [c] } = { a: 1, b: [2] }; a + c", 3),
        ("export function f() { return 2 } f()", 2),
        ("export async function f() { return 2 } await f()", 2),
        ("export function* f() { yield 2 } [...f()]", [2]),
        ("export class A { x = 2 } new A().x", 2),
        ("export default function () { return 8 }", 8),
        ("export default function named() { return 8 }", 8),
        ("export default function f() { return 8 } f() + 1", 8),
        ("f(); export default function f() { return 8 }", 8),
        ("export default async function () { return 8 }", 8),
        ("export default async function f() { return 8 }", 8),
        ("export default () => 4", 4),
        ("export default async () => 4", 4),
        ("export default class { static x = 1 }.x", 1),
    ],
)
def test_every_form_of_export_can_be_used(demo: Sandbox, program: str, value: object) -> None:
    assert value_of(demo, program) == value


def test_a_default_exported_class_is_declared(demo: Sandbox) -> None:
    assert value_of(demo, "export default class Point { x = 1 }\nreturn new Point().x") == 1


@pytest.mark.parametrize("program", ["export default class {}", "export default class Point {}"])
def test_a_default_exported_class_is_no_value_and_the_failure_says_so(demo: Sandbox, program: str) -> None:
    failure = failure_of(demo, program)
    assert failure.kind == "raised"
    assert "can't be returned" in failure.message


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("export default 1; export default 2", "a program has at most one default export"),
        ("export default 1; export default function f() {}", "a program has at most one default export"),
        ('export * from "host:demo"', "a program can't re-export: import the names and use them"),
        ('export * as demo from "host:demo"', "a program can't re-export: import the names and use them"),
        ('export { add } from "host:demo"', "a program can't re-export: import the names and use them"),
        ('export { default } from "host:demo"', "a program can't re-export: import the names and use them"),
        ("export default const a = 1", "unexpected token in expression: 'const'"),
        ("export default", "unexpected token in expression: ''"),
    ],
)
def test_an_export_that_is_not_allowed_says_why(demo: Sandbox, program: str, message: str) -> None:
    failure = failure_of(demo, program)
    assert (failure.kind, failure.message, failure.line) == ("syntax", f"SyntaxError: {message}", 1)


@pytest.mark.parametrize("rest", ["5", "return 5", "if (1) { 4 }", "export default 5", 'import "host:demo"', "{ a b }"])
def test_export_takes_a_declaration_and_nothing_else(demo: Sandbox, rest: str) -> None:
    assert failure_of(demo, f"export {rest}").kind == "syntax"


# ---- return


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("return 1", 1),
        ("return", None),
        ("return\n1", None),
        ("return {\n  a: 1\n}", {"a": 1}),
        ("return 1, 2", 2),
        ("return [1]\n  .concat(2)", [1, 2]),
        ("if (true) return 1; 2", 1),
        ("{ return 1 }", 1),
        ("for (const i of [1, 2]) { if (i === 2) return i }", 2),
        ("for await (const i of [Promise.resolve(1)]) { return i }", 1),
        ("while (true) { return 1 }", 1),
        ("switch (1) { case 1: return 7 }", 7),
        ("label: { return 5 }", 5),
        ("try { return 1 } finally { globalThis.done = true }", 1),
        ("try { return 1 } finally { return 2 }", 2),
        ("try { throw 1 } catch (error) { return error }", 1),
        ("try { return await Promise.reject(3) } catch (error) { return error + 1 }", 4),
        ("export default 1; return 2", 2),
        ("function f() { return 5; 6 } f()", 5),
        ("[1, 2].map(function (n) { return n * 2 })", [2, 4]),
        ("const o = { m() { return 1 }, get g() { return 2 } }; o.m() + o.g", 3),
        ("class A { static { this.x = (() => { return 3 })() } } A.x", 3),
    ],
)
def test_return_ends_the_program_and_leaves_functions_alone(demo: Sandbox, program: str, value: object) -> None:
    assert value_of(demo, program) == value


def test_what_follows_a_return_is_not_run(demo: Sandbox) -> None:
    result = demo.run_sync('import { add } from "host:demo"; return 1; add(1, 2)')
    assert (result.value, result.calls) == (1, ())


@pytest.mark.parametrize("program", ["eval('return 1')", "class A { static { return } }"])
def test_return_is_a_syntax_error_where_there_is_nothing_to_return_from(demo: Sandbox, program: str) -> None:
    assert failure_of(demo, program).message.startswith("SyntaxError: return ")


# ---- what a program is


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("(function () { return this })() === undefined", True),
        ("this === globalThis", True),
        ("#!/usr/bin/env node\n5", 5),
        ("\ufeff5", 5),
        ("", None),
        ("// nothing", None),
        ("5 // the end", 5),
        ("5 /* the end */", 5),
        ("1;;", 1),
        ("'use strict'; 2", 2),
        ("eval('1 + 1')", 2),
        ("new Function('return 7')()", 7),
        ("async function main() { return 42 }\nmain()", 42),
        ("5\r\n6\u20287", 7),
    ],
)
def test_a_program_is_a_strict_asynchronous_script(demo: Sandbox, program: str, value: object) -> None:
    assert value_of(demo, program) == value


@pytest.mark.parametrize(
    ("program", "line", "column"),
    [
        ("let = 1", 1, 5),
        ("foo(", 1, 5),
        ("const a = 1;\nconst b = ;", 2, 11),
        ("a\n\n  b c", 3, 5),
        ("function f() {\n  return 1 +\n}", 3, 1),
        ("`abc\n${1 +}`", 2, 6),
        ("with (Math) { abs(1) }", 1, 1),
        ("yield 1", 1, 1),
        ("let await = 1", 1, 5),
        ("/(/", 1, 1),
    ],
)
def test_a_syntax_error_has_its_line_and_column(demo: Sandbox, program: str, line: int, column: int) -> None:
    failure = failure_of(demo, program)
    assert (failure.kind, failure.line, failure.column) == ("syntax", line, column)


def test_a_program_may_have_very_many_imports(demo: Sandbox) -> None:
    names = ", ".join(f"add as a{number}" for number in range(5000))
    assert value_of(demo, f'import {{ {names} }} from "host:demo"; a4999(1, 2)') == 3
