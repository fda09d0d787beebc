"""SECURITY: a merged configuration for people and programs to read: references stay, values are not shown (T35)."""

from __future__ import annotations

import re
from typing import Any

from toolbridge.config.config import Config
from toolbridge.config.references import without_literals
from toolbridge.config.secret_arguments import masked_arguments
from toolbridge.config.server_config import ServerConfig

MASK = "***"


def shown_config(config: Config) -> dict[str, Any]:
    """`{"mcpServers": …}` as a file would have it, with a mask where somebody wrote a value out."""
    return {"mcpServers": {name: _shown(server) for name, server in sorted(config.servers.items())}}


def _shown(server: ServerConfig) -> dict[str, Any]:
    shown: dict[str, Any] = {"transport": server.transport}
    if server.command is not None:
        shown |= {"command": server.command, "args": list(masked_arguments(server.args))}
    if server.cwd is not None:
        shown["cwd"] = server.cwd
    if server.url is not None:
        shown["url"] = re.sub(r"(?<=\?).*", MASK, server.url)  # a query may hold a key
    for key, values in (("env", server.env), ("headers", server.headers)):
        if values:
            # What is no reference may be a secret: `Bearer ${TOKEN}` becomes `***${TOKEN}`.
            shown[key] = {name: without_literals(value, MASK) for name, value in values.items()}
    optional: dict[str, Any] = {
        "envRequired": list(server.env_required),
        "inheritEnv": server.inherit_env,
        "allowTools": None if server.allow_tools is None else list(server.allow_tools),
        "denyTools": list(server.deny_tools),
        "outputSchemas": dict(server.output_schemas),
        "reading": "" if server.reading == "intended" else server.reading,
        "labels": list(server.labels),
        "callTimeout": server.call_timeout,
        "connectTimeout": server.connect_timeout,
        "description": server.description,
    }
    shown |= {key: value for key, value in optional.items() if value not in (None, [], {}, False, "")}
    if server.allow_tools == ():
        shown["allowTools"] = []
    if not server.enabled:
        shown["enabled"] = False
    return shown
