"""T30, boundary abuse: a guest that runs in steps can neither keep the thread it is on, nor call anything there."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import pytest

from growth import patience
from threats.malicious_guest import FINE, LIMITS, REPLY, REQUEST, SHORT, MaliciousGuest, outcome
from toolbridge import Limits, RunResult, Sandbox
from toolbridge.boundary import imports as mailbox
from toolbridge.boundary import library
from toolbridge.boundary.imports import MAILBOX_BYTES
from toolbridge.errors import EngineError

INBOX = 70_000
REQUEST_FRAME = b'{"op":"call","module":"host:demo","function":"note","arguments":[]}'
LENGTH = len(REQUEST_FRAME)
MAILBOX = INBOX - MAILBOX_BYTES
CALLS = {
    "call": f"(drop (call $call (i32.const {REQUEST}) (i32.const {LENGTH}) (i32.const {REPLY}) (i32.const 999)))",
    "start": f"(drop (call $start (i32.const {REQUEST}) (i32.const {LENGTH})))",
    "wait": f"(drop (call $wait (i64.const 1000) (i32.const {REPLY}) (i32.const 999)))",
    "take": f"(drop (call $take (i32.const {REPLY}) (local.get $length)))",
    "log": f"(call $log (i32.const 1) (i32.const {REQUEST}) (i32.const {LENGTH}))",
    "now": "(drop (call $now (i32.const 0)))",
}
# What a guest writes into its mailbox to have the same done: operation, number, arguments.
ASKED = {
    "call": (mailbox.CALL, 0, REQUEST, LENGTH, REPLY, 999),
    "start": (mailbox.START, 0, REQUEST, LENGTH, 0, 0),
    "wait": (mailbox.WAIT, 1000, REPLY, 999, 0, 0),
    "take": (mailbox.TAKE, 0, REPLY, 1, 0, 0),
    "log": (mailbox.LOG, 0, 1, REQUEST, LENGTH, 0),
    "now": (mailbox.NOW, 0, 0, 0, 0, 0),
}
FOREVER = "(loop $again (br $again))"
RECURSION = "(func $down (param i64) (result i64) (i64.add (i64.const 1) (call $down (local.get 0))))"


async def note() -> None:
    """For guests whose calls are awaited on an event loop."""


def run_on_loop(guest: MaliciousGuest, limits: Limits) -> RunResult:
    return anyio.run(partial(guest.run_async, {"note": note}, limits))


def run_here(guest: MaliciousGuest, limits: Limits) -> RunResult:
    return guest.run({"note": lambda: None}, limits)


Runs = Callable[[MaliciousGuest, Limits], RunResult]
WAYS = [run_here, run_on_loop]


def guest_at_caller(body: str, functions: str = "") -> MaliciousGuest:
    return MaliciousGuest(body + outcome(FINE), request=REQUEST_FRAME, functions=functions, inbox=INBOX)


def asks(operation: int, number: int, *arguments: int) -> str:
    """Writes a request into the mailbox, and leaves until it is answered."""
    stores = [f"(i64.store (i32.const {MAILBOX + 16}) (i64.const {number}))"]
    stores += [f"(i32.store (i32.const {MAILBOX + 24 + 4 * i}) (i32.const {each}))" for i, each in enumerate(arguments)]
    wait = f"(loop $turn (call $leave) (br_if $turn (i32.load (i32.const {MAILBOX}))))"
    return "".join(stores) + f"(i32.store (i32.const {MAILBOX}) (i32.const {operation})) {wait}"


def on_thread(work: Callable[[], RunResult], stack_bytes: int = 0) -> RunResult:
    results: list[RunResult] = []
    before = threading.stack_size(stack_bytes)
    try:
        thread = threading.Thread(target=lambda: results.append(work()))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join(60)
    return results[0]


def kind_of(result: RunResult) -> str:
    return result.failure.kind if result.failure is not None else "ok"


@pytest.fixture
def no_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ticker doesn't advance the epoch: no guest is moved by chance."""

    def stand_still(_engine: int) -> None:
        pass

    monkeypatch.setattr(library, "engine_increment_epoch", stand_still)


@pytest.mark.usefixtures("no_ticks")
@pytest.mark.parametrize("name", CALLS)
def test_a_guest_that_calls_its_host_without_leaving_is_ended(name: str) -> None:
    noted: list[str] = []
    result = guest_at_caller(CALLS[name]).run({"note": lambda: noted.append("called")})
    assert (kind_of(result), result.calls, result.stdout, noted) == ("crashed", (), "", [])


@pytest.mark.usefixtures("no_ticks")
@pytest.mark.parametrize("name", CALLS)
def test_a_guest_that_has_left_may_not_call_its_host_either(name: str) -> None:
    noted: list[str] = []
    leave = "(call $leave) (loop $turn (br_if $turn (i32.const 0)))"
    result = guest_at_caller(leave + CALLS[name]).run({"note": lambda: noted.append("called")})
    assert (kind_of(result), result.calls, result.stdout, noted) == ("crashed", (), "", [])


@pytest.mark.parametrize("runs", WAYS)
@pytest.mark.parametrize("name", ASKED)
def test_a_guest_that_asks_by_mailbox_is_answered(name: str, runs: Runs) -> None:
    result = runs(guest_at_caller(asks(*ASKED[name])), LIMITS)
    assert (kind_of(result), result.value) == ("ok", "fine")
    assert result.stdout == (REQUEST_FRAME.decode() if name == "log" else "")
    assert len(result.calls) == (name in ("call", "start"))


