"""`toolbridge enable`: let a server be used again."""

from __future__ import annotations

import json
import sys

import click

from toolbridge.cli.exit_codes import OK
from toolbridge.cli.server_options import complete_servers, config_option, configured_server, read_config
from toolbridge.cli.terminal import write


@click.command(
    "enable",
    epilog="Exit codes: 0 it is enabled; 2 there is no such server; 4 that can't be remembered.",
)
@click.argument("name", shell_complete=complete_servers)
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(name: str, config_file: str | None, as_json: bool) -> int:
    """Let a server be used again.

    This is remembered for you, and stronger than what its configuration says. It approves nothing: a server that was
    never approved asks before it is started.

    \b
    Example:  toolbridge enable weather
    """
    from toolbridge.trust.approval_store import ApprovalStore

    ApprovalStore().set_enabled(configured_server(read_config(config_file, named=[name]), name), True)
    shown = json.dumps({"name": name, "enabled": True}) if as_json else f"Enabled {name}."
    write(sys.stdout, f"{shown}\n")
    return OK
