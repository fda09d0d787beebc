"""A stdio server with any fault: it ends in time, in a typed error or a right answer, and harms nobody else.

The faults run several at a time, once; each test then looks at what became of one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from servers.fault_checks import check_run
from servers.fault_expectations import Fault
from servers.fault_run import HEALTHY, Run, run_faults, wanted_faults
from servers.faults import SECRET, STDIO_FAULTS
from servers.live_processes import left_after, processes_by_a_word, zombies
from toolbridge.config.server_config import ServerConfig

SERVER = Path(__file__).parents[3] / "fixtures" / "servers" / "fault_stdio.py"
PYTHON = (sys.executable, "-S", "-E")  # no site-packages: it starts in no time
SECRET_VARIABLE = "FAULT_SECRET"


@asynccontextmanager
async def configure(fault: Fault, word: str) -> AsyncGenerator[ServerConfig]:
    """A server with this fault, and a secret to give away."""
    era = ("--modern",) if fault.modern else ()
    yield ServerConfig(
        name=f"fault-{fault.name}",
        transport="stdio",
        command=PYTHON[0],
        args=(*PYTHON[1:], str(SERVER), fault.mode, *era, word),
        env={SECRET_VARIABLE: f"${{{SECRET_VARIABLE}}}"},
    )


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> dict[str, Run]:
    """What became of the faults whose tests are to be run."""
    wanted = wanted_faults(request, Path(__file__))

    async def main() -> dict[str, Run]:
        with processes_by_a_word() as word:
            healthy = ServerConfig(
                name=HEALTHY, transport="stdio", command=PYTHON[0], args=(*PYTHON[1:], str(SERVER), "fine", word)
            )
            runs = await run_faults(wanted, configure, healthy, {**os.environ, SECRET_VARIABLE: SECRET})
            assert await left_after(word) == {}
            assert zombies() == 0
        return runs

    return anyio.run(main)


@pytest.mark.parametrize("fault", STDIO_FAULTS, ids=lambda fault: fault.name)
def test_a_fault_harms_nobody_else(fault: Fault, runs: dict[str, Run]) -> None:
    check_run(runs[fault.name], f"fault-{fault.name}")


def test_every_mode_of_the_server_has_an_expectation() -> None:
    listed = subprocess.run([*PYTHON, str(SERVER)], capture_output=True, text=True, check=False)
    assert set(listed.stderr.split()[1:]) == {fault.mode for fault in STDIO_FAULTS}
    assert len({fault.name for fault in STDIO_FAULTS}) == len(STDIO_FAULTS)
