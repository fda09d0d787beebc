"""The manager: states, lazy start, caps, filters, reload, and approval before anything."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.server import MCPServer

from toolbridge.config.config import Config
from toolbridge.config.server_config import ServerConfig, ServerLimits
from toolbridge.errors import (
    ConnectionLimitError,
    ServerClosedError,
    ServerConnectError,
    ServerNotApprovedError,
    ToolNotFoundError,
    UnknownServerError,
)
from toolbridge.events import ServerEvent, StateChanged, ToolsChanged
from toolbridge.servers.manager import ServerManager
from toolbridge.trust.approval.approver import Approval, ApprovalRequest, ApproveDigests

pytestmark = pytest.mark.anyio


class ApproveAll:
    """Approves everything, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[ApprovalRequest] = []

    async def approve(self, request: ApprovalRequest) -> Approval:
        self.asked.append(request)
        return Approval(True)


def shop() -> MCPServer:
    server = MCPServer("Shop", instructions="Ask nicely")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers"""
        return a + b

    @server.tool()
    def delete_all() -> str:
        """Delete everything"""
        return "gone"

    @server.tool()
    async def wait() -> str:
        """Wait for a long time"""
        await anyio.sleep(60)
        return "late"

    return server


def config(*servers: ServerConfig, **limits: Any) -> Config:
    return Config({server.name: server for server in servers}, ServerLimits(**limits))


def in_process(name: str = "shop", **fields: Any) -> ServerConfig:
    return ServerConfig(name=name, transport="in_process", server=shop(), **fields)


def text(result: Mapping[str, Any]) -> str:
    return result["content"][0]["text"]


async def test_a_call_connects_its_server_and_gives_the_raw_result() -> None:
    approver = ApproveAll()
    async with ServerManager(config(in_process()), approver=approver) as manager:
        assert manager.status("shop").state == "idle"
        assert approver.asked == []
        result = await manager.call("shop", "add", {"a": 2, "b": 3})
        assert result["structuredContent"] == {"result": 5}
        assert text(result) == "5"
        assert manager.status("shop").state == "connected"
        assert manager.status("shop").tools == 3
    assert manager.status("shop").state == "closed"
    assert [request.server.name for request in approver.asked] == ["shop"]


async def test_the_listing_tells_what_the_server_says_of_itself() -> None:
    async with ServerManager(config(in_process()), approver=ApproveAll()) as manager:
        listing = await manager.connect("shop")
    assert (listing.server_name, listing.instructions, listing.live) == ("Shop", "Ask nicely", True)
    assert [tool.name for tool in listing.tools] == ["add", "delete_all", "wait"]


async def test_without_an_approver_nothing_is_reached_by_any_path() -> None:
    async with ServerManager(config(in_process())) as manager:
        with pytest.raises(ServerNotApprovedError, match=r"'shop' is not approved: .*sha256:"):
            await manager.connect("shop")
        with pytest.raises(ServerNotApprovedError):
            await manager.call("shop", "add", {"a": 1, "b": 1})
        (status,) = await manager.start_all()
        await manager.reload(config(in_process(description="changed")))
        with pytest.raises(ServerNotApprovedError):
            await manager.connect("shop")
    assert status.state == "needs_approval"
    assert "is not approved" in status.last_error


async def test_an_approver_that_fails_or_answers_oddly_refuses(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        async def approve(self, request: ApprovalRequest) -> Approval:
            raise RuntimeError("no terminal")

    class Odd:
        async def approve(self, request: ApprovalRequest) -> Approval:
            return Approval("yes")  # pyright: ignore[reportArgumentType]

    for approver, says in ((Broken(), "the approver failed with RuntimeError"), (Odd(), "refused")):
        async with ServerManager(config(in_process()), approver=approver) as manager:
            with pytest.raises(ServerNotApprovedError, match=says) as caught:
                await manager.connect("shop")
            assert "no terminal" not in str(caught.value)  # programs are told this
    assert "RuntimeError: no terminal" in caplog.text


async def test_a_digest_approves_exactly_one_snapshot() -> None:
    approver = ApproveAll()
    async with ServerManager(config(in_process()), approver=approver) as manager:
        await manager.connect("shop")
    (request,) = approver.asked
    async with ServerManager(config(in_process()), approver=ApproveDigests(request.digest)) as manager:
        await manager.connect("shop")
    async with ServerManager(config(in_process("shop2")), approver=ApproveDigests(request.digest)) as manager:
        with pytest.raises(ServerNotApprovedError):
            await manager.connect("shop2")


async def test_connections_being_opened_count_against_the_cap() -> None:
    servers = [in_process(f"shop{number}") for number in range(4)]
    refused: dict[str, str] = {}
    async with ServerManager(config(*servers, connections=2), approver=ApproveAll()) as manager:

        async def connect(name: str) -> None:
            try:
                await manager.connect(name)
            except ConnectionLimitError as error:
                refused[name] = str(error)

        async with anyio.create_task_group() as tasks:
            for server in servers:
                tasks.start_soon(connect, server.name)
        states = sorted(status.state for status in manager.statuses())
        assert states == ["connected", "connected", "idle", "idle"]
        assert all("no more than 2 may be" in problem for problem in refused.values())
        connected = next(status for status in manager.statuses() if status.state == "connected")
        await manager.close_server(connected.name)
        await manager.connect(next(iter(refused)))


async def test_more_servers_than_may_be_connected_take_turns_until_all_tools_are_known(tmp_path: Path) -> None:
    servers = [in_process(f"shop{number}") for number in range(7)]
    most = 0

    def count(_: object) -> None:
        nonlocal most
        most = max(most, sum(status.state in ("connecting", "connected") for status in manager.statuses()))

    shops = config(*servers, connections=2)
    async with ServerManager(shops, approver=ApproveAll(), directory=tmp_path, observers=[count]) as manager:
        await manager.connect("shop3")
        statuses = await manager.start_all()
        assert [status.last_error for status in statuses if status.tools is None] == []
        assert sum(status.state == "connected" for status in statuses) == 2
        assert manager.status("shop3").state == "connected"  # it was in use
        assert len(manager.catalog.modules) == 7
    assert most == 2
    approver = ApproveAll()
    async with ServerManager(shops, approver=approver, directory=tmp_path) as manager:
        statuses = await manager.start_all()
        assert sorted(status.state for status in statuses) == ["connected"] * 2 + ["idle"] * 5


async def test_tasks_that_connect_at_once_share_one_connection() -> None:
    approver = ApproveAll()
    async with ServerManager(config(in_process()), approver=approver) as manager:
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(manager.connect, "shop")
        assert len(approver.asked) == 1


@pytest.mark.parametrize(
    ("allow", "deny", "exposed"),
    [
        (None, (), {"add", "delete_all", "wait"}),
        (("add",), (), {"add"}),
        (None, ("delete_all",), {"add", "wait"}),
        (("add", "wait"), ("wait",), {"add"}),
        ((), (), set[str]()),
    ],
)
async def test_allow_and_deny_decide_what_is_exposed(
    allow: tuple[str, ...] | None, deny: tuple[str, ...], exposed: set[str]
) -> None:
    server = in_process(allow_tools=allow, deny_tools=deny)
    async with ServerManager(config(server), approver=ApproveAll()) as manager:
        await manager.connect("shop")
        assert {tool.name for tool in manager.catalog.tools} == exposed
        for name in {"add", "delete_all", "wait"} - exposed:
            with pytest.raises(ToolNotFoundError):
                await manager.call("shop", name, {})


async def test_a_name_that_matches_no_tool_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    server = in_process(allow_tools=("add", "ad"), deny_tools=("delete-all",))
    async with ServerManager(config(server), approver=ApproveAll()) as manager:
        await manager.connect("shop")
        assert manager.status("shop").problems == (
            "allowTools or denyTools names 'ad', which it does not list",
            "allowTools or denyTools names 'delete-all', which it does not list",
        )
    assert "has no tool 'ad'" in caplog.text


async def test_a_misspelt_tool_gets_the_nearest_name() -> None:
    async with ServerManager(config(in_process()), approver=ApproveAll()) as manager:
        with pytest.raises(ToolNotFoundError, match=r"exposes no tool 'delete-all'; did you mean 'delete_all'\?"):
            await manager.call("shop", "delete-all", {})


async def test_an_unknown_server_is_named_with_the_known_ones() -> None:
    async with ServerManager(config(in_process())) as manager:
        with pytest.raises(UnknownServerError, match=r"No server 'bank' is configured. Known servers: shop\."):
            await manager.connect("bank")


async def test_a_disabled_server_is_neither_started_nor_exposed() -> None:
    approver = ApproveAll()
    async with ServerManager(config(in_process(enabled=False)), approver=approver) as manager:
        await manager.start_all()
        with pytest.raises(ServerClosedError, match="disabled"):
            await manager.connect("shop")
        assert manager.catalog.modules == ()
    assert approver.asked == []


async def test_listings_are_kept_and_known_without_a_connection(tmp_path: Path) -> None:
    directory = tmp_path / "listings"
    async with ServerManager(config(in_process()), approver=ApproveAll(), directory=directory) as manager:
        await manager.connect("shop")
    async with ServerManager(config(in_process()), directory=directory) as manager:
        assert manager.status("shop").state == "idle"
        assert manager.status("shop").tools == 3
        assert [tool.identifier for tool in manager.catalog.tools] == ["add", "delete_all", "wait"]


async def test_reload_closes_what_changed_and_keeps_the_rest() -> None:
    kept, changed, gone = in_process("kept"), in_process("changed"), in_process("gone")
    events: list[ServerEvent] = []
    before = config(kept, changed, gone)
    async with ServerManager(before, approver=ApproveAll(), observers=[events.append]) as manager:
        await manager.start_all()
        events.clear()
        await manager.reload(config(kept, in_process("changed", description="new"), in_process("added")))
        assert [status.name for status in manager.statuses()] == ["added", "changed", "kept"]
        assert manager.status("kept").state == "connected"
        assert manager.status("changed").state == "idle"
        assert {event.server for event in events if isinstance(event, StateChanged)} == {"changed", "gone"}
        with pytest.raises(UnknownServerError):
            await manager.call("gone", "add", {"a": 1, "b": 1})
        assert text(await manager.call("changed", "add", {"a": 1, "b": 1})) == "2"


async def test_closing_a_server_ends_its_calls_and_the_next_use_connects_anew() -> None:
    async with ServerManager(config(in_process()), approver=ApproveAll()) as manager:
        await manager.connect("shop")
        async with anyio.create_task_group() as tasks:

            async def call() -> None:
                with pytest.raises(ServerClosedError, match="was closed during the call of 'wait'"):
                    await manager.call("shop", "wait", {})

            tasks.start_soon(call)
            await anyio.wait_all_tasks_blocked()
            await manager.close_server("shop")
        assert manager.status("shop").state == "closed"
        await manager.close_server("shop")
        assert text(await manager.call("shop", "add", {"a": 1, "b": 2})) == "3"
        await manager.close()
        await manager.close()
        with pytest.raises(ServerClosedError):
            await manager.connect("shop")


async def test_what_is_no_server_object_is_a_clear_error() -> None:
    async with ServerManager(
        config(ServerConfig(name="shop", transport="in_process", server="x")), approver=ApproveAll()
    ) as manager:
        with pytest.raises(ServerConnectError, match="is of type str: expected"):
            await manager.connect("shop")
        assert manager.status("shop").state == "error"


async def test_observers_see_states_and_tools_and_one_that_raises_harms_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    events: list[ServerEvent] = []

    def broken(event: ServerEvent) -> None:
        raise RuntimeError("observer")

    async with ServerManager(config(in_process()), approver=ApproveAll(), observers=[broken, events.append]) as manager:
        await manager.connect("shop")
    assert events == [
        StateChanged("shop", "needs_approval"),
        StateChanged("shop", "connecting"),
        ToolsChanged("shop"),
        StateChanged("shop", "connected"),
        StateChanged("shop", "closed"),
    ]
    assert "An observer raised" in caplog.text
