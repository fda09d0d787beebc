"""Runs that are ended in the middle: by closing, by cancelling, by Ctrl-C. At once, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.abc
import pytest

from runtime.leftovers import nothing_left
from runtime.moments import SOON, Moments, call_of, cancel_in, run_and, state_of
from runtime.worlds import check_failure, patient_runtime_of, value_of
from servers.fault_servers import FIXTURES, fault_server
from servers.live_processes import left_after, processes, processes_by_a_word
from toolbridge import ApprovalRequest, RunResult, ToolUse
from toolbridge.approval import Approval, Decision
from toolbridge.events import CallEnded, RunEnded

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


# ---- a runtime that is closed


IN_A_CALL = 'import { faulty } from "host:mcp-hung"; faulty({ text: "x" })'
IN_PARALLEL = """
    import { faulty } from "host:mcp-hung";
    import { parallel } from "host:bridge";
    parallel(Array.from({ length: 8 }, (_, n) => [faulty, { text: `${n}` }]))
"""
AWAITING = """
    import { faulty } from "host:mcp-hung/async";
    await Promise.allSettled(Array.from({ length: 8 }, (_, n) => faulty({ text: `${n}` })))
"""
COMPUTING = 'import "host:mcp-hung"; import { faulty } from "host:mcp-hung/async"; faulty({ text: "x" }); for (;;) {}'
CALLS = {"in a call": IN_A_CALL, "in parallel": IN_PARALLEL, "awaiting": AWAITING, "computing": COMPUTING}


@pytest.mark.parametrize("program", CALLS.values(), ids=CALLS)
async def test_closing_the_runtime_ends_a_program_that_is_calling(program: str, tmp_path: Path) -> None:
    moments = Moments()
    async with (
        nothing_left() as word,
        patient_runtime_of(tmp_path, fault_server("hung", "silent-at-call", word), observers=[moments]) as runtime,
    ):
        result = await run_and(runtime, program, lambda: moments.wait_for(call_of("faulty")), runtime.close)
        assert await left_after(word) == {}
    check_failure(result, "cancelled")
    assert moments.broken_promises() == []


async def test_closing_the_runtime_ends_a_program_that_is_importing(tmp_path: Path) -> None:
    moments = Moments()
    async with (
        nothing_left() as word,
        patient_runtime_of(tmp_path, fault_server("hung", "hang-at-negotiate", word), observers=[moments]) as runtime,
    ):
        result = await run_and(
            runtime, IN_A_CALL, lambda: moments.wait_for(state_of("hung", "connecting")), runtime.close
        )
    check_failure(result, "cancelled")
    assert result.calls == ()


async def test_leaving_the_runtimes_block_by_an_error_ends_its_programs(tmp_path: Path) -> None:
    moments = Moments()
    results: list[RunResult] = []

    async def leave(tasks: anyio.abc.TaskGroup, word: str) -> None:
        hung = fault_server("hung", "silent-at-call", word)
        async with patient_runtime_of(tmp_path, hung, observers=[moments]) as runtime:

            async def run() -> None:
                results.append(await runtime.run(IN_A_CALL))

            tasks.start_soon(run)
            await moments.wait_for(call_of("faulty"))
            raise ZeroDivisionError

    async with nothing_left() as word, anyio.create_task_group() as tasks:
        with anyio.fail_after(60), pytest.raises(ZeroDivisionError):
            await leave(tasks, word)
    check_failure(results[0], "cancelled")
    assert moments.broken_promises() == []


# ---- cancelling a run


@pytest.mark.parametrize("program", CALLS.values(), ids=CALLS)
async def test_a_run_that_is_cancelled_in_calls_ends_at_once_and_the_runtime_goes_on(
    program: str, tmp_path: Path
) -> None:
    moments = Moments()
    async with (
        nothing_left() as word,
        patient_runtime_of(tmp_path, fault_server("hung", "silent-at-call", word), observers=[moments]) as runtime,
    ):
        await cancel_in(runtime, program, lambda: moments.wait_for(call_of("faulty")))
        assert [end.outcome for end in moments.of(RunEnded)] == ["cancelled"]
        assert {end.outcome for end in moments.of(CallEnded)} == {"cancelled"}
        assert moments.broken_promises() == []
        after = await runtime.run('require("host:mcp-hung").echo({ text: "still here" })')
        assert len(processes(word)) == 1
    assert value_of(after) == "still here"


async def test_a_run_that_is_cancelled_while_connecting_leaves_the_server_to_others(tmp_path: Path) -> None:
    moments = Moments()
    async with (
        nothing_left() as word,
        patient_runtime_of(tmp_path, fault_server("late", "slow-start", word), observers=[moments]) as runtime,
    ):
        program = 'require("host:mcp-late").echo({ text: "x" })'
        await cancel_in(runtime, program, lambda: moments.wait_for(state_of("late", "connecting")))
        with anyio.fail_after(SOON):
            assert value_of(await runtime.run(program)) == "x"
        assert len(processes(word)) == 1
    assert moments.broken_promises() == []


async def test_a_run_that_is_cancelled_while_its_host_thinks_about_a_call_does_not_make_it(tmp_path: Path) -> None:
    asked = anyio.Event()

    async def think(use: ToolUse) -> Decision:
        asked.set()
        await anyio.sleep_forever()
        return Decision(True)

    moments = Moments()
    async with nothing_left() as word:
        server = fault_server("fine", "fine", word)
        async with patient_runtime_of(tmp_path, server, observers=[moments], can_use_tool=think) as runtime:
            await runtime.start_all()
            await runtime.reload(
                replace(runtime.config, permissions=replace(runtime.config.permissions, default="ask"))
            )
            await cancel_in(runtime, 'require("host:mcp-fine").echo({ text: "x" })', asked.wait)
    assert [(end.tool, end.outcome) for end in moments.of(CallEnded)] == [("echo", "cancelled")]
    assert moments.broken_promises() == []


async def test_a_run_that_is_cancelled_while_a_person_is_asked_for_approval_is_over(tmp_path: Path) -> None:
    asked = anyio.Event()

    class Thinking:
        async def approve(self, request: ApprovalRequest) -> Approval:
            asked.set()
            await anyio.sleep_forever()
            return Approval(True)

    async with (
        nothing_left() as word,
        patient_runtime_of(tmp_path, fault_server("fine", "fine", word), approver=Thinking()) as runtime,
    ):
        await cancel_in(runtime, 'require("host:mcp-fine").echo({ text: "x" })', asked.wait)
        assert processes(word) == {}


# ---- Ctrl-C


SCRIPT = """
import sys
import toolbridge
from toolbridge import Config, ServerConfig
from toolbridge.approval import Approval

