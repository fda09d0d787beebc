"""`toolbridge approve`: let a server be started or reached, after a look at what it is."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from toolbridge.cli import FAILED, OK
from toolbridge.cli.server_options import (
    chosen_profiles,
    complete_servers,
    config_option,
    configured_server,
    open_servers,
    read_config,
)
from toolbridge.cli.terminal import write
from toolbridge.describe.modules import count_of_tools
from toolbridge.errors import ConfigError, advised
from toolbridge.trust.text.sanitise import for_error, for_terminal

if TYPE_CHECKING:
    from toolbridge import ApprovalRequest, Config, ServerConfig, ServerManager, ServerStatus
    from toolbridge.trust.approval.store import StoredAnswer


# `toolbridge disable`: never start a server, approved or not, until it is enabled.


@click.command(
    "disable",
    epilog="Exit codes: 0 it is disabled; 2 there is no such server; 4 that can't be remembered.",
)
@click.argument("name", shell_complete=complete_servers)
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def disable(name: str, config_file: str | None, as_json: bool) -> int:
    """Never start a server, approved or not, until it is enabled.

    This is remembered for you, and stronger than what its configuration says; no file is changed. A host that has it
    connected closes it before it runs its next program.

    \b
    Example:  toolbridge disable weather
    """
    from toolbridge.trust.approval.store import ApprovalStore

    ApprovalStore().set_enabled(configured_server(read_config(config_file, named=[name]), name), False)
    shown = json.dumps({"name": name, "enabled": False}) if as_json else f"Disabled {name}."
    write(sys.stdout, f"{shown}\n")
    return OK


# `toolbridge enable`: let a server be used again.


@click.command(
    "enable",
    epilog="Exit codes: 0 it is enabled; 2 there is no such server; 4 that can't be remembered.",
)
@click.argument("name", shell_complete=complete_servers)
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def enable(name: str, config_file: str | None, as_json: bool) -> int:
    """Let a server be used again.

    This is remembered for you, and stronger than what its configuration says. It approves nothing: a server that was
    never approved asks before it is started.

    \b
    Example:  toolbridge enable weather
    """
    from toolbridge.trust.approval.store import ApprovalStore

    ApprovalStore().set_enabled(configured_server(read_config(config_file, named=[name]), name), True)
    shown = json.dumps({"name": name, "enabled": True}) if as_json else f"Enabled {name}."
    write(sys.stdout, f"{shown}\n")
    return OK


# `toolbridge revoke`: take back the approval of a server.


@click.command("revoke", epilog="Exit codes: 0 it was approved and is no longer; 4 there was nothing to revoke.")
@click.argument("name", shell_complete=complete_servers)
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def revoke(name: str, config_file: str | None, as_json: bool) -> int:
    """Take back the approval of a server, in every directory. It asks again before it is started the next time.

    A server that is configured no longer can be revoked too: then every approval of that name is taken back. A host
    that goes by these approvals closes the server before it runs its next program; the API's `revoke` does at once.

    \b
    Example:  toolbridge revoke weather
    """
    from toolbridge.trust.approval.store import ApprovalStore

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


@click.command(
    "approve", epilog="Exit codes: 0 all are approved; 2 wrong usage; 4 one is not, or its tools can't be pinned."
)
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_servers)
@click.option("--all", "is_all", is_flag=True, help="Every server that is configured, one after another.")
@config_option
@click.option("--hash", "digest", metavar="sha256:…", help="Approve it only if this is its digest.")
@click.option("--yes", is_flag=True, help="Don't ask, and don't start it. Only together with --hash.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; questions go to standard error.")
def approve(
    names: tuple[str, ...], *, is_all: bool, config_file: str | None, digest: str | None, yes: bool, as_json: bool
) -> int:
    """Let servers be started or reached: shows what each is, asks, and remembers the answer.

    Then it is started once, and its tools are shown. An approval holds for exactly what was shown: a changed command,
    argument, variable or file asks again.

    Where nobody can be asked, the digest says what is approved: --hash sha256:… --yes.

    \b
    Examples:  toolbridge approve weather
               toolbridge approve weather tracker
               toolbridge approve --all
               toolbridge approve weather --hash sha256:… --yes
    """
    if yes and digest is None:
        raise click.UsageError("--yes goes only with --hash: without it, nobody knows what is approved.")
    if is_all == bool(names):
        raise click.UsageError("Give the NAME of a server, or several, or --all.")
    if digest is not None and (is_all or len(names) > 1):
        raise click.UsageError("--hash is the digest of one server: give one NAME with it.")
    config = read_config(config_file, plugins=is_all, named=names)
    wanted = [configured_server(config, name) for name in (sorted(config.servers) if is_all else dict.fromkeys(names))]
    if len(wanted) == 1 and not is_all:
        said = _Said(wanted[0], as_json=as_json)
        code = _approve(config, wanted[0], said, config_file, digest, yes=yes)
        return said.end(code)
    if not wanted and not as_json:
        write(sys.stdout, "No servers are configured. `toolbridge init` takes over those of your clients.\n")
    return _approve_each(config, wanted, config_file, as_json=as_json)


def _approve_each(config: Config, wanted: list[ServerConfig], config_file: str | None, *, as_json: bool) -> int:
    """One after another: an answer to one says nothing of the next, nor does its failure."""
    from toolbridge import ToolbridgeError

    worst, facts = OK, list[dict[str, Any]]()
    for server in wanted:
        said = _Said(server, as_json=as_json)
        try:
            code = _approve(config, server, said, config_file, None, yes=False)
        except ToolbridgeError as error:
            code = said.refused(f"{server.name} is not approved: {error}")
        worst = max(worst, code)
        facts.append(said.facts)
    if as_json:
        write(sys.stdout, json.dumps({"servers": facts}, indent=2) + "\n")
    return worst


def _approve(
    config: Config, server: ServerConfig, said: _Said, config_file: str | None, digest: str | None, *, yes: bool
) -> int:
    from toolbridge.servers.lifecycle import prepare
    from toolbridge.trust.approval.store import ApprovalStore

    name = server.name
    request, _ = prepare(server, os.environ)
    said.facts["digest"] = request.digest
    if digest is not None and digest.strip().lower() != request.digest:
        return said.refused(f"Not approved: the digest of {name} is {request.digest}, not the one given.")
    store = ApprovalStore()
    answer = store.answer(request)
    if answer.standing == "approved":
        said.approved(f"{name} is approved already.\n")
    else:
        refusal = "" if yes else _refusal(request, answer, config_file, shows=not said.as_json)
        if refusal:
            return said.refused(refusal)
        store.approve(request)
        said.approved(f"Approved {name}.\n")
    if not server.enabled:
        said.tell(f"It is disabled: {advised(f'enable {name}')} lets it be used.\n")
    elif not yes:
        return _show_tools(config, name, config_file, said)
    else:
        _show_pinned(config, name, said)
    return OK


class _Said:
    """What is told of one approval: line by line to a person, or as one object to a program."""

    def __init__(self, server: ServerConfig, *, as_json: bool) -> None:
        self.as_json = as_json
        self.facts: dict[str, Any] = {
            "name": server.name,
            "digest": None,
            "approved": False,
            "enabled": server.enabled,
            "callable": None,
            "blocked": None,
            "unseen": None,
            "findings": [],
            "error": None,
        }

    def approved(self, text: str) -> None:
        self.facts["approved"] = True
        self.tell(text)

    def tell(self, text: str, **facts: Any) -> None:
        self.facts.update(facts)
        if not self.as_json:
            write(sys.stdout, text)

    def refused(self, error: str) -> int:
        self.facts["error"] = {"kind": "refused", "message": error}
        if not self.as_json:
            write(sys.stderr, f"{error}\n")
        return FAILED

    def end(self, code: int) -> int:
        if self.as_json:
            write(sys.stdout, json.dumps(self.facts, indent=2) + "\n")
        return code


def _refusal(request: ApprovalRequest, answer: StoredAnswer, config_file: str | None, *, shows: bool) -> str:
    """Empty if the person at the terminal agrees. Without one, all is shown, and how to go on."""
    import anyio

    from toolbridge.trust.approval.approver import Terminal
    from toolbridge.trust.approval.approvers import approval_prompt, ask_at_terminal, how_to_approve, unattended_command

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


def _show_pinned(config: Config, name: str, said: _Said) -> None:
    """Without starting it: those texts of its lock in which the audit finds something. Nobody accepts them by this."""
    from toolbridge.trust.audit.detector import finding_as_json
    from toolbridge.trust.pins.lock_file import LockError
    from toolbridge.trust.pins.pins import LockPins
    from toolbridge.trust.pins.review import found_prompt, pinned_listing

    server = config.servers[name]
    try:
        pinned = LockPins().pinned(server)
    except LockError as error:
        said.tell(f"Its lock can't be used: {error}\n", error=str(error))
        return
    if pinned is None:
        return
    first = pinned_listing(server, pinned)
    shown = found_prompt(first)
    if shown:
        found = [finding_as_json(finding) for finding in first.findings]
        said.tell(f"Of what the lock pins of {name}, look at this:\n{shown}\n\n", findings=found)
        if first.withheld:
            said.tell(f"What has a high finding stays hidden until you accept it: {advised(f'approve {name}')}.\n")


def _show_tools(config: Config, name: str, config_file: str | None, said: _Said) -> int:
    """The second stage: connect it for the first time; its tools are shown, asked about, and pinned."""
    from toolbridge import ServerError

    async def work(manager: ServerManager) -> str:
        await manager.connect(name)
        return _tell_standing(manager, name, said)

    try:
        problem = open_servers(config, work, config_file=config_file, ask=True, again=True)
    except ServerError as error:
        return said.refused(f"It is approved, but its tools are not known yet: {error}")
    return said.refused(f"It is approved, but {problem}") if problem else OK


def _tell_place(server: ServerConfig, said: _Said) -> None:
    """Where the pins are that this user accepted, if the lock that they belong into can't be written."""
    from toolbridge.trust.pins.pins import LockPins

    pins = LockPins()
    shared, own = pins.place(server), pins.where(server)
    if shared is not None and own is not None and own != shared:
        said.tell(f"{shared.path} can't be written: its pins are in {own.path}.\n")


