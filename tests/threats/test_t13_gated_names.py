"""T13, identifier collision, at the gate: the tool that was gated is the tool that is called, and no other is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from threats.gated_servers import Reached, gated
from toolbridge import Runtime
from toolbridge_codegen.catalog import ToolSpec

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def outcome(runtime: Runtime, tool: ToolSpec) -> str:
    """Calls one tool from a program by its identifier; the name of the error, or an empty text."""
    result = await runtime.run(
        f'const all = require("host:mcp-{tool.server}"); '
        f"let name = ''; try {{ all.{tool.identifier}({{}}) }} catch (error) {{ name = error.name }} name"
    )
    assert result.failure is None, str(result.failure)
    assert isinstance(result.value, str)
    return result.value


TWINS = [
    ["delete-all", "delete_all"],
    ["delete.all", "delete_all", "delete/all"],
    ["class", "class_"],
    ["read", "Read", "READ"],
]


@pytest.mark.parametrize("names", TWINS, ids=lambda names: names[0])
async def test_of_twins_each_is_gated_by_its_own_name(tmp_path: Path, names: list[str]) -> None:
    reached = Reached()
    server = reached.server("s", {name: {} for name in names})
    async with gated(tmp_path, server, default="deny") as runtime:
        await runtime.start_all()
        by_name = {tool.name: tool for tool in runtime.catalog.tools}
        patterns = {name: tool.qualified_name for name, tool in by_name.items()}
        assert [await outcome(runtime, tool) for tool in by_name.values()] == ["ToolDeniedError"] * len(names)
        assert reached.calls == []
    for allowed in names:
        reached.calls.clear()
        async with gated(tmp_path, server, default="deny", allow=[patterns[allowed]]) as runtime:
            await runtime.start_all()
            for name, tool in by_name.items():
                assert await outcome(runtime, tool) == ("" if name == allowed else "ToolDeniedError")
        assert reached.calls == [("s", allowed)]


@pytest.mark.parametrize("level", ["deny", "ask"])
@pytest.mark.parametrize(
    "pattern",
    ["mcp__git-hub__del_it", "mcp:git-hub_del_it", "mcp__git_hub__*", "mcp:git_hub_*", "mcp__git_hub__del-it"],
)
async def test_a_rule_holds_in_whichever_way_its_author_may_have_seen_the_name(
    tmp_path: Path, level: str, pattern: str
) -> None:
    """In Python the module is `host.mcp_git_hub` and the function `del_it`: a rule that is written so holds."""
    reached = Reached()
    server = reached.server("git-hub", {"del-it": {}})
    rules: Any = {level: [pattern]}
    async with gated(tmp_path, server, **rules) as runtime:
        await runtime.start_all()
        (tool,) = runtime.catalog.tools
        assert await outcome(runtime, tool) == "ToolDeniedError"
    assert reached.calls == []


async def test_a_server_can_not_take_a_tool_of_another_out_of_a_deny(tmp_path: Path) -> None:
    """`git` lists `hub_delete`, so that `mcp:git_hub_delete` could be its own; `git_hub` keeps its rule."""
    reached = Reached()
    servers = [reached.server("git_hub", {"delete": {}, "read": {}}), reached.server("git", {"hub_delete": {}})]
    async with gated(tmp_path, *servers, deny=["mcp:git_hub_delete"]) as runtime:
        await runtime.start_all()
        denied, read = runtime.catalog.tool("git_hub", "delete"), runtime.catalog.tool("git_hub", "read")
        assert denied is not None
        assert read is not None
        assert await outcome(runtime, denied) == "ToolDeniedError"
        assert await outcome(runtime, read) == ""
    assert reached.calls == [("git_hub", "read")]


async def test_a_server_can_not_take_an_allow_that_was_meant_for_another(tmp_path: Path) -> None:
    """Before `git_hub` has listed its tools, the catalog's name of `hub_delete` of `git` is the very pattern."""
    reached = Reached()
    git, hub = reached.server("git", {"hub_delete": {}}), reached.server("git_hub", {"delete": {}})
    for servers, expected in (([git], ""), ([git, hub], "ToolDeniedError")):
        async with gated(tmp_path, *servers, default="deny", allow=["mcp:git_hub_delete"]) as runtime:
            await runtime.servers.connect("git")
            (tool,) = runtime.catalog.tools
            assert f"mcp:{tool.short_name}" == "mcp:git_hub_delete"
            assert await outcome(runtime, tool) == expected
    assert reached.calls == [("git", "hub_delete")]
