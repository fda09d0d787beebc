"""`toolbridge plugins`: which plugins are installed, and what they offer."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from toolbridge.cli.exit_codes import OK
from toolbridge.cli.server_options import config_option, installed_plugins
from toolbridge.cli.table import table
from toolbridge.cli.terminal import write

if TYPE_CHECKING:
    from toolbridge.sources.plugins import Plugin


@click.command("plugins", epilog="Exit codes: 0 listed; 2 the configuration can't be used.")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def command(config_file: str | None, as_json: bool) -> int:
    """List the plugins, the servers that each offers, and what attaches them to a task.

    No server is started. A plugin that the configuration denies is not imported; one that fails is shown with why.

    \b
    Examples:  toolbridge plugins
               toolbridge plugins --json
    """
    from toolbridge import load_config

    config = load_config(config_file)
    plugins = installed_plugins(config, logs_problems=False) if config.gateway else ()
    if not config.gateway:
        write(sys.stderr, f"MCP is switched off in {', '.join(config.files)}: no plugin is asked.\n")
    if as_json:
        write(sys.stdout, json.dumps([_as_json(plugin) for plugin in plugins], indent=2) + "\n")
    elif not plugins:
        write(sys.stdout, "No plugins are installed.\n" if config.gateway else "")
    else:
        header = ("PLUGIN", "PACKAGE", "SERVER", "CAPABILITIES", "KEYWORDS", "COMMAND")
        rows = [row for plugin in plugins for row in _rows(plugin)]
        write(sys.stdout, table(header, rows) if rows else "")
        write(sys.stdout, "".join(f"{line}\n" for plugin in plugins for line in _troubles(plugin)))
    return OK


def _rows(plugin: Plugin) -> list[tuple[str, ...]]:
    return [
        (
            plugin.name,
            plugin.distribution,
            server.config.name,
            ", ".join(server.capabilities),
            ", ".join(server.keywords),
            json.dumps([server.config.command, *server.config.args]),
        )
        for server in plugin.servers
    ]


def _troubles(plugin: Plugin) -> list[str]:
    if plugin.refusal:
        return [f"{plugin.name}: not imported: {plugin.refusal}."]
    if not plugin.servers and not plugin.problems:
        return [f"{plugin.name}: offers no servers."]
    return [f"{plugin.name}: {name} is not used: {problem}" for name, problem in plugin.problems]


def _as_json(plugin: Plugin) -> dict[str, Any]:
    return {
        "name": plugin.name,
        "package": plugin.distribution,
        "refusal": plugin.refusal,
        "servers": [
            {
                "name": server.config.name,
                "command": server.config.command,
                "args": list(server.config.args),
                "envRequired": list(server.config.env_required),
                "capabilities": list(server.capabilities),
                "keywords": list(server.keywords),
            }
            for server in plugin.servers
        ],
        "problems": [{"server": name, "problem": problem} for name, problem in plugin.problems],
    }
