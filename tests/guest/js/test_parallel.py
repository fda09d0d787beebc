"""parallel(): many calls at once from synchronous code; their order, their limit, their errors."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from guest.handle_host import HEAD, HandleHost
from toolbridge import Limits, Sandbox
from toolbridge.boundary.host_call import CallFailed
from toolbridge.boundary.wire import ErrorFrame


class Meeting:
    """An async host function whose calls return once `expected` of them are pending, the last one first."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.arrived: list[Any] = []
        self.most = self.under_way = 0
        self._turns: dict[int, anyio.Event] = {}

    async def meet(self, value: Any = None) -> Any:
        turn = len(self.arrived)
        self.arrived.append(value)
        self._turns[turn] = anyio.Event()
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        if len(self.arrived) % self.expected == 0:
            self._turns[turn].set()
        with anyio.fail_after(60):
            await self._turns[turn].wait()
        self.under_way -= 1
        if turn % self.expected:
            self._turns[turn - 1].set()
        return {"was": value}


@pytest.fixture
def host() -> HandleHost:
    return HandleHost()


@pytest.mark.parametrize("target", ["demo.meet", "later.meet"])
def test_all_calls_are_made_at_once_and_their_results_keep_the_lists_order(
    sandbox: Sandbox, host: HandleHost, target: str
) -> None:
    meeting = Meeting(30)
    host.offer("meet", meeting.meet, is_async=True)
    found = host.value(sandbox, f"parallel(Array.from({{ length: 30 }}, (_, i) => [{target}, i]))")
    assert found == [{"was": index} for index in range(30)]
    assert meeting.most == 30


def test_functions_of_every_kind_can_be_mixed(sandbox: Sandbox, host: HandleHost) -> None:
    program = "parallel([[demo.check, 1], [later.check, 2], [demo.echo, 'a', { b: 1 }], [later.echo], [demo.image]])"
    assert host.value(sandbox, program) == [
        10,
        20,
        ["a", {"b": 1}],
        [],
        {"images": [0, '<image/png 34 KB "chart.png">'], "title": "t"},
    ]


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ("[]", []),
        ("new Set()", []),
        ("new Set([[demo.check, 1], [demo.check, 2]])", [10, 20]),
        ("(function* () { for (let i = 0; i < 3; i++) yield [demo.check, i] })()", [0, 10, 20]),
        ("new Map([[demo.check, 4]])", [40]),
        ("[[demo.echo, undefined], [demo.echo, 1, undefined]]", [[], [1]]),
    ],
)
def test_the_list_is_anything_that_can_be_gone_through(
    sandbox: Sandbox, host: HandleHost, calls: str, expected: list[Any]
) -> None:
    program = f"const found = parallel({calls}); [found, found instanceof Array, found.map(String).length]"
    assert host.value(sandbox, program) == [expected, True, len(expected)]


def test_no_more_than_the_limit_are_under_way(sandbox: Sandbox, host: HandleHost) -> None:
    meeting = Meeting(4)
    host.offer("meet", meeting.meet, is_async=True)
    program = "parallel(Array.from({ length: 12 }, (_, i) => [demo.meet, i]), { limit: 4 }).map((each) => each.was)"
    assert host.value(sandbox, program) == list(range(12))
    assert (meeting.most, sorted(meeting.arrived)) == (4, list(range(12)))


def test_more_calls_than_the_host_takes_at_once_are_made_all_the_same(sandbox: Sandbox, host: HandleHost) -> None:
    program = "parallel(Array.from({ length: 1000 }, (_, i) => [demo.check, i])).reduce((a, b) => a + b)"
    assert host.value(sandbox, program) == 10 * 999 * 1000 // 2


# ---- errors


