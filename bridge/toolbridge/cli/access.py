"""Access to servers: `toolbridge approve`, `revoke`, `enable`, `disable`, and `sign-in`, `sign-out` with OAuth."""

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
from toolbridge.trust.sanitise import for_error, for_terminal

if TYPE_CHECKING:
    from toolbridge import ApprovalRequest, Config, ServerConfig, ServerManager, ServerStatus
    from toolbridge.trust.approval.store import StoredAnswer


# ── toolbridge disable, enable, revoke ───────────────────────────────────────────────────────────────────────────────


@click.command("disable", epilog="Exit codes: 0 disabled; 2 there is no such server; 4 it can't be stored.")
@click.argument("name", shell_complete=complete_servers)
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def disable(name: str, config_file: str | None, as_json: bool) -> int:
    """Disable a server: it is not started, approved or not, until you enable it.

    Stored for your user, and overrides the configuration; no file is changed. A host that has it connected closes it
    before its next program.

    \b
    Example:  toolbridge disable weather
    """
    return _set_enabled(name, False, config_file, as_json=as_json)


@click.command("enable", epilog="Exit codes: 0 enabled; 2 there is no such server; 4 it can't be stored.")
@click.argument("name", shell_complete=complete_servers)
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def enable(name: str, config_file: str | None, as_json: bool) -> int:
    """Enable a disabled server.

    Stored for your user, and overrides the configuration. Does not approve: a server that was never approved asks
    before it is started.

    \b
    Example:  toolbridge enable weather
    """
    return _set_enabled(name, True, config_file, as_json=as_json)


def _set_enabled(name: str, enabled: bool, config_file: str | None, *, as_json: bool) -> int:
    """Store for this user that a configured server is enabled or not, and print it."""
    from toolbridge.trust.approval.store import ApprovalStore

    ApprovalStore().set_enabled(configured_server(read_config(config_file, named=[name]), name), enabled)
    text = json.dumps({"name": name, "enabled": enabled}) if as_json else f"{'En' if enabled else 'Dis'}abled {name}."
    write(sys.stdout, f"{text}\n")
    return OK


@click.command("revoke", epilog="Exit codes: 0 revoked; 4 there was no approval.")
@click.argument("name", shell_complete=complete_servers)
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def revoke(name: str, config_file: str | None, as_json: bool) -> int:
    """Revoke a server's approval, in every directory. It asks again before its next start.

    For a server that is no longer configured, revokes every approval of that name. A host that uses these approvals
    closes the server before its next program; the API's `revoke` closes it at once.

    \b
    Example:  toolbridge revoke weather
    """
    from toolbridge.trust.approval.store import ApprovalStore

    try:
        server = read_config(config_file, named=[name]).servers.get(name)
    except ConfigError as error:  # a broken file must not prevent a revocation
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
@click.option("--all", "is_all", is_flag=True, help="Approve all configured servers, one after another.")
@config_option
@click.option("--hash", "digest", metavar="sha256:…", help="Approve only if the digest matches.")
@click.option("--yes", is_flag=True, help="Neither ask nor start it. Requires --hash.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; questions go to standard error.")
def approve(
    names: tuple[str, ...], *, is_all: bool, config_file: str | None, digest: str | None, yes: bool, as_json: bool
) -> int:
    """Approve servers: shows each one's configuration, asks, and stores the answer.

    Then each enabled server is started once, except with --yes, to show and pin its tools. An approval holds for
    exactly what was shown: a changed command, argument, variable or file asks again.

    Without a terminal, the digest identifies what is approved: --hash sha256:… --yes.

    \b
    Examples:  toolbridge approve weather
               toolbridge approve weather tracker
               toolbridge approve --all
               toolbridge approve weather --hash sha256:… --yes
    """
    if yes and digest is None:
        raise click.UsageError("--yes requires --hash, which says what is approved.")
    if is_all == bool(names):
        raise click.UsageError("Give one or more NAMEs, or --all.")
    if digest is not None and (is_all or len(names) > 1):
        raise click.UsageError("--hash is the digest of one server: give one NAME.")
    config = read_config(config_file, plugins=is_all, named=names)
    wanted = [configured_server(config, name) for name in (sorted(config.servers) if is_all else dict.fromkeys(names))]
    if len(wanted) == 1 and not is_all:
        report = _Report(wanted[0], as_json=as_json)
        code = _approve(config, wanted[0], report, config_file, digest, yes=yes)
        return report.end(code)
    if not wanted and not as_json:
        write(sys.stdout, "No servers are configured. `toolbridge init` imports those of your clients.\n")
    return _approve_each(config, wanted, config_file, as_json=as_json)


