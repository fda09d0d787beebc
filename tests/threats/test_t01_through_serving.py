"""T1 and T2, through `toolbridge serve`: no tool of ours starts a server that no person said yes to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_types import ElicitRequestFormParams, ElicitResult

from serve.serving import ERAS, Era, Person, Says, client_of, service_of
from toolbridge import ServerConfig
from toolbridge.trust.approval.approvers import PROCESS_WARNING

pytestmark = pytest.mark.anyio

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("search_tools", {"query": "anything"}),
    ("describe", {"names": ["canary"]}),
    ("run_code", {"code": 'require("host:mcp-canary")'}),
    ("run_code", {"code": "import host.mcp_canary", "language": "python"}),
    ("run_code", {"code": 'require("host:mcp-canary")', "session": "new"}),
    ("list_mcp_servers", {}),
    ("mcp_server_info", {"server": "canary"}),
    *(("manage_mcp", {"server": "canary", "action": action}) for action in ("connect", "approve", "enable")),
]


def form_as_it_is(params: ElicitRequestFormParams) -> ElicitResult:
    """A client that accepts every form unseen."""
    given = {name: each.get("default") for name, each in params.requested_schema["properties"].items()}
    return ElicitResult(action="accept", content=given)


def something_else(_params: ElicitRequestFormParams) -> ElicitResult:
    """A client that makes up an answer."""
    return ElicitResult(action="accept", content={"agree": "true", "approve": True, "yes": True})


PERSONS: dict[str, Says | None] = {
    "nobody can be asked": None,
    "the answer is no": lambda _: ElicitResult(action="decline"),
    "the form is sent off as it is": form_as_it_is,
    "the answer is made up": something_else,
    "the question is dismissed": lambda _: ElicitResult(action="cancel"),
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("who", PERSONS)
async def test_no_tool_starts_a_server_without_a_yes(tmp_path: Path, era: Era, who: str) -> None:
    canary = tmp_path / "canary"
    server = ServerConfig.stdio("canary", sys.executable, ["-c", f"open({str(canary)!r}, 'w')"])
    says = PERSONS[who]
    person = None if says is None else Person(says)
    async with service_of(tmp_path, server) as service, client_of(service, era, person) as client:
        for name, arguments in CALLS:
            await client.call_tool(name, arguments)
        assert not canary.exists()
    assert person is None or PROCESS_WARNING in person.messages[0]
    assert not (tmp_path / "approvals" / "approved-mcp.json").exists()
