"""Thousands of calls over servers that are killed, and kill themselves, at random.

Each call ends in exactly one result or one typed error, no call reaches a server twice, and nothing piles up.
"""

from __future__ import annotations

import gc
import os
import random
import signal
from collections import Counter
from pathlib import Path

import anyio
import pytest

from servers.fault_expectations import text_of
from servers.fault_servers import fault_server, manager_of
from servers.live_processes import left_after, processes, processes_by_a_word, zombies
from toolbridge.config.server_config import ServerLimits
from toolbridge.errors import (
    ServerConnectError,
    ServerDisconnectedError,
    ServerError,
    ServerProtocolError,
    ServerTimeoutError,
)
from toolbridge.servers.manager import ServerManager

STATM = Path("/proc/self/statm")
SERVERS = 6
CALLERS = 24
CALLS_PER_KILL = 80
MOST_GROWTH = 24 * 1024 * 1024
LIMITS = ServerLimits(connections=SERVERS, respawns=1_000, connect_seconds=20.0, call_seconds=10.0, close_seconds=0.5)


class Storm:
    """Callers that work through the calls, and a killer that looks for a process every so many calls."""

    def __init__(self, manager: ServerManager, word: str, calls: int) -> None:
        self._manager = manager
        self._word = word
        self._waiting = iter(range(calls))
        self.outcomes: dict[str, list[object]] = {f"call {number}": [] for number in range(calls)}
        self.kills = 0

    async def call(self) -> None:
        for number in self._waiting:
            text = f"call {number}"
            server = f"server-{number % SERVERS}"
            try:
                result = await self._manager.call(server, "faulty", {"text": text})
                self.outcomes[text].append(text_of(result))
            except Exception as error:  # what is no ServerError fails the test
                self.outcomes[text].append(error)
            if number % CALLS_PER_KILL == CALLS_PER_KILL - 1:
                self._kill()

    def _kill(self) -> None:
        if alive := list(processes(self._word)):
            os.kill(random.choice(alive), signal.SIGKILL)
            self.kills += 1


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "calls"), [("asyncio", 2_000), ("trio", 300)])
def test_every_call_has_exactly_one_outcome_whoever_is_killed(backend: str, calls: int, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    log.touch()

    async def main() -> Storm:
        with processes_by_a_word() as word:
            servers = [
                fault_server(f"server-{number}", "dies-at-random", word, env={"FAULT_LOG": str(log)})
                for number in range(SERVERS)
            ]
            async with manager_of(servers, LIMITS) as manager:
                storm = Storm(manager, word, calls)
                async with anyio.create_task_group() as tasks:
                    for _ in range(CALLERS):
                        tasks.start_soon(storm.call)
            assert await left_after(word) == {}
        return storm

    async def warm_up() -> None:
        """Imports, caches and thread pools are not growth."""
        with processes_by_a_word() as word:
            async with manager_of([fault_server("server-0", "fine", word)], LIMITS) as manager:
                await manager.call("server-0", "echo", {"text": "x"})

    anyio.run(warm_up, backend=backend)
    descriptors, memory = _open_descriptors(), _resident_bytes()
    storm = anyio.run(main, backend=backend)

    assert all(len(outcomes) == 1 for outcomes in storm.outcomes.values())
    single = {text: outcomes[0] for text, outcomes in storm.outcomes.items()}
    results = {text: outcome for text, outcome in single.items() if isinstance(outcome, str)}
    errors = {text: outcome for text, outcome in single.items() if not isinstance(outcome, str)}
    assert results == {text: text for text in results}
    assert {type(error) for error in errors.values()} <= {
        ServerDisconnectedError,
        ServerConnectError,
        ServerTimeoutError,
        ServerProtocolError,  # half an answer
    }, [error for error in errors.values() if not isinstance(error, ServerError)]
    assert storm.kills >= calls // CALLS_PER_KILL // 2
    assert len(errors) >= storm.kills // 4, "hardly anybody noticed: was anything killed?"
    assert len(results) > calls // 2

    seen = Counter(log.read_text().splitlines())
    assert [text for text, times in seen.items() if times > 1] == [], "a call was sent twice"
    assert set(results) <= set(seen)

    assert _open_descriptors() <= descriptors
    assert zombies() == 0
    assert _resident_bytes() - memory < MOST_GROWTH


def _open_descriptors() -> int:
    gc.collect()
    directory = "/proc/self/fd" if STATM.exists() else "/dev/fd"
    return len(os.listdir(directory))


def _resident_bytes() -> int:
    """Where it can be seen."""
    if not STATM.exists():
        return 0
    gc.collect()
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
