"""Runtimes whose servers are all approved, on an event loop of their own, for benchmarks that call tools."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from time import perf_counter, process_time
from typing import Any

import anyio.from_thread
from anyio.from_thread import BlockingPortal

from bench.measure import Batch
from toolbridge import ApprovalRequest, Config, Limits, Runtime, ServerConfig, open_runtime
from toolbridge.approval import Approval

LIMITS = Limits(wall_seconds=120.0, cpu_seconds=60.0)


class _ApproveAll:
    async def approve(self, request: ApprovalRequest) -> Approval:
        del request
        return Approval(True)


class CallingRuntime:
    """A runtime with its servers connected, and a portal to its event loop."""

    def __init__(self, portal: BlockingPortal, runtime: Runtime) -> None:
        self.portal = portal
        self.runtime = runtime

    def program(self, source: str, expected: Any, *, times: int = 1, cpu: list[float] | None = None) -> Batch:
        """A contender: seconds of a run, divided by how often it does the thing. `cpu` gets this process's own."""

        async def run() -> float:
            computed, began = process_time(), perf_counter()
            result = await self.runtime.run(source)
            seconds = (perf_counter() - began) / times
            if cpu is not None:
                cpu.append((process_time() - computed) / times)
            assert result.failure is None, result.failure
            assert result.value == expected, result.value
            return seconds

        return lambda: self.portal.call(run)


@contextmanager
def calling_runtime(*servers: ServerConfig, backend: str = "asyncio") -> Generator[CallingRuntime]:
    """Opens a runtime and connects all of its servers."""
    with (
        tempfile.TemporaryDirectory() as directory,
        anyio.from_thread.start_blocking_portal(backend) as portal,
        portal.wrap_async_context_manager(
            open_runtime(Config.of(*servers), approver=_ApproveAll(), directory=directory, limits=LIMITS, pins="none")
        ) as runtime,
    ):
        statuses = portal.call(runtime.start_all)
        assert all(status.state == "connected" for status in statuses), statuses
        yield CallingRuntime(portal, runtime)
