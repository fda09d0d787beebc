"""A streamable-HTTP server with any fault: it ends in time, in a typed error or a right answer, and harms nobody else.

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
from servers.http_faults import HTTP_FAULTS
from servers.live_processes import processes_by_a_word
from toolbridge.config.server_config import ServerConfig

SERVER = Path(__file__).parents[3] / "fixtures" / "servers" / "fault_http.py"
PYTHON = (sys.executable, "-S", "-E")  # no site-packages: it starts in no time


@asynccontextmanager
async def http_server(mode: str, *words: str) -> AsyncGenerator[str]:
    """The address of a running server."""
    process = await anyio.open_process([*PYTHON, str(SERVER), mode, "0", *words], stderr=None)
    async with process:
        assert process.stdout is not None
        try:
            port = int(await process.stdout.receive())
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


@asynccontextmanager
async def configure(fault: Fault, word: str) -> AsyncGenerator[ServerConfig]:
    """A running server with this fault."""
    era = ("--modern",) if fault.modern else ()
    async with http_server(fault.mode, *era, word) as url:
        yield ServerConfig(name=f"fault-{fault.name}", transport="http", url=url)


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> dict[str, Run]:
    """What became of the faults whose tests are to be run."""
    wanted = wanted_faults(request, Path(__file__))

    async def main() -> dict[str, Run]:
        with processes_by_a_word() as word:
            async with http_server("fine", word) as url:
                healthy = ServerConfig(name=HEALTHY, transport="http", url=url)
                return await run_faults(wanted, configure, healthy, os.environ)

    return anyio.run(main)


@pytest.mark.parametrize("fault", HTTP_FAULTS, ids=lambda fault: fault.name)
def test_a_fault_harms_nobody_else(fault: Fault, runs: dict[str, Run]) -> None:
    check_run(runs[fault.name], f"fault-{fault.name}")


def test_every_mode_of_the_server_has_an_expectation() -> None:
    listed = subprocess.run([*PYTHON, str(SERVER)], capture_output=True, text=True, check=False)
    assert set(listed.stderr.split()[1:]) == {fault.mode for fault in HTTP_FAULTS}
    assert len({fault.name for fault in HTTP_FAULTS}) == len(HTTP_FAULTS)
