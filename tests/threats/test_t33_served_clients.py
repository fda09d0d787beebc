"""T33, between the clients of one `toolbridge serve`: sessions, states of rounds and errors are each one's own."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult, InputRequiredResult, InputResponses

from runtime.worlds import weather
from serve.http_service import HEADERS, http_service_of
from serve.serving import Person, run, text_of
from toolbridge import Permissions

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_another_clients_session_is_as_unknown_as_none(tmp_path: Path) -> None:
    async with (
        http_service_of(tmp_path) as http,
        Client(http.url, mode="legacy") as owner,
        Client(http.url, mode="legacy") as thief,
    ):
        session = (await run(owner, 'globalThis.secret = "swordfish"; 1', session="new"))["session"]
        guessed = await thief.call_tool("run_code", {"code": "secret", "session": "0" * 32})
        stolen = await thief.call_tool("run_code", {"code": "secret", "session": session})
        assert text_of(stolen) == text_of(guessed).replace("0" * 32, session)
        assert "swordfish" not in text_of(stolen)


async def test_sessions_cannot_be_guessed(tmp_path: Path) -> None:
    async with http_service_of(tmp_path) as http, Client(http.url, mode="auto") as client:
        ids = {(await run(client, "1", session="new"))["session"] for _ in range(3)}
        assert len(ids) == 3
        assert all(len(each) == 32 for each in ids)


async def test_globals_and_handles_of_one_client_are_not_anothers(tmp_path: Path) -> None:
    async with (
        http_service_of(tmp_path, weather()) as http,
        Client(http.url, mode="legacy") as first,
        Client(http.url, mode="auto") as second,
    ):
        picture = 'globalThis.kept = require("host:mcp-weather").picture(); 1'
        await run(first, picture, session="new")
        await run(first, picture)
        assert (await run(second, "typeof kept"))["value"] == "undefined"
        assert (await run(second, "typeof kept", session="new"))["value"] == "undefined"


async def test_a_state_of_one_call_continues_no_other(tmp_path: Path) -> None:
    """Whoever saw the sealed state of a call can't answer for its person with another call."""
    ask = Permissions(ask=("mcp__weather__*",))
    code = 'require("host:mcp-weather").get_forecast({ location: "Oslo" }).location'
    async with (
        http_service_of(tmp_path, weather(), permissions=ask) as http,
        Client(http.url, mode="auto", elicitation_callback=Person()) as owner,
        Client(http.url, mode="auto", elicitation_callback=Person()) as thief,
    ):
        asked = await owner.session.call_tool("run_code", {"code": code}, allow_input_required=True)
        assert isinstance(asked, InputRequiredResult)
        yes = ElicitResult(action="accept", content={"allow": "once"})
        responses: InputResponses = dict.fromkeys(asked.input_requests or {}, yes)
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await thief.session.call_tool(
                "run_code", {"code": "1"}, input_responses=responses, request_state=asked.request_state
            )


async def test_what_failed_for_one_client_is_not_told_to_another(tmp_path: Path) -> None:
    async with (
        http_service_of(tmp_path, weather()) as http,
        Client(http.url, mode="legacy") as first,
        Client(http.url, mode="legacy") as second,
    ):
        await first.call_tool("run_code", {"code": 'require("host:mcp-weather").fail({ message: "swordfish" })'})
        told = await second.call_tool("list_mcp_servers", {})
        assert "swordfish" not in text_of(told)


@pytest.mark.parametrize("named", ["http", "stdio", "('http', '')", "session", ""])
async def test_nobody_ends_what_others_have_by_naming_it(tmp_path: Path, named: str) -> None:
    async with (
        http_service_of(tmp_path) as http,
        Client(http.url, mode="auto") as modern,
        Client(http.url, mode="legacy") as legacy,
        httpx2.AsyncClient() as attacker,
    ):
        sessions = [(client, (await run(client, "1", session="new"))["session"]) for client in (modern, legacy)]
        for headers in ({}, {"mcp-protocol-version": "2026-07-28"}):
            answer = await attacker.delete(http.url, headers={**HEADERS, **headers, "mcp-session-id": named})
            assert answer.status_code >= 400
        for client, session in sessions:
            assert (await run(client, "2", session=session))["value"] == 2


async def test_a_client_that_says_goodbye_takes_its_sessions_along_and_no_others(tmp_path: Path) -> None:
    async with http_service_of(tmp_path) as http, Client(http.url, mode="legacy") as stays:
        kept = (await run(stays, "1", session="new"))["session"]
        async with Client(http.url, mode="legacy") as leaves:
            await run(leaves, "1", session="new")
            assert len(http.service.sessions) == 2
        assert len(http.service.sessions) == 1
        assert (await run(stays, "2", session=kept))["value"] == 2


async def test_a_name_that_a_modern_client_makes_up_is_nobodys(tmp_path: Path) -> None:
    """There are no sessions of the protocol in 2026-07-28: a header that names one fills no list of known clients."""
    async with http_service_of(tmp_path) as http:
        for number in range(4):
            async with (
                httpx2.AsyncClient(headers={"mcp-session-id": f"made-up-{number}"}) as invented,
                Client(streamable_http_client(http.url, http_client=invented), mode="auto") as client,
            ):
                await run(client, "1", session="new")
        assert len(http.service.clients) == 0
        async with Client(http.url, mode="auto") as client:
            refused = await client.call_tool("run_code", {"code": "1", "session": "new"})
            assert "too many sessions (4 of your address, 4 in all)" in text_of(refused)
