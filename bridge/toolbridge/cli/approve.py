"""`toolbridge approve`: let a server be started or reached, after a look at what it is."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

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
from toolbridge.trust.sanitise import for_error

if TYPE_CHECKING:
    from toolbridge import ApprovalRequest, Config, ServerManager
    from toolbridge.trust.approval_store import StoredAnswer


@click.command(
    "approve", epilog="Exit codes: 0 it is approved; 2 wrong usage; 4 it is not, or its tools can't be pinned."
)
@click.argument("name", shell_complete=complete_servers)
@config_option
@click.option("--hash", "digest", metavar="sha256:…", help="Approve it only if this is its digest.")
@click.option("--yes", is_flag=True, help="Don't ask, and don't start it. Only together with --hash.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; questions go to standard error.")
def command(name: str, *, config_file: str | None, digest: str | None, yes: bool, as_json: bool) -> int:
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
    config = read_config(config_file, named=(name,))
    server = configured_server(config, name)
    request, _ = prepare(server, os.environ)
    said = _Said(name, request.digest, server.enabled, as_json=as_json)
    if digest is not None and digest.strip().lower() != request.digest:
        return said.refused(f"Not approved: the digest of {name} is {request.digest}, not the one given.")
    store = ApprovalStore()
    answer = store.answer(request)
    if answer.standing == "approved":
        said.approved(f"{name} is approved already.\n")
    else:
        refusal = "" if yes else _refusal(request, answer, config_file, shows=not as_json)
        if refusal:
            return said.refused(refusal)
        store.approve(request)
        said.approved(f"Approved {name}.\n")
    if not server.enabled:
        said.tell(f"It is disabled: `toolbridge enable {name}` lets it be used.\n")
    elif not yes:
        return _show_tools(config, name, config_file, said)
    return said.end(OK)


class _Said:
    """What is told of one approval: line by line to a person, or as one object to a program."""

    def __init__(self, name: str, digest: str, enabled: bool, *, as_json: bool) -> None:
        self._as_json = as_json
        self._facts: dict[str, Any] = {
            "name": name,
            "digest": digest,
            "approved": False,
            "enabled": enabled,
            "callable": None,
            "blocked": None,
            "findings": [],
            "error": "",
        }

    def approved(self, text: str) -> None:
        self._facts["approved"] = True
        self.tell(text)

    def tell(self, text: str, **facts: Any) -> None:
        self._facts.update(facts)
        if not self._as_json:
            write(sys.stdout, text)

    def refused(self, error: str) -> int:
        self._facts["error"] = error
        if not self._as_json:
            write(sys.stderr, f"{error}\n")
        return self.end(FAILED)

    def end(self, code: int) -> int:
        if self._as_json:
            write(sys.stdout, json.dumps(self._facts, indent=2) + "\n")
        return code


def _refusal(request: ApprovalRequest, answer: StoredAnswer, config_file: str | None, *, shows: bool) -> str:
    """Empty if the person at the terminal agrees. Without one, all is shown, and how to go on."""
    import anyio

    from toolbridge.trust.approval_prompt import approval_prompt
    from toolbridge.trust.approvers import ask_at_terminal, how_to_approve, unattended_command
    from toolbridge.trust.terminal_question import Terminal

    terminal = Terminal()
    if terminal.is_there:
        return "" if anyio.run(ask_at_terminal, terminal, request, answer) else "Not approved."
    if shows:
        write(sys.stdout, f"{approval_prompt(request, answer)}\n")
    profiles = chosen_profiles()
    advice = how_to_approve(request, config_file, profiles)
    return (
        f"Not approved: nobody can be asked here. {advice}, "
        f"or unattended: `{unattended_command(request, config_file, profiles)}`."
    )


def _show_tools(config: Config, name: str, config_file: str | None, said: _Said) -> int:
    """The second stage: connect it for the first time; its tools are shown, asked about, and pinned."""
    from toolbridge import ServerError

    async def work(manager: ServerManager) -> str:
        await manager.connect(name)
        return _tell_standing(manager, name, said)

    try:
        problem = open_servers(config, work, config_file=config_file, ask=True)
    except ServerError as error:
        return said.refused(f"It is approved, but its tools are not known yet: {error}")
    return said.refused(f"It is approved, but {problem}") if problem else said.end(OK)


def _tell_standing(manager: ServerManager, name: str, said: _Said) -> str:
    """What can be called, or else why nothing can; and what the audit finds in it.

    Others may have accepted that, in a project's lock.
    Whoever was asked about it just now has read all of it already, and once more at the end does no harm.
    """
    from toolbridge.trust.audit_report import finding_as_json
    from toolbridge.trust.pins import FirstListing
    from toolbridge.trust.tools_prompt import found_prompt

    exposed, admission, listing = manager.exposed(name), manager.admission(name), manager.listing(name)
    tools, instructions = ((), "") if exposed is None else (exposed.tools, exposed.instructions)
    about = {} if listing is None else listing.about
    first = FirstListing(manager.config_of(name), tools, instructions, manager.other_tools(name), about)
    shown = found_prompt(first)
    if shown:
        found = [finding_as_json(finding) for finding in first.findings]
        said.tell(f"Of what {name} says to models, look at this:\n{shown}\n\n", findings=found)
    said.tell(f"{len(tools)} tool{'' if len(tools) == 1 else 's'} of {name} can be called.\n", callable=len(tools))
    if admission is None:
        said.tell("", blocked=0)
        return ""
    unpinnable = [tool for tool in admission.blocked if tool.why == "unpinnable"]
    for tool in unpinnable:
        said.tell(f"{for_error(tool.name, limit=200)} can't be, and not be pinned either: it {tool.problem}.\n")
    waiting = len(admission.blocked) - len(unpinnable)
    accept = f"{waiting} can't: `toolbridge lock --update {name}` accepts what it lists now.\n"
    said.tell(accept if waiting and not admission.problem else "", blocked=len(admission.blocked))
    return admission.problem
