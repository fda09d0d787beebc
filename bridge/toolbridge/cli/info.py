"""`toolbridge info`: all that is known of one server."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from toolbridge.cli.approval_state import approval_state, approval_words
from toolbridge.cli.exit_codes import FAILED, OK
from toolbridge.cli.list_servers import status_as_json
from toolbridge.cli.server_options import (
    complete_servers,
    config_option,
    configured_server,
    connect_option,
    read_config,
    with_servers,
)
from toolbridge.cli.terminal import write
from toolbridge.config.secret_arguments import masked_arguments
from toolbridge.describe.parameters import shown_schema
from toolbridge.describe.summaries import filter_lines
from toolbridge.trust.sanitise import for_error, for_terminal
from toolbridge.trust.tool_lines import schema_lines, text_lines

if TYPE_CHECKING:
    from toolbridge import ServerConfig, ServerManager, ServerStatus

_WIDTH = 100
_MOST_LINES = 40
"""Of one tool's schemas."""
_LONGEST_INSTRUCTIONS = 2_000


@click.command(
    "info",
    epilog="Exit codes: 0 shown; 2 there is no such server; 4 with --connect: it could not be connected.",
)
@click.argument("name", shell_complete=complete_servers)
@config_option
@connect_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(name: str, config_file: str | None, connect: bool, as_json: bool) -> int:
    """Show one server: its configuration without secrets, its state, its approval, its tools and their schemas.

    Nothing is started: the tools are those of the last time. With --connect, an approved server is.

    \b
    Examples:  toolbridge info weather
               toolbridge info weather --connect --json
    """
    config = read_config(config_file, named=[name])
    server = configured_server(config, name)

    def look(manager: ServerManager, _: Sequence[ServerStatus]) -> tuple[dict[str, Any], dict[str, list[str]]]:
        return _facts(server, manager), _schema_lines(server, manager)

    shown, schemas = with_servers(config, look, connect=[name] if connect else (), config_file=config_file, ask=True)
    write(sys.stdout, json.dumps(shown, indent=2) + "\n" if as_json else _for_people(shown, schemas))
    return FAILED if connect and shown["state"] != "connected" else OK


def _facts(server: ServerConfig, manager: ServerManager) -> dict[str, Any]:
    approval = approval_state(server)
    listing = manager.listing(server.name)
    module = manager.catalog.module(f"host:mcp-{server.name}")
    return {
        **status_as_json(manager.status(server.name), server, approval),
        "approvalProblem": approval.problem,
        "changes": list(approval.changes),
        "description": server.description,
        "command": server.command,
        "args": list(masked_arguments(server.args)),
        "cwd": server.cwd,
        "url": None if server.url is None else re.sub(r"(?<=\?).*", "***", server.url),  # a query may hold a key
        "env": sorted(server.env),
        "headers": sorted(server.headers),
        "inheritEnv": server.inherit_env,
        "serverName": listing.server_name if listing else None,
        "serverVersion": listing.server_version if listing else None,
        "protocolVersion": listing.protocol_version if listing else None,
        "live": listing.live if listing else False,
        "instructions": "" if listing is None else for_terminal(listing.instructions[:_LONGEST_INSTRUCTIONS]),
        "allowTools": None if server.allow_tools is None else sorted(server.allow_tools),
        "denyTools": sorted(server.deny_tools),
        "labels": sorted(server.labels),
        "suggestedLabels": _suggested(manager, server.name),
        "findings": _findings(manager, server.name),
        "module": module.specifier if module else None,
        "exposed": [
            {
                "name": tool.name,
                "identifier": tool.identifier,
                "description": tool.definition.description,
                "inputSchema": shown_schema(tool.definition.input_schema),
                "outputSchema": None if tool.output_schema is None else shown_schema(tool.output_schema),
            }
            for tool in (module.tools if module else ())
        ],
    }


def _schema_lines(server: ServerConfig, manager: ServerManager) -> dict[str, list[str]]:
    """Identifier → what the function takes and gives, as `toolbridge approve` shows it."""
    module = manager.catalog.module(f"host:mcp-{server.name}")
    return {tool.identifier: schema_lines(tool.definition, _WIDTH) for tool in (module.tools if module else ())}


