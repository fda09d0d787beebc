"""Sessions: state is kept from one program to the next, and lost with the guest."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import anyio
import pytest

from growth import patience
from toolbridge import Limits, Sandbox, Session
from toolbridge.errors import SandboxClosedError, SessionBusyError

LOST = "The session's state is lost: the next run starts afresh."


def add(a: int, b: int) -> int:
    return a + b


async def slow(milliseconds: float) -> float:
    await anyio.sleep(milliseconds / 1000)
    return milliseconds


@pytest.fixture(scope="module")
def demo() -> Iterator[Sandbox]:
    with Sandbox({"host:demo": {"add": add, "slow": slow}}) as sandbox:
        yield sandbox


@pytest.fixture
def session(demo: Sandbox) -> Iterator[Session]:
    with demo.session(limits=Limits(wall_seconds=5)) as session:
        yield session


def values(session: Session, *programs: str) -> list[object]:
    """The programs' values; each must have one."""
    results = [session.run_sync(program) for program in programs]
    assert [str(result.failure) for result in results if result.failure] == []
    return [result.value for result in results]


@pytest.mark.parametrize("keyword", ["let", "const", "var"])
def test_what_one_program_declares_the_next_can_use(session: Session, keyword: str) -> None:
    assert values(session, f"{keyword} a = [1]", "a.push(2); a") == [None, [1, 2]]


def test_functions_classes_and_imports_are_kept(session: Session) -> None:
    programs = [
        "function double(n) { return 2 * n }",
        "class Point { constructor(x) { this.x = x } }",
        'import { add } from "host:demo"; import * as later from "host:demo/async"',
        "[double(2), new Point(5).x, add(1, 2), await later.add(3, 4)]",
    ]
    assert values(session, *programs) == [None, None, None, [4, 5, 3, 7]]


@pytest.mark.parametrize(
    ("first", "second", "read", "value"),
    [
        ("let a = 1", "let a = 2", "a", 2),
        ("const a = 1", "const a = 2", "a", 2),
        ("const a = 1", "let a = 2; a = 3", "a", 3),
        ("let a = 1", "const a = 2", "a", 2),
        ("var a = 1", "let a = 2", "a", 2),
        ("let a = 1", "var a = 2", "a", 2),
        ("const a = 1", "function a() { return 2 }", "a()", 2),
        ("function a() { return 1 }", "const a = 2", "a", 2),
        ("function a() { return 1 }", "function a() { return 2 }", "a()", 2),
        ("class A { x = 1 }", "class A { x = 2 }", "new A().x", 2),
        ("class A { x = 1 }", "function A() { return { x: 2 } }", "new A().x", 2),
        ("let { a } = { a: 1 }", "let [a] = [2]", "a", 2),
        ('import { add } from "host:demo"', 'import { add } from "host:demo"', "add(1, 1)", 2),
        ('import { add } from "host:demo"', "const add = 2", "add", 2),
        ("globalThis.a = 1", "let a = 2", "a", 2),
        ("export const a = 1", "export const a = 2", "a", 2),
    ],
)
def test_a_name_may_be_declared_again(session: Session, first: str, second: str, read: str, value: object) -> None:
    assert values(session, first, second, read)[-1] == value


def test_declaring_a_name_twice_in_one_program_is_still_a_syntax_error(session: Session) -> None:
    failure = session.run_sync("let a = 1; let a = 2").failure
    assert failure is not None
    assert (failure.kind, failure.message) == ("syntax", "SyntaxError: invalid redefinition of lexical identifier")


def test_a_program_with_a_syntax_error_leaves_the_state_as_it_was(session: Session) -> None:
    values(session, "let a = 1")
    assert session.run_sync("let a = 2; let = 3").failure is not None
    assert values(session, "a") == [1]


def test_a_function_sees_the_newest_declaration(session: Session) -> None:
    assert values(session, "let a = 1; function read() { return a }", "let a = 2", "read()")[-1] == 2


def test_a_program_that_throws_keeps_the_state_and_says_nothing_of_it(session: Session) -> None:
    values(session, "let a = 1")
    failure = session.run_sync("a = 2; throw new Error('no')").failure
    assert failure is not None
    assert (failure.kind, failure.notes) == ("raised", ())
    assert values(session, "a") == [2]


def test_a_declaration_whose_initialiser_throws_can_be_made_again(session: Session) -> None:
    assert session.run_sync("const a = undefined_function()").failure is not None
    assert values(session, "const a = 1; a", "a") == [1, 1]


def test_a_run_that_is_stopped_loses_the_state_and_says_so(demo: Sandbox) -> None:
    with demo.session(limits=Limits(wall_seconds=0.2)) as session:
        values(session, "let a = 1")
        failure = session.run_sync("for (;;);").failure
        assert failure is not None
        assert (failure.kind, failure.message, failure.notes) == ("timeout", "The run took longer than 0.2 s.", (LOST,))
        assert str(failure).endswith(LOST)
        assert values(session, "typeof a") == ["undefined"]


