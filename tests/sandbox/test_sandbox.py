"""Runs: their value, the modules that they import, the functions that they call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from growth import patience
from toolbridge import RunResult, Sandbox
from toolbridge.errors import SandboxClosedError


def add(a: int, b: int) -> int:
    return a + b


def fail(text: str) -> None:
    raise ValueError(text)


async def slow_add(a: int, b: int) -> int:
    await anyio.sleep(0.01)
    return a + b


async def slow(milliseconds: float) -> float:
    await anyio.sleep(milliseconds / 1000)
    return milliseconds


def promise_of_sum(a: int, b: int) -> Any:
    """A plain function that gives something to await."""
    return slow_add(a, b)


def echo(*values: Any) -> list[Any]:
    return list(values)


MODULES = {
    "host:demo": {
        "add": add,
        "fail": fail,
        "slow_add": slow_add,
        "slow": slow,
        "promise_of_sum": promise_of_sum,
        "echo": echo,
    }
}


@pytest.fixture(scope="module")
def demo() -> Iterator[Sandbox]:
    with Sandbox(MODULES) as sandbox:
        yield sandbox


def value_of(result: RunResult) -> Any:
    assert result.failure is None, str(result.failure)
    return result.value


# ---- the value


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("1 + 1", 2),
        ("const a = 1; a + 1;", 2),
        ("({ a: [1, 'two', null, true], b: { c: 1.5 } })", {"a": [1, "two", None, True], "b": {"c": 1.5}}),
        ("export default 5; 7", 5),
        ("export default { a: 1 }", {"a": 1}),
        ("return 3; 4", 3),
        ("if (true) { return 'early' } 'late'", "early"),
        ("export default 1; return 2", 2),
        ("let a = 1", None),
        ("function f() {}", None),
        ("undefined", None),
        ("return", None),
        ("5; let a = 1", 5),
        ("if (1) { 5 } else { 6 }", 5),
        ("for (const i of [1, 2, 3]) i * 2", 6),
    ],
)
def test_the_value_is_the_default_export_a_return_or_the_last_expression(
    sandbox: Sandbox, program: str, value: object
) -> None:
    assert value_of(sandbox.run_sync(program)) == value


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("await Promise.resolve(1)", 1),
        ("Promise.resolve(1)", 1),
        ("export default Promise.resolve(2)", 2),
        ("return Promise.resolve(3)", 3),
        ("async function main() { return 4 } main()", 4),
        ("new Promise((resolve) => setTimeout(() => resolve(5), 5))", 5),
        ("export default async () => 6", 6),
        ("export default function () { return 7 }", 7),
        ("export default async function main() { await null; return 8 }", 8),
    ],
)
def test_a_promise_is_awaited_and_a_default_exported_function_called(
    sandbox: Sandbox, program: str, value: object
) -> None:
    assert value_of(sandbox.run_sync(program)) == value


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("new Date(0)", "1970-01-01T00:00:00.000Z"),
        ("new Map([['a', 1]])", {"a": 1}),
        ("new Set([1, 2])", [1, 2]),
        ("new Uint8Array([1, 2])", [1, 2]),
        ("[undefined, NaN, Infinity, -0]", [None, None, None, 0]),
        ("({ a: undefined, b() {}, c: { toJSON: () => 'c' } })", {"c": "c"}),
        (r"'😀é\u0000\n'", "😀é\x00\n"),
        (r"['\ud800', 'a\udc00']", ["\ufffd", "a\ufffd"]),
        ("2 ** 53", 2**53),
        ("1e300", 1e300),
    ],
)
def test_a_value_takes_its_json_form(sandbox: Sandbox, program: str, value: object) -> None:
    assert value_of(sandbox.run_sync(program)) == value


def test_each_run_has_a_fresh_guest(sandbox: Sandbox) -> None:
    value_of(sandbox.run_sync("globalThis.left = 1; Object.prototype.left = 2; var declared = 3"))
    program = "[typeof globalThis.left, typeof {}.left, typeof declared]"
    assert value_of(sandbox.run_sync(program)) == ["undefined"] * 3


# ---- modules


def test_every_form_of_import_gives_the_same_object(demo: Sandbox) -> None:
    program = """
        import * as all from "host:demo"
        import standard from "host:demo"
        import { add, add as plus, default as other } from "host:demo"
        const required = require("host:demo"), dynamic = await import("host:demo")
        const same = [standard, other, required, dynamic].every((module) => module === all)
        ;[same, add === plus, add === all.add, add(1, 2), Object.keys(all)]
    """
    names = ["add", "fail", "slow_add", "slow", "promise_of_sum", "echo"]
    assert value_of(demo.run_sync(program)) == [True, True, True, 3, names]


def test_the_asynchronous_twin_gives_promises_of_the_same_functions(demo: Sandbox) -> None:
    program = """
        import * as now from "host:demo"
        import * as later from "host:demo/async"
        const promise = later.add(1, 2)
        ;[Object.keys(now).join() === Object.keys(later).join(), now.add !== later.add, promise instanceof Promise,
          await promise, await later.slow_add(3, 4), await later.promise_of_sum(5, 6)]
    """
    assert value_of(demo.run_sync(program)) == [True, True, True, 3, 7, 11]


def test_a_module_object_can_not_be_changed(demo: Sandbox) -> None:
    program = """
        import * as demo from "host:demo"
        const tries = [
          () => { demo.add = 1 }, () => { demo.more = 1 }, () => { delete demo.add }, () => { demo.add.x = 1 },
        ]
        tries.map((change) => { try { change(); return "changed" } catch (error) { return error.name } })
    """
    assert value_of(demo.run_sync(program)) == ["TypeError"] * 4


def test_a_module_is_asked_for_once(demo: Sandbox) -> None:
    program = 'import { add } from "host:demo"; for (let i = 0; i < 5; i++) require("host:demo").add(i, 1); 1'
    result = demo.run_sync(program)
    assert [(call.module, call.function, call.outcome) for call in result.calls] == [("host:demo", "add", "ok")] * 5


# ---- calls


def test_a_coroutine_function_is_called_synchronously(demo: Sandbox) -> None:
    program = """
        import { slow_add, promise_of_sum } from "host:demo"
        ;[slow_add(1, 2), promise_of_sum(3, 4), await slow_add(5, 6)]
    """
    assert value_of(demo.run_sync(program)) == [3, 7, 11]


def test_arguments_and_results_keep_their_json_form(demo: Sandbox) -> None:
    program = """
        import { echo } from "host:demo"
        echo(1, undefined, null, { a: undefined, b: [undefined], c: new Date(0) }, "é😀", NaN, undefined)
    """
    expected = [1, None, None, {"b": [None], "c": "1970-01-01T00:00:00.000Z"}, "é😀", None]
    assert value_of(demo.run_sync(program)) == expected


@pytest.mark.parametrize("module", ["host:demo", "host:demo/async"])
def test_a_host_exception_is_a_tool_error_that_guest_code_can_catch(demo: Sandbox, module: str) -> None:
    program = f"""
        import {{ fail }} from "{module}"
        import {{ ToolError }} from "host:bridge"
        try {{ await fail("no such city") }} catch (error) {{
          ({{ is: [error instanceof ToolError, error instanceof Error], text: String(error), ...error }})
        }}
    """
    result = demo.run_sync(program)
    assert value_of(result) == {
        "is": [True, True],
        "text": "ToolFailedError: ValueError: no such city",
        "module": "host:demo",
        "function": "fail",
        "kind": "failed",
    }
    assert [call[:3] for call in result.calls] == [("host:demo", "fail", "failed")]


def test_wrong_arguments_are_an_error_that_names_the_function(demo: Sandbox) -> None:
    program = 'import { add } from "host:demo"; try { add(1) } catch (error) { error.message }'
    assert value_of(demo.run_sync(program)) == "TypeError: add() missing 1 required positional argument: 'b'"


def test_fifty_calls_of_fifty_milliseconds_overlap(demo: Sandbox) -> None:
    program = (
        'import { slow } from "host:demo/async"; (await Promise.all(Array.from({ length: 50 }, () => slow(50)))).length'
    )
    result = demo.run_sync(program)
    assert value_of(result) == 50
    assert result.usage.wall_seconds < patience(0.25)  # one after the other, 2.5 s
    assert [call[:3] for call in result.calls] == [("host:demo", "slow", "ok")] * 50


def test_calls_that_nobody_awaits_are_finished_before_the_run_ends(demo: Sandbox) -> None:
    result = demo.run_sync('import { slow } from "host:demo/async"; slow(20); "done"')
    assert value_of(result) == "done"
    assert [call[:3] for call in result.calls] == [("host:demo", "slow", "ok")]


def test_replies_arrive_in_the_order_in_which_calls_end(demo: Sandbox) -> None:
    program = """
        import { slow } from "host:demo/async"
        const order = []
        await Promise.all([120, 10, 60].map(async (time) => order.push(await slow(time))))
        order
    """
    assert value_of(demo.run_sync(program)) == [10, 60, 120]


def test_a_record_has_the_sizes_of_request_and_reply(demo: Sandbox) -> None:
    (call,) = demo.run_sync('require("host:demo").add(1, 2)').calls
    request = '{"op":"call","module":"host:demo","function":"add","arguments":[1,2]}'
    assert (call.request_bytes, call.reply_bytes) == (len(request), len('{"ok":3}'))
    assert 0 <= call.seconds < patience(1)


# ---- closing


@pytest.mark.parametrize("program", ["1", 'import { slow } from "host:demo"; slow(1)'])
def test_a_closed_sandbox_refuses_to_run(program: str) -> None:
    sandbox = Sandbox(MODULES)
    sandbox.run_sync(program)
    sandbox.close()
    with pytest.raises(SandboxClosedError, match=r"^This sandbox is closed\.$"):
        sandbox.run_sync(program)
    with pytest.raises(SandboxClosedError):
        sandbox.session()


def test_closing_twice_is_harmless() -> None:
    sandbox = Sandbox(MODULES)
    sandbox.close()
    sandbox.close()
