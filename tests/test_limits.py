"""Limits: every one finite, each out-of-range value refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from cases import each
from toolbridge import Limits
from toolbridge.errors import LimitsError
from toolbridge.limits import LEAST_MEMORY, LEAST_STACK, MOST_MEMORY, MOST_STACK

MIB = 2**20
SECONDS = ["wall_seconds", "cpu_seconds", "call_seconds", "ask_seconds"]
COUNTS = [
    *("memory_bytes", "host_calls", "calls_in_flight", "frame_bytes", "result_bytes", "handle_bytes"),
    *("output_bytes", "stack_bytes"),
]


def test_the_default_limits_are_these() -> None:
    assert Limits() == Limits(
        wall_seconds=30.0,
        cpu_seconds=10.0,
        memory_bytes=64 * MIB,
        host_calls=10_000,
        calls_in_flight=64,
        call_seconds=30.0,
        ask_seconds=300.0,
        frame_bytes=8 * MIB,
        result_bytes=1 * MIB,
        handle_bytes=64 * MIB,
        output_bytes=1 * MIB,
        stack_bytes=1 * MIB,
    )


@each("name", SECONDS + COUNTS)
@each("value", [0, -1, 2**60])
def test_a_limit_that_is_not_positive_and_finite_is_refused(name: str, value: int) -> None:
    with pytest.raises(LimitsError, match=f"^Limits.{name} is {value}: expected a positive, finite number$") as caught:
        Limits().with_(**{name: value})
    assert caught.value.name == name


@each("name", SECONDS)
@each("value", [float("inf"), float("nan"), -0.0])
def test_seconds_that_are_not_finite_are_refused(name: str, value: float) -> None:
    with pytest.raises(LimitsError, match=r"expected a positive, finite number$"):
        Limits().with_(**{name: value})


@each("name", SECONDS)
@each("value", ["30", None, True])
def test_seconds_that_are_no_number_are_refused(name: str, value: Any) -> None:
    with pytest.raises(LimitsError, match=f"^Limits.{name} is {value!r}: expected a number$"):
        Limits().with_(**{name: value})


@each("name", COUNTS)
@each("value", [1.5, "64", None, True])
def test_a_count_that_is_no_whole_number_is_refused(name: str, value: Any) -> None:
    with pytest.raises(LimitsError, match=f"^Limits.{name} is {value!r}: expected a whole number$"):
        Limits().with_(**{name: value})


@pytest.mark.parametrize("value", [LEAST_MEMORY - 1, MOST_MEMORY + 1])
def test_memory_outside_what_an_instance_can_have_is_refused(value: int) -> None:
    with pytest.raises(LimitsError, match=f"^Limits.memory_bytes is {value}: expected 8388608 to 4294901760 bytes$"):
        Limits(memory_bytes=value)


@pytest.mark.parametrize("value", [LEAST_STACK - 1, MOST_STACK + 1])
def test_a_stack_outside_what_threads_are_sized_for_is_refused(value: int) -> None:
    with pytest.raises(LimitsError, match=f"^Limits.stack_bytes is {value}: expected 65536 to 2097152 bytes$"):
        Limits(stack_bytes=value)


def test_the_ends_of_the_ranges_are_allowed() -> None:
    least = Limits(memory_bytes=LEAST_MEMORY, stack_bytes=LEAST_STACK)
    most = Limits(memory_bytes=MOST_MEMORY, stack_bytes=MOST_STACK)
    assert (least.memory_bytes, least.stack_bytes) == (8 * MIB, 64 * 1024)
    assert (most.memory_bytes, most.stack_bytes) == (4096 * MIB - 65536, 2 * MIB)


def test_a_copy_has_some_limits_changed_and_the_original_none() -> None:
    original = Limits()
    assert original.with_(wall_seconds=1, host_calls=5) == Limits(wall_seconds=1, host_calls=5)
    assert original == Limits()


def test_limits_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Limits().wall_seconds = 1  # pyright: ignore[reportAttributeAccessIssue]


def test_an_unknown_limit_is_refused() -> None:
    with pytest.raises(LimitsError, match="wall_secnods"):
        Limits().with_(wall_secnods=1)


def test_a_limits_error_is_also_a_value_error() -> None:
    with pytest.raises(ValueError, match="host_calls"):
        Limits(host_calls=0)


@pytest.mark.parametrize("memory_bytes", [LEAST_MEMORY, MOST_MEMORY])
def test_a_guest_runs_with_the_least_and_the_most_memory(memory_bytes: int) -> None:
    from toolbridge import Sandbox

    with Sandbox(limits=Limits(memory_bytes=memory_bytes)) as sandbox:
        assert sandbox.run_sync("1 + 1").value == 2