WILD = {
    "no such operation": (7, 0, 0, 0, 0, 0),
    "largest operation": (0xFFFFFFFF, 0, 0, 0, 0, 0),
    "request outside of memory": (mailbox.CALL, 0, 0xFFFFFFF0, 64, REPLY, 999),
    "request that wraps around": (mailbox.CALL, 0, 1, 0xFFFFFFFF, REPLY, 999),
    "reply outside of memory": (mailbox.CALL, 0, REQUEST, LENGTH, 0xFFFFFFF0, 0xFFFFFFFF),
    "start outside of memory": (mailbox.START, 0, 0x7FFFFFFF, 10, 0, 0),
    "wait for ever": (mailbox.WAIT, -1, REPLY, 999, 0, 0),
    "wait for longer than the run": (mailbox.WAIT, 2**62, REPLY, 999, 0, 0),
    "take outside of memory": (mailbox.TAKE, 0, 0xFFFFFFFF, 0, 0, 0),
    "log outside of memory": (mailbox.LOG, 0, 1, 0xFFFFFFF0, 64, 0),
    "no such clock": (mailbox.NOW, 0, 0xFFFFFFFF, 0, 0, 0),
}


@pytest.mark.parametrize("runs", WAYS)
@pytest.mark.parametrize("name", WILD)
def test_wild_requests_end_the_guest_or_are_refused(name: str, runs: Runs) -> None:
    began = time.monotonic()
    result = runs(guest_at_caller(asks(*WILD[name])), SHORT)
    assert kind_of(result) in ("ok", "protocol", "timeout")
    if "outside" in name and "take" not in name:
        assert kind_of(result) == "protocol"
    if "operation" in name:
        assert kind_of(result) == "protocol"
    assert time.monotonic() - began < SHORT.wall_seconds + patience(1)
    assert guest_at_caller("").run().value == "fine"


@pytest.mark.parametrize("runs", WAYS)
def test_a_guest_that_asks_for_ever_is_ended_at_its_limits(runs: Runs) -> None:
    result = runs(guest_at_caller(f"(loop $more {asks(*ASKED['call'])} (br $more))"), SHORT)
    assert kind_of(result) == "limit"
    assert len(result.calls) == SHORT.host_calls


@pytest.mark.usefixtures("no_ticks")
@pytest.mark.parametrize("name", CALLS)
def test_a_guest_inside_another_runs_host_function_does_not_reach_that_run(name: str) -> None:
    noted: list[str] = []

    def inner() -> str:
        return kind_of(guest_at_caller(CALLS[name]).run({"note": lambda: noted.append("inner")}))

    with Sandbox({"host:demo": {"inner": inner, "note": lambda: noted.append("outer")}}) as sandbox:
        result = sandbox.run_sync('import { inner } from "host:demo"; inner()')
    assert (result.value, result.stdout, noted) == ("crashed", "", [])
    assert [call.function for call in result.calls] == ["inner"]


def test_a_guest_that_never_ends_is_moved_and_ended_in_time() -> None:
    began = time.monotonic()
    result = guest_at_caller(FOREVER).run(limits=SHORT)
    assert kind_of(result) == "timeout"
    assert time.monotonic() - began < SHORT.wall_seconds + patience(0.25)


def test_a_guest_that_leaves_again_and_again_disturbs_nobody() -> None:
    again = "(loop $again (call $leave) (br $again))"
    results: list[RunResult] = []
    spammer = threading.Thread(target=lambda: results.append(guest_at_caller(again).run(limits=SHORT)))
    spammer.start()
    with Sandbox() as sandbox:
        while spammer.is_alive():
            result = sandbox.run_sync("let sum = 0; for (let i = 0; i < 1e5; i++) sum += i; sum")
            assert (result.value, kind_of(result)) == (4999950000, "ok")
    assert [kind_of(result) for result in results] == ["timeout"]


@pytest.mark.parametrize("stack_bytes", [0, 512 * 1024])
def test_recursion_without_end_is_a_limit_and_no_crash(stack_bytes: int) -> None:
    guest = guest_at_caller("(drop (call $down (i64.const 0)))", RECURSION)
    assert kind_of(on_thread(lambda: guest.run(limits=LIMITS), stack_bytes)) == "limit"
    assert kind_of(guest.run(limits=LIMITS)) == "limit"


@pytest.mark.parametrize(
    "body",
    ["unreachable", "(drop (i32.load (i32.const -4)))", "(drop (i32.div_u (i32.const 1) (i32.const 0)))"],
    ids=["unreachable", "memory", "division"],
)
def test_a_trap_on_the_callers_thread_ends_the_guest_only(body: str) -> None:
    assert kind_of(guest_at_caller(body).run()) in ("crashed", "limit")
    assert guest_at_caller("").run().value == "fine"


@pytest.mark.parametrize("inbox", [2 * 65536 - 4095, 0x7FFFFFFF, 0xFFFFFFFF])
def test_an_inbox_outside_of_memory_is_refused(inbox: int) -> None:
    guest = MaliciousGuest(outcome(FINE), inbox=inbox)
    with pytest.raises(EngineError, match="inbox lies outside its memory"):
        guest.run()


def test_no_python_code_runs_on_the_stack_of_a_guest_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even for `leave`: a signal handler or a tracer could raise there, and nobody would get to know."""
    poll = library.call_future_poll
    entered: list[str] = []

    def trace(frame: Any, event: str, _argument: Any) -> None:
        if event == "call":
            entered.append(frame.f_code.co_name)

    def watched(future: int) -> bool:
        sys.setprofile(trace)
        try:
            return poll(future)
        finally:
            sys.setprofile(None)

    monkeypatch.setattr(library, "call_future_poll", watched)
    guest = guest_at_caller(asks(*ASKED["log"]))
    assert guest.run().stdout == REQUEST_FRAME.decode()
    assert entered == []
