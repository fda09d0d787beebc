"""`run_sync` begins a run on the caller's own thread; what takes time or needs its host goes on on a guest thread."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest

from growth import patience
from toolbridge import Limits, Sandbox
from toolbridge.boundary import library
from toolbridge.errors import EngineError
from toolbridge.sandbox import execution
from toolbridge.sandbox import instance as fiber_call
from toolbridge.sandbox.engine import shared_engine

# Nothing in these programs' text says that they will need their host.
SPIN = "let sum = 0; for (let i = 0; i < 3_000_000; i++) sum += i % 7; sum"
HIDDEN_CALL = 'const { where } = require("ho" + "st:demo"); where()'
HIDDEN_IMPORTS = {
    "call": (HIDDEN_CALL, "toolbridge-guest"),
    "start": ('const { add } = await import("ho" + "st:demo/async"); export default await add(1, 2)', 3),
    "wait": ('await new Promise((done) => globalThis["set" + "Timeout"](done, 1)); export default 1', 1),
    "log": ('globalThis["con" + "sole"]["log"]("text"); 1', 1),
    "now, granted": ('new globalThis["Da" + "te"]().getTime()', 5000),
    "now, from the start": ('globalThis["perf" + "ormance"].now() >= 0', True),
}


def where() -> str:
    return threading.current_thread().name


def add(a: int, b: int) -> int:
    return a + b


@pytest.fixture(scope="module")
def demo() -> Iterator[Sandbox]:
    with Sandbox({"host:demo": {"where": where, "add": add}}, clock=lambda: 5.0) as sandbox:
        yield sandbox


@pytest.fixture
def no_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ticker doesn't advance the epoch: a run moves only where it has to."""

    def stand_still(_engine: int) -> None:
        pass

    monkeypatch.setattr(library, "engine_increment_epoch", stand_still)


def is_idle() -> bool:
    return shared_engine().ticker._active == 0


@pytest.mark.usefixtures("no_ticks")
def test_a_short_program_ends_where_it_began(demo: Sandbox, moved: list[str]) -> None:
    assert demo.run_sync("[1 + 1, 'two']").value == [2, "two"]
    assert demo.run_sync("nonsense()").failure is not None
    assert demo.run_sync("1 +").failure is not None
    assert moved == []
    assert is_idle()


def test_a_program_that_computes_for_long_goes_on_elsewhere(demo: Sandbox, moved: list[str]) -> None:
    result = demo.run_sync(SPIN)
    assert result.value == 8_999_994
    assert result.usage.cpu_seconds > 0
    assert moved == ["run"]


@pytest.mark.usefixtures("no_ticks")
@pytest.mark.parametrize("name", HIDDEN_IMPORTS)
def test_a_program_goes_on_elsewhere_before_it_calls_its_host(demo: Sandbox, moved: list[str], name: str) -> None:
    program, value = HIDDEN_IMPORTS[name]
    result = demo.run_sync(program)
    assert (result.value, result.failure) == (value, None)
    assert moved == ["run"]


def test_a_program_that_names_what_it_needs_begins_elsewhere(demo: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_arguments: object) -> None:
        raise AssertionError("it was begun on the caller's thread")

    monkeypatch.setattr(fiber_call.FiberCall, "__init__", never)
    assert demo.run_sync('import { where } from "host:demo"; where()').value == "toolbridge-guest"
    assert demo.run_sync("console.log(1)").stdout == "1\n"


def test_a_program_that_is_too_long_for_the_inbox_is_taken_elsewhere(demo: Sandbox, moved: list[str]) -> None:
    assert demo.run_sync(f"'{'x' * 100_000}'.length").value == 100_000
    assert moved == ["run"]


def test_a_session_keeps_its_state_wherever_its_runs_end(demo: Sandbox) -> None:
    with demo.session() as session:
        assert session.run_sync("globalThis.count = 1").value == 1
        assert session.run_sync('import { add } from "host:demo"; count = add(count, 1)').value == 2
        assert session.run_sync(f"{SPIN}; ++count").value == 3
        assert session.run_sync("++count").value == 4
        assert session.run_sync('console.log("text"); ++count').value == 5
        assert session.run_sync('require("ho" + "st:demo").add(count, 1)').value == 6
        assert session.run_sync("count").value == 5


def test_a_session_loses_its_state_to_a_run_that_is_ended(demo: Sandbox) -> None:
    with demo.session(limits=Limits(wall_seconds=0.05)) as session:
        session.run_sync("globalThis.count = 1")
        failure = session.run_sync("for (;;);").failure
        assert failure is not None
        assert failure.kind == "timeout"
        assert session.run_sync("typeof count").value == "undefined"


def test_a_host_function_may_use_a_sandbox_itself() -> None:
    with Sandbox() as inner:

        def nested(program: str) -> Any:
            return inner.run_sync(program).value

        with Sandbox({"host:demo": {"nested": nested, "add": add}}) as outer:
            for hidden in ('"host:demo"', '"ho" + "st:demo"'):
                program = f"""
                    const {{ nested, add }} = require({hidden});
                    [nested("1 + 1"), add(1, 2), nested({SPIN!r}), add(3, 4)]
                """
                assert outer.run_sync(program).value == [2, 3, 8_999_994, 7]


