"""Runs servers with faults, several at a time, next to healthy ones, and notes what became of each."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import pytest

from growth import patience
from servers.fault_expectations import Fault, may_time_out
from servers.faults import MESSAGE_BYTES
from servers.live_processes import left_after, processes_by_a_word
from toolbridge.config.config import Config
from toolbridge.config.server_config import ServerConfig, ServerLimits
from toolbridge.errors import ServerDisconnectedError
from toolbridge.servers.listing import Listing
from toolbridge.servers.manager import ServerManager
from toolbridge.trust.approval.approver import Approval, ApprovalRequest

AT_ONCE = 6

LIMITS = ServerLimits(
    connections=1_000, close_seconds=0.5, message_bytes=MESSAGE_BYTES, listing_bytes=MESSAGE_BYTES // 2
)
SHORT_CONNECT, SHORT_CALL = 1.5, 1.0
LONG = 10.0
"""Where no timeout is expected, one that a busy machine does not reach."""

MOST_LATENESS = 1.0
"""Seconds by which anything may outlast its deadline."""
PROMPT = 3.0
"""Seconds for what needs no waiting."""

HEALTHY = "healthy"
AFTER = "and after"
BESIDE = "and beside"


class ApproveAll:
    """Tests start what they like."""

    async def approve(self, request: ApprovalRequest) -> Approval:
        return Approval(True)


@dataclass(frozen=True)
class Step:
    """One thing that was tried: what came of it, and how long it took."""

    outcome: dict[str, Any] | BaseException | None
    """None for nothing at all: it hung, and was given up."""
    seconds: float


@dataclass
class Run:
    """What became of one fault."""

    fault: Fault
    steps: dict[str, Step] = field(default_factory=dict[str, Step])
    problems: tuple[str, ...] = ()
    healthy: list[Step] = field(default_factory=list[Step])
    left: dict[int, str] = field(default_factory=dict[int, str])


Configure: TypeAlias = Callable[[Fault, str], AbstractAsyncContextManager[ServerConfig]]
"""Gives the configuration of a server with this fault, whose processes are found again by this word."""


async def run_faults(
    faults: Iterable[Fault], configure: Configure, healthy: ServerConfig, environ: Mapping[str, str]
) -> dict[str, Run]:
    """All of them: those that must be alone first, then several at a time.

    Who was late in the crowd is run again, alone: a busy machine is not the fault that is looked for.
    """
    faults = tuple(faults)
    runs: dict[str, Run] = {}

    async def work(waiting: Iterator[Fault]) -> None:
        async with ServerManager(
            Config(servers={HEALTHY: healthy}, limits=LIMITS), approver=ApproveAll(), environ=environ
        ) as manager:
            await manager.connect(HEALTHY)
            for fault in waiting:
                with processes_by_a_word() as word:
                    async with configure(fault, word) as configured:
                        server = _with_timeouts(configured, fault)
                        await manager.reload(Config(servers={HEALTHY: healthy, server.name: server}, limits=LIMITS))
                        run = runs[fault.name] = await _run(manager, fault, server.name)
                    run.left = await left_after(word)

    await work(fault for fault in faults if fault.alone)
    together = iter([fault for fault in faults if not fault.alone])
    async with anyio.create_task_group() as tasks:
        for _ in range(AT_ONCE):
            tasks.start_soon(work, together)
    await work(iter([run.fault for run in runs.values() if lateness(run)]))
    return runs


def lateness(run: Run) -> str:
    """What took too long, in words; empty if nothing did."""
    fault = run.fault
    late, prompt = patience(MOST_LATENESS), patience(PROMPT)
    call = SHORT_CALL + late if may_time_out(fault.call, fault.after) else prompt
    most = {
        "connect": SHORT_CONNECT + late if may_time_out(fault.connect) else prompt,
        **dict.fromkeys(("call", "beside", "after"), call),
        "close": prompt,
    }
    found = [f"{name} took {step.seconds:.2f} s" for name, step in run.steps.items() if step.seconds > most[name]]
    found += [f"a healthy call took {step.seconds:.2f} s" for step in run.healthy if step.seconds > late]
    return "; ".join(found)


async def _run(manager: ServerManager, fault: Fault, name: str) -> Run:
    run, over = Run(fault), anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_call_healthy, manager, run, over)
        await _try(run, "connect", _connect(manager, name))
        if isinstance(run.steps["connect"].outcome, dict):
            await _call(manager, fault, name, run)
        run.problems = manager.status(name).problems
        await _try(run, "close", _close(manager, name))
        over.set()
    return run


async def _call(manager: ServerManager, fault: Fault, name: str, run: Run) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_try, run, "call", manager.call(name, "faulty", {"text": fault.text}))
        if fault.beside:
            # Not before the other has had its turn: the fault is to be met first.
            await anyio.sleep(0.01)
            tasks.start_soon(_try, run, "beside", manager.call(name, "echo", {"text": BESIDE}))
    await _try(run, "after", manager.call(name, "echo", {"text": AFTER}))
    if fault.ends_late and isinstance(run.steps["after"].outcome, ServerDisconnectedError):
        await _try(run, "after", manager.call(name, "echo", {"text": AFTER}))


async def _connect(manager: ServerManager, name: str) -> dict[str, Any]:
    listing: Listing = await manager.connect(name)
    return {"tools": [tool.name for tool in listing.tools]}


async def _close(manager: ServerManager, name: str) -> dict[str, Any]:
    await manager.close_server(name)
    return {}


async def _try(run: Run, step: str, attempt: Awaitable[dict[str, Any]]) -> None:
    run.steps[step] = await _step(attempt)


async def _step(attempt: Awaitable[dict[str, Any]]) -> Step:
    began = time.monotonic()
    outcome: dict[str, Any] | BaseException | None = None
    with anyio.move_on_after(LONG + 2):
        try:
            outcome = await attempt
        except Exception as error:  # also what no server should be able to raise: it is noted, and the test fails
            outcome = error
    return Step(outcome, time.monotonic() - began)


async def _call_healthy(manager: ServerManager, run: Run, over: anyio.Event) -> None:
    """A call every now and then, as long as the fault lasts, and one after it."""
    last = False
    while not last:
        last = over.is_set()
        text = f"still {len(run.healthy)}"
        step = await _step(manager.call(HEALTHY, "echo", {"text": text}))
        if isinstance(step.outcome, dict) and step.outcome["content"][0]["text"] != text:
            step = Step(AssertionError(f"asked for {text!r}, got {step.outcome!r}"), step.seconds)
        run.healthy.append(step)
        with anyio.move_on_after(0.05):
            await over.wait()


def _with_timeouts(server: ServerConfig, fault: Fault) -> ServerConfig:
    """Short ones only where they are to be met."""
    return replace(
        server,
        connect_timeout=fault.connect_seconds or (SHORT_CONNECT if may_time_out(fault.connect) else LONG),
        call_timeout=SHORT_CALL if may_time_out(fault.call, fault.after) else LONG,
    )


def wanted_faults(request: pytest.FixtureRequest, file: Path) -> list[Fault]:
    """The faults of those tests of this file that were selected: nothing else is run."""
    specs = [getattr(item, "callspec", None) for item in request.session.items if item.path == file]
    return [spec.params["fault"] for spec in specs if spec is not None and "fault" in spec.params]
