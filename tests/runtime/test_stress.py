"""500 programs, eight at a time, on five servers that fail at random: nothing is mixed up, lost, or left behind."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import anyio
import anyio.lowlevel
import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from observe.recorder import Recorder
from runtime.leftovers import nothing_left
from runtime.worlds import runtime_of
from servers.fault_servers import fault_server
from toolbridge import Config, Limits, Permissions, RunResult, Runtime, ServerConfig, ToolUse
from toolbridge.approval import Decision
from toolbridge.config.server_config import ServerLimits
from toolbridge.events import CallEnded, CallStarted, RunEnded, RunStarted

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

RUNS, AT_ONCE = 500, 8
SEED = 20_260
LIMITS = ServerLimits(connect_seconds=20.0, call_seconds=20.0, close_seconds=0.2, respawns=1_000)
USUAL = Limits(wall_seconds=40.0)

# What may become of a call of each server. A server that dies in the middle of a line has said what is not MCP.
DEATHS = {"disconnected"}
OUTCOMES = {
    "plain": {"ok", "denied", "invalid_arguments"},
    "slow": {"ok", "failed"},
    "mortal": {"ok", "failed", *DEATHS},
    "modern": {"ok", "failed", *DEATHS},
    "mute": {"ok", "timeout", *DEATHS},
}


@dataclass(frozen=True)
class Step:
    """One call: its text is nobody else's."""

    server: str
    tool: str
    text: str


@dataclass
class Plan:
    """One run: its calls, how they are made, and what the host does to it."""

    number: int
    how: str
    steps: list[Step]
    cancel_after: float | None = None
    limits: Limits = USUAL
    result: RunResult | None = None


@dataclass
class Ledger:
    """What reached the servers in this process, by text."""

    reached: Counter[str] = field(default_factory=Counter[str])


# The ways of making calls: each gives a list with what each call gave, or the kind of its error.
PROGRAMS = {
    "one by one": """
        steps.map(([server, tool, text]) => {
          try { return require(`host:mcp-${server}`)[tool]({ text }); }
          catch (error) {
            return { kind: error.kind, name: error.name };
          }
        })
    """,
    "parallel": """
        const { parallel, ToolError } = require("host:bridge");
        parallel(steps.map(([server, tool, text]) => [require(`host:mcp-${server}`)[tool], { text }]), {
          errors: "collect", limit: 4,
        }).map((one) => (one instanceof ToolError ? { kind: one.kind } : one))
    """,
    "promises": """
        const calls = steps.map(([server, tool, text]) => require(`host:mcp-${server}/async`)[tool]({ text }));
        (await Promise.allSettled(calls)).map((one) => one.value ?? { kind: one.reason.kind })
    """,
}


def servers(ledger: Ledger, directory: Path, word: str) -> Iterator[ServerConfig]:
    """Two in this process, three as children; one of those speaks the newer era, one doesn't answer."""
    plain, slow = MCPServer("plain"), MCPServer("slow")
    chance = random.Random(SEED)

    @plain.tool()
    def echo(text: str) -> str:
        """Says it again."""
        ledger.reached[text] += 1
        return text

    @slow.tool(name="echo")
    async def echo_late(text: str) -> str:
        """Says it again, later, or fails."""
        ledger.reached[text] += 1
        await anyio.sleep(chance.random() / 100)
        if text.endswith("!"):
            raise ToolError(f"as asked: {text}")
        return text

    yield ServerConfig.in_process("plain", plain)
    yield ServerConfig.in_process("slow", slow)
    for name, era in (("mortal", ()), ("modern", ("--modern",))):
        yield fault_server(name, "dies-at-random", *era, word, env={"FAULT_LOG": str(directory / name)})
    yield fault_server("mute", "silent-at-call", word, call_timeout=0.3)


def plans() -> list[Plan]:
    """Always the same ones."""
    chance = random.Random(SEED)
    made: list[Plan] = []
    for number in range(RUNS):
        plan = Plan(number, chance.choice(list(PROGRAMS)), [])
        for index in range(chance.randint(1, 8)):
            server = chance.choice(list(OUTCOMES))
            ending = chance.choice(["", "", "", "!"])
            tool = (
                "faulty" if server in ("mortal", "modern") or (server == "mute" and chance.random() < 0.1) else "echo"
            )
            plan.steps.append(Step(server, tool, f"run {number} step {index}{ending}"))
        fate = chance.random()
        if fate < 0.1:
            plan.cancel_after = chance.random() / 20
        elif fate < 0.15:
            plan.limits = Limits(wall_seconds=chance.uniform(0.005, 0.1))
        made.append(plan)
    return made


async def decide(use: ToolUse) -> Decision:
    """The host says no to some, after a moment."""
    await anyio.lowlevel.checkpoint()
    return Decision("7" not in str(use.arguments["text"]), "it has a seven in it")


