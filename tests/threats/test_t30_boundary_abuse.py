"""T30, boundary abuse: out-of-range pointers and lengths, bad frames, floods, calls after the end.

An error frame, a refusal or a trap: never a host exception, a crash or wrong bytes.
"""

from __future__ import annotations

import pytest

from threats.hostile_programs import OUTPUT_MARKER_ROOM, Contain, HostileProgram, programs_for
from threats.malicious_guest import (
    FINE,
    LIMITS,
    MEMORY_BYTES,
    OUTCOME,
    REPLY,
    REPLY_BYTES,
    REQUEST,
    SHORT,
    MaliciousGuest,
    call_with,
    keep,
    outcome,
)
from toolbridge import Limits

CALL = b'{"op":"call","module":"host:demo","function":"double","arguments":[21]}'
LAST = MEMORY_BYTES - 1
HUGE = 0xFFFFFFFF


def double(number: int) -> int:
    return 2 * number


FUNCTIONS = {"double": double}


@pytest.mark.parametrize("program", programs_for("T30"), ids=lambda program: program.name)
def test_a_program_that_abuses_the_boundary_is_contained(program: HostileProgram, contain: Contain) -> None:
    contain(program)


# ---- pointers and lengths


@pytest.mark.parametrize(
    "call",
    [
        f"(drop (call $call (i32.const {HUGE}) (i32.const 10) (i32.const 0) (i32.const 0)))",
        f"(drop (call $call (i32.const {HUGE - 15}) (i32.const 32) (i32.const 0) (i32.const 0)))",
        f"(drop (call $call (i32.const {LAST}) (i32.const 2) (i32.const 0) (i32.const 0)))",
        f"(drop (call $call (i32.const {MEMORY_BYTES + 1}) (i32.const 0) (i32.const 0) (i32.const 0)))",
        f"(drop (call $call (i32.const 0) (i32.const {len(CALL)}) (i32.const {HUGE}) (i32.const {HUGE})))",
        f"(drop (call $call (i32.const 0) (i32.const {len(CALL)}) (i32.const {LAST}) (i32.const 1000)))",
        f"(drop (call $call (i32.const 0) (i32.const {len(CALL)}) (i32.const -8) (i32.const 1000)))",
        f"(drop (call $start (i32.const {HUGE}) (i32.const 10)))",
        f"(drop (call $start (i32.const {LAST}) (i32.const 2)))",
        f"(drop (call $take (i32.const {HUGE}) (local.get $length)))",
        f"(drop (call $take (i32.const {LAST}) (local.get $length)))",
        f"(drop (call $start (i32.const 0) (i32.const 5)))"
        f"(drop (call $wait (i64.const 0) (i32.const {HUGE}) (i32.const {HUGE})))",
        f"(call $log (i32.const 1) (i32.const {HUGE}) (i32.const 1))",
        f"(call $log (i32.const 1) (i32.const 0) (i32.const {HUGE}))",
        f"(call $log (i32.const 2) (i32.const {LAST}) (i32.const 2))",
    ],
)
def test_an_address_outside_the_guests_memory_ends_the_run(call: str) -> None:
    result = MaliciousGuest(call + outcome(FINE), request=CALL).run(FUNCTIONS)
    assert result.failure is not None
    assert result.failure.kind == "protocol"
    assert "outside its memory" in result.failure.message


@pytest.mark.parametrize(
    ("pointer", "length", "kind"),
    [
        (HUGE, 10, "protocol"),
        (LAST, 2, "protocol"),
        (HUGE, HUGE, "limit"),
        (OUTCOME, HUGE, "limit"),
        (OUTCOME, 0, "protocol"),
        (0, 0, "out_of_memory"),
        (0, 25, "out_of_memory"),
    ],
)
def test_an_outcome_outside_the_guests_memory_is_a_failure(pointer: int, length: int, kind: str) -> None:
    packed = length << 32 | pointer
    result = MaliciousGuest(f"(i64.const {packed - (1 << 64) if packed >> 63 else packed})").run()
    assert result.failure is not None
    assert result.failure.kind == kind


def test_what_lies_at_the_very_end_of_memory_can_be_read_and_written() -> None:
    """The bound is exact: the tests above don't pass because everything is refused."""
    reply = b'{"ok":42}'
    body = (
        f"(memory.copy (i32.const {MEMORY_BYTES - len(CALL)}) (i32.const {REQUEST}) (i32.const {len(CALL)}))"
        f"(drop (call $call (i32.const {MEMORY_BYTES - len(CALL)}) (i32.const {len(CALL)})"
        f" (i32.const {MEMORY_BYTES - len(reply)}) (i32.const {len(reply)})))"
    )
    seen = MaliciousGuest(body + outcome(FINE), request=CALL).look(FUNCTIONS)
    assert seen.memory.endswith(reply)


def test_memory_that_has_grown_is_within_bounds() -> None:
    far = MEMORY_BYTES + 65536 - len(CALL)
    body = (
        "(drop (memory.grow (i32.const 1)))"
        f"(memory.copy (i32.const {far}) (i32.const {REQUEST}) (i32.const {len(CALL)}))"
        f"(drop (call $call (i32.const {far}) (i32.const {len(CALL)}) (i32.const {REPLY}) (i32.const {REPLY_BYTES})))"
    )
    seen = MaliciousGuest(body + outcome(FINE), request=CALL).look(FUNCTIONS)
    assert seen.memory[REPLY:].startswith(b'{"ok":42}')


