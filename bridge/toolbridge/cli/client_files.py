"""Other clients' configuration files: their paths, the key of their servers, and edits that keep all else.

Taken from each client's own documentation; docs/serve-to-clients.md lists them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

from toolbridge.config.read_file import plain_json

# Edits of files that belong to other clients: atomic, with a backup.


BACKUP = ".before-toolbridge"


def read_text(path: str) -> str | None:
    """Read a file's exact text, line breaks included; None if it is missing.

    Raises:
        OSError, UnicodeError: it can't be read.
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None


def write_text(path: str, text: str, *, before: str | None, mode: int = 0o600) -> str | None:
    """Replace a file's text atomically, if it still is `before`; returns the path of a backup, None for a new file.

    Makes missing directories. A link stays a link: its target is replaced. Permissions stay; a new file gets `mode`.

    Raises:
        OSError: it can't be written, or was changed meanwhile.
        UnicodeError: it is not UTF-8.
    """
    real = os.path.realpath(path)
    os.makedirs(os.path.dirname(real), exist_ok=True)
    if read_text(real) != before:
        raise OSError(f"{path} was changed meanwhile")
    copy = None
    if before is not None:
        mode = os.stat(real).st_mode & 0o7777
        copy = _free_name(real + BACKUP)
        shutil.copy2(real, copy)
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(real), prefix=".toolbridge-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, real)
    except BaseException:
        os.unlink(temporary)
        raise
    return copy


def _free_name(path: str) -> str:
    """The path itself, or with the first number that is free; links count as taken."""
    number = 1
    candidate = path
    while os.path.lexists(candidate):
        number += 1
        candidate = f"{path}-{number}"
    return candidate


# Adding a member to JSON with comments: every other character stays.


_SPACE = re.compile(r"[ \t\r\n]*")
_INDENT = re.compile(r"\n([ \t]+)\S")


class SpliceError(Exception):
    """The file can't be edited safely; nothing was changed."""


class _ObjectSpan(NamedTuple):
    start: int
    """Position of its brace."""
    members: dict[str, int]
    """Name → position of its value."""


