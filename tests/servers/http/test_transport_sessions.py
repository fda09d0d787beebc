"""HTTP sessions that end while they are used: what the server refused for that is asked again in a new one."""

from __future__ import annotations

import anyio
import pytest
from anyio.abc import SocketStream

from servers.http_servers import Received, config, raw_server, reply, result
from toolbridge.config.config import Config
from toolbridge.config.server_config import ServerLimits
from toolbridge.errors import ServerDisconnectedError
from toolbridge.servers.manager import ServerManager
from toolbridge.trust.approval.approver import Approval, ApprovalRequest

pytestmark = pytest.mark.anyio

GONE = reply("Session not found", status="404 Not Found", kind="text/plain")
GONE_BY_JSON = reply(
    {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "Session not found"}}, status="404 Not Found"
)
GONE_BY_400 = reply(
    {"jsonrpc": "2.0", "error": {"code": -32000, "message": "Bad Request: No valid session ID provided"}},
    status="400 Bad Request",
)
NOT_FOUND = reply({"jsonrpc": "2.0", "id": 1, "error": {"code": -32002, "message": "No such page"}}, status="404 No")
BAD_SESSION = reply(
    {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "The browser's session crashed"}},
    status="400 Bad Request",
)


class ApproveAll:
    async def approve(self, request: ApprovalRequest) -> Approval:
        return Approval(True)


class Forgetful:
    """Gives sessions numbers, and refuses calls in those that it has forgotten."""

    def __init__(self, refusal: bytes, *, forgets: int = 1000) -> None:
        self.refusal = refusal
        self.forgotten = {f"s{number}" for number in range(1, forgets + 1)}
        self.sessions = 0
        self.taken: list[str] = []
        """The sessions of the calls that were carried out."""

    async def answer(self, request: Received, stream: SocketStream) -> None:
        session = request.headers.get("mcp-session-id", "")
        if request.rpc == "initialize":
            self.sessions += 1
            about = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
            await stream.send(reply(result(request, about), headers={"mcp-session-id": f"s{self.sessions}"}))
        elif request.rpc == "tools/list":
            tools = [{"name": "act", "inputSchema": {"type": "object"}}]
            await stream.send(reply(result(request, {"tools": tools})))
        elif request.rpc == "tools/call" and session in self.forgotten:
            await stream.send(self.refusal)
        elif request.rpc == "tools/call":
            self.taken.append(session)
            await stream.send(reply(result(request, {"content": [{"type": "text", "text": session}]})))
        elif request.rpc == "server/discover":
            error = {"code": -32601, "message": "no"}
            await stream.send(reply({"jsonrpc": "2.0", "id": request.message["id"], "error": error}))
        elif request.rpc.startswith("notifications/") or request.method == "DELETE":
            await stream.send(reply(status="202 Accepted"))
        else:
            await stream.send(reply(status="405 Method Not Allowed"))


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


async def act(manager: ServerManager) -> None:
    await manager.call("weather", "act", {})


def manager_for(url: str) -> ServerManager:
    limits = ServerLimits(respawns=2, connect_seconds=20.0)
    return ServerManager(Config({"weather": config(url)}, limits), approver=ApproveAll())


@pytest.mark.parametrize("refusal", [GONE, GONE_BY_JSON, GONE_BY_400], ids=["text", "json", "400"])
async def test_a_call_that_was_refused_for_an_expired_session_is_made_in_a_new_one(refusal: bytes) -> None:
    server = Forgetful(refusal, forgets=1)
    async with raw_server(server.answer) as raw, manager_for(raw.url()) as manager:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(act, manager)
        assert server.taken == ["s2"] * 3


async def test_a_server_that_refuses_every_session_is_not_asked_for_ever() -> None:
    server = Forgetful(GONE)
    async with raw_server(server.answer) as raw, manager_for(raw.url()) as manager:
        with anyio.fail_after(60), pytest.raises(ServerDisconnectedError, match=r"ended 3 times .* knows the session"):
            await manager.call("weather", "act", {})
    assert raw.methods().count("tools/call") == 3


@pytest.mark.parametrize("refusal", [NOT_FOUND, BAD_SESSION], ids=["not found", "about a session"])
async def test_a_refusal_that_may_mean_something_else_is_not_asked_again(refusal: bytes) -> None:
    server = Forgetful(refusal)
    async with raw_server(server.answer) as raw, manager_for(raw.url()) as manager:
        with anyio.fail_after(60), pytest.raises(ServerDisconnectedError, match="may have taken effect"):
            await manager.call("weather", "act", {})
    assert raw.methods().count("tools/call") == 1
