"""T5, crash or hang, as a program meets it: every wait ends in time and in an error that it can catch.

tests/runtime/test_faults.py has what else may go wrong in the middle of a program.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from growth import patience
from runtime.worlds import runtime_of
from servers.fault_servers import fault_server
from servers.live_processes import left_after, processes, processes_by_a_word
from toolbridge import Config, Limits, RunResult
from toolbridge.config.server_config import ServerLimits

pytestmark = pytest.mark.anyio

SHORT = ServerLimits(connect_seconds=0.8, call_seconds=0.5, close_seconds=0.2)
PATIENT = ServerLimits(connect_seconds=20.0, call_seconds=20.0, close_seconds=0.2)
MOST_LATENESS = 1.0

CATCH = """
    const caught = (call) => {
      try { return call(); } catch (error) { return [error.name, error.server, error.tool]; }
    };
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Timed:
    """A run, and how long it took."""

    def __init__(self, result: RunResult, seconds: float) -> None:
        self.result = result
        self.seconds = seconds

    @property
    def value(self) -> Any:
        assert self.result.failure is None, str(self.result.failure)
        return self.result.value


async def run(
    directory: Path,
    mode: str,
    program: str,
    servers: ServerLimits,
    *,
    connect_first: bool = True,
    limits: Limits | None = None,
) -> Timed:
    """Runs a program with one server that has this fault; nothing of it may be left."""
    with processes_by_a_word() as word:
        server = fault_server("faulted", mode, word, connect_timeout=20.0 if connect_first else None)
        config = Config.of(server, limits=servers)
        async with runtime_of(directory, config=config, pins="none") as runtime:
            if connect_first:
                await runtime.start_all()
            began = time.monotonic()
            with anyio.fail_after(60):
                result = await runtime.run(program, limits=limits)
            seconds = time.monotonic() - began
        assert await left_after(word) == {}
    return Timed(result, seconds)


@pytest.mark.parametrize("mode", ["hang-at-start", "hang-at-negotiate", "hang-at-list"])
async def test_an_import_times_out_with_its_server(mode: str, tmp_path: Path) -> None:
    program = 'import { echo } from "host:mcp-faulted"; echo({ text: "x" })'
    timed = await run(tmp_path, mode, program, SHORT, connect_first=False)
    assert timed.result.failure is not None
    assert "'faulted'" in timed.result.failure.message
    assert "0.8 s" in timed.result.failure.message
    assert timed.seconds < SHORT.connect_seconds + patience(MOST_LATENESS)
    assert timed.result.calls == ()


@pytest.mark.parametrize("mode", ["hang-at-call", "silent-at-call"])
async def test_a_call_times_out_and_the_program_goes_on(mode: str, tmp_path: Path) -> None:
    program = f'import {{ faulty }} from "host:mcp-faulted"; {CATCH} caught(() => faulty({{ text: "x" }}))'
    timed = await run(tmp_path, mode, program, SHORT)
    assert timed.value == ["ToolTimeoutError", "faulted", "faulty"]
    assert timed.seconds < SHORT.call_seconds + patience(MOST_LATENESS)


async def test_the_call_after_a_crash_is_answered_by_a_new_process(tmp_path: Path) -> None:
    program = f"""
        import {{ faulty, echo }} from "host:mcp-faulted";
        {CATCH}
        [caught(() => faulty({{ text: "x" }})), echo({{ text: "y" }})]
    """
    timed = await run(tmp_path, "kill-at-call", program, PATIENT)
    assert timed.value == [["ToolDisconnectedError", "faulted", "faulty"], "y"]


async def test_the_fourth_respawn_is_refused_to_the_program_too(tmp_path: Path) -> None:
    program = """
        import { faulty, echo } from "host:mcp-faulted";
        for (let n = 0; n < 4; n++) { try { faulty({ text: "x" }); } catch {} }
        try { echo({ text: "y" }); } catch (error) { [error.name, error.message] }
    """
    with processes_by_a_word() as word:
        config = Config.of(fault_server("faulted", "kill-at-call", word), limits=PATIENT)
        async with runtime_of(tmp_path, config=config, pins="none") as runtime:
            with anyio.fail_after(60):
                result = await runtime.run(program)
            assert processes(word) == {}
    assert result.failure is None
    name, message = result.value
    assert name == "ToolDisconnectedError"
    assert "4 times" in message


@pytest.mark.parametrize(
    ("mode", "connect_first"),
    [("hang-at-call", True), ("silent-at-call", True), ("hang-at-negotiate", False)],
    ids=["hung in a call", "silent in a call", "hung in the import"],
)
async def test_whatever_a_server_blocks_ends_at_the_runs_deadline(
    mode: str, connect_first: bool, tmp_path: Path
) -> None:
    limits = Limits(wall_seconds=0.7)
    program = 'import { faulty } from "host:mcp-faulted"; faulty({ text: "x" })'
    timed = await run(tmp_path, mode, program, PATIENT, connect_first=connect_first, limits=limits)
    assert timed.result.failure is not None
    # The call is given the time that the run has left: which of the two ends first is a matter of microseconds.
    assert timed.result.failure.kind == "timeout" or "ToolTimeoutError" in timed.result.failure.message
    assert timed.seconds < limits.wall_seconds + MOST_LATENESS