def test_a_reply_is_written_nowhere_but_where_the_guest_asked() -> None:
    seen = call_with(CALL).look(FUNCTIONS)
    assert seen.reply() == b'{"ok":42}'
    expected = bytearray(MEMORY_BYTES)
    expected[REQUEST : REQUEST + len(CALL)] = CALL
    expected[OUTCOME : OUTCOME + len(FINE)] = FINE
    expected[REPLY : REPLY + 9] = b'{"ok":42}'
    expected[REQUEST + 60_000] = 9
    assert seen.memory == bytes(expected)


# ---- take and wait, out of turn


def test_a_frame_is_taken_whole_and_once_or_not_at_all() -> None:
    takes = [
        keep(0, f"(call $take (i32.const {REPLY}) (i32.sub (local.get $length) (i32.const 1)))"),
        keep(1, f"(call $take (i32.const {REPLY}) (i32.const {HUGE}))"),
        keep(2, f"(call $take (i32.const {REPLY}) (local.get $length))"),
        keep(3, f"(call $take (i32.const {REPLY}) (local.get $length))"),
    ]
    seen = MaliciousGuest("".join(takes) + outcome(FINE)).look()
    length = len(b'{"run":"frame"}')
    assert [seen.code(index) for index in range(4)] == [-1, -1, length, -1]
    assert seen.memory[REPLY:].startswith(b'{"run":"frame"}')


def test_waiting_for_nothing_is_refused_and_a_timeout_is_no_answer() -> None:
    waits = [
        keep(0, f"(call $wait (i64.const -1) (i32.const {REPLY}) (i32.const 10))"),
        keep(1, f"(call $wait (i64.const {-(2**63)}) (i32.const {HUGE}) (i32.const {HUGE}))"),
        keep(2, f"(call $wait (i64.const 1) (i32.const {HUGE}) (i32.const {HUGE}))"),
    ]
    seen = MaliciousGuest("".join(waits) + outcome(FINE)).look()
    assert [seen.code(index) for index in range(3)] == [-1, -1, 0]


def test_waiting_longer_than_the_run_may_last_ends_it_in_time() -> None:
    result = MaliciousGuest(
        f"(drop (call $wait (i64.const {2**63 - 1}) (i32.const 0) (i32.const 0)))" + outcome(FINE)
    ).run(limits=SHORT)
    assert result.failure is not None
    assert result.failure.kind == "timeout"
    assert result.usage.wall_seconds < SHORT.wall_seconds + 0.25


# ---- floods


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (f"(drop (call $call (i32.const 0) (i32.const {len(CALL)}) (i32.const {REPLY}) (i32.const 100)))", "limit"),
        ("(drop (call $call (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)))", "limit or timeout"),
        (f"(drop (call $start (i32.const 0) (i32.const {len(CALL)})))", "limit"),
        ("(drop (call $start (i32.const 0) (i32.const 3)))", "limit"),
        ("(drop (call $wait (i64.const 0) (i32.const 0) (i32.const 0)))", "timeout"),
        ("(drop (call $wait (i64.const -1) (i32.const 0) (i32.const 0)))", "timeout"),
        ("(drop (call $take (i32.const 0) (i32.const 1)))", "timeout"),
        ("(call $log (i32.const 1) (i32.const 0) (i32.const 65536))", "timeout"),
        (f"(call $log (i32.const 7) (i32.const {HUGE}) (i32.const 0))", "timeout"),
        ("(drop (call $now (i32.const 0)))", "timeout"),
        ("(drop (call $now (i32.const -1)))", "timeout"),
    ],
)
def test_a_flood_of_calls_is_ended_at_a_limit(call: str, kind: str) -> None:
    guest = MaliciousGuest(f"(loop $again {call} (br $again)) {outcome(FINE)}", request=CALL)
    result = guest.run(FUNCTIONS, SHORT)
    for _ in range(2):  # a busy machine may be late once, a run that isn't stopped is late every time
        if result.usage.wall_seconds >= SHORT.wall_seconds + 0.25:
            result = guest.run(FUNCTIONS, SHORT)
    assert result.failure is not None
    assert result.failure.kind in kind.split(" or ")
    assert result.usage.wall_seconds < SHORT.wall_seconds + 0.25
    assert len(result.calls) <= SHORT.host_calls
    assert len(result.stdout) + len(result.stderr) <= SHORT.output_bytes + OUTPUT_MARKER_ROOM


# ---- traps of WebAssembly itself


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("(unreachable)", "crashed"),
        ("(drop (i32.div_u (i32.const 1) (i32.const 0)))", "crashed"),
        ("(drop (i32.load (i32.const 0x40000000)))", "crashed"),
        ("(drop (call $down (i32.const 0)))", "limit"),
        ("(loop $again (br $again))", "timeout"),
    ],
)
def test_a_guest_that_traps_is_a_failure(body: str, kind: str) -> None:
    down = "(func $down (param i32) (result i32) (i32.add (i32.const 1) (call $down (local.get 0))))"
    result = MaliciousGuest(body + outcome(FINE), functions=down).run(limits=SHORT if kind == "timeout" else LIMITS)
    assert result.failure is not None
    assert result.failure.kind == kind


def test_memory_does_not_grow_beyond_its_limit() -> None:
    body = "(loop $again (br_if $again (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))"
    result = MaliciousGuest(body + outcome(FINE)).run()
    assert result.value == "fine"
    assert result.usage.memory_bytes <= Limits().memory_bytes
