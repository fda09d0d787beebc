"""Calls that need not be awaited obey the gate, the limits, and whatever changes, as any other."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from observe.recorder import Recorder
from runtime.both_ways import never_ready, told_both_ways
from runtime.own_handlers import (
    EVERYTHING,
    awaited,
    quickly,
    raising,
    returning,
)
from runtime.programs import on_each_backend_and_in_each_language
from runtime.worlds import check_failure, value_of
from toolbridge import Config, Limits, Permissions, Runtime, ServerConfig, create_server, open_runtime, tool
from toolbridge.config.server_config import ServerLimits
from toolbridge.events import CallStarted, DecisionMade
from toolbridge.runtime import Language

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


# ---- the gate


@on_each_backend_and_in_each_language
async def test_a_denied_tool_is_not_called(tmp_path: Path, language: Language, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    server = create_server("own", [quickly("act", lambda: calls.append("act"), None)])
    config = Config.of(server, permissions=Permissions(deny=("mcp__own__act",)))
    found = await told_both_ways(monkeypatch, tmp_path, config, EVERYTHING.of(language), language=language)
    assert calls == []
    assert [event[0] for event in found.events] == ["started", "decided", "ended"]
    assert found.records[0][2] == "denied"
    assert found.servers == ()


@pytest.mark.parametrize("answer", [True, False])
async def test_a_person_who_must_be_asked_is_asked_once_for_each_call(
    answer: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    asked: list[str] = []

    async def can_use_tool(use: Any) -> bool:
        asked.append(use.tool)
        return answer

    server = create_server("own", [quickly("act", lambda: calls.append("act"), None)])
    config = Config.of(server, permissions=Permissions(ask=("mcp__own__act",)))
    found = await told_both_ways(monkeypatch, tmp_path, config, EVERYTHING.javascript, can_use_tool=can_use_tool)
    assert asked == ["act", "act"]  # once each way
    assert calls == ["act", "act"] * answer
    assert [event[0] for event in found.events] == ["started", "decided", "ended"]


async def test_flows_count_calls_that_were_answered_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def labelled(name: str, *labels: str) -> ServerConfig:
        return create_server(name, [quickly("act", returning(1), int)], labels=list(labels))

    servers = (labelled("files", "private"), labelled("web", "untrusted"), labelled("mail", "external"))
    program = """
const [files, web, mail] = ["files", "web", "mail"].map((name) => require(`host:mcp-${name}`));
[mail, files, mail, web, mail].map((each) => { try { return each.act(); } catch (error) { return error.kind; } })
    """
    found = await told_both_ways(monkeypatch, tmp_path, Config.of(*servers), program)
    assert found.value == [1, 1, 1, 1, "denied"]


# ---- what changes in the middle of a run


def changing(
    change: Callable[[Runtime], Awaitable[None]], opened: list[Runtime], calls: list[str]
) -> tuple[ServerConfig, ...]:
    async def alter() -> None:
        await change(opened[0])

    own = create_server("own", [quickly("act", lambda: calls.append("act"), None)])
    return own, create_server("control", [tool("alter", "", None, alter)])


async def deny(runtime: Runtime) -> None:
    servers = runtime.config.servers.values()
    await runtime.reload(Config.of(*servers, permissions=Permissions(deny=("mcp__own__*",))))


async def remove(runtime: Runtime) -> None:
    await runtime.reload(Config.of(runtime.config.servers["control"]))


async def hide(runtime: Runtime) -> None:
    own, control = runtime.config.servers["own"], runtime.config.servers["control"]
    await runtime.reload(Config.of(dataclasses.replace(own, deny_tools=("act",)), control))


async def disable(runtime: Runtime) -> None:
    own, control = runtime.config.servers["own"], runtime.config.servers["control"]
    await runtime.reload(Config.of(dataclasses.replace(own, enabled=False), control))


ALTERED = """
const { act } = require("host:mcp-own");
const { alter } = require("host:mcp-control");
const kind = () => { try { act(); return "ok"; } catch (error) { return error.kind; } };
const before = kind();
alter();
[before, kind(), kind()]
"""


@pytest.mark.parametrize(
    ("change", "kind"), [(deny, "denied"), (remove, "failed"), (hide, "failed"), (disable, "failed")]
)
async def test_a_change_is_noticed_by_the_very_next_call(
    change: Callable[[Runtime], Awaitable[None]], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def outcome() -> tuple[Any, int]:
        opened: list[Runtime] = []
        calls: list[str] = []
        servers = changing(change, opened, calls)
        async with open_runtime(Config.of(*servers), directory=tmp_path) as runtime:
            opened.append(runtime)
            return value_of(await runtime.run(ALTERED)), len(calls)

    at_once = await outcome()
    with never_ready(monkeypatch):
        assert await outcome() == at_once
    assert at_once == (["ok", kind, kind], 1)


async def test_a_server_that_was_closed_is_connected_again_by_the_next_call(tmp_path: Path) -> None:
    opened: list[Runtime] = []
    calls: list[str] = []
    servers = changing(lambda runtime: runtime.servers.close_server("own"), opened, calls)
    async with open_runtime(Config.of(*servers), directory=tmp_path) as runtime:
        opened.append(runtime)
        assert value_of(await runtime.run(ALTERED)) == ["ok", "ok", "ok"]
    assert len(calls) == 3


# ---- limits


async def test_calls_answered_at_once_count_as_host_calls(tmp_path: Path) -> None:
    calls: list[str] = []
    server = create_server("own", [quickly("act", lambda: calls.append("act"), None)])
    async with open_runtime(Config.of(server), directory=tmp_path) as runtime:
        program = 'const { act } = require("host:mcp-own"); while (true) act();'
        result = await runtime.run(program, limits=Limits(host_calls=7))
        check_failure(result, "limit", "more than 7 host calls")
    assert len(calls) == len(result.calls) == 7


async def test_a_reply_beyond_the_largest_frame_is_refused_both_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config.of(create_server("own", [quickly("act", returning("x" * 5_000), str)]))
    limits = Limits(result_bytes=8_000, frame_bytes=4_000)
    found = await told_both_ways(monkeypatch, tmp_path, config, EVERYTHING.javascript, limits=limits)
    assert found.records[0][2] == "limit"


async def test_a_quick_tool_waits_in_line_while_its_server_has_all_the_calls_that_it_may(tmp_path: Path) -> None:
    order: list[str] = []

    async def hold() -> None:
        order.append("hold")
        await anyio.sleep(0.05)
        order.append("held")

    server = create_server("own", [hold, quickly("act", lambda: order.append("act"), None)])
    config = Config.of(server, limits=ServerLimits(calls_in_flight=1))
    program = """
