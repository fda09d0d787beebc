"""What goes wrong in the middle of a program: a typed failure, at once, and nothing is left behind."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver import Context

from runtime.leftovers import nothing_left
from runtime.moments import SOON, Moments, call_of, run_and
from runtime.worlds import check_failure, patient_runtime_of, value_of, weather
from servers.fault_servers import fault_server
from servers.live_processes import left_after
from toolbridge import ApprovalRequest, Runtime, ServerConfig
from toolbridge.approval import Approval
from toolbridge.events import CallEnded, ToolsChanged

pytestmark = pytest.mark.anyio

LONG_TEXTS = Path(__file__).resolve().parents[2] / "fixtures" / "hostile" / "servers" / "long_texts.py"


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


CATCH = """
    const caught = (call) => {
      try { return call(); } catch (error) { return [error.name, error.kind, error.server, error.tool, error.message]; }
    };
"""


# ---- a server that dies


@pytest.mark.parametrize("mode", ["exit-at-call", "fail-at-call", "kill-at-call"])
async def test_a_server_that_dies_in_a_call_fails_that_call_and_is_there_for_the_next(
    mode: str, tmp_path: Path
) -> None:
    async with nothing_left() as word, patient_runtime_of(tmp_path, fault_server("mortal", mode, word)) as runtime:
        with anyio.fail_after(SOON):
            result = await runtime.run(f"""
                    import {{ faulty, echo }} from "host:mcp-mortal";
                    {CATCH}
                    [caught(() => faulty({{ text: "x" }})), echo({{ text: "again" }})]
                """)
    error, again = value_of(result)
    assert error[:4] == ["ToolDisconnectedError", "disconnected", "mortal", "faulty"]
    assert again == "again"
    assert [(call.tool, call.outcome) for call in result.calls] == [("faulty", "disconnected"), ("echo", "ok")]


async def test_a_death_that_nobody_catches_ends_the_program_and_is_told_with_what_took_effect(tmp_path: Path) -> None:
    async with (
        nothing_left() as word,
        patient_runtime_of(tmp_path, fault_server("mortal", "kill-at-call", word)) as runtime,
    ):
        with anyio.fail_after(SOON):
            result = await runtime.run("""
                    import { faulty, echo } from "host:mcp-mortal";
                    echo({ text: "first" });
                    faulty({ text: "x" });
                """)
    check_failure(result, "raised", "ToolDisconnectedError", "'mortal'", "Calls already made", "echo: ok")


async def test_a_death_amid_parallel_calls_settles_every_one_of_them(tmp_path: Path) -> None:
    moments = Moments()
    async with nothing_left() as word:
        mortal = fault_server("mortal", "kill-at-call", word)
        async with patient_runtime_of(tmp_path, mortal, weather(), observers=[moments]) as runtime:
            with anyio.fail_after(SOON):
                result = await runtime.run("""
                    import { faulty, echo } from "host:mcp-mortal";
                    import { list_stations } from "host:mcp-weather";
                    import { parallel, ToolDisconnectedError } from "host:bridge";
                    const calls = [0, 1, 2].map((n) => [echo, { text: `${n}` }]);
                    calls.push([faulty, { text: "x" }], [list_stations, {}]);
                    parallel(calls, { errors: "collect" }).map((one) =>
                      one instanceof ToolDisconnectedError ? "disconnected" : Array.isArray(one) ? one.length : one)
                """)
    *echoes, dead, stations = value_of(result)
    # What the server had answered before it died counts; the rest is told as lost. Nothing is mixed up.
    assert all(echo in (str(number), "disconnected") for number, echo in enumerate(echoes))
    assert (dead, stations) == ("disconnected", 3)
    assert moments.broken_promises() == []
    assert len(moments.of(CallEnded)) == len(result.calls) == 5


@pytest.mark.parametrize("mode", ["exit-at-start", "fail-at-list", "kill-at-negotiate"])
async def test_a_server_that_dies_before_it_is_connected_fails_the_import(mode: str, tmp_path: Path) -> None:
    async with (
        nothing_left() as word,
        patient_runtime_of(tmp_path, fault_server("stillborn", mode, word), weather()) as runtime,
    ):
        with anyio.fail_after(SOON):
            result = await runtime.run('import { echo } from "host:mcp-stillborn"; echo({ text: "x" })')
            after = await runtime.run('require("host:mcp-weather").list_stations().length')
    check_failure(result, "raised", "'stillborn'")
    assert result.calls == ()
    assert value_of(after) == 3


# ---- tools that vanish


def changing(moments: Moments) -> ServerConfig:
    """A server that takes a tool away, says so, and answers once the host has seen it."""
    server = MCPServer("changing")

    @server.tool()
    def doomed() -> str:
        """It is there at first."""
        return "still here"

    @server.tool()
    async def vanish(context: Context[Any, Any]) -> str:
        """Take the other tool away."""
        server.remove_tool("doomed")
        changes = len(moments.of(ToolsChanged))
        await context.notify_tools_changed()
        await moments.wait_for(lambda event: isinstance(event, ToolsChanged), changes + 1)
        return "gone"

    return ServerConfig.in_process("changing", server)


async def test_a_tool_that_vanishes_in_the_middle_of_a_program_is_told_as_gone(tmp_path: Path) -> None:
    moments = Moments()
    async with nothing_left(), patient_runtime_of(tmp_path, changing(moments), observers=[moments]) as runtime:
        with anyio.fail_after(SOON):
            result = await runtime.run(f"""
                    import {{ doomed, vanish }} from "host:mcp-changing";
                    {CATCH}
                    [doomed(), vanish(), caught(doomed)]
                """)
            after = await runtime.run('import { doomed } from "host:mcp-changing"; 1')
    first, gone, error = value_of(result)
    assert (first, gone) == ("still here", "gone")
    assert error[:4] == ["ToolFailedError", "failed", "changing", "doomed"]
    assert "no longer has the tool" in error[4]
    check_failure(after, "type", "doomed")


@pytest.mark.parametrize("mode", ["changed-list-hangs", "changed-list-is-refused", "changed-list-is-spoilt"])
async def test_a_list_that_changes_for_the_worse_leaves_the_program_what_it_had(mode: str, tmp_path: Path) -> None:
    async with nothing_left() as word, patient_runtime_of(tmp_path, fault_server("changing", mode, word)) as runtime:
        with anyio.fail_after(SOON):
            result = await runtime.run("""
                    import { faulty, echo } from "host:mcp-changing";
                    [faulty({ text: "a" }), echo({ text: "b" }), faulty({ text: "c" })]
                """)
    assert value_of(result) == ["a", "b", "c"]


# ---- a host that changes its mind


Act = Callable[[Runtime], Awaitable[Any]]


async def reload_without(runtime: Runtime) -> None:
    await runtime.reload(replace(runtime.config, servers={}))


async def reload_disabled(runtime: Runtime) -> None:
    hung = replace(runtime.config.servers["hung"], enabled=False)
    await runtime.reload(replace(runtime.config, servers={"hung": hung}))


async def switch_off(runtime: Runtime) -> None:
    await runtime.switch_gateway(on=False)


@pytest.mark.parametrize("act", [reload_without, reload_disabled, switch_off], ids=lambda act: act.__name__)
async def test_a_server_that_is_taken_away_in_a_call_ends_the_call_and_the_module_is_dead(
    act: Act, tmp_path: Path
) -> None:
    moments = Moments()
    async with (
        nothing_left() as word,
        patient_runtime_of(tmp_path, fault_server("hung", "silent-at-call", word), observers=[moments]) as runtime,
    ):
        result = await run_and(
            runtime,
            f"""
                import {{ faulty, echo }} from "host:mcp-hung";
                {CATCH}
                [caught(() => faulty({{ text: "x" }})), caught(() => echo({{ text: "y" }}))]
            """,
            lambda: moments.wait_for(call_of("faulty")),
            lambda: act(runtime),
        )
        assert await left_after(word) == {}
    during, after = value_of(result)
    assert during[:4] == ["ToolDisconnectedError", "disconnected", "hung", "faulty"]
    assert after[2:4] == ["hung", "echo"]
    assert after[0].startswith("Tool")
    assert "KeyError" not in str(after) + str(during)
    assert moments.broken_promises() == []
    assert [end.outcome for end in moments.of(CallEnded)] == [call.outcome for call in result.calls]


async def test_a_server_that_is_revoked_in_a_call_is_not_started_again(tmp_path: Path) -> None:
    class Revocable:
        is_approved = True

        async def approve(self, request: ApprovalRequest) -> Approval:
            return Approval(self.is_approved, "" if self.is_approved else "it was revoked")

    approver, moments = Revocable(), Moments()
    async with nothing_left() as word:
        hung = fault_server("hung", "silent-at-call", word)
        async with patient_runtime_of(tmp_path, hung, observers=[moments], approver=approver) as runtime:

            async def revoke() -> None:
                approver.is_approved = False
                await runtime.servers.close_server("hung")

            result = await run_and(
                runtime,
                f"""
                    import {{ faulty, echo }} from "host:mcp-hung";
                    {CATCH}
                    [caught(() => faulty({{ text: "x" }})), caught(() => echo({{ text: "y" }}))]
                """,
                lambda: moments.wait_for(call_of("faulty")),
                revoke,
            )
            assert await left_after(word) == {}
    during, after = value_of(result)
    assert during[:2] == ["ToolDisconnectedError", "disconnected"]
    assert after[:4] == ["ToolDeniedError", "denied", "hung", "echo"]
    assert result.servers == ("hung",)


# ---- a tool whose input is not described as an object


@pytest.mark.parametrize(
    "mode",
    [
        "tool-without-a-schema",
        "tool-with-true-for-a-schema",
        "tool-with-a-list-for-a-schema",
        "tool-with-a-schema-of-a-wrong-type",
        "tool-with-a-string-for-an-output-schema",
    ],
)
async def test_a_tool_with_a_schema_that_is_none_is_called_and_its_server_decides(mode: str, tmp_path: Path) -> None:
    async with nothing_left() as word, patient_runtime_of(tmp_path, fault_server("odd", mode, word)) as runtime:
        with anyio.fail_after(SOON):
            result = await runtime.run('import { spoilt } from "host:mcp-odd"; spoilt({ text: "heard" })')
        problems = runtime.servers.status("odd").problems
    assert value_of(result) == "heard"
    assert any("spoilt" in problem and "putSchema" in problem for problem in problems)


async def test_a_call_that_never_left_is_not_among_those_that_were_made(tmp_path: Path) -> None:
    async with (
        nothing_left() as word,
        patient_runtime_of(tmp_path, fault_server("mortal", "exit-at-call", word)) as runtime,
    ):
        with anyio.fail_after(SOON):
            result = await runtime.run("""
                const { faulty } = require("host:mcp-mortal");
                for (let n = 0; n < 4; n++) try { faulty({ text: "x" }) } catch {}
                faulty({ text: "y" })
            """)
    check_failure(result, "raised", "ended or failed 4 times")
    assert [call.sent for call in result.calls] == [True, True, True, True, False]
    assert result.failure is not None
    (note,) = result.failure.notes
    assert note.count("mortal faulty") == 4


# ---- a server that says where it works


async def test_an_error_names_the_home_directory_by_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home" / "jane"
    (home / "work").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    words = f"'{home}/x' is outside the allowed repository '{home}/repo', in {home}/work/sub: see {home}/.cache"
    env = {"LONG_PIECE": json.dumps(words), "LONG_SIZE": str(len(words))}
    arguments = ["-S", "-E", str(LONG_TEXTS), f"{home}/repo"]
    server = ServerConfig.stdio("git", sys.executable, arguments, env=env, cwd=str(home / "work"))
    async with patient_runtime_of(tmp_path, server) as runtime:
        result = await runtime.run('require("host:mcp-git").say({ how: "error" })')
    check_failure(result, "raised", "'~/x' is outside the allowed repository '~/repo', in ~/work/sub: see ~/.cache")