def test_the_first_error_in_the_lists_order_is_thrown_when_all_under_way_are_done(
    sandbox: Sandbox, host: HandleHost
) -> None:
    last_failed = anyio.Event()

    async def step(number: int) -> int:
        if number == 1:
            await last_failed.wait()
        if number == 3:
            last_failed.set()
        if number in (1, 3):
            raise CallFailed(ErrorFrame("failed", f"no {number}"))
        return number

    host.offer("step", step, is_async=True)
    program = "parallel([[demo.step, 0], [demo.step, 1], [demo.step, 2], [demo.step, 3]])"
    result = host.run(sandbox, program)
    assert result.failure is not None
    assert result.failure.message == "ToolFailedError: no 1"
    assert result.failure.line == HEAD.count("\n") + 1
    assert sorted(call.outcome for call in result.calls) == ["failed", "failed", "ok", "ok"]


def test_after_an_error_nothing_more_is_started(sandbox: Sandbox, host: HandleHost) -> None:
    program = """
    const calls = [1, 2, -3, 4, 5, 6].map((n) => [demo.check, n]);
    try { parallel(calls, { limit: 1 }) } catch (error) { error.message }
    """
    result = host.run(sandbox, program)
    assert result.value == "no -3"
    assert len(result.calls) == 3


def test_errors_are_collected_in_their_places(sandbox: Sandbox, host: HandleHost) -> None:
    program = """
    const { ToolFailedError } = require("host:bridge");
    const found = parallel([1, -2, 3, -4].map((n) => [demo.check, n]), { errors: "collect", limit: 2 });
    found.map((each) => each instanceof ToolFailedError ? [each.server, each.tool, each.message] : each)
    """
    assert host.value(sandbox, program) == [10, ["s", "check", "no -2"], 30, ["s", "check", "no -4"]]


def test_a_call_that_is_refused_before_it_begins_is_an_error_of_its_own(sandbox: Sandbox, host: HandleHost) -> None:
    program = """
    const calls = [[demo.check, 1], [demo.check, "x".repeat(5000)], [demo.check, 3]];
    parallel(calls, { errors: "collect" }).map((each) => each instanceof ToolError ? each.name : each)
    """
    result = host.run(sandbox, program, Limits(frame_bytes=4000))
    assert result.value == [10, "ToolLimitError", 30]


def test_an_error_has_the_place_of_the_parallel_call(sandbox: Sandbox, host: HandleHost) -> None:
    program = """\
function gather() {
  return parallel([
    [demo.check, -1],
  ]);
}
gather()"""
    failure = host.run(sandbox, program).failure
    assert failure is not None
    assert (failure.message, failure.line, failure.column) == ("ToolFailedError: no -1", HEAD.count("\n") + 2, 10)


# ---- beside promises


def test_promises_under_way_are_settled_meanwhile(sandbox: Sandbox, host: HandleHost) -> None:
    program = """
    const order = [];
    const promises = [1, 2, -3].map((n) => later.check(n).then((v) => order.push(v), (e) => order.push(e.message)));
    const found = parallel([[demo.check, 7], [later.check, 8]]);
    order.push("parallel");
    await Promise.all(promises);
    [found, order]
    """
    assert host.value(sandbox, program) == [[70, 80], ["parallel", 10, 20, "no -3"]]


def test_it_works_in_jobs_and_timers_and_several_at_once(sandbox: Sandbox, host: HandleHost) -> None:
    program = """
    const from = async (n) => { await null; return parallel([[demo.check, n], [later.check, n + 1]]) };
    const timed = new Promise((done) => setTimeout(() => done(parallel([[demo.check, 9]])), 1));
    await Promise.all([from(1), from(3), timed])
    """
    assert host.value(sandbox, program) == [[10, 20], [30, 40], [90]]


