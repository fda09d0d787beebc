"""Servers that others wrote, from npm and PyPI, and one use of each of their tools."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest

from registry_packages import node_modules, python_servers, sqlite_server
from toolbridge import ServerConfig
from toolbridge.config.server_config import ServerLimits

PATIENT = ServerLimits(connect_seconds=60.0, call_seconds=60.0, close_seconds=1.0)
"""Real servers take a second or more to start, and longer on a busy machine."""

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
SOUND = b"RIFF" + bytes(range(256))


Check: TypeAlias = Callable[[Any], bool]


class Use(NamedTuple):
    """One call of a tool by its stub's name, and what its value must be."""

    tool: str
    input: dict[str, Any]
    is_right: Check


class Failure(NamedTuple):
    """One call that the tool itself refuses, and words that must be in its error."""

    tool: str
    input: dict[str, Any]
    words: str


@dataclass(frozen=True)
class RealServer:
    """A server, and what to do with it, in order: every tool at least once."""

    config: ServerConfig
    uses: tuple[Use | Failure, ...]


def _node_server(name: str, *args: str, **env: str) -> ServerConfig:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    script = node_modules() / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js"
    return ServerConfig.stdio(name, node, [str(script), *args], env=env)


def _is(expected: Any) -> Check:
    """Exactly this."""
    return lambda value: value == expected


def _has(*words: str) -> Check:
    """A text with all of these words in it."""
    return lambda value: isinstance(value, str) and all(word in value for word in words)


def _at(*path: str | int, is_right: Check) -> Check:
    """A part of the value."""

    def check(value: Any) -> bool:
        for key in path:
            value = value[key]
        return is_right(value)

    return check


def _says(*words: str) -> Check:
    """The filesystem server's way: a text as the one member of an object."""
    return lambda value: list(value) == ["content"] and _has(*words)(value["content"])


# ---- everything


def everything_config() -> ServerConfig:
    """The protocol's own server for testing clients."""
    return _node_server("everything")


def everything(_directory: Path) -> RealServer:
    """Results of every kind. Its questions to the client have tests of their own."""

    def are_links(value: Any) -> bool:
        return [(link["type"], link["uri"][:16]) for link in value[1:]] == [("resource_link", "demo://resource/")] * 2

    gzipped = {"name": "a.gz", "data": "data:text/plain,hello"}
    return RealServer(
        everything_config(),
        (
            Use("echo", {"message": "Grüße"}, _is("Echo: Grüße")),
            Use("get_sum", {"a": 20, "b": 22}, _has("42")),
            Use("get_env", {}, _at("PATH", is_right=_has("/"))),
            Use("get_structured_content", {"location": "Chicago"}, _at("conditions", is_right=_has("rain"))),
            Use("get_tiny_image", {}, _at(1, is_right=_is("<image/png 3.9 KB>"))),
            Use(
                "get_annotated_message",
                {"messageType": "error", "includeImage": True},
                _is(["Error: Operation failed", "<image/png 3.9 KB>"]),
            ),
            Use("get_resource_links", {"count": 2}, are_links),
            Use(
                "get_resource_reference",
                {"resourceType": "Text", "resourceId": 1},
                _at(1, "text", is_right=_has("plaintext")),
            ),
            Use(
                "get_resource_reference",
                {"resourceType": "Blob", "resourceId": 2},
                _at(1, is_right=_has("<text/plain ")),
            ),
            Use("gzip_file_as_resource", gzipped, _at("type", is_right=_is("resource_link"))),
            Use(
                "gzip_file_as_resource",
                {**gzipped, "outputType": "resource"},
                _has("<application/gzip ", ' "a.gz">'),
            ),
            Use("toggle_simulated_logging", {}, _has("Started")),
            Use("toggle_simulated_logging", {}, _has("Stopped")),
            Use("toggle_subscriber_updates", {}, _has("Started")),
            Use("toggle_subscriber_updates", {}, _has("Stopped")),
            Use("trigger_long_running_operation", {"duration": 0.3, "steps": 3}, _has("completed", "Steps: 3")),
        ),
    )


# ---- filesystem


def filesystem(directory: Path) -> RealServer:
    """Every tool wraps its text in an object, as its output schema says."""
    files = {"picture.png": PICTURE, "sound.wav": SOUND, "other.bin": b"\0\1\2"}
    for name, data in files.items():
        (directory / name).write_bytes(data)
    folder, note, moved = (str(directory / name) for name in ("notes", "notes/a.txt", "notes/b.txt"))

    def is_media(kind: str, key: str) -> Check:
        return lambda value: value["content"][0]["type"] == kind and key in str(value["content"][0])

    def media(name: str) -> dict[str, str]:
        return {"path": str(directory / name)}

    return RealServer(
        _node_server("filesystem", str(directory)),
        (
            Use("list_allowed_directories", {}, _says(str(directory))),
            Use("create_directory", {"path": folder}, _says("created")),
            Use("write_file", {"path": note, "content": "one\ntwo\u2028still two\n"}, _says("wrote")),
            Use("read_text_file", {"path": note}, _is({"content": "one\ntwo\u2028still two\n"})),
            Use("read_file", {"path": note, "head": 1}, _is({"content": "one"})),
            Use("read_multiple_files", {"paths": [note]}, _says("one\ntwo")),
            Use("edit_file", {"path": note, "edits": [{"oldText": "one", "newText": "1"}]}, _says("-one", "+1")),
            Use("list_directory", {"path": str(directory)}, _says("[DIR] notes", "[FILE] other.bin")),
            Use("list_directory_with_sizes", {"path": str(directory)}, _says("[DIR] notes", "3 B")),
            Use("directory_tree", {"path": str(directory)}, _says('"a.txt"')),
            Use("move_file", {"source": note, "destination": moved}, _says("moved")),
            Use("search_files", {"path": str(directory), "pattern": "**/*.txt"}, _says(moved)),
            Use("get_file_info", {"path": moved}, _says("isFile: true")),
            Use("read_media_file", media("picture.png"), is_media("image", "image/png")),
            Use("read_media_file", media("sound.wav"), is_media("audio", "audio/wav")),
            Use("read_media_file", media("other.bin"), is_media("resource", "blob")),
            Failure("read_text_file", {"path": "/etc/hostname"}, "outside allowed directories"),
            Failure("read_text_file", {"path": str(directory / "none")}, "no such file"),
        ),
    )