def read_json(text: str) -> dict[str, Any]:
    """Parse a JSON object with comments and trailing commas; empty text is an empty object.

    Raises:
        SpliceError: it is malformed, or no object.
    """
    text = text.removeprefix("\ufeff")
    if not text.strip():
        return {}
    try:
        value: object = json.loads(plain_json(text))
    except (ValueError, RecursionError) as error:
        raise SpliceError(f"it is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise SpliceError("it holds no JSON object")
    return cast("dict[str, Any]", value)


def with_member(text: str, key: str, name: str, value: dict[str, Any]) -> str:
    """Insert `name: value` into the object under `key`, which is created if missing; returns the new text.

    All other characters stay.

    Raises:
        SpliceError: the name is taken, or it can't be done without touching anything else.
    """
    before = read_json(text)
    servers: object = before.get(key, {})
    if not isinstance(servers, dict):
        raise SpliceError(f"its {key!r} is no object")
    if name in servers:
        raise SpliceError(f"it has {name!r} already")
    wanted = {**before, key: {**cast("dict[str, Any]", servers), name: value}}
    if not text.strip("\ufeff \t\r\n"):
        return json.dumps(wanted, indent=2, ensure_ascii=False) + "\n"
    changed = _spliced(text, key, name, value)
    if read_json(changed) != wanted:
        raise SpliceError("it can't be changed safely")
    return changed


def _spliced(text: str, key: str, name: str, value: dict[str, Any]) -> str:
    """Insert the member, unverified, with the indentation of the file."""
    plain = plain_json(text)
    found = _INDENT.search(plain)
    indent = found[1] if found else "  "
    top = _object(plain, _after_space(plain, 1 if text.startswith("\ufeff") else 0))
    if key in top.members:
        inner = _object(plain, top.members[key])
        return _inserted(text, inner, _member(name, value, indent, 2), indent * 2, indent)
    return _inserted(text, top, _member(key, {name: value}, indent, 1), indent, "")


def _inserted(text: str, where: _ObjectSpan, member: str, indent: str, outer: str) -> str:
    """Insert a member's text at the beginning of an object, indented by `indent`; `outer` indents a closing brace."""
    place = where.start + 1
    end = "," if where.members else f"\n{outer}"
    return f"{text[:place]}\n{indent}{member}{end}{text[place:]}"


def _member(name: str, value: Any, indent: str, level: int) -> str:
    """The text of a member, without its first indentation; `level` is how deep it lies."""
    lines = json.dumps({name: value}, indent=indent, ensure_ascii=False).split("\n")[1:-1]
    return "\n".join([lines[0].lstrip(), *(indent * (level - 1) + line for line in lines[1:])])


def _object(plain: str, start: int) -> _ObjectSpan:
    """Locate the members of the object at a position; comments are blanked already.

    Raises:
        SpliceError: it is no object, malformed, or has a name twice.
    """
    decoder = json.JSONDecoder()
    members: dict[str, int] = {}
    place = _after_space(plain, start + 1)
    try:
        if plain[start] != "{":
            raise SpliceError("it holds no JSON object")
        while plain[place] != "}":
            name, place = decoder.raw_decode(plain, place)
            place = _after_space(plain, _after_space(plain, place) + 1)
            if name in members:
                raise SpliceError(f"it has {name!r} twice")
            members[name] = place
            _, place = decoder.raw_decode(plain, place)
            place = _after_space(plain, place)
            if plain[place] == ",":
                place = _after_space(plain, place + 1)
    except (ValueError, IndexError) as error:
        raise SpliceError(f"it is not JSON ({error})") from None
    return _ObjectSpan(start, members)


def _after_space(text: str, place: int) -> int:
    """The position of the first character from `place` on that is no white space."""
    found = _SPACE.match(text, place)
    assert found is not None
    return found.end()


@dataclass(frozen=True, slots=True)
class KnownClient:
    """A client with a known configuration file."""

    name: str
    title: str
    user_file: tuple[str, ...] | None
    """Path parts of the user's file. `~` is the home, `@` the applications' configuration directory."""
    project_file: str | None
    """Relative to a project's directory."""
    key: str
    """The key of its servers."""
    form: Literal["json", "toml"] = "json"
    names_transport: bool = False
    """Whether an entry names its transport."""
    restart: str = ""
    """How to reload the configuration."""


CLIENTS: tuple[KnownClient, ...] = (
    KnownClient(
        *("claude-desktop", "Claude Desktop", ("@", "Claude", "claude_desktop_config.json"), None, "mcpServers"),
        restart="Quit Claude Desktop and start it again.",
    ),
    KnownClient(
        *("claude-code", "Claude Code", ("~", ".claude.json"), ".mcp.json", "mcpServers"),
        names_transport=True,
        restart="Start Claude Code again; /mcp lists it.",
    ),
    KnownClient(
        *("cursor", "Cursor", ("~", ".cursor", "mcp.json"), ".cursor/mcp.json", "mcpServers"),
        restart="Switch it on under Settings, MCP.",
    ),
    KnownClient(
        *("vscode", "VS Code", ("@", "Code", "User", "mcp.json"), ".vscode/mcp.json", "servers"),
        names_transport=True,
        restart='Run "MCP: List Servers" and start it.',
    ),
    KnownClient(
        *("windsurf", "Windsurf", ("~", ".codeium", "windsurf", "mcp_config.json"), None, "mcpServers"),
        restart="Refresh the list of servers in Cascade.",
    ),
    KnownClient(*("zed", "Zed", ("zed", "settings.json"), ".zed/settings.json", "context_servers")),
    KnownClient(
        *("gemini-cli", "Gemini CLI", ("~", ".gemini", "settings.json"), ".gemini/settings.json", "mcpServers"),
        restart="Start Gemini CLI again; /mcp lists it.",
    ),
    KnownClient(
        *("codex", "Codex", ("codex", "config.toml"), ".codex/config.toml", "mcp_servers", "toml"),
        restart="Start Codex again; /mcp lists it.",
    ),
)
BY_NAME: Mapping[str, KnownClient] = {client.name: client for client in CLIENTS}


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A client's configuration file."""

    client: KnownClient
    path: str
    project: str | None
    """The project's directory; None for the user's own file."""


def user_path(client: KnownClient, environ: Mapping[str, str]) -> str | None:
    """The path of a client's user file, existing or not; None if it has none, or there is no home."""
    if client.user_file is None:
        return None
    first, *rest = client.user_file
    home = environ.get("HOME") or os.path.expanduser("~")
    if not os.path.isabs(home):
        return None
    if first == "~":
        base = home
    elif first == "codex":
        base = environ.get("CODEX_HOME") or os.path.join(home, ".codex")
    elif first == "zed" and sys.platform == "darwin":
        base = os.path.join(home, ".config", "zed")
    else:
        base = _applications(home, environ)
        rest = rest if first == "@" else ["zed", *rest]
    return os.path.join(base, *rest)


def client_files(directory: str, environ: Mapping[str, str]) -> Iterator[ClientFile]:
    """Yield all candidate files, existing or not: the user's own, then those of the project in a directory."""
    for client in CLIENTS:
        path = user_path(client, environ)
        if path is not None:
            yield ClientFile(client, path, None)
    for client in CLIENTS:
        if client.project_file is not None:
            yield ClientFile(client, os.path.join(directory, *client.project_file.split("/")), directory)


def _applications(home: str, environ: Mapping[str, str]) -> str:
    """The directory of applications' settings."""
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Application Support")
    chosen = environ.get("XDG_CONFIG_HOME", "")
    return chosen if os.path.isabs(chosen) else os.path.join(home, ".config")
