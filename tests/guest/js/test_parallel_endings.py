"""parallel() when the run ends, calls fail, memory runs out, or builtins are replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from guest.handle_host import HandleHost
from guest.pollution import CLEAN_UP, POLLUTION
from toolbridge import Limits, Sandbox


@pytest.fixture
def host() -> HandleHost:
    return HandleHost()


def test_a_run_that_is_over_in_the_middle_ends_there(sandbox: Sandbox, host: HandleHost) -> None:
    host.offer("stuck", anyio.sleep_forever, is_async=True)
    result = host.run(sandbox, "parallel([[demo.check, 1], [demo.stuck]])", Limits(wall_seconds=0.3))
    assert result.failure is not None
    assert result.failure.kind == "timeout"
    assert [call.outcome for call in result.calls] == ["ok", "unfinished"]


def test_too_many_calls_end_the_run(sandbox: Sandbox, host: HandleHost) -> None:
    program = "try { parallel(Array.from({ length: 30 }, () => [demo.check, 1])) } catch {} 1"
    result = host.run(sandbox, program, Limits(host_calls=20))
    assert result.failure is not None
    assert result.failure.kind == "limit"
    assert len(result.calls) == 20


def test_the_next_program_of_a_session_finds_nothing_left_over(sandbox: Sandbox, host: HandleHost) -> None:
    with host.session(sandbox) as run:
        failed = run("later.check(1); later.check(2); parallel([[demo.check, -1]])")
        assert failed.failure is not None
        assert run("parallel([[demo.check, 1], [demo.check, 2]])").value == [10, 20]


def many_objects(count: int) -> Callable[[], list[Any]]:
    return lambda: [{"a": index} for index in range(count)]


@pytest.mark.parametrize(("calls", "result_size"), [(8, 50_000), (2, 400_000)])
def test_memory_that_runs_out_in_the_middle_is_an_error_that_can_be_caught(
    sandbox: Sandbox, host: HandleHost, calls: int, result_size: int
) -> None:
    """Results that don't fit into the guest's memory, together or alone."""
    host.offer("large", many_objects(result_size))
    program = f"""
    const calls = Array.from({{ length: {calls} }}, () => [demo.large]), found = [];
    for (const errors of ["throw", "collect"])
      try {{ parallel(calls, {{ errors }}) }} catch (error) {{ found.push(error.message) }}
    [...found, parallel([[demo.check, 4]])]
    """
    result = host.run(sandbox, program, Limits(memory_bytes=24 << 20))
    assert result.failure is None, str(result.failure)
    assert result.value == ["out of memory", "out of memory", [40]]


def test_an_answer_that_there_is_no_memory_for_fails_its_call_only(sandbox: Sandbox, host: HandleHost) -> None:
    """The frame itself doesn't fit: its call is unknown until all others have settled."""

    def text(size: int) -> str:
        return "x" * size

    host.offer("text", text)
    program = """
    const promise = later.text(6_000_000).catch((error) => error.message);
    const small = later.check(2);
    const hog = []; try { for (;;) hog.push(new Uint8Array(1 << 20)) } catch { hog.length -= 3 }
    const found = [];
    const calls = [[demo.check, 1], [demo.text, 6_000_000], [demo.check, 3]];
    try { parallel(calls) } catch (error) { found.push(error.message) }
    [...found, await promise, await small, demo.check(4)]
    """
    result = host.run(sandbox, program, Limits(memory_bytes=16 << 20))
    assert result.failure is None, str(result.failure)
    assert result.value == ["out of memory", "out of memory", 20, 40]


def test_it_goes_on_working_after_a_program_has_replaced_everything(sandbox: Sandbox, host: HandleHost) -> None:
    program = f"""
    const {{ check, image }} = demo, {{ check: checkLater }} = later;
    globalThis.Promise = null;
    {POLLUTION.replace(", Promise.prototype", "")}
    const get = tell("get 0"), set = tell("set 0");
    defineProperty(Array.prototype, 0, {{ __proto__: null, configurable: true, get, set }});
    const calls = [[check, 1], [checkLater, -2], [image]];
    const found = parallel(calls, {{ __proto__: null, errors: "collect", limit: 2 }});
    let text = found[0] + " " + found[1].message + " " + (found[2].images[1] + "") + " " + found.length;
    try {{ parallel([[check, 1], [check, -5]]) }} catch (error) {{ text += " " + error.message + " " + error.kind }}
    text += " " + ran.length;
    {CLEAN_UP}
    delete Array.prototype[0];
    text
    """
    assert host.value(sandbox, program) == '10 no -2 <image/png 34 KB "chart.png"> 3 no -5 failed 0'
