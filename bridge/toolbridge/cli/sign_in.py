"""`toolbridge sign-in`: OAuth for servers that are reached by HTTP."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import click

from toolbridge.cli import OK
from toolbridge.cli.server_options import complete_servers, config_option, open_servers, read_config
from toolbridge.cli.terminal import write

if TYPE_CHECKING:
    from toolbridge import ServerManager


# `toolbridge sign-out`: the end of what `sign-in` began.


@click.command(
    "sign-out",
    epilog="Exit codes: 0 done; 2 there is no such server.",
)
@click.argument("name", shell_complete=complete_servers)
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def sign_out(name: str, config_file: str | None, as_json: bool) -> int:
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


@click.command(
    "sign-in",
    epilog="Exit codes: 0 signed in, or there is nothing to sign in to; 2 there is no such server; 4 it did not work.",
)
@click.argument("name", shell_complete=complete_servers)
@config_option
@click.option("--no-browser", is_flag=True, help="Print the page's address, and ask for the one it leads to.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def sign_in(name: str, config_file: str | None, no_browser: bool, as_json: bool) -> int:
    """Sign in to a server that is reached by HTTP. The tokens are kept in the keyring, or in a file of yours alone.

    \b
    Examples:  toolbridge sign-in tracker
               toolbridge sign-in tracker --no-browser
    """
    from toolbridge.servers.auth.sign_in import BrowserSignIn, HeadlessSignIn

    how = HeadlessSignIn() if no_browser or not _has_browser() else BrowserSignIn()

    async def work(manager: ServerManager) -> bool:
        return await manager.sign_in(name, how)

    wanted = open_servers(read_config(config_file), work, config_file=config_file, ask=True)
    if as_json:
        write(sys.stdout, json.dumps({"name": name, "wanted": wanted, "signedIn": wanted}) + "\n")
    else:
        write(sys.stdout, f"Signed in to {name}.\n" if wanted else f"{name} wants no sign-in.\n")
    return OK


def _has_browser() -> bool:
    """Whether a browser can be expected to open: on Linux that takes a display."""
    return sys.platform in ("win32", "darwin") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