def _approve_each(config: Config, wanted: list[ServerConfig], config_file: str | None, *, as_json: bool) -> int:
    """Approve one after another; a refusal or error doesn't stop the next. Returns the worst exit code."""
    from toolbridge import ToolbridgeError

    worst, facts = OK, list[dict[str, Any]]()
    for server in wanted:
        report = _Report(server, as_json=as_json)
        try:
            code = _approve(config, server, report, config_file, None, yes=False)
        except ToolbridgeError as error:
            code = report.refused(f"{server.name} is not approved: {error}")
        worst = max(worst, code)
        facts.append(report.facts)
    if as_json:
        write(sys.stdout, json.dumps({"servers": facts}, indent=2) + "\n")
    return worst


def _approve(
    config: Config, server: ServerConfig, report: _Report, config_file: str | None, digest: str | None, *, yes: bool
) -> int:
    """Check the digest, ask, store the approval, then start the server once to show its tools; the exit code.

    With `yes`, neither asks nor starts it, and shows findings in pinned definitions only. A disabled server is not
    started.

    Raises:
        ToolbridgeError: it can't be prepared or stored.
    """
    from toolbridge.servers.lifecycle import prepare
    from toolbridge.trust.approval.store import ApprovalStore

    name = server.name
    request, _ = prepare(server, os.environ)
    report.facts["digest"] = request.digest
    if digest is not None and digest.strip().lower() != request.digest:
        return report.refused(f"Not approved: the digest of {name} is {request.digest}, not the one given.")
    store = ApprovalStore()
    answer = store.answer(request)
    if answer.standing == "approved":
        report.approved(f"{name} is approved already.\n")
    else:
        refusal = "" if yes else _refusal(request, answer, config_file, shows=not report.as_json)
        if refusal:
            return report.refused(refusal)
        store.approve(request)
        report.approved(f"Approved {name}.\n")
    if not server.enabled:
        report.tell(f"It is disabled: {advised(f'enable {name}')} lets it be used.\n")
    elif not yes:
        return _show_tools(config, name, config_file, report)
    else:
        _show_pinned(config, name, report)
    return OK


class _Report:
    """Output about one approval: lines for a person, or one JSON object."""

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
        """Record the approval, and print the text unless JSON is wanted."""
        self.facts["approved"] = True
        self.tell(text)

    def tell(self, text: str, **facts: Any) -> None:
        """Record facts, and print the text unless JSON is wanted."""
        self.facts.update(facts)
        if not self.as_json:
            write(sys.stdout, text)

    def refused(self, error: str) -> int:
        """Record the error, and print it on stderr unless JSON is wanted; returns `FAILED`."""
        self.facts["error"] = {"kind": "refused", "message": error}
        if not self.as_json:
            write(sys.stderr, f"{error}\n")
        return FAILED

    def end(self, code: int) -> int:
        """Print the JSON object if it is wanted; returns the code unchanged."""
        if self.as_json:
            write(sys.stdout, json.dumps(self.facts, indent=2) + "\n")
        return code


def _refusal(request: ApprovalRequest, answer: StoredAnswer, config_file: str | None, *, shows: bool) -> str:
    """Ask at the terminal whether to approve; empty for a yes, else the reason why not.

    Without a terminal, the reason names the command to use; with `shows`, the prompt is printed.
    """
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


