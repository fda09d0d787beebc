"""T21, through `toolbridge serve`: refusals, however many, and answers to other programs open the gate to nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp.server import MCPServer
from mcp_types import ElicitResult, ToolAnnotations

from serve.serving import ERAS, Era, Person, client_of, no, run, service_of
from toolbridge import ServerConfig

pytestmark = pytest.mark.anyio

OFTEN = """
const files = require("host:mcp-files"), heard = [];
for (let i = 0; i < 12; i++) {
  try { heard.push(files.remove({ name: `${i}` })) } catch (error) { heard.push(error.message) }
}
heard
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def files(removed: list[str]) -> ServerConfig:
    """A server that says of its tool that it destroys: asked about only where somebody can be."""
    server = MCPServer("files")

    @server.tool(annotations=ToolAnnotations(destructive_hint=True), structured_output=False)
    def remove(name: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Remove a file."""
        removed.append(name)
        return f"removed {name}"

    return ServerConfig.in_process("files", server)


@pytest.mark.parametrize("era", ERAS)
async def test_a_person_who_keeps_saying_no_is_never_overruled(tmp_path: Path, era: Era) -> None:
    """In 2026-07-28 one call can ask only so often: after that, nobody is asked, and nothing is allowed."""
    removed: list[str] = []
    person = Person(no)
    async with service_of(tmp_path, files(removed)) as service, client_of(service, era, person) as client:
        heard = (await run(client, OFTEN))["value"]
    assert removed == []
    assert len(heard) == 12
    asked = len(person.asked)
    assert all("the person said no" in each for each in heard[:asked])
    assert all("too many questions in one call" in each for each in heard[asked:])
    assert asked == (8 if era == "auto" else 12)


@pytest.mark.parametrize("era", ERAS)
async def test_what_was_allowed_for_one_run_is_asked_again_in_the_next_of_its_session(tmp_path: Path, era: Era) -> None:
    removed: list[str] = []
    person = Person(lambda _: ElicitResult(action="accept", content={"allow": "for this run"}))
    twice = 'const f = require("host:mcp-files"); [f.remove({ name: "a" }), f.remove({ name: "b" })].length'
    async with service_of(tmp_path, files(removed)) as service, client_of(service, era, person) as client:
        session = (await run(client, twice, session="new"))["session"]
        assert len(person.asked) == 1
        await run(client, twice.replace("const f", "var f2").replace("f.", "f2."), session=session)
        assert len(person.asked) == 2
    assert len(removed) == 4
