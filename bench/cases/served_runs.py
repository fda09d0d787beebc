"""50 clients of `toolbridge serve --http` at once, 20 runs each: what a run costs, and how long the slowest wait.

Every client has programs of its own, and checks that the results are its own, too.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio
from mcp import Client

from bench.case import Bench
from bench.measure import compare
from bench.report import Finding, Row

_CLIENTS = 50
_RUNS = 20
_TARGET = 2.0
_OURS = [sys.executable, "-c", "from toolbridge.cli import main; main()", "serve", "--http", "--port", "0"]
_BARE = [sys.executable, str(Path(__file__).parents[1] / "probes" / "bare_http_server.py")]
_PEER = "a tool of the bare SDK that does nothing"


def measure(bench: Bench) -> Iterable[Finding]:
    """Against a server of the SDK alone, whose tool gives back its argument."""
    means: dict[str, list[float]] = {"ours": [], "bare": []}
    late: dict[str, list[float]] = {"ours": [], "bare": []}
    rounds = bench.rounds(5)
    with _server(_OURS) as ours, _server(_BARE) as bare:
        for _ in range(rounds):
            for name, url in (("ours", ours), ("bare", bare)):
                seconds, each, wrong = anyio.run(_all_clients, url, name == "ours")
                if wrong:
                    raise RuntimeError(f"{wrong} of {len(each)} runs failed, or had another client's result")
                means[name].append(seconds)
                late[name].append(statistics.quantiles(each, n=20)[-1])
    runs = _CLIENTS * _RUNS
    what = f"{runs:,} runs by {_CLIENTS} clients over HTTP"
    note = f"{rounds * runs:,} runs, none failed, none mixed up"
    yield Row(f"{what}, each", _PEER, compare(means["ours"], means["bare"]), _TARGET, note=note)
    yield Row(f"{what}, p95", _PEER, compare(late["ours"], late["bare"]), _TARGET)


async def _all_clients(url: str, is_ours: bool) -> tuple[float, list[float], int]:
    """Seconds for each run in all, the seconds that each took, and how many went wrong."""
    each: list[float] = []
    wrong = 0

    async def use(number: int) -> None:
        nonlocal wrong
        async with Client(url, mode="auto") as client:
            for turn in range(_RUNS):
                began = perf_counter()
                code = f"{number} * 1000 + {turn}"
                result = await client.call_tool("run_code", {"code": code})
                each.append(perf_counter() - began)
                expected = number * 1000 + turn if is_ours else code
                facts: dict[str, Any] = result.structured_content or {}
                wrong += facts.get("value") != expected

    began = perf_counter()
    async with anyio.create_task_group() as tasks:
        for number in range(_CLIENTS):
            tasks.start_soon(use, number)
    return (perf_counter() - began) / len(each), each, wrong


@contextmanager
def _server(command: list[str]) -> Generator[str]:
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "toolbridge.json").write_text('{"mcpServers": {}}')
        process = subprocess.Popen(command, cwd=directory, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr is not None
            found = re.search(r"http://\S+", process.stderr.readline())
            assert found is not None
            yield found[0]
        finally:
            process.terminate()
            process.wait(30)