def _show_pinned(config: Config, name: str, report: _Report) -> None:
    """Report pinned texts with audit findings, without starting the server or accepting them; nothing without pins."""
    from toolbridge.trust.audit.detector import finding_as_json
    from toolbridge.trust.pins.lock_file import LockError
    from toolbridge.trust.pins.pins import LockPins
    from toolbridge.trust.pins.review import found_prompt, pinned_listing

    server = config.servers[name]
    try:
        pinned = LockPins().pinned(server)
    except LockError as error:
        report.tell(f"Its lock can't be used: {error}\n", error=str(error))
        return
    if pinned is None:
        return
    first = pinned_listing(server, pinned)
    shown = found_prompt(first)
    if shown:
        found = [finding_as_json(finding) for finding in first.findings]
        report.tell(f"Of what the lock pins of {name}, look at this:\n{shown}\n\n", findings=found)
        if first.withheld:
            report.tell(f"What has a high finding stays hidden until you accept it: {advised(f'approve {name}')}.\n")


def _show_tools(config: Config, name: str, config_file: str | None, report: _Report) -> int:
    """Connect the server once: ask about its tools, pin them, and report which can be called. The exit code."""
    from toolbridge import ServerError

    async def work(manager: ServerManager) -> str:
        await manager.connect(name)
        return _tell_standing(manager, name, report)

    try:
        problem = open_servers(config, work, config_file=config_file, ask=True, again=True)
    except ServerError as error:
        return report.refused(f"It is approved, but its tools are not known yet: {error}")
    return report.refused(f"It is approved, but {problem}") if problem else OK


def _tell_place(server: ServerConfig, report: _Report) -> None:
    """Report where the user's own pins are, if the shared lock can't be written; else nothing."""
    from toolbridge.trust.pins.pins import LockPins

    pins = LockPins()
    shared, own = pins.place(server), pins.where(server)
    if shared is not None and own is not None and own != shared:
        report.tell(f"{shared.path} can't be written: its pins are in {own.path}.\n")


def _tell_standing(manager: ServerManager, name: str, report: _Report) -> str:
    """Report the callable tools, audit findings and blocked tools; returns why none is callable, or an empty text."""
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
        report.tell(f"Of what {name} says to models, look at this:\n{shown}\n\n", findings=found)
    report.tell(f"{count_of_tools(len(tools))} of {name} can be called.\n", callable=len(tools))
    if admission is None:
        report.tell("", blocked=0)
        return ""
    unpinnable = [tool for tool in admission.blocked if tool.why == "unpinnable"]
    for tool in unpinnable:
        report.tell(f"{for_error(tool.name, limit=200)} can't be, and not be pinned either: it {tool.problem}.\n")
    status = manager.status(name)
    report.tell(f"{unseen_words(status)}\n" if status.unseen else "", unseen=status.unseen)
    if tools and not status.unseen:
        _tell_place(manager.config_of(name), report)
    decided = [tool for tool in admission.blocked if tool.why in ("unseen", "refused")]
    for problem in admission.problems(name, {tool.name for tool in decided}) if decided else ():
        report.tell(f"{problem}.\n")
    waiting = len(admission.blocked) - len(unpinnable) - len(decided)
    accept = f"{waiting} can't: {advised(f'lock --update {name}')} accepts what it lists now.\n"
    report.tell(accept if waiting and not admission.problem else "", blocked=len(admission.blocked))
    return admission.problem


def unseen_words(status: ServerStatus) -> str:
    """A sentence that warns about tools in use that this user has not seen, and how to see them."""
    which = "1 tool" if status.unseen == 1 else f"{status.unseen} tools"
    see = f"{advised(f'approve {status.name}')} shows what programs can call"
    return f"Nobody has seen {which} of {status.name} yet: {see}."


# ── toolbridge sign-in, sign-out ─────────────────────────────────────────────────────────────────────────────────────


@click.command(
    "sign-out",
    epilog="Exit codes: 0 done; 2 there is no such server.",
)
@click.argument("name", shell_complete=complete_servers)
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def sign_out(name: str, config_file: str | None, as_json: bool) -> int:
    """Sign out of a server: deletes its tokens.

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
@click.option("--no-browser", is_flag=True, help="Print the URL to open, and ask for the URL it redirects to.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def sign_in(name: str, config_file: str | None, no_browser: bool, as_json: bool) -> int:
    """Sign in to an HTTP server with OAuth. Tokens are stored in the keyring, or in a private file.

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
    """Whether a browser can open: on Linux, that needs a display."""
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