def test_a_value_may_be_as_deep_as_elsewhere_however_deep_the_caller_is(demo: Sandbox) -> None:
    program = "let value = 1; for (let i = 0; i < 700; i++) value = [value]; value"

    def depth(value: Any) -> int:
        found = 0
        while type(value) is list:
            value, found = cast("Any", value[0]), found + 1
        return found

    def dive(levels: int) -> Any:
        return dive(levels - 1) if levels else demo.run_sync(program).value

    assert depth(demo.run_sync(program).value) == depth(dive(500)) == 700


# ---- what comes between


def test_ctrl_c_in_a_program_that_computes_ends_it_and_is_raised(demo: Sandbox) -> None:
    timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        demo.run_sync("for (;;);")
    timer.join()
    assert time.monotonic() - began < 0.1 + patience(0.25)
    assert demo.run_sync("1 + 1").value == 2


def test_ctrl_c_before_the_first_tick_is_raised_and_no_failure_of_the_guest(
    demo: Sandbox, moved: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    poll = library.call_future_poll
    deleted: list[int] = []
    delete = library.call_future_delete

    def interrupted(future: int) -> bool:
        signal.raise_signal(signal.SIGINT)
        return poll(future)

    def noted(future: int) -> None:
        deleted.append(future)
        delete(future)

    monkeypatch.setattr(library, "call_future_poll", interrupted)
    monkeypatch.setattr(library, "call_future_delete", noted)
    with pytest.raises(KeyboardInterrupt):
        demo.run_sync("1 + 1")
    assert len(deleted) == 1
    assert moved == []
    assert is_idle()


def test_ctrl_c_between_the_two_threads_leaves_nothing_behind(demo: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_execution: object, _on_done: object) -> None:
        raise KeyboardInterrupt

    deleted: list[int] = []
    delete = library.call_future_delete

    def noted(future: int) -> None:
        deleted.append(future)
        delete(future)

    monkeypatch.setattr(library, "call_future_delete", noted)
    monkeypatch.setattr(execution.Execution, "begin", interrupted)
    with pytest.raises(KeyboardInterrupt):
        demo.run_sync("for (;;);")
    assert len(deleted) == 1
    assert is_idle()


def test_a_guest_thread_that_cannot_be_started_is_an_error_of_the_host(
    demo: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_thread(_job: object) -> None:
        raise EngineError("start a thread for the guest", "can't start new thread")

    monkeypatch.setattr(shared_engine().threads, "submit", no_thread)
    with pytest.raises(EngineError, match="start a thread"):
        demo.run_sync("for (;;);")
    monkeypatch.undo()
    assert demo.run_sync("1 + 1").value == 2
    assert execution._active == set()


def test_closing_the_sandbox_ends_a_run_that_has_gone_on_elsewhere() -> None:
    sandbox = Sandbox()
    kinds: list[str] = []

    def run() -> None:
        failure = sandbox.run_sync("for (;;);").failure
        kinds.append(failure.kind if failure is not None else "none")

    runner = threading.Thread(target=run)
    runner.start()
    while not sandbox._runs:
        time.sleep(0.001)
    began = time.monotonic()
    sandbox.close()
    runner.join(60)
    assert kinds == ["cancelled"]
    assert time.monotonic() - began < patience(0.25)


# ---- stacks

RECURSION = (
    "let depth = 0; function down() { depth++; return down() + 1 } try { down() } catch (e) { [e.name, depth > 500] }"
)


@pytest.mark.parametrize("stack_bytes", [0, 512 * 1024])
def test_recursion_needs_nothing_of_the_callers_stack(demo: Sandbox, stack_bytes: int) -> None:
    values: list[Any] = []
    before = threading.stack_size(stack_bytes)
    try:
        thread = threading.Thread(target=lambda: values.append(demo.run_sync(RECURSION).value))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join(60)
    assert values == [["RangeError", True]]
    assert demo.run_sync(RECURSION).value == ["RangeError", True]


NEAR_THE_LIMIT = """
import sys
from toolbridge import Sandbox
sandbox = Sandbox({"host:demo": {"add": lambda a, b: a + b}})
program = 'require("ho" + "st:demo").add(1, 2)'
seen = set()
def dive(levels, run):
    return dive(levels - 1, run) if levels else run(program)
for run in (sandbox.run_sync, sandbox.session().run_sync):
    assert run(program).value == 3
    for levels in range(940, 1000):
        try:
            seen.add(dive(levels, run).value)
        except Exception:
            seen.add("too deep")
    assert run(program).value == 3
assert seen == {3, "too deep"}, seen
"""


def test_a_caller_near_pythons_recursion_limit_gets_a_result_or_an_exception() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NEAR_THE_LIMIT], timeout=60, check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


FORK = """
import os, sys
from toolbridge import Limits, Sandbox
sandbox = Sandbox(limits=Limits(wall_seconds=2))
assert sandbox.run_sync("1 + 1").value == 2
child = os.fork()
if child == 0:
    ended = sandbox.run_sync("for (;;);").failure.kind
    os._exit(0 if ended == "timeout" and sandbox.run_sync("1 + 1").value == 2 else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_after_a_fork_runs_begin_and_go_on_elsewhere() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], timeout=30, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_runs_on_many_threads_at_once_keep_apart(demo: Sandbox) -> None:
    wrong: list[Any] = []

    def work(index: int) -> None:
        for serial in range(60):
            program = (f"[{index}, {serial}]", f'require("ho" + "st:demo").add({index}, {serial})')[serial % 2]
            value = demo.run_sync(program).value
            if value != ([index, serial], index + serial)[serial % 2]:
                wrong.append((index, serial, value))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