def test_code_of_the_program_that_runs_while_it_waits_can_do_the_same(sandbox: Sandbox, host: HandleHost) -> None:
    given = anyio.Event()

    async def give() -> dict[str, str]:
        given.set()
        return {"an": "object"}

    async def after(value: int) -> int:
        await given.wait()
        for _ in range(10):  # so that the object has been delivered, and its promise is settled first
            await anyio.lowlevel.checkpoint()
        return value

    host.offer("give", give, is_async=True)
    host.offer("after", after, is_async=True)
    program = """
    const seen = [];
    Object.defineProperty(Object.prototype, "then", { configurable: true, get() {
      if (seen.length < 3) { seen.push(0); seen.push(parallel([[demo.check, 5]])[0], demo.check(6)); }
    } });
    const promise = later.give();
    const found = parallel([[demo.check, 1], [demo.after, 2], [demo.check, 3]]);
    delete Object.prototype.then;
    [found, seen, await promise]
    """
    assert host.value(sandbox, program) == [[10, 2, 30], [0, 50, 60], {"an": "object"}]


# ---- mistakes in the list


@pytest.mark.parametrize(
    ("calls", "problem"),
    [
        ("[[demo.check, 1], later.check(1)]", "element [1] of the list is a promise, so its call has begun already"),
        ("[() => demo.check(1)]", "element [0] of the list is a function: write [function, input]"),
        ("[demo.check]", "element [0] of the list is a function: write [function, input]"),
        ("[null]", "element [0] of the list is null: write [function, input]"),
        ("[{ tool: demo.check }]", "element [0] of the list is an object: write [function, input]"),
        ("[, [demo.check, 1]]", "element [0] of the list is undefined"),
        ("[[demo.check, 1], []]", "element [1] of the list begins with undefined: only functions of host modules"),
        ("[['check', 1]]", "element [0] of the list begins with a string: only functions of host modules"),
        ("[[(n) => n, 1]]", "element [0] of the list begins with a function of the program"),
        ("[[demo.check.bind(null), 1]]", "element [0] of the list begins with a function of the program"),
        ("[[parallel, []]]", "element [0] of the list begins with a function of the program"),
        ("[[new Proxy(demo.check, {}), 1]]", "element [0] of the list begins with a function of the program"),
        ("demo.check", "parallel() takes a list of [function, input]"),
        ("undefined", "parallel() takes a list of [function, input]"),
        ("'text'", "parallel() takes a list of [function, input]"),
        ("{ a: [demo.check, 1] }", "parallel() takes a list of [function, input]"),
        ("[[demo.check, 1], [demo.check, 10n]]", "BigInt"),
        ("[[demo.check, 1], [demo.check, { toJSON() { throw new TypeError('not me') } }]]", "not me"),
        ("(function* () { yield [demo.check, 1]; throw new TypeError('stop') })()", "stop"),
        ("[[demo.check, 1]], 5", "the options of parallel() are an object"),
        ("[[demo.check, 1]], null", "the options of parallel() are an object"),
        ("[[demo.check, 1]], { concurrency: 5 }", 'has no option "concurrency": there are "limit" and "errors"'),
        ("[[demo.check, 1]], { limit: 0 }", "a whole number from 1"),
        ("[[demo.check, 1]], { limit: '5' }", "a whole number from 1"),
        ("[[demo.check, 1]], { errors: 'return' }", '"throw" or "collect"'),
    ],
)
def test_a_mistake_in_the_list_is_found_before_any_call(
    sandbox: Sandbox, host: HandleHost, calls: str, problem: str
) -> None:
    result = host.run(sandbox, f"\nparallel({calls})")
    assert result.failure is not None
    assert problem in result.failure.message
    assert result.failure.message.startswith(("TypeError: ", "RangeError: "))
    assert [call for call in result.calls if call.outcome != "unfinished"] == []


def test_options_that_are_undefined_are_the_usual_ones(sandbox: Sandbox, host: HandleHost) -> None:
    program = "parallel([[demo.check, 1]], { limit: undefined, errors: undefined })"
    assert host.value(sandbox, program) == [10]
    assert host.value(sandbox, "parallel([[demo.check, 1]], { limit: Infinity, errors: 'throw' })") == [10]