async def carry_out(runtime: Runtime, waiting: Iterator[Plan], troubles: random.Random) -> None:
    for plan in waiting:
        steps = [[step.server, step.tool, step.text] for step in plan.steps]
        program = f"const steps = {json.dumps(steps)};\n{PROGRAMS[plan.how]}"
        with anyio.move_on_after(plan.cancel_after):
            plan.result = await runtime.run(program, limits=plan.limits, check=False)
        if troubles.random() < 0.02:
            await runtime.servers.close_server(troubles.choice(list(OUTCOMES)))


def check_values(plan: Plan) -> None:
    """Every call gave its own text, or an error that its server may give."""
    assert plan.result is not None
    failure = plan.result.failure
    if failure is not None:
        was_closed = "ModuleError" in failure.message and "closed by the host" in failure.message
        assert was_closed or (failure.kind == "timeout" and plan.limits is not USUAL), (plan, str(failure))
        return
    assert len(plan.result.value) == len(plan.steps)
    for step, value in zip(plan.steps, plan.result.value, strict=True):
        if isinstance(value, dict):
            kind = cast("dict[str, str]", value)["kind"]
            assert kind in OUTCOMES[step.server] | DEATHS, (step, value)
        else:
            assert value == step.text


class Calls:
    """What observers were told of each call, by its text."""

    def __init__(self, recorder: Recorder) -> None:
        self.texts: dict[str, tuple[str, int]] = {}
        ends = {(end.run, end.call): end for end in recorder.of(CallEnded)}
        self.outcomes: dict[str, str] = {}
        for start in recorder.of(CallStarted):
            text = json.loads(start.arguments)["text"]
            assert text not in self.texts, f"{text} was told twice"
            self.texts[text] = (start.run, start.call)
            end = ends[start.run, start.call]
            assert (end.server, end.tool) == (start.server, start.tool)
            self.outcomes[text] = end.outcome

    def of(self, plan: Plan) -> Counter[tuple[str, str, str]]:
        told = [(step, self.outcomes.get(step.text)) for step in plan.steps]
        return Counter((step.server, step.tool, outcome) for step, outcome in told if outcome is not None)


def check_records(plan: Plan, calls: Calls) -> None:
    """The result's records are the calls that observers were told of, each once."""
    assert plan.result is not None
    recorded = Counter((call.server, call.tool, call.outcome) for call in plan.result.calls)
    if plan.result.failure is None:
        assert recorded == calls.of(plan), plan
        not_imported = [value for value in plan.result.value if "ModuleError" in str(value)]
        assert recorded.total() == len(plan.steps) - len(not_imported), plan
        return
    # It was stopped: what had no reply is "unfinished" here and was cancelled there, or never began.
    finished = Counter({key: count for key, count in recorded.items() if key[2] != "unfinished"})
    assert finished <= calls.of(plan), plan
    assert recorded.total() <= len(plan.steps)


def check_servers(plan: Plan, calls: Calls, reached: Counter[str]) -> None:
    """What was answered had reached its server once; nothing reached it twice, or against the host's will."""
    for step in plan.steps:
        if step.server == "mute":
            continue  # it keeps no count
        count, outcome = reached[step.text], calls.outcomes.get(step.text)
        assert count <= 1, step
        if outcome in ("ok", "failed"):
            assert count == 1, (step, outcome)
        elif outcome in (None, "denied", "invalid_arguments"):
            assert count == 0, (step, outcome)


async def test_500_programs_on_five_failing_servers_never_mix_up_lose_or_leave_anything(tmp_path: Path) -> None:
    recorder, ledger, all_plans = Recorder(wants_arguments=True), Ledger(), plans()
    for name in ("mortal", "modern"):
        (tmp_path / name).touch()
    async with nothing_left() as word:
        config = Config.of(
            *servers(ledger, tmp_path, word), limits=LIMITS, permissions=Permissions(ask=("mcp__plain__*",))
        )
        with anyio.fail_after(120):
            async with runtime_of(
                tmp_path / "cache", config=config, pins="none", can_use_tool=decide, observers=[recorder]
            ) as runtime:
                waiting, troubles = iter(all_plans), random.Random(SEED)
                async with anyio.create_task_group() as tasks:
                    for _ in range(AT_ONCE):
                        tasks.start_soon(carry_out, runtime, waiting, troubles)

    assert recorder.broken_promises() == []
    assert len(recorder.of(RunStarted)) == len(recorder.of(RunEnded)) == RUNS
    calls = Calls(recorder)
    reached = ledger.reached + Counter(
        line for name in ("mortal", "modern") for line in (tmp_path / name).read_text().splitlines()
    )
    for plan in all_plans:
        if plan.result is not None:
            check_values(plan)
            check_records(plan, calls)
        check_servers(plan, calls, reached)
    outcomes = Counter(calls.outcomes.values())
    # The test means something only if all of this happened.
    for outcome in ("ok", "failed", "denied", "timeout", "disconnected", "cancelled"):
        assert outcomes[outcome] > 0, outcomes
    assert sum(plan.result is None for plan in all_plans) > 10
