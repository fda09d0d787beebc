"""`toolbridge list`, `info`, `search` and `plugins`: read-only views of servers and tools."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import click

from toolbridge.cli import FAILED, OK, PROGRAM_FAILED
from toolbridge.cli.access import unseen_words
from toolbridge.cli.server_options import (
    ServerChoice,
    choice_options,
    chosen_servers,
    complete_servers,
    config_option,
    configured_server,
    connect_option,
    installed_plugins,
    read_config,
    tell_problems,
    unknown_words,
    with_servers,
)
from toolbridge.cli.terminal import table, write
from toolbridge.config.secret_values import masked_arguments
from toolbridge.describe.module_info import shown_schema
from toolbridge.describe.modules import filter_lines
from toolbridge.errors import advised
from toolbridge.trust.pins.review import schema_lines, text_lines
from toolbridge.trust.sanitise import for_error, for_terminal

if TYPE_CHECKING:
    from toolbridge import ServerConfig, ServerManager, ServerStatus
    from toolbridge.prompt import SearchHit
    from toolbridge.sources.plugins import Plugin


# The approval state of a server.


_IN_A_WORD: Mapping[str, str] = {"unknown": "needed", "unclear": "?"}


@dataclass(frozen=True, slots=True)
class ApprovalState:
    """The store's answer for a server as configured now."""

    standing: Literal["approved", "unknown", "changed", "revoked", "unclear"]
    """`unclear` if it can't be determined: see `problem`."""
    digest: str | None = None
    when: str = ""
    changes: tuple[str, ...] = ()
    problem: str = ""

    @property
    def in_a_word(self) -> str:
        """The state in one word, for a table."""
        return _IN_A_WORD.get(self.standing, self.standing)


def approval_state(server: ServerConfig) -> ApprovalState:
    """Look up a server's approval in the store; starts and connects nothing. Errors become `unclear`."""
    from toolbridge import ToolbridgeError
    from toolbridge.servers.lifecycle import prepare
    from toolbridge.trust.approval.store import ApprovalStore

    digest = None
    try:
        request, _ = prepare(server, os.environ)
        digest = request.digest
        answer = ApprovalStore().answer(request)
    except ToolbridgeError as error:
        return ApprovalState("unclear", digest, problem=str(error))
    return ApprovalState(answer.standing, digest, answer.when, answer.changes)


def approval_words(facts: Mapping[str, Any]) -> list[str]:
    """The lines of `toolbridge info` on approval; `facts` are those of `_facts`."""
    approval: dict[str, str | None] = facts["approval"]
    day = (approval["when"] or "").partition("T")[0]
    words = {
        "approved": f"approved on {day}",
        "unknown": f"needed: {advised('approve ' + facts['name'])}",
        "changed": f"needed again: {', '.join(facts['changes'])} changed since {day}",
        "revoked": f"revoked on {day}",
        "unclear": f"can't be told: {facts['approvalProblem']}",
    }
    lines = [f"approval   {for_error(words[approval['standing'] or 'unclear'])}"]
    return [*lines, f"digest     {approval['digest']}"] if approval["digest"] else lines


# ── toolbridge list ──


@click.command(
    "list",
    epilog="Exit codes: 0 listed; 2 the configuration can't be used.",
)
@config_option
@connect_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_servers(config_file: str | None, connect: bool, as_json: bool) -> int:
    """List the configured servers: name, origin, transport, state, approval, tools, last error.

    Starts no server, but imports plugins: the number of tools is from the last listing. With --connect, approved
    servers are connected and listed anew.

    \b
    Examples:  toolbridge list
               toolbridge list --connect --json
    """
    config = read_config(config_file, plugins=True)
    statuses = with_servers(config, lambda _, fared: fared, connect=None if connect else (), config_file=config_file)
    servers = [config.servers[status.name] for status in statuses]
    approvals = [approval_state(server) for server in servers]
    if as_json:
        each = zip(statuses, servers, approvals, strict=True)
        write(sys.stdout, json.dumps([status_as_json(*facts) for facts in each], indent=2) + "\n")
    elif not statuses:
        write(sys.stdout, "No servers are configured. `toolbridge doctor` shows which files were looked for.\n")
    else:
        header = ("NAME", "ORIGIN", "TRANSPORT", "STATE", "APPROVAL", "TOOLS", "LAST ERROR")
        each = zip(statuses, servers, approvals, strict=True)
        write(sys.stdout, table(header, [_row(*facts) for facts in each]))
        if connect:
            tell_problems(statuses)
        for status in statuses:
            if status.unseen:
                write(sys.stdout, f"{unseen_words(status)}\n")
    return OK