def _tell_standing(manager: ServerManager, name: str, said: _Said) -> str:
    """What can be called, or else why nothing can; and what the audit finds in it.

    Whoever was asked about it just now has read all of it already, and once more at the end does no harm.
    """
    from toolbridge.trust.audit.detector import finding_as_json
    from toolbridge.trust.pins.pins import FirstListing
    from toolbridge.trust.pins.review import found_prompt

    exposed, admission, listing = manager.exposed(name), manager.admission(name), manager.listing(name)
    tools, instructions = ((), "") if exposed is None else (exposed.tools, exposed.instructions)
    about = {} if listing is None else listing.about
    first = FirstListing(manager.config_of(name), tools, instructions, manager.other_tools(name), about)
    shown = found_prompt(first)
    if shown:
        found = [finding_as_json(finding) for finding in first.findings]
        said.tell(f"Of what {name} says to models, look at this:\n{shown}\n\n", findings=found)
    said.tell(f"{count_of_tools(len(tools))} of {name} can be called.\n", callable=len(tools))
    if admission is None:
        said.tell("", blocked=0)
        return ""
    unpinnable = [tool for tool in admission.blocked if tool.why == "unpinnable"]
    for tool in unpinnable:
        said.tell(f"{for_error(tool.name, limit=200)} can't be, and not be pinned either: it {tool.problem}.\n")
    status = manager.status(name)
    said.tell(f"{unseen_words(status)}\n" if status.unseen else "", unseen=status.unseen)
    if tools and not status.unseen:
        _tell_place(manager.config_of(name), said)
    decided = [tool for tool in admission.blocked if tool.why in ("unseen", "refused")]
    for problem in admission.problems(name, {tool.name for tool in decided}) if decided else ():
        said.tell(f"{problem}.\n")
    waiting = len(admission.blocked) - len(unpinnable) - len(decided)
    accept = f"{waiting} can't: {advised(f'lock --update {name}')} accepts what it lists now.\n"
    said.tell(accept if waiting and not admission.problem else "", blocked=len(admission.blocked))
    return admission.problem


def unseen_words(status: ServerStatus) -> str:
    """Says that tools are used which this user has not seen, and how to see them."""
    which = "1 tool" if status.unseen == 1 else f"{status.unseen} tools"
    see = f"{advised(f'approve {status.name}')} shows what programs can call"
    return f"Nobody has seen {which} of {status.name} yet: {see}."


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
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
