"""Every program in docs/embed-in-python.md runs, and its host is no longer than it says."""

from __future__ import annotations

import os
import re
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import anyio
import pytest

from cli.projects import Project
from servers.authorization_server import protected_server
from toolbridge import callbacks
from toolbridge.opening import RuntimeOptions
from toolbridge.sources import plugins

GUIDE = (Path(__file__).parents[1] / "docs/embed-in-python.md").read_text(encoding="utf-8")
MOST_LINES = 30


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


def block(having: str) -> str:
    (found,) = [text for text in blocks("python") if having in text]
    return found


def run(text: str, *arguments: str) -> dict[str, Any]:
    """Runs a program in names of its own, as a host would."""
    module: dict[str, Any] = {"__name__": "embedding_example"}
    exec(compile(text, "embed-in-python.md", "exec", dont_inherit=True), module)
    if "main" in module:
        anyio.run(module["main"], *arguments)
    return module


@pytest.fixture(autouse=True)
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is looked for, or left, in the repository."""
    monkeypatch.chdir(tmp_path)


def test_every_host_is_short() -> None:
    lines = [[line for line in text.splitlines() if line] for text in blocks("python")]
    assert [len(each) for each in lines if len(each) > MOST_LINES] == []
    assert len(blocks("python")) == 11


def test_own_functions() -> None:
    names = run(block("@tool\n"))
    exec(block("test_there_is_tea"), names)
    names["test_there_is_tea"]()


def test_a_sandbox_without_servers() -> None:
    run(block("Sandbox("))


def test_callbacks_that_decide() -> None:
    run(block("async def observer"))


FORMS = """
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import InputRequiredResult

server = MCPServer("forms")
FORM = {"type": "object", "properties": {"name": {"type": "string"}}}
QUESTION = {"role": "user", "content": {"type": "text", "text": "6 * 7?"}}
ASKED = {
    "who": {"method": "elicitation/create", "params": {"message": "Who are you?", "requestedSchema": FORM}},
    "what": {"method": "sampling/createMessage", "params": {"messages": [QUESTION], "maxTokens": 5}},
    "where": {"method": "roots/list"},
}


@server.tool()
def ask_all(context: Context) -> str | InputRequiredResult:
    given = context.input_responses
    if given is None:
        return InputRequiredResult.model_validate({"inputRequests": ASKED})
    return f"{given['who'].content['name']}, {given['what'].content.text}, {given['where'].roots[0].uri}"


server.run()
"""


def test_callbacks_that_answer_a_server(tmp_path: Path) -> None:
    (tmp_path / "forms.py").write_text(FORMS, encoding="utf-8")
    run(block("def sampler"))


def test_a_callback_for_signing_in(monkeypatch: pytest.MonkeyPatch) -> None:
    with protected_server() as server:
        monkeypatch.setattr("webbrowser.open", server.sign_in)
        run(block("def sign_in"), server.url)
        assert len(server.visited) == 1


def test_the_table_has_every_callback() -> None:
    table = GUIDE.split("| callback | method |")[1].split("\n\n")[0]
    named = set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE))
    annotated = {name: str(each) for name, each in RuntimeOptions.__annotations__.items()}
    assert named == {
        name for name, each in annotated.items() if re.search(r"\w+Like\b(?<!PathLike)|CanUseTool|Observer", each)
    }
    assert f"waits up to {callbacks.SETTLE_SECONDS:g} seconds" in GUIDE


def test_plugins_and_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme_notes_of_the_guide.py").write_text(block("hookimpl"), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))  # pyright: ignore[reportUnknownMemberType]  # pytest leaves it open
    (toml,) = blocks("toml")
    (target,) = re.findall(r'^acme = "acme_notes:(\w+)"$', toml, re.MULTILINE)
    entry = EntryPoint("acme", f"acme_notes_of_the_guide:{target}", "toolbridge.plugins")
    monkeypatch.setattr(plugins, "_installed", lambda: [entry])
    run(block("PluginPolicy("))
    run(block("task.reasons["))


def test_profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path)
    project.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), project.environ["PATH"]])
    project.write(blocks("json")[0], "toolbridge.json")
    for name, profile in (("weather", "outdoors"), ("atlas", "maps")):
        _, out, _ = project.run("approve", name, "--profile", profile)
        (digest,) = set(re.findall(r"sha256:[0-9a-f]{64}", out))
        assert project.run("approve", name, "--profile", profile, "--hash", digest, "--yes")[0] == 0
    for name, value in project.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(project.directory)
    run(block("switch_profiles("))


def test_sections() -> None:
    run(block("Visibility.SUMMARY"))


def test_the_table_has_every_field_of_a_plugins_server() -> None:
    table = GUIDE.split("| field | default | meaning |")[1].split("\n\n")[0]
    assert tuple(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == plugins.FIELDS


def test_the_numbers_are_those_of_the_code() -> None:
    assert f"takes longer than {plugins.LOAD_SECONDS:g} seconds" in GUIDE
    assert f"beyond {plugins.MOST_SERVERS} servers" in GUIDE
