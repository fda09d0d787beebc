"""`toolbridge disable`: never start a server, approved or not, until it is enabled."""

from __future__ import annotations

import json
import sys

import click

from toolbridge.cli.exit_codes import OK
from toolbridge.cli.server_options import complete_servers, config_option, configured_server, read_config
from toolbridge.cli.terminal import write


@click.command(
    "disable",
    epilog="Exit codes: 0 it is disabled; 2 there is no such server; 4 that can't be remembered.",
)
@click.argument("name", shell_complete=complete_servers)
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(name: str, config_file: str | None, as_json: bool) -> int:
    """Never start a server, approved or not, until it is enabled.

    This is remembered for you, and stronger than what its configuration says; no file is changed. A host that has it
    connected closes it before it runs its next program.

    \b
    Example:  toolbridge disable weather
    """
    from toolbridge.trust.approval_store import ApprovalStore

    ApprovalStore().set_enabled(configured_server(read_config(config_file, named=[name]), name), False)
    shown = json.dumps({"name": name, "enabled": False}) if as_json else f"Disabled {name}."
    write(sys.stdout, f"{shown}\n")
    return OK
