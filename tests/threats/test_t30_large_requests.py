"""T30, boundary abuse by size: a request that is too large is refused before it is read, and reaches no function."""

from __future__ import annotations

from typing import Any

import pytest

from threats.malicious_guest import FINE, MaliciousGuest, outcome
from toolbridge import Limits, Sandbox

LIMITS = Limits(frame_bytes=64 * 1024, wall_seconds=10)


class Received:
    """A host function, and how much it was given."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def take(self, text: Any = "") -> int:
        self.sizes.append(len(str(text)))
        return len(str(text))


@pytest.mark.parametrize("module", ["host:demo", "host:demo/async"])
@pytest.mark.parametrize("length", [65_536, 100_000, 1_000_000])
def test_a_call_with_more_than_a_frame_reaches_no_function(module: str, length: int) -> None:
    received = Received()
    program = f"""
        const {{ take }} = require({module!r});
        const seen = [];
        try {{ await take("x".repeat({length})); }} catch (error) {{ seen.push(error.name); }}
        seen.push(await take("small"));
        seen
    """
    with Sandbox({"host:demo": {"take": received.take}}, limits=LIMITS) as sandbox:
        result = sandbox.run_sync(program)
    assert result.failure is None, str(result.failure)
    assert result.value == ["ToolLimitError", 5]
    assert received.sizes == [5]


@pytest.mark.parametrize("name", ["call", "start"])
def test_a_guest_that_hands_over_all_of_its_memory_is_answered_with_an_error(name: str) -> None:
    """Not read, not copied: 64 KiB is what may be asked for, and it asks for megabytes."""
    received = Received()
    whole = "(i32.const 0) (i32.const 1048576)"
    calls = {
        "call": f"(drop (call $call {whole} (i32.const 0) (i32.const 0)))",
        "start": f"(drop (call $start {whole}))",
    }
    grown = "(drop (memory.grow (i32.const 64)))"
    guest = MaliciousGuest(grown + calls[name] * 100 + outcome(FINE))
    result = guest.run({"take": received.take}, limits=LIMITS)
    assert result.failure is None, str(result.failure)
    assert received.sizes == []


@pytest.mark.parametrize("length", [100_000, 10_000_000])
def test_a_reply_that_is_too_large_is_an_error_and_not_delivered(length: int) -> None:
    with Sandbox({"host:demo": {"give": lambda: "y" * length}}, limits=LIMITS) as sandbox:
        result = sandbox.run_sync(
            'import { give } from "host:demo"; let name; try { give() } catch (error) { name = error.name } name'
        )
    assert result.value == "ToolLimitError"