import { hold, act } from "host:mcp-own/async";
await Promise.all([hold(), act(), hold(), act()])
    """
    async with open_runtime(config, directory=tmp_path) as runtime:
        value_of(await runtime.run(program))
    assert sorted(order) == ["act", "act", "held", "held", "hold", "hold"]
    assert all(after == "held" for before, after in itertools.pairwise(order) if before == "hold")


async def test_a_run_that_is_out_of_time_calls_nothing_more(tmp_path: Path) -> None:
    calls: list[str] = []
    server = create_server("own", [quickly("act", lambda: calls.append("act"), None)])
    async with open_runtime(Config.of(server), directory=tmp_path) as runtime:
        program = 'const { act } = require("host:mcp-own"); while (true) act();'
        result = await runtime.run(program, limits=Limits(wall_seconds=0.3, host_calls=1_000_000))
        words = str(result.failure)
        assert "longer than 0.3 s" in words or "no time is left" in words  # to the run, or to this very call
        made = len(calls)
        await anyio.sleep(0.05)
    assert 0 < len(calls) == made == len([call for call in result.calls if call.outcome == "ok"])


async def test_an_interrupt_in_a_quick_tool_is_an_error_of_its_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config.of(create_server("own", [quickly("act", raising(KeyboardInterrupt), None)]))
    found = await told_both_ways(monkeypatch, tmp_path, config, EVERYTHING.javascript)
    assert [event[0] for event in found.events] == ["started", "decided", "ended"]
    assert found.records[0][2] == "failed"


async def test_observers_are_told_the_same_of_calls_that_overlap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = create_server(
        "own",
        [quickly("act", returning(1), int), awaited("wait", returning(2), int), awaited("fail", raising(OSError), int)],
    )
    program = """
import { act, wait, fail } from "host:mcp-own/async";
await Promise.allSettled([act(), wait(), fail(), act(), wait()])
    """
    recorders: list[Recorder] = []
    for at_once in (True, False):
        recorder = Recorder()
        recorders.append(recorder)
        async with open_runtime(Config.of(server), directory=tmp_path, observers=[recorder]) as runtime:
            if at_once:
                value_of(await runtime.run(program))
            else:
                with never_ready(monkeypatch):
                    value_of(await runtime.run(program))
    for recorder in recorders:
        assert recorder.broken_promises() == []
        assert len(recorder.of(CallStarted)) == len(recorder.of(DecisionMade)) == 5
