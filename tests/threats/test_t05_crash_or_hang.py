"""T5, crash or hang: every wait for a server ends in time and in a typed error, and a dead server is started again.

fixtures/servers/fault_stdio.py has the servers; tests/servers/stdio/test_launch_faults.py tries all of their modes.
"""

from __future__ import annotations

import time
from typing import Any

import anyio
import pytest

from growth import patience
from servers.fault_expectations import text_of
from servers.fault_servers import fault_server, manager_of
from servers.live_processes import left_after, processes, processes_by_a_word
from toolbridge import Limits, Sandbox
from toolbridge.config.server_config import ServerLimits
from toolbridge.errors import ServerDisconnectedError, ServerRespawnError, ServerTimeoutError

LIMITS = ServerLimits(connect_seconds=1.5, call_seconds=0.5, close_seconds=0.2)
PATIENT = ServerLimits(connect_seconds=20.0, call_seconds=20.0, close_seconds=0.2)
MOST_LATENESS = 1.0


@pytest.mark.parametrize("mode", ["hang-at-start", "hang-at-negotiate", "hang-at-list", "second-page-hangs"])
def test_connecting_and_listing_time_out(mode: str) -> None:
    async def main() -> None:
        with processes_by_a_word() as word:
            async with manager_of([fault_server("hung", mode, word)], LIMITS) as manager:
                began = time.monotonic()
                with anyio.fail_after(60), pytest.raises(ServerTimeoutError, match=r"'hung'.* 1\.5 s"):
                    await manager.connect("hung")
                assert time.monotonic() - began < LIMITS.connect_seconds + patience(MOST_LATENESS)
                assert "1.5 s" in manager.status("hung").last_error
            assert await left_after(word) == {}

    anyio.run(main)


@pytest.mark.parametrize("mode", ["hang-at-call", "silent-at-call", "endless-log-flood"])
def test_a_call_times_out(mode: str) -> None:
    async def main() -> None:
        with processes_by_a_word() as word:
            server = fault_server("hung", mode, word, connect_timeout=20.0)
            async with manager_of([server], LIMITS) as manager:
                await manager.connect("hung")
                began = time.monotonic()
                with anyio.fail_after(60), pytest.raises(ServerTimeoutError, match=r"'hung'.*'faulty'.* 0\.5 s"):
                    await manager.call("hung", "faulty", {"text": "x"})
                assert time.monotonic() - began < LIMITS.call_seconds + patience(MOST_LATENESS)
            assert await left_after(word) == {}

    anyio.run(main)


@pytest.mark.parametrize("mode", ["exit-at-call", "fail-at-call", "kill-at-call"])
def test_a_call_that_a_server_dies_of_fails_at_once_and_the_next_call_starts_it_again(mode: str) -> None:
    async def main() -> None:
        with processes_by_a_word() as word:
            async with manager_of([fault_server("mortal", mode, word)], PATIENT) as manager:
                await manager.connect("mortal")
                (before,) = processes(word)
                began = time.monotonic()
                with pytest.raises(ServerDisconnectedError, match=r"'mortal'.*'faulty'"):
                    await manager.call("mortal", "faulty", {"text": "x"})
                assert time.monotonic() - began < patience(5.0), "it waited for the timeout"
                assert text_of(await manager.call("mortal", "echo", {"text": "y"})) == "y"
                (after,) = processes(word)
                assert after != before
                assert manager.status("mortal").state == "connected"

    anyio.run(main)


@pytest.mark.parametrize("era", [(), ("--modern",)], ids=["legacy", "modern"])
@pytest.mark.parametrize("mode", ["hang-at-call", "endless-log-flood"])
def test_a_server_that_is_stuck_for_good_is_given_up_and_started_again(mode: str, era: tuple[str, ...]) -> None:
    async def main() -> None:
        with processes_by_a_word() as word:
            server = fault_server("stuck", mode, *era, word, connect_timeout=20.0)
            async with manager_of([server], LIMITS) as manager:
                await manager.connect("stuck")
                (before,) = processes(word)
                with pytest.raises(ServerTimeoutError):
                    await manager.call("stuck", "faulty", {"text": "x"})
                with anyio.fail_after(60):
                    while True:
                        try:
                            result = await manager.call("stuck", "echo", {"text": "y"})
                            break
                        except (ServerTimeoutError, ServerDisconnectedError):
                            continue
                assert text_of(result) == "y"
                assert before not in processes(word)

    anyio.run(main)


def test_a_server_that_is_only_slow_is_not_given_up() -> None:
    async def main() -> None:
        with processes_by_a_word() as word:
            server = fault_server("slow", "silent-at-call", word, connect_timeout=20.0)
            async with manager_of([server], LIMITS) as manager:
                await manager.connect("slow")
                for _ in range(3):
                    with pytest.raises(ServerTimeoutError):
                        await manager.call("slow", "faulty", {"text": "x"})
                await anyio.sleep(2.5)  # longer than it takes to find a server dead
                assert manager.status("slow").respawns == 0
                assert text_of(await manager.call("slow", "echo", {"text": "y"})) == "y"
                assert manager.status("slow").respawns == 0

    anyio.run(main)


def test_callers_that_find_a_server_dead_at_the_same_time_all_get_their_answers_from_one_new_process() -> None:
    async def main() -> None:
        answers: list[str] = []

        with processes_by_a_word() as word:
            async with manager_of([fault_server("mortal", "kill-at-call", word)], PATIENT) as manager:
                with pytest.raises(ServerDisconnectedError):
                    await manager.call("mortal", "faulty", {"text": "x"})

                async def call(number: int) -> None:
                    answers.append(text_of(await manager.call("mortal", "echo", {"text": str(number)})))

                with anyio.fail_after(60):
                    async with anyio.create_task_group() as tasks:
                        for number in range(10):
                            tasks.start_soon(call, number)
                assert sorted(answers) == [str(number) for number in range(10)]
                assert len(processes(word)) == 1

    anyio.run(main)


def test_the_fourth_respawn_is_refused() -> None:
    async def main() -> None:
        with processes_by_a_word() as word:
            servers = [fault_server("mortal", "kill-at-call", word), fault_server("fine", "fine", word)]
            async with manager_of(servers, PATIENT) as manager:
                for _ in range(1 + PATIENT.respawns):
                    with pytest.raises(ServerDisconnectedError):
                        await manager.call("mortal", "faulty", {"text": "x"})
                with pytest.raises(ServerRespawnError, match=r"'mortal'.*4 times.*SIGKILL"):
                    await manager.call("mortal", "echo", {"text": "x"})
                assert processes(word) == {}
                assert manager.status("mortal").state == "error"
                assert text_of(await manager.call("fine", "echo", {"text": "y"})) == "y"

    anyio.run(main)


def test_a_host_call_that_a_server_blocks_ends_at_the_runs_deadline() -> None:
    program = 'import { call } from "host:servers"; call("faulty")'
    limits = Limits(wall_seconds=1.0)

    async def main() -> None:
        with processes_by_a_word() as word:
            async with manager_of([fault_server("hung", "hang-at-call", word)], PATIENT) as manager:

                async def call(tool: str) -> dict[str, Any]:
                    return await manager.call("hung", tool, {"text": "x"})

                with Sandbox(modules={"host:servers": {"call": call}}) as sandbox:
                    await manager.connect("hung")
                    began = time.monotonic()
                    result = await sandbox.run(program, limits=limits)
                    took = time.monotonic() - began
            assert result.failure is not None
            assert result.failure.kind == "timeout"
            assert took < limits.wall_seconds + patience(MOST_LATENESS)

    anyio.run(main)
