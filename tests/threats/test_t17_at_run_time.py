"""T17, reserved members, at run time: names of a server's choice pollute neither the guest nor the host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp.server import MCPServer

from runtime.worlds import runtime_of
from threats.gated_servers import Reached, gated
from toolbridge import Runtime, ServerConfig

pytestmark = pytest.mark.anyio

NAMES = [
    "__proto__",
    "constructor",
    "prototype",
    "then",
    "toString",
    "__class__",
    "__getattr__",
    "class",
    "import",
    "default",
]
PROBE = """
  [typeof {}.polluted, typeof [].polluted, typeof (() => 0).polluted, typeof "".polluted, typeof globalThis.polluted,
   Object.keys(Object.prototype).length, Object.getPrototypeOf({}) === Object.prototype]
"""
CLEAN: list[Any] = ["undefined"] * 5 + [0, True]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_tools_of_reserved_names_are_called_by_their_identifiers_and_import_is_not_a_promise(
    tmp_path: Path,
) -> None:
    reached = Reached()
    async with gated(tmp_path, reached.server("s", {name: {} for name in NAMES})) as runtime:
        await runtime.start_all()
        for tool in runtime.catalog.tools:
            result = await runtime.run(f'require("host:mcp-s").{tool.identifier}({{}})')
            assert result.failure is None, (tool.name, str(result.failure))
        assert sorted(reached.calls) == sorted(("s", name) for name in NAMES)
        result = await runtime.run(
            'import * as all from "host:mcp-s"; const later = await import("host:mcp-s"); '
            f"[typeof later.then, Object.getPrototypeOf(all) === null || typeof all.then, {PROBE.strip()}]"
        )
        assert result.failure is None, str(result.failure)
        assert result.value[0] == "undefined", "a module with `then` would be awaited, and its tool called"
        assert result.value[2] == CLEAN


def echo() -> ServerConfig:
    server = MCPServer("echo")

    def give(kind: str) -> dict[str, Any]:
        value = {name: {"polluted": True, "prototype": {"polluted": True}} for name in NAMES}
        return {"value": value, kind: {"polluted": True}}

    server.add_tool(give)
    return ServerConfig.in_process("echo", server)


async def values_of(runtime: Runtime, kind: str) -> Any:
    program = f"""
        import {{ give }} from "host:mcp-echo";
        const value = give({{ kind: {json.dumps(kind)} }});
        const ways = [structuredClone, (own) => ({{ ...own }}), (own) => JSON.parse(JSON.stringify(own))];
        for (const copy of ways) copy(value);
        export default [{PROBE.strip()}, Object.keys(value.value).length, Object.hasOwn(value, {json.dumps(kind)})];
    """
    result = await runtime.run(program)
    assert result.failure is None, str(result.failure)
    return result.value


async def test_members_of_a_result_are_its_own_and_nobody_elses(tmp_path: Path) -> None:
    async with runtime_of(tmp_path, echo(), pins="none") as runtime:
        for kind in NAMES:
            clean, members, is_own = await values_of(runtime, kind)
            assert clean == CLEAN, kind
            assert members == len(NAMES), kind
            assert is_own is True, kind
        again = await runtime.run(PROBE)
        assert again.value == CLEAN


async def test_members_of_arguments_arrive_as_they_are(tmp_path: Path) -> None:
    reached = Reached()
    async with gated(tmp_path, reached.server("s", {"f": {}})) as runtime:
        text = json.dumps({"other": dict.fromkeys(NAMES, 1)})
        result = await runtime.run(f'require("host:mcp-s").f(JSON.parse({json.dumps(text)}))')
        assert result.failure is None, str(result.failure)
    assert reached.calls == [("s", "f")]
