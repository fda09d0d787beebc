"""`toolbridge revoke`: take back the approval of a server."""

from __future__ import annotations

import json
import sys

import click

from toolbridge.cli.exit_codes import FAILED, OK
from toolbridge.cli.server_options import complete_servers, config_option, read_config
from toolbridge.cli.terminal import write
from toolbridge.errors import ConfigError
from toolbridge.trust.sanitise import for_terminal


@click.command("revoke", epilog="Exit codes: 0 it was approved and is no longer; 4 there was nothing to revoke.")
@click.argument("name", shell_complete=complete_servers)
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(name: str, config_file: str | None, as_json: bool) -> int:
    """Take back the approval of a server, in every directory. It asks again before it is started the next time.

    A server that is configured no longer can be revoked too: then every approval of that name is taken back. A host
    that goes by these approvals closes the server before it runs its next program; the API's `revoke` does at once.

    \b
    Example:  toolbridge revoke weather
    """
    from toolbridge.trust.approval_store import ApprovalStore

    try:
        server = read_config(config_file, named=[name]).servers.get(name)
    except ConfigError as error:  # a broken file must not keep an approval alive
        write(sys.stderr, f"Warning: {error}\n")
        server = None
    revoked = ApprovalStore().revoke(name, None if server is None else server.origin)
    if as_json:
        facts = [
            {
                "name": record.name,
                "origin": {"kind": record.origin.kind, "detail": record.origin.detail},
                "directory": record.directory or None,
            }
            for record in revoked
        ]
        words = f"There is no approval of {name!r}."
        missing = {} if revoked else {"error": {"kind": "refused", "message": words}}
        write(sys.stdout, json.dumps({"name": name, "revoked": facts, **missing}, indent=2) + "\n")
        return OK if revoked else FAILED
    if not revoked:
        write(sys.stderr, f"There is no approval of {name!r}.\n")
        return FAILED
    for record in revoked:
        where = f", in {for_terminal(record.directory)}" if record.directory else ""
        write(sys.stdout, f"Revoked {record.name} of {for_terminal(str(record.origin))}{where}.\n")
    return OK
