"""T30, boundary abuse: the host's side of every import, called with anything, on a real instance's memory.

The imports are called as Wasmtime calls them, with the arguments in raw slots: they answer or trap, and never raise.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from threats.malicious_guest import FINE, MEMORY_BYTES, MaliciousGuest, outcome
from toolbridge import Limits
from toolbridge.boundary import imports, library
from toolbridge.boundary.host_call import Deliver, HostSide, PendingCall, Reply
from toolbridge.boundary.imports import set_current_run
from toolbridge.boundary.run_state import RunState
from toolbridge.boundary.run_time import Ticks
from toolbridge.sandbox.instance import Instance
from toolbridge.sandbox.sandbox import host_modules

SLOT = 4
HUGE = 0xFFFFFFFF
CALL = b'{"op":"call","module":"host:demo","function":"double","arguments":[21]}'
FUNCTIONS = {item.name: imports.import_callback(item) for item in imports.IMPORTS}

fuzzing = settings(max_examples=200, derandomize=True, deadline=None, database=None)


def insert(at: int, piece: bytes) -> bytes:
    return CALL[:at] + piece + CALL[at:]


# What is near an edge is likelier to be wrong than what is anywhere.
words = st.one_of(
    st.integers(0, 300),
    st.integers(MEMORY_BYTES - 300, MEMORY_BYTES + 300),
    st.integers(HUGE - 300, HUGE),
    st.integers(2**31 - 300, 2**31 + 300),
    st.integers(0, HUGE),
)
places = st.tuples(words, words)
requests = st.one_of(
    st.binary(max_size=200),
    st.sampled_from([CALL, CALL.replace(b"double", b"fail"), b'{"op":"import","module":"host:demo"}']),
    st.builds(insert, st.integers(0, len(CALL)), st.binary(max_size=4)),
)


class InstantScheduler:
    """Performs a call when it is started: its reply is there at once, and nothing runs elsewhere."""

    def start(self, call: PendingCall, deliver: Deliver) -> None:
        deliver(call, Reply(b'{"ok":1}'))

    def start_awaiting(self, call: PendingCall, value: Any, deliver: Deliver) -> None:
        deliver(call, Reply(b'{"ok":1}'))


def fail() -> None:
    raise RuntimeError("a host function fails")


def new_state(instance: Instance, limits: Limits | None = None, calls: list[Any] | None = None) -> RunState:
    def double(*numbers: Any) -> Any:
        if calls is not None:
            calls.append(numbers)
        return numbers * 2

    state = RunState(
        limits=limits or Limits(wall_seconds=20.0),
        host=HostSide(host_modules({"host:demo": {"double": double, "fail": fail}})),
        scheduler=InstantScheduler(),
        ticks=Ticks(0.005),
        clock=lambda: 1.5,
        frame=b"held frame",
    )
    state.memory = instance.memory
    return state


@pytest.fixture(scope="module")
def instance() -> Iterator[Instance]:
    _, instance = MaliciousGuest(outcome(FINE)).new_instance()
    yield instance
    instance.close()


def call_import(state: RunState, name: bytes, *arguments: int) -> tuple[bool, int]:
    """Calls an import on this thread: whether it trapped, and its answer."""
    slots = (ctypes.c_uint32 * (SLOT * 4))()
    for index, argument in enumerate(arguments):
        slots[SLOT * index] = argument & HUGE
        slots[SLOT * index + 1] = argument >> 32 & HUGE
    set_current_run(state)
    try:
        trap = FUNCTIONS[name](0, 0, slots, len(arguments))
    finally:
        set_current_run(None)
    if trap:
        library.trap_delete(trap)
    return bool(trap), ctypes.c_int32(slots[0]).value


def check_ending(state: RunState, trapped: bool) -> None:
    """A trap has a reason, and the reason is the guest's fault, not the host's."""
    assert trapped == (state.ending is not None)
    assert state.ending is None or state.ending.kind in {"protocol", "limit", "timeout"}, state.ending


@fuzzing
@given(request=requests, source=places, target=places)
@example(request=CALL, source=(0, len(CALL)), target=(MEMORY_BYTES - 14, 14))
@example(request=CALL, source=(HUGE, HUGE), target=(HUGE, HUGE))
def test_call_answers_or_traps_and_writes_within_the_replys_bounds(
    instance: Instance, request: bytes, source: tuple[int, int], target: tuple[int, int]
) -> None:
    (at, length), (reply, capacity) = source, target
    state = new_state(instance)
    instance.memory.write(0, bytes(MEMORY_BYTES))
    instance.memory.write(min(at, MEMORY_BYTES - len(request)), request)
    before = instance.memory.read(0, MEMORY_BYTES)
    trapped, answer = call_import(state, b"call", at, length, reply, capacity)
    check_ending(state, trapped)
    after = instance.memory.read(0, MEMORY_BYTES)
    written = answer if not trapped and answer <= capacity else 0
    assert after[:reply] == before[:reply]
    assert after[reply + written :] == before[reply + written :]
    assert not written or after[reply : reply + 1] == b"{"


@fuzzing
@given(request=requests, source=places, microseconds=st.integers(-(2**63), 1000), target=places)
def test_start_and_wait_answer_or_trap(
    instance: Instance, request: bytes, source: tuple[int, int], microseconds: int, target: tuple[int, int]
) -> None:
    (at, length), (reply, capacity) = source, target
    state = new_state(instance)
    instance.memory.write(min(at, MEMORY_BYTES - len(request)), request)
    trapped, call = call_import(state, b"start", at, length)
    check_ending(state, trapped)
    if trapped:
        return
    assert call in {1, -1}
    trapped, answer = call_import(state, b"wait", microseconds, reply, capacity)
    check_ending(state, trapped)
    if not trapped and 0 < answer <= capacity:
        assert instance.memory.read(reply, answer).startswith(b'{"id":1,')


@fuzzing
@given(at=words, length=words)
def test_take_gives_the_held_frame_or_nothing(instance: Instance, at: int, length: int) -> None:
    state = new_state(instance)
    trapped, answer = call_import(state, b"take", at, length)
    check_ending(state, trapped)
    if not trapped:
        assert answer == (10 if length == 10 else -1)
        assert length != 10 or instance.memory.read(at, 10) == b"held frame"


@fuzzing
@given(stream=words, texts=st.lists(st.tuples(words, words), max_size=5))
def test_log_keeps_no_more_than_the_limit(instance: Instance, stream: int, texts: list[tuple[int, int]]) -> None:
    state = new_state(instance, Limits(output_bytes=500))
    for at, length in texts:
        trapped, _ = call_import(state, b"log", stream, at, length)
        check_ending(state, trapped)
        if trapped:
            break
    kept = sum(map(len, state.output._kept.values()))
    assert kept <= 500
    assert len(state.output.text(1)) + len(state.output.text(2)) <= 500 + 100


@fuzzing
@given(clock=words)
def test_now_tells_the_granted_clock_or_the_time_since_the_run_began(instance: Instance, clock: int) -> None:
    state = new_state(instance)
    slots = (ctypes.c_uint32 * SLOT)(clock)
    set_current_run(state)
    assert FUNCTIONS[b"now"](0, 0, slots, 1) == 0
    set_current_run(None)
    nanoseconds = slots[0] | slots[1] << 32
    assert nanoseconds == 1_500_000_000 if clock == 0 else nanoseconds < 60e9


# ---- after the end


@pytest.mark.parametrize("name", sorted(FUNCTIONS), ids=bytes.decode)
def test_an_import_that_is_called_without_a_run_traps(name: bytes) -> None:
    set_current_run(None)
    trap = FUNCTIONS[name](0, 0, (ctypes.c_uint32 * 64)(), 4)
    assert trap
    library.trap_delete(trap)


@pytest.mark.parametrize("name", [b"call", b"start"], ids=bytes.decode)
def test_a_run_that_was_ended_makes_no_further_call(instance: Instance, name: bytes) -> None:
    """The host no longer wants what the guest is doing: nothing more of it may take effect."""
    calls: list[Any] = []
    state = new_state(instance, calls=calls)
    instance.memory.write(0, CALL)
    state.cancel()
    trapped, _ = call_import(state, name, 0, len(CALL), 1000, 100)
    assert (trapped, calls, state.pending.unfinished()) == (True, [], [])


@pytest.mark.parametrize("name", [b"call", b"start"], ids=bytes.decode)
def test_a_run_whose_time_is_up_makes_no_further_call(instance: Instance, name: bytes) -> None:
    calls: list[Any] = []
    state = new_state(instance, calls=calls)
    instance.memory.write(0, CALL)
    state.deadline = state.began
    trapped, _ = call_import(state, name, 0, len(CALL), 1000, 100)
    assert (trapped, calls, state.pending.unfinished()) == (True, [], [])


def test_an_import_whose_instance_is_gone_traps(instance: Instance) -> None:
    state = new_state(instance)
    del state.memory
    for name, arguments in ((b"call", (0, 5, 0, 0)), (b"start", (0, 5)), (b"take", (0, 10)), (b"log", (1, 0, 5))):
        assert call_import(state, name, *arguments)[0]