def _suggested(manager: ServerManager, name: str) -> list[dict[str, Any]]:
    """Labels that the server's own annotations speak for: shown, never applied."""
    from toolbridge.trust.flow_labels import suggested_labels

    exposed = manager.exposed(name)
    labels = suggested_labels(exposed) if exposed else ()
    return [{"label": each.label, "tools": list(each.tools)} for each in labels]


def _findings(manager: ServerManager, name: str) -> list[dict[str, str]]:
    """What the audit has to say of the server's texts."""
    from toolbridge.trust.audit import audit
    from toolbridge.trust.audit_report import finding_as_json

    listing = manager.listing(name)
    if listing is None:
        return []
    found = audit(name, listing.tools, listing.instructions, manager.other_tools(name), listing.about)
    return [finding_as_json(each) for each in found]


def _for_people(facts: dict[str, Any], schemas: dict[str, list[str]]) -> str:
    origin = facts["origin"]
    lines = [
        f"{facts['name']}: {facts['state'] if facts['enabled'] else 'disabled'}",
        f"  origin     {origin['kind']} {for_error(origin['detail'])}".rstrip(),
        f"  transport  {facts['transport']}",
    ]
    lines += [f"  {line}" for line in approval_words(facts)]
    if facts["command"]:
        lines.append(f"  command    {json.dumps([facts['command'], *facts['args']])}")
    # A repository's file may hold anything: on one line, and inert.
    shown = [field for field in ("cwd", "url", "description") if facts[field]]
    lines += [f"  {field.ljust(9)}  {for_error(facts[field])}" for field in shown]
    for field in ("env", "headers"):
        if facts[field]:  # names only: what they are set to may be a secret
            lines.append(f"  {field.ljust(9)}  {', '.join(f'{name}=***' for name in facts[field])}")
    if facts["inheritEnv"]:
        lines.append("  inheritEnv the server gets this whole environment")
    if facts["serverName"]:
        named = f"{facts['serverName']} {facts['serverVersion']}".rstrip()
        version = f"{named}, protocol {facts['protocolVersion']}"
        lines.append(f"  server     {for_error(version, limit=200)}")
    if facts["lastError"] and facts["lastError"] != facts["approvalProblem"]:  # which was said above
        lines.append(f"  last error {for_error(facts['lastError'], limit=2000)}")
    lines += [f"  problem    {for_error(problem, limit=300)}" for problem in facts["problems"]]
    lines += [f"  {line}" for line in filter_lines(facts)]
    if facts["instructions"]:
        lines += ["  it tells models about itself:", *text_lines(facts["instructions"], _WIDTH)]
    if facts["labels"]:
        lines.append(f"  labels     {', '.join(facts['labels'])}")
    elif facts["suggestedLabels"]:
        words = ", ".join(each["label"] for each in facts["suggestedLabels"])
        lines.append(f"  labels     none; its own annotations speak for: {words}")
    lines += [
        f"  audit      {each['severity']}: {each['place']} {each['why']}: {each['excerpt']}"
        for each in facts["findings"]
    ]
    return "\n".join([*lines, *_tools(facts, schemas)]) + "\n"


def _tools(facts: dict[str, Any], schemas: dict[str, list[str]]) -> list[str]:
    if facts["tools"] is None:
        return ["  tools      not known: the server was never asked (use --connect)"]
    when = "" if facts["live"] else ", as of the last time it was connected"
    lines = [f"  tools      {facts['tools']}{when}; import them from {facts['module']!r}"]
    for tool in facts["exposed"]:
        words, shown = for_error(tool["description"], limit=100), schemas[tool["identifier"]]
        lines.append(f"    {tool['identifier']}" + (f"  {words}" if words else ""))
        lines += shown[:_MOST_LINES]
        if len(shown) > _MOST_LINES:
            lines.append(f"      … {len(shown) - _MOST_LINES} more lines: --json has the schema")
    return lines