def test_the_first_run_of_a_session_has_no_state_to_lose(demo: Sandbox) -> None:
    with demo.session(limits=Limits(wall_seconds=0.1)) as session:
        failure = session.run_sync("for (;;);").failure
        assert failure is not None
        assert failure.notes == ()


def test_a_run_that_is_out_of_memory_keeps_the_session_usable(demo: Sandbox) -> None:
    with demo.session(limits=Limits(memory_bytes=16 * 2**20)) as session:
        failure = session.run_sync("let all = []; for (;;) all.push(new Uint8Array(2 ** 20))").failure
        assert failure is not None
        assert failure.kind == "out_of_memory"
        assert values(session, "all = null; 1 + 1") == [2]


def test_limits_hold_for_each_run_anew(demo: Sandbox) -> None:
    program = "const start = performance.now(); while (performance.now() - start < 120); start >= 0 && start < 100"
    with demo.session(limits=Limits(wall_seconds=0.5, cpu_seconds=0.4)) as session:
        assert values(session, *[program] * 5) == [True] * 5


def test_timers_and_calls_of_an_earlier_program_do_not_reach_into_the_next(session: Session) -> None:
    program = """
        import { slow } from "host:demo/async"
        globalThis.log = []
        setTimeout(() => log.push("timer"), 30)
        slow(30).then(() => log.push("call"))
        await null
        throw new Error("over")
    """
    assert session.run_sync(program).failure is not None
    assert values(session, "await new Promise((resolve) => setTimeout(resolve, 80)); log") == [[]]


def test_sessions_share_nothing_with_each_other_or_the_sandbox(demo: Sandbox) -> None:
    with demo.session() as one, demo.session() as other:
        values(one, "globalThis.a = 1; let b = 1")
        assert values(other, "[typeof a, typeof b]") == [["undefined", "undefined"]]
        assert demo.run_sync("[typeof a, typeof b]").value == ["undefined", "undefined"]


def test_output_and_calls_are_those_of_one_run(session: Session) -> None:
    first = session.run_sync('require("host:demo").add(1, 2); require("host:demo").add(3, 4)')
    second = session.run_sync('require("host:demo").add(5, 6)')
    assert (len(first.calls), len(second.calls)) == (2, 1)


def test_a_second_program_at_the_same_time_is_refused(demo: Sandbox) -> None:
    running, go_on = threading.Event(), threading.Event()

    def pause() -> str:
        running.set()
        go_on.wait(60)
        return "paused"

    with Sandbox({"host:demo": {"pause": pause}}) as sandbox, sandbox.session() as session:
        first = threading.Thread(target=session.run_sync, args=['var paused = require("host:demo").pause()'])
        first.start()
        assert running.wait(60)
        with pytest.raises(SessionBusyError, match=r"^This session is running a program: await it"):
            session.run_sync("1")
        go_on.set()
        first.join()
        assert session.run_sync("paused").value == "paused"


@pytest.mark.anyio
async def test_an_awaited_session_keeps_state_and_refuses_a_second_program() -> None:
    started = anyio.Event()

    async def pause() -> None:
        started.set()
        await anyio.sleep(0.05)

    with Sandbox({"host:demo": {"pause": pause}}) as sandbox:
        async with sandbox.session() as session, anyio.create_task_group() as tasks:
            await session.run("let a = 1")
            tasks.start_soon(session.run, 'a += 1; require("host:demo").pause()')
            await started.wait()
            with pytest.raises(SessionBusyError):
                await session.run("1")
        async with sandbox.session() as session:
            await session.run("let a = 1")
            assert (await session.run("a + 1")).value == 2


@pytest.mark.anyio
async def test_a_cancelled_run_leaves_the_session_usable() -> None:
    with Sandbox() as sandbox:
        async with sandbox.session() as session:
            await session.run("let a = 1")
            with anyio.move_on_after(0.1):
                await session.run("for (;;);")
            assert (await session.run("typeof a")).value == "undefined"


def test_a_closed_session_refuses_to_run(demo: Sandbox) -> None:
    session = demo.session()
    session.run_sync("1")
    session.close()
    session.close()
    with pytest.raises(SandboxClosedError, match=r"^This session is closed\.$"):
        session.run_sync("1")


def test_a_session_of_a_closed_sandbox_refuses_to_run() -> None:
    sandbox = Sandbox()
    session = sandbox.session()
    sandbox.close()
    with pytest.raises(SandboxClosedError, match=r"^This session is closed\.$"):
        session.run_sync("1")


def test_the_next_run_after_a_stuck_host_function_does_not_wait_for_it() -> None:
    leave = threading.Event()
    limits = Limits(wall_seconds=0.2)
    with (
        Sandbox({"host:demo": {"stuck": lambda: leave.wait(60)}}) as sandbox,
        sandbox.session(limits=limits) as session,
    ):
        values(session, "let a = 1")
        began = time.perf_counter()
        try:
            failure = session.run_sync('require("host:demo").stuck()').failure
            assert failure is not None
            assert failure.notes[-1] == LOST
            assert values(session, "typeof a") == ["undefined"]
            assert time.perf_counter() - began < patience(2)
        finally:
            leave.set()
