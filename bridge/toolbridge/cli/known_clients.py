"""The clients whose configuration files are known: where they are, and under which key they keep servers.

Taken from each client's own documentation; docs/SERVE.md lists them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class KnownClient:
    """One client."""

    name: str
    title: str
    user_file: tuple[str, ...] | None
    """Parts of the path of this user's file. `~` is the home; `@` is where applications keep their configuration."""
    project_file: str | None
    """From the directory of a project."""
    key: str
    """Servers are in the object under this key."""
    form: Literal["json", "toml"] = "json"
    names_transport: bool = False
    """Whether an entry says which transport it has."""
    restart: str = ""
    """What makes it take notice."""


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
    """A file that a client reads."""

    client: KnownClient
    path: str
    project: str | None
    """The directory of the project whose file it is; None for the user's own."""


def user_path(client: KnownClient, environ: Mapping[str, str]) -> str | None:
    """Where a client keeps this user's servers."""
    if client.user_file is None:
        return None
    first, *rest = client.user_file
    home = environ.get("USERPROFILE" if sys.platform == "win32" else "HOME") or os.path.expanduser("~")
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
        rest = rest if first == "@" else ["Zed" if sys.platform == "win32" else "zed", *rest]
    return os.path.join(base, *rest)


def client_files(directory: str, environ: Mapping[str, str]) -> Iterator[ClientFile]:
    """Every file of every client that there may be: the user's own, then those of the project in a directory."""
    for client in CLIENTS:
        path = user_path(client, environ)
        if path is not None:
            yield ClientFile(client, path, None)
    for client in CLIENTS:
        if client.project_file is not None:
            yield ClientFile(client, os.path.join(directory, *client.project_file.split("/")), directory)


def _applications(home: str, environ: Mapping[str, str]) -> str:
    if sys.platform == "win32":
        return environ.get("APPDATA") or os.path.join(home, "AppData", "Roaming")
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Application Support")
    chosen = environ.get("XDG_CONFIG_HOME", "")
    return chosen if os.path.isabs(chosen) else os.path.join(home, ".config")
