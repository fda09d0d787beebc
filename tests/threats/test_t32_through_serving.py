"""T32, through `run_code`: a program that arrives over MCP reaches no more than one that does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from serve.serving import ERAS, Era, client_of, service_of, text_of

pytestmark = pytest.mark.anyio

ESCAPES = {
    "environment": 'typeof process === "undefined" ? "nothing" : process.env.PLANTED',
    "files": '(() => { try { return require("fs").readFileSync("/etc/passwd") } catch (e) { return "nothing" } })()',
    "network": 'typeof fetch === "undefined" ? "nothing" : "reached"',
}
IN_PYTHON = {
    "environment": "import os\nos.environ.get('PLANTED', 'nothing')",
    "files": "try:\n    result = open('/etc/passwd').read()\nexcept OSError:\n    result = 'nothing'",
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("era", ERAS)
async def test_a_served_program_reaches_nothing(tmp_path: Path, era: Era, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", "swordfish")
    async with service_of(tmp_path) as service, client_of(service, era) as client:
        for language, programs in (("javascript", ESCAPES), ("python", IN_PYTHON)):
            for code in programs.values():
                result = await client.call_tool("run_code", {"code": code, "language": language})
                assert text_of(result) == "nothing", code


async def test_no_argument_of_a_tool_reaches_the_host(tmp_path: Path) -> None:
    async with service_of(tmp_path) as service, client_of(service, "legacy") as client:
        for name in ("../../etc/passwd", "host:bridge", "toolbridge.serve", "__class__", "\0"):
            result = await client.call_tool("describe", {"names": [name]})
            assert result.is_error
            assert "root:" not in text_of(result)
