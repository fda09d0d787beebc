"""T21, where nobody can be asked: "unattended" says which calls are made there, and no server's word makes it more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.projects import Project, weather
from runtime.worlds import runtime_of
from serve.serving import ERAS, Era, Person, call, client_of, run, service_of, text_of
from threats.gated_servers import Reached
from toolbridge import Config, Permissions, ServerConfig
from toolbridge.config.policy import UNATTENDED, Unattended

pytestmark = pytest.mark.anyio

TOOLS: dict[str, dict[str, Any]] = {
    "read": {"readOnlyHint": True},
    "look": {"readOnlyHint": True, "openWorldHint": True},
    "plain": {},
    "write": {"readOnlyHint": False, "destructiveHint": False},
    "liar": {"readOnlyHint": True, "destructiveHint": True},
    "remove": {"destructiveHint": True},
    "named": {"destructiveHint": True},
    "asked": {"readOnlyHint": True},
    "denied": {"readOnlyHint": True},
}
MADE: dict[Unattended, list[str]] = {
    "allow": ["read", "look", "plain", "write", "liar", "remove", "named"],
    "reads": ["read", "look", "named"],
    "deny": ["named"],
}
RULES = Permissions(allow=("mcp__s__named",), ask=("mcp__s__asked",), deny=("mcp__s__denied",))
ALL = f"""
const s = require("host:mcp-s"), heard = {{}};
for (const name of {json.dumps(list(TOOLS))}) {{
  try {{ s[name]({{}}); heard[name] = "made" }} catch (error) {{ heard[name] = error.message }}
}}
heard
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def config_of(reached: Reached, unattended: Unattended) -> Config:
    return Config.of(server(reached), permissions=RULES, unattended=unattended)


def server(reached: Reached) -> ServerConfig:
    return reached.server("s", TOOLS)


def made(heard: Any) -> list[str]:
    return [name for name, words in heard.items() if words == "made"]


@pytest.mark.parametrize("unattended", UNATTENDED)
async def test_without_a_host_that_answers_only_these_calls_are_made(tmp_path: Path, unattended: Unattended) -> None:
    reached = Reached()
    async with runtime_of(tmp_path, config=config_of(reached, unattended), pins="none") as runtime:
        heard: Any = (await runtime.run(ALL)).value
    assert made(heard) == [tool for _, tool in reached.calls] == MADE[unattended]
    if unattended != "allow":
        assert f"nobody can be asked about it, and 'unattended' is '{unattended}'" in heard["plain"]
        assert "Add 'mcp__s__plain' to permissions.allow" in heard["plain"]


@pytest.mark.parametrize("unattended", UNATTENDED)
async def test_where_somebody_can_be_asked_nothing_changes(tmp_path: Path, unattended: Unattended) -> None:
    reached, asked = Reached(), list[str]()

    async def can_use_tool(use: Any) -> bool:
        asked.append(use.tool)
        return True

    config = config_of(reached, unattended)
    async with runtime_of(tmp_path, config=config, can_use_tool=can_use_tool, pins="none") as runtime:
        heard: Any = (await runtime.run(ALL)).value
    assert made(heard) == [name for name in TOOLS if name != "denied"]
    assert asked == ["liar", "remove", "asked"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("unattended", UNATTENDED)
async def test_a_client_without_elicitation_has_what_was_chosen(
    tmp_path: Path, era: Era, unattended: Unattended
) -> None:
    reached, person = Reached(), Person()
    async with service_of(tmp_path, server(reached), permissions=RULES, unattended=unattended) as service:
        async with client_of(service, era) as client:
            assert made((await run(client, ALL))["value"]) == MADE[unattended]
            told = await call(client, "list_mcp_servers", {})
            assert f"This client can't ask a user: {'calls' if unattended == 'allow' else 'only'}" in text_of(told)
            facts: Any = told.structured_content
            assert (facts["attended"], facts["unattended"]) == (False, unattended)
        async with client_of(service, era, person) as client:
            assert made((await run(client, ALL))["value"]) == [name for name in TOOLS if name != "denied"]
            told = await call(client, "list_mcp_servers", {})
            assert "ask a user" not in text_of(told)
    assert len(person.asked) == 3


@pytest.mark.parametrize("unattended", UNATTENDED)
def test_a_command_without_a_terminal_has_what_was_chosen(tmp_path: Path, unattended: Unattended) -> None:
    project = Project(tmp_path)
    project.configure({"weather": weather()}, unattended=unattended)
    project.approve("weather")
    code, out, err = project.run("run", project.write('require("host:mcp-weather").list_stations().length'))
    if unattended != "allow":
        assert (code, out) == (1, "")
        assert f"'unattended' is '{unattended}'" in err
    else:
        assert (code, err) == (0, "")
    _, _, err = project.run("serve")
    assert f"(unattended: {unattended})" in err
