"""`toolbridge approve`: let a server be started or reached, after a look at what it is."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from toolbridge.cli.exit_codes import FAILED, OK
from toolbridge.cli.server_options import (
    chosen_profiles,
    complete_servers,
    config_option,
    configured_server,
    open_servers,
    read_config,
)
from toolbridge.cli.terminal import write

if TYPE_CHECKING:
    from toolbridge import ApprovalRequest, Config, ServerManager
    from toolbridge.trust.approval_store import StoredAnswer


@click.command("approve", epilog="Exit codes: 0 it is approved; 2 wrong usage; 4 it is not.")
@click.argument("name", shell_complete=complete_servers)
@config_option
@click.option("--hash", "digest", metavar="sha256:…", help="Approve it only if this is its digest.")
@click.option("--yes", is_flag=True, help="Don't ask, and don't start it. Only together with --hash.")
def command(name: str, config_file: str | None, digest: str | None, yes: bool) -> int:
    """Let a server be started or reached: shows what it is, asks, and remembers the answer.

    Then it is started once, and its tools are shown. An approval holds for exactly what was shown: a changed command,
    argument, variable or file asks again.

    Where nobody can be asked, the digest says what is approved: --hash sha256:… --yes.

    \b
    Examples:  toolbridge approve weather
               toolbridge approve weather --hash sha256:… --yes
    """
    from toolbridge.servers.start import prepare
    from toolbridge.trust.approval_store import ApprovalStore

    if yes and digest is None:
        raise click.UsageError("--yes goes only with --hash: without it, nobody knows what is approved.")
    config = read_config(config_file, plugins="__" in name)
    server = configured_server(config, name)
    request, _ = prepare(server, os.environ)
    if digest is not None and digest.strip().lower() != request.digest:
        write(sys.stderr, f"Not approved: the digest of {name} is {request.digest}, not the one given.\n")
        return FAILED
    store = ApprovalStore()
    answer = store.answer(request)
    if answer.standing == "approved":
        write(sys.stdout, f"{name} is approved already.\n")
    elif yes or _agreed(request, answer, config_file):
        store.approve(request)
        write(sys.stdout, f"Approved {name}.\n")
    else:
        return FAILED
    if not server.enabled:
        write(sys.stdout, f"It is disabled: `toolbridge enable {name}` lets it be used.\n")
        return OK
    return OK if yes else _show_tools(config, name, config_file)


def _agreed(request: ApprovalRequest, answer: StoredAnswer, config_file: str | None) -> bool:
    """Whether the person at the terminal agrees. Without one, all is shown, and how to go on."""
    import anyio

    from toolbridge.trust.approval_prompt import approval_prompt
    from toolbridge.trust.approvers import ask_at_terminal, how_to_approve
    from toolbridge.trust.terminal_question import Terminal

    terminal = Terminal()
    if not terminal.is_there:
        write(sys.stdout, f"{approval_prompt(request, answer)}\n")
        write(
            sys.stderr,
            f"Not approved: nobody can be asked here. {how_to_approve(request, config_file, chosen_profiles())}.\n",
        )
        return False
    agreed = anyio.run(ask_at_terminal, terminal, request, answer)
    if not agreed:
        write(sys.stderr, "Not approved.\n")
    return agreed


def _show_tools(config: Config, name: str, config_file: str | None) -> int:
    """The second stage: connect it for the first time; its tools are shown, asked about, and pinned."""
    from toolbridge import ServerError

    async def work(manager: ServerManager) -> str:
        await manager.connect(name)
        return _standing(manager, name)

    try:
        write(sys.stdout, open_servers(config, work, config_file=config_file, ask=True))
    except ServerError as error:
        write(sys.stderr, f"It is approved, but its tools are not known yet: {error}\n")
        return FAILED
    return OK


def _standing(manager: ServerManager, name: str) -> str:
    exposed, admission = manager.exposed(name), manager.admission(name)
    count = len(exposed.tools) if exposed else 0
    text = _found(manager, name) + f"{count} tool{'' if count == 1 else 's'} of {name} can be called.\n"
    if admission is not None and admission.blocked:
        text += f"{len(admission.blocked)} can't: `toolbridge lock --update {name}` accepts what it lists now.\n"
    return text


def _found(manager: ServerManager, name: str) -> str:
    """What the audit finds in texts that are pinned: others may have accepted them, in a lock that came with a project.

    Whoever was asked about them just now has read all of it already, and once more at the end does no harm.
    """
    from toolbridge.trust.pins import FirstListing
    from toolbridge.trust.tools_prompt import found_prompt

    exposed = manager.exposed(name)
    if exposed is None:
        return ""
    first = FirstListing(manager.config_of(name), exposed.tools, exposed.instructions, manager.other_tools(name))
    shown = found_prompt(first)
    return f"Of what {name} says to models, look at this:\n{shown}\n\n" if shown else ""
