"""`toolbridge list`: every configured server and how it fares."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from toolbridge.advice import advised
from toolbridge.cli.approval_state import ApprovalState, approval_state
from toolbridge.cli.exit_codes import OK
from toolbridge.cli.server_options import config_option, connect_option, read_config, tell_problems, with_servers
from toolbridge.cli.table import table
from toolbridge.cli.terminal import write

if TYPE_CHECKING:
    from toolbridge import ServerConfig, ServerStatus


@click.command(
    "list",
    epilog="Exit codes: 0 listed; 2 the configuration can't be used.",
)
@config_option
@connect_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def command(config_file: str | None, connect: bool, as_json: bool) -> int:
    """List the configured servers: name, origin, transport, state, approval, tools, last error.

    Nothing is started: the number of tools is that of the last time. With --connect, approved servers are.

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
    tools = "?" if status.tools is None else str(status.tools)
    state = status.state if server.enabled else "disabled"
    # Without --connect nobody is told the problems at length; a server without any tool says why here.
    error = (
        status.last_error or approval.problem or (status.problems[0] if status.tools == 0 and status.problems else "")
    )
    return status.name, status.origin.kind, status.transport, state, approval.in_a_word, tools, error


def unseen_words(status: ServerStatus) -> str:
    """Says that tools are used which this user has not seen, and how to see them."""
    which = "1 tool" if status.unseen == 1 else f"{status.unseen} tools"
    see = f"{advised(f'approve {status.name}')} shows what programs can call"
    return f"Nobody has seen {which} of {status.name} yet: {see}."


def status_as_json(status: ServerStatus, server: ServerConfig, approval: ApprovalState) -> dict[str, Any]:
    """A status for programs."""
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