class ApproveAll:
    async def approve(self, request):
        return Approval(True)

def tell(event):
    if type(event).__name__ == "DecisionMade":
        sys.stdout.write("calling\\n")
        sys.stdout.flush()

server = ServerConfig.stdio("hung", sys.executable, ["-S", "-E", *sys.argv[2:]])
try:
    toolbridge.run_sync(
        Config.of(server),
        'import {{ faulty }} from "host:mcp-hung"; faulty({{ text: "x" }})',
        approver=ApproveAll(), directory=sys.argv[1], pins="none", observers=[tell],
    )
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("mode", ["hang-at-call", "silent-at-call"])
async def test_an_interrupt_in_a_call_ends_the_script_and_its_server(mode: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("{{", "{").replace("}}", "}"))
    with processes_by_a_word() as word:
        words = [sys.executable, str(script), str(tmp_path / "cache"), str(FIXTURES / "fault_stdio.py"), mode, word]
        process = await anyio.open_process(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        async with process:
            assert process.stdout is not None
            assert process.stderr is not None
            with anyio.fail_after(60):
                assert await process.stdout.receive() == b"calling\n"
            os.kill(process.pid, signal.SIGINT)
            with anyio.fail_after(SOON):
                said = b"".join([chunk async for chunk in process.stdout])
                complained = b"".join([chunk async for chunk in process.stderr])
                await process.wait()
        assert (process.returncode, said, complained) == (0, b"interrupted\n", b"")
        assert await left_after(word) == {}
