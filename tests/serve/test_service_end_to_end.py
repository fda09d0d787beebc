"""A scripted client in place of a model: five servers that others wrote, one session, approvals by elicitation."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from cli.projects import COMMAND, Project
from registry_packages import _python_environment, node_modules, python_servers
from runtime.real_servers import REAL_SERVERS
from serve.serving import Person, call, run, text_of
from toolbridge import ServerConfig
from toolbridge.trust.approval.approvers import PROCESS_WARNING

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

EXCEL = ("excel-mcp-server==2.2.2",)


@cache
def excel_server() -> Path:
    return _python_environment("python-excel", EXCEL)


def entry(config: ServerConfig) -> dict[str, Any]:
    return {"command": config.command, "args": list(config.args), "env": dict(config.env), "connectTimeout": 60}


def five_servers(directory: Path) -> dict[str, dict[str, Any]]:
    """Configured as a person would."""
    node_modules()
    python_servers()
    places = {name: directory / name for name in ("everything", "filesystem", "memory", "git")}
    for place in places.values():
        place.mkdir()
    servers = {name: entry(REAL_SERVERS[name](place).config) for name, place in places.items()}
    program = str(excel_server() / "excel-mcp-server")
    return {**servers, "excel": {"command": program, "args": ["stdio"], "connectTimeout": 60}}


async def test_search_describe_and_run_over_five_real_servers(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.configure(five_servers(tmp_path))
    book = str(tmp_path / "filesystem" / "book.xlsx")
    note = str(tmp_path / "filesystem" / "note.txt")
    person = Person()
    server = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "serve"], cwd=str(project.directory), env=project.environ
    )
    with anyio.fail_after(240):
        async with Client(server, elicitation_callback=person) as client:
            found = await call(client, "search_tools", {"query": "write data to a worksheet", "limit": 5})
            assert found.structured_content is not None
            assert found.structured_content["unavailable"] == []
            assert "write_range" in text_of(found)
            assert len(person.asked) == 5

            listed = await call(client, "list_mcp_servers")
            assert listed.structured_content is not None
            assert sum(each["tools"] for each in listed.structured_content["servers"]) >= 60

            described = await call(client, "describe", {"names": ["excel.create_workbook", "filesystem.write_file"]})
            assert "create_workbook" in text_of(described)
            assert "write_file" in text_of(described)

            result = await run(client, PROGRAM % {"book": book, "note": note, "git": str(tmp_path / "git")})
            assert result["failure"] is None, result["failure"]
            assert result["value"]["sum"].endswith("42.")
            assert result["value"]["note"] == "42"
            assert "Ada" in result["value"]["graph"]
            assert "new.txt" in result["value"]["status"]
            assert set(result["servers"]) == {"everything", "filesystem", "memory", "git", "excel"}
    assert (tmp_path / "filesystem" / "book.xlsx").exists()
    approvals = [message for message in person.messages if PROCESS_WARNING in message]
    assert len(approvals) == 5
    calls = [message for message in person.messages if message not in approvals]
    assert all(
        message.startswith("A program wants to call a tool.\n") for message in calls
    )  # they may destroy something
    assert sys.executable not in text_of(described)


PROGRAM = """
import { get_sum } from "host:mcp-everything";
import { write_file, read_text_file } from "host:mcp-filesystem";
import { create_entities, read_graph } from "host:mcp-memory";
import { git_status } from "host:mcp-git";
import { create_workbook } from "host:mcp-excel";

const sum = get_sum({ a: 20, b: 22 });
write_file({ path: %(note)r, content: String(42) });
create_workbook({ path: %(book)r });
create_entities({ entities: [{ name: "Ada", entityType: "person", observations: ["born in 1815"] }] });
({
  sum,
  note: read_text_file({ path: %(note)r }).content,
  graph: JSON.stringify(read_graph({})),
  status: git_status({ repo_path: %(git)r }),
})
"""
