"""2026-07-28: a call that goes on over several requests, and what can go wrong between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, ElicitResult, InputRequiredResult

from runtime.worlds import weather
from serve.serving import Person, client_of, service_of
from toolbridge import Limits, Permissions
from toolbridge.serve.service import ServeOptions

pytestmark = pytest.mark.anyio

CALL = {"code": 'require("host:mcp-weather").get_forecast({ location: "Oslo" }).days.length'}
ASK = Permissions(ask=("mcp__weather__*",))
YES = ElicitResult(action="accept", content={"allow": "once"})


async def first_round(client: Client) -> InputRequiredResult:
    result = await client.session.call_tool("run_code", CALL, allow_input_required=True)
    assert isinstance(result, InputRequiredResult)
    assert result.input_requests is not None
    return result


async def next_round(
    client: Client, asked: InputRequiredResult, *, call: dict[str, Any] = CALL, **changes: Any
) -> CallToolResult | InputRequiredResult:
    responses = changes.get("responses", dict.fromkeys(asked.input_requests or {}, YES))
    state = changes.get("state", asked.request_state)
    return await client.session.call_tool(
        "run_code", call, input_responses=responses, request_state=state, allow_input_required=True
    )


async def test_the_answer_continues_the_program_where_it_was(tmp_path: Path) -> None:
    async with service_of(tmp_path, weather(), permissions=ASK) as service:
        async with client_of(service, "auto", Person()) as client:
            asked = await first_round(client)
            assert service.watch.running == 1
            result = await next_round(client, asked)
            assert isinstance(result, CallToolResult)
            assert result.structured_content is not None
            assert result.structured_content["value"] == 3
        assert service.facts()["rounds_waiting"] == 0


async def test_an_answer_to_another_question_is_none(tmp_path: Path) -> None:
    async with (
        service_of(tmp_path, weather(), permissions=ASK) as service,
        client_of(service, "auto", Person()) as client,
    ):
        asked = await first_round(client)
        result = await next_round(client, asked, responses={"call somewhere-else": YES})
        assert isinstance(result, CallToolResult)
        assert result.structured_content is not None
        assert "the person said no" in result.structured_content["failure"]["text"]


@pytest.mark.parametrize("attack", ["forged", "altered", "for another call", "twice"])
async def test_a_state_that_is_not_for_this_round_continues_nothing(tmp_path: Path, attack: str) -> None:
    async with (
        service_of(tmp_path, weather(), permissions=ASK) as service,
        client_of(service, "auto", Person()) as client,
    ):
        asked = await first_round(client)
        state = asked.request_state or ""
        changes: dict[str, Any] = {
            "forged": {"state": "0123456789abcdef.0"},
            "altered": {"state": state[:-4] + ("AAAA" if not state.endswith("AAAA") else "BBBB")},
            "for another call": {"call": {"code": "1 + 1"}},
            "twice": {},
        }[attack]
        if attack == "twice":
            assert isinstance(await next_round(client, asked), CallToolResult)
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await next_round(client, asked, **changes)
        if attack != "twice":  # and whoever has the right one is not disturbed
            assert isinstance(await next_round(client, asked), CallToolResult)


async def test_a_call_whose_client_does_not_come_back_ends(tmp_path: Path) -> None:
    options = ServeOptions(limits=Limits(ask_seconds=0.2))
    async with (
        service_of(tmp_path, weather(), permissions=ASK, options=options) as service,
        client_of(service, "auto", Person()) as client,
    ):
        await first_round(client)
        with anyio.fail_after(60):
            while service.watch.running or service.facts()["rounds_waiting"]:  # noqa: ASYNC110
                await anyio.sleep(0.05)
