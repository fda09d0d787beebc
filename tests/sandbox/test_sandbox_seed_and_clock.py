"""Chance comes from the run's seed, time from the clock that the host grants."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from toolbridge import Sandbox, ToolbridgeError

CHANCE = """
    const bytes = crypto.getRandomValues(new Uint8Array(8));
    [Math.random(), Math.random(), crypto.randomUUID(), crypto.randomUUID(), Array.from(bytes)]
"""


def test_the_same_seed_gives_the_same_chance(sandbox: Sandbox) -> None:
    first = sandbox.run_sync(CHANCE, seed=bytes(32)).value
    assert first is not None
    assert sandbox.run_sync(CHANCE, seed=bytes(32)).value == first


def test_different_seeds_give_different_chance(sandbox: Sandbox) -> None:
    seeds = [bytes(32), bytes(31) + b"\x01", b"\x01" + bytes(31)]
    values = [sandbox.run_sync(CHANCE, seed=seed).value for seed in seeds]
    for position in range(5):
        assert len({str(value[position]) for value in values}) == 3


def test_runs_without_a_seed_differ(sandbox: Sandbox) -> None:
    assert len({sandbox.run_sync("crypto.randomUUID()").value for _ in range(20)}) == 20
    assert len({sandbox.run_sync("Math.random()").value for _ in range(20)}) == 20


def test_within_a_run_chance_does_not_repeat(sandbox: Sandbox) -> None:
    program = "new Set(Array.from({ length: 1000 }, () => Math.random())).size"
    assert sandbox.run_sync(program, seed=bytes(32)).value == 1000


def test_a_random_number_lies_between_zero_and_one(sandbox: Sandbox) -> None:
    program = "const all = Array.from({ length: 10000 }, Math.random); [Math.min(...all), Math.max(...all)]"
    least, most = sandbox.run_sync(program, seed=bytes(32)).value
    assert 0 <= least < 0.01
    assert 0.99 < most < 1


def test_a_random_uuid_has_its_form(sandbox: Sandbox) -> None:
    form = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert re.fullmatch(form, sandbox.run_sync("crypto.randomUUID()").value)


@pytest.mark.parametrize("length", [0, 5, 31, 33, 1000])
def test_a_seed_of_another_length_is_used_or_refused_as_misuse(sandbox: Sandbox, length: int) -> None:
    seed = bytes(length)
    try:
        result = sandbox.run_sync("Math.random()", seed=seed)
    except (ToolbridgeError, ValueError):
        return
    assert result.failure is None
    assert result.value == sandbox.run_sync("Math.random()", seed=seed).value


def test_a_sessions_runs_have_a_seed_each(sandbox: Sandbox) -> None:
    with sandbox.session() as session:
        first = session.run_sync("Math.random()", seed=bytes(32)).value
        second = session.run_sync("Math.random()", seed=bytes(32)).value
        third = session.run_sync("Math.random()").value
    assert first == second != third


def test_the_time_is_that_of_the_granted_clock() -> None:
    moment = datetime(2001, 2, 3, 4, 5, 6, 789_000, tzinfo=UTC)
    with Sandbox(clock=moment.timestamp) as sandbox:
        program = "[Date.now(), new Date().toISOString(), new Date().getTimezoneOffset(), typeof Date()]"
        expected = [moment.timestamp() * 1000, "2001-02-03T04:05:06.789Z", 0, "string"]
        assert sandbox.run_sync(program).value == expected


def test_a_clock_that_moves_is_asked_each_time() -> None:
    times = iter([100.0, 200.0])
    with Sandbox(clock=lambda: next(times)) as sandbox:
        assert sandbox.run_sync("[Date.now(), Date.now()]").value == [100_000, 200_000]


def test_without_a_granted_clock_it_is_now(sandbox: Sandbox) -> None:
    milliseconds = sandbox.run_sync("Date.now()").value
    assert abs(milliseconds / 1000 - datetime.now(UTC).timestamp()) < 60


def test_performance_now_counts_from_the_start_of_the_run(sandbox: Sandbox) -> None:
    program = """
        const first = performance.now()
        await new Promise((resolve) => setTimeout(resolve, 20))
        ;[first, performance.now() - first]
    """
    first, passed = sandbox.run_sync(program).value
    assert 0 <= first < 1000
    assert 19.9 <= passed < 1000


def test_a_clock_that_fails_ends_the_run_and_not_the_host() -> None:
    def broken() -> float:
        raise OSError("no clock")

    with Sandbox(clock=broken) as sandbox:
        failure = sandbox.run_sync("Date.now()").failure
        assert failure is not None
        assert (failure.kind, failure.message) == ("crashed", "The clock that the host grants failed: OSError.")
        assert sandbox.run_sync("1").value == 1
