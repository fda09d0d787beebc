"""`toolbridge sign-out`: the end of what `sign-in` began."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from toolbridge.cli.exit_codes import OK
from toolbridge.cli.server_options import complete_servers, config_option, open_servers, read_config
from toolbridge.cli.terminal import write

if TYPE_CHECKING:
    from toolbridge import ServerManager


@click.command(
    "sign-out",
    epilog="Exit codes: 0 done; 2 there is no such server.",
)
@click.argument("name", shell_complete=complete_servers)
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(name: str, config_file: str | None, as_json: bool) -> int:
    """Forget the sign-in to a server.

    \b
    Example:  toolbridge sign-out tracker
    """

    async def work(manager: ServerManager) -> bool:
        return await manager.sign_out(name)

    was_there = open_servers(read_config(config_file), work)
    if as_json:
        write(sys.stdout, json.dumps({"name": name, "wasSignedIn": was_there}) + "\n")
    else:
        write(sys.stdout, f"Signed out of {name}.\n" if was_there else f"There was no sign-in to {name}.\n")
    return OK