# ---- memory


def memory(directory: Path) -> RealServer:
    """A graph: structured content throughout."""
    ada: dict[str, Any] = {"name": "Ada", "entityType": "person", "observations": ["wrote the first program"]}
    grace: dict[str, Any] = {"name": "Grace", "entityType": "person", "observations": []}
    relation = {"from": "Ada", "to": "Grace", "relationType": "precedes"}
    more = {"name": "Ada", "entityType": "person", "observations": [*ada["observations"], "born in 1815"]}

    succeeded = _at("success", is_right=_is(True))
    return RealServer(
        _node_server("memory", MEMORY_FILE_PATH=str(directory / "memory.jsonl")),
        (
            Use("create_entities", {"entities": [ada, grace]}, _is({"entities": [ada, grace]})),
            Use("create_relations", {"relations": [relation]}, _is({"relations": [relation]})),
            Use(
                "add_observations",
                {"observations": [{"entityName": "Ada", "contents": ["born in 1815"]}]},
                _at("results", 0, "addedObservations", is_right=_is(["born in 1815"])),
            ),
            Use("read_graph", {}, _is({"entities": [more, grace], "relations": [relation]})),
            Use("search_nodes", {"query": "1815"}, _at("entities", is_right=_is([more]))),
            Use("open_nodes", {"names": ["Grace"]}, _at("entities", is_right=_is([grace]))),
            Use(
                "delete_observations",
                {"deletions": [{"entityName": "Ada", "observations": ["born in 1815"]}]},
                succeeded,
            ),
            Use("delete_relations", {"relations": [relation]}, succeeded),
            Use("delete_entities", {"entityNames": ["Grace"]}, succeeded),
            Use("read_graph", {}, _is({"entities": [ada], "relations": []})),
            Failure("add_observations", {"observations": [{"entityName": "Zoe", "contents": ["x"]}]}, "not found"),
        ),
    )


# ---- git


def git(directory: Path) -> RealServer:
    """Plain text throughout."""
    program = shutil.which("git")
    if program is None:
        pytest.skip("git is not installed")
    commands = (
        ["init", "--quiet", "--initial-branch", "main"],
        ["config", "user.email", "a@example.org"],
        ["config", "user.name", "A"],
    )
    for command in commands:
        subprocess.run([program, *command], cwd=directory, check=True)
    (directory / "new.txt").write_text("new\n")
    here = {"repo_path": str(directory)}
    return RealServer(
        ServerConfig.stdio("git", str(python_servers() / "mcp-server-git"), ["--repository", str(directory)]),
        (
            Use("git_status", here, _has("new.txt")),
            Use("git_add", {**here, "files": ["new.txt"]}, _has("staged")),
            Use("git_diff_staged", here, _has("+new")),
            Use("git_commit", {**here, "message": "First"}, _has("committed")),
            Use("git_log", here, _has("First")),
            Use("git_show", {**here, "revision": "HEAD"}, _has("First", "+new")),
            Use("git_create_branch", {**here, "branch_name": "other"}, _has("other")),
            Use("git_checkout", {**here, "branch_name": "other"}, _has("other")),
            Use("git_branch", {**here, "branch_type": "local"}, _has("* other", "main")),
            Use("git_diff", {**here, "target": "main"}, _has("main")),
            Use("git_diff_unstaged", here, _has("Unstaged")),
            Use("git_reset", here, _has("reset")),
            Failure("git_show", {**here, "revision": "nowhere"}, "nowhere"),
        ),
    )


# ---- sqlite


def sqlite(directory: Path) -> RealServer:
    """The first version of the SDK; it answers its own errors as if they were results."""
    program = str(sqlite_server() / "mcp-server-sqlite")
    return RealServer(
        ServerConfig.stdio("sqlite", program, ["--db-path", str(directory / "towns.db")]),
        (
            Use("create_table", {"query": "CREATE TABLE town (name TEXT, people INTEGER)"}, _has("created")),
            Use("write_query", {"query": "INSERT INTO town VALUES ('Oslo', 700000)"}, _has("1")),
            Use("read_query", {"query": "SELECT * FROM town"}, _has("Oslo", "700000")),
            Use("list_tables", {}, _has("town")),
            Use("describe_table", {"table_name": "town"}, _has("people", "INTEGER")),
            Use("append_insight", {"insight": "Oslo is large"}, _has("added")),
            Use("read_query", {"query": "SELECT altitude FROM town"}, _has("no such column")),
        ),
    )


REAL_SERVERS: dict[str, Callable[[Path], RealServer]] = {
    "everything": everything,
    "filesystem": filesystem,
    "memory": memory,
    "git": git,
    "sqlite": sqlite,
}
