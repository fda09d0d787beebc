"""What clients are told of modules: at the start, and when they change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp_types import ToolListChangedNotification

from runtime.worlds import weather
from serve.serving import Era, client_of, service_of
from toolbridge.describe.system_prompt import count_tokens
from toolbridge.prompt import ModuleSummary
from toolbridge.serve.definitions import MOST_TOKENS, instructions, module_names

pytestmark = pytest.mark.anyio


def modules(count: int, summary: str = "Forecasts and alerts.") -> list[ModuleSummary]:
    names = [f"server-{number}" for number in range(count)]
    return [ModuleSummary(f"host:mcp-{name}", f"host.mcp_{name}", name, name, 12, summary, "idle") for name in names]


@pytest.mark.parametrize("count", [0, 1, 5, 10, 50, 500])
def test_instructions_are_short_and_name_modules_where_they_fit(count: int) -> None:
    text = instructions(modules(count))
    assert count_tokens(text) < MOST_TOKENS
    assert ("host:mcp-server-0" in text) is (count > 0)
    assert ("more: search_tools finds them" in text) is (count >= 50)
    assert "Forecasts and alerts." not in text  # the words of a server have no place in a system prompt


def test_the_description_of_a_tool_names_servers_within_bounds() -> None:
    assert module_names([]) == ""
    assert module_names(modules(2)) == " Servers: server-0, server-1."
    assert len(module_names(modules(500))) < 400
    assert module_names(modules(500)).endswith(" more.")


async def test_a_client_hears_when_modules_change(tmp_path: Path, era: Era) -> None:
    changed = anyio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            changed.set()

    async with service_of(tmp_path, weather()) as service, client_of(service, era, message_handler=hear) as client:
        capabilities = client.server_capabilities
        assert capabilities is not None
        assert capabilities.tools is not None
        assert capabilities.tools.list_changed
        if era == "auto":
            async with client.listen(tools_list_changed=True) as events:
                await service.runtime.start_all()
                with anyio.fail_after(60):
                    async for _ in events:
                        break
            return
        await service.runtime.start_all()
        with anyio.fail_after(60):
            await changed.wait()