def _row(status: ServerStatus, server: ServerConfig, approval: ApprovalState) -> tuple[str, ...]:
    """The row of a server in the table of `list`."""
    tools = "?" if status.tools is None else str(status.tools)
    state = status.state if server.enabled else "disabled"
    # Without --connect problems aren't listed; a server without tools shows its first one here.
    error = (
        status.last_error or approval.problem or (status.problems[0] if status.tools == 0 and status.problems else "")
    )
    return status.name, status.origin.kind, status.transport, state, approval.in_a_word, tools, error


def status_as_json(status: ServerStatus, server: ServerConfig, approval: ApprovalState) -> dict[str, Any]:
    """A status as JSON, with the approval and whether the server is enabled."""
    return {
        "name": status.name,
        "displayName": status.display_name,
        "origin": {"kind": status.origin.kind, "detail": status.origin.detail},
        "transport": status.transport,
        "state": status.state,
        "enabled": server.enabled,
        "approval": {"standing": approval.standing, "when": approval.when or None, "digest": approval.digest},
        "tools": status.tools,
        "unseen": status.unseen,
        "lastError": status.last_error,
        "problems": list(status.problems),
    }


# ── toolbridge plugins ──


@click.command("plugins", epilog="Exit codes: 0 listed; 2 the configuration can't be used.")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def plugins(config_file: str | None, as_json: bool) -> int:
    """List plugins, their servers, and the tasks that attach them.

    Imports plugins, and starts no server. A denied plugin is not imported; one that fails is shown with the reason.

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
    """The rows of a plugin in the table of `plugins`, one for each server."""
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
    """The lines on a plugin that was refused, offers no servers, or has problems."""
    if plugin.refusal:
        return [f"{plugin.name}: not imported: {plugin.refusal}."]
    if not plugin.servers and not plugin.problems:
        return [f"{plugin.name}: offers no servers."]
    return [f"{plugin.name}: {name} is not used: {problem}" for name, problem in plugin.problems]


def _as_json(plugin: Plugin) -> dict[str, Any]:
    """A plugin and its servers as JSON."""
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


# ── toolbridge search ──


_MARKS = {
    "unknown": ("approve", "not approved: {}"),
    "changed": ("approve", "changed since it was approved: {}"),
    "unclear": ("info", "its approval can't be told: {} says why"),
    "revoked": ("approve", "its approval was revoked: {}"),
}


@click.command(
    "search",
    epilog="Exit codes: 0 something was found; 1 nothing was; 2 wrong usage.",
)
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="At most so many tools.")
@config_option
@choice_options
@connect_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def search(
    words: tuple[str, ...],
    *,
    limit: int,
    config_file: str | None,
    servers: tuple[str, ...],
    task: str | None,
    capabilities: tuple[str, ...],
    connect: bool,
    as_json: bool,
) -> int:
    """Search tools by what they do, best match first.

    Starts nothing: the tools are from the last listing. With --connect, approved servers are connected and listed anew.
    Plugins' servers are searched only if --server, --task or --capability selects them.

    \b
    Examples:  toolbridge search weather tomorrow
               toolbridge search --server acme__notes shared
    """
    config = chosen_servers(ServerChoice(config_file, servers, task, capabilities)).config

    def look(
        manager: ServerManager, statuses: Sequence[ServerStatus]
    ) -> tuple[tuple[SearchHit, ...], Sequence[ServerStatus]]:
        """Search the tools; prints problems after a connection."""
        from toolbridge.describe.search import ToolSearch

        if connect and not as_json:
            tell_problems(statuses)
        return ToolSearch(manager.catalog).find(" ".join(words), limit, errors=config.errors), statuses

    hits, statuses = with_servers(config, look, connect=None if connect else (), config_file=config_file)
    named = {hit.server for hit in hits}
    standings: dict[str, str] = {name: approval_state(config.servers[name]).standing for name in named}
    if as_json:
        shown = [{**hit.as_json(), "approval": standings[hit.server]} for hit in hits]
        facts = {"hits": shown, "neverAsked": [status.name for status in statuses if status.tools is None]}
        write(sys.stdout, json.dumps(facts, ensure_ascii=False, indent=2) + "\n")
    else:
        for hit in hits:
            mark = ""
            if standings[hit.server] in _MARKS:
                verb, said = _MARKS[standings[hit.server]]
                mark = f"    [{said.format(advised(f'{verb} {hit.server}'))}]\n"
            write(sys.stdout, f"{hit.module}  {hit.signature}\n    {hit.summary}\n{mark}")
        write(sys.stderr, "".join(f"{line}\n" for line in unknown_words(statuses)))
    if not hits and not as_json:
        write(sys.stderr, "No tool matches.\n")
    return OK if hits else PROGRAM_FAILED


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
def info(name: str, config_file: str | None, connect: bool, as_json: bool) -> int:
    """Show one server: configuration without secrets, state, approval, tools and schemas.

    Starts nothing: the tools are from the last listing. With --connect, the server is connected and listed anew; at a
    terminal, you are asked about what is not approved yet.

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
    """The facts of `toolbridge info` as JSON: configuration without secrets, state, approval, tools and schemas."""
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
    """Lines on input and output by tool identifier, as in `toolbridge approve`."""
    module = manager.catalog.module(f"host:mcp-{server.name}")
    return {tool.identifier: schema_lines(tool.definition, _WIDTH) for tool in (module.tools if module else ())}


def _suggested(manager: ServerManager, name: str) -> list[dict[str, Any]]:
    """Labels that the annotations of the server suggest, as JSON: shown, never applied."""
    from toolbridge.trust.permissions import suggested_labels

    exposed = manager.exposed(name)
    labels = suggested_labels(exposed) if exposed else ()
    return [{"label": each.label, "tools": list(each.tools)} for each in labels]


def _findings(manager: ServerManager, name: str) -> list[dict[str, str]]:
    """Audit findings in the server's text, as JSON; none if it was never listed."""
    from toolbridge.trust.audit.detector import audit, finding_as_json

    listing = manager.listing(name)
    if listing is None:
        return []
    found = audit(name, listing.tools, listing.instructions, manager.other_tools(name), listing.about)
    return [finding_as_json(each) for each in found]


def _for_people(facts: dict[str, Any], schemas: dict[str, list[str]]) -> str:
    """The facts of `toolbridge info` as text, foreign parts sanitised."""
    origin = facts["origin"]
    lines = [
        f"{facts['name']}: {facts['state'] if facts['enabled'] else 'disabled'}",
        f"  origin     {origin['kind']} {for_error(origin['detail'])}".rstrip(),
        f"  transport  {facts['transport']}",
    ]
    lines += [f"  {line}" for line in approval_words(facts)]
    if facts["command"]:
        lines.append(f"  command    {json.dumps([facts['command'], *facts['args']])}")
    # A repository's file is untrusted: one line, sanitised.
    shown = [field for field in ("cwd", "url", "description") if facts[field]]
    lines += [f"  {field.ljust(9)}  {for_error(facts[field])}" for field in shown]
    for field in ("env", "headers"):
        if facts[field]:  # names only: values may be secret
            lines.append(f"  {field.ljust(9)}  {', '.join(f'{name}=***' for name in facts[field])}")
    if facts["inheritEnv"]:
        lines.append("  inheritEnv the server gets this whole environment")
    if facts["serverName"]:
        named = f"{facts['serverName']} {facts['serverVersion']}".rstrip()
        version = f"{named}, protocol {facts['protocolVersion']}"
        lines.append(f"  server     {for_error(version, limit=200)}")
    if facts["lastError"] and facts["lastError"] != facts["approvalProblem"]:  # already shown above
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
    """The lines on a server's tools, with at most 40 lines of schema each."""
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
