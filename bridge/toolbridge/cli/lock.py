"""`toolbridge lock`: pin tools as they are, see what changed, accept it."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import click

from toolbridge.cli import FAILED, OK
from toolbridge.cli.server_options import complete_servers, config_option, configured_server, open_servers, read_config
from toolbridge.cli.terminal import write
from toolbridge.describe.modules import count_of_tools
from toolbridge.errors import advised
from toolbridge.trust.sanitise import for_error

if TYPE_CHECKING:
    from toolbridge import Config, ServerConfig, ServerManager
    from toolbridge.pins import Listing
    from toolbridge.trust.approval.approver import Terminal
    from toolbridge.trust.audit.detector import Finding
    from toolbridge.trust.pins.admission import Admission, BlockedTool
    from toolbridge.trust.pins.pins import FirstListing, LockPins


# The comparison of one server with its pins, for people and programs.


LockMode: TypeAlias = Literal["lock", "check", "update"]
_WIDEST = 100


@dataclass(frozen=True, slots=True)
class LockOutcome:
    """A server compared with its pins."""

    server: str
    lock: str
    """Path of the file with its pins."""
    admission: Admission | None = None
    """Before any acceptance; None if the listing is unknown."""
    pinned: bool = False
    """Whether pins were written by this command."""
    error: str = ""
    """Why the listing is unknown, or could not be pinned."""
    findings: tuple[Finding, ...] = ()
    """Audit findings in unpinned or changed definitions."""
    was_shown: bool = False
    """Whether a person was shown and asked already."""

    @property
    def differs(self) -> bool:
        """Whether differences are left to review."""
        return self.admission is not None and not self.pinned and not self.admission.is_as_pinned

    @property
    def is_pinned(self) -> bool:
        """Whether there were pins before."""
        return self.admission is not None and self.admission.is_pinned

    def with_findings(self, findings: Sequence[Finding]) -> LockOutcome:
        """A copy with the findings in unpinned or changed definitions only; the others were accepted before."""
        if self.admission is None:
            return self
        different = self.admission.different
        return replace(self, findings=tuple(each for each in findings if each.tool in different))


async def accepted_at(terminal: Terminal, outcome: LockOutcome) -> bool | None:
    """Show all differences at the terminal and ask to accept them; None without an answer. Stores nothing."""
    from toolbridge.trust.pins.review import is_agreed

    return is_agreed(await terminal.ask(for_people(outcome), "Accept all of this, and let programs call it? [y/N] "))


def for_people(outcome: LockOutcome) -> str:
    """One server's comparison as text, with the command that accepts it; hidden characters escaped."""
    from toolbridge.trust.audit.detector import counted
    from toolbridge.trust.pins.review import finding_lines

    admission = outcome.admission
    if admission is None:
        return f"{outcome.server}: not known: {outcome.error}\n"
    if admission.is_as_pinned and not outcome.error:
        waiting = sum(tool.why in ("unseen", "refused") for tool in admission.blocked)
        count = count_of_tools(len(admission.tools) + waiting)
        asks = f"; {count_of_tools(waiting)} not accepted by you: {advised(f'approve {outcome.server}')}"
        note, verb = ("", "accepted, ") if outcome.pinned else (asks if waiting else "", "")
        return f"{outcome.server}: {verb}as pinned ({count}{note})\n"
    if outcome.pinned and not admission.is_pinned:
        unfit = [tool for tool in admission.blocked if tool.why == "unpinnable"]
        listed = len(admission.tools) + len(admission.blocked) - len(unfit)
        found = finding_lines(outcome.findings, _width() - 2) if outcome.findings and not outcome.was_shown else []
        head = f"{outcome.server}: pinned {count_of_tools(listed)} in {outcome.lock}\n"
        return head + "".join(_tool_text(tool) for tool in unfit) + "".join(f"  {line}\n" for line in found)
    head = _summary(admission)
    if outcome.error:
        return f"{outcome.server}: {head}; not pinned: {outcome.error}\n"
    if not outcome.pinned and not admission.is_pinned:
        grave = f"the audit finds {counted(outcome.findings)} in what it lists; " if outcome.findings else ""
        return f"{outcome.server}: has no pins; {grave}write them with {advised(f'lock {outcome.server}')}\n"
    verdict = "accepted: " if outcome.pinned else "not accepted: " if outcome.was_shown else ""
    return f"{outcome.server}: {verdict}{head}\n{'' if outcome.was_shown else _body(outcome, admission)}"


def _body(outcome: LockOutcome, admission: Admission) -> str:
    """The differences as text, and the command that accepts them, if they can be accepted."""
    from toolbridge.trust.pins.review import finding_lines

    body = "".join(_tool_text(tool) for tool in admission.blocked)
    body += "".join(f"  removed {_name(name)}\n" for name in admission.removed)
    if admission.instructions_diff:
        body += f"  changed instructions\n{_indented(admission.instructions_diff)}"
    if outcome.findings:
        body += "".join(f"  {line}\n" for line in finding_lines(outcome.findings, _width() - 2))
    if outcome.pinned or not admission.can_be_accepted:
        return body
    return f"{body}  Accept all of this with {advised(f'lock --update {outcome.server}')}.\n"


def _width() -> int:
    return min(shutil.get_terminal_size((_WIDEST, 24)).columns, _WIDEST)


def _summary(admission: Admission) -> str:
    """Counts of blocked, removed and unchanged tools, on one line."""
    counts = {why: sum(tool.why == why for tool in admission.blocked) for why in ("changed", "new", "unpinnable")}
    parts = [f"{number} {why}" for why, number in {**counts, "removed": len(admission.removed)}.items() if number]
    parts += ["instructions changed"] if admission.instructions_diff else []
    return "; ".join([*([", ".join(parts)] if parts else []), f"{count_of_tools(len(admission.tools))} as pinned"])


def _tool_text(tool: BlockedTool) -> str:
    return f"  {tool.why} {_name(tool.name)}\n{_indented(tool.diff)}"


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.split("\n"))


def _name(name: str) -> str:
    return for_error(name, limit=200)


def as_json(outcome: LockOutcome) -> dict[str, Any]:
    """One server's comparison as JSON; just its name, lock and error if the listing is unknown."""
    from toolbridge.trust.audit.detector import finding_as_json

    admission = outcome.admission
    if admission is None:
        return {"name": outcome.server, "lock": outcome.lock, "state": "unknown", "error": outcome.error}
    state = "pinned" if outcome.pinned else "as_pinned" if admission.is_as_pinned else "differs"
    return {
        "name": outcome.server,
        "lock": outcome.lock,
        "state": state if admission.is_pinned or outcome.pinned else "no_pins",
        "error": outcome.error,
        "asPinned": len(admission.tools),
        "tools": [_tool_as_json(tool) for tool in admission.blocked],
        "removed": list(admission.removed),
        "instructionsDiff": admission.instructions_diff,
        "findings": [finding_as_json(finding) for finding in outcome.findings],
    }


def _tool_as_json(tool: BlockedTool) -> dict[str, Any]:
    """A blocked tool as JSON, with each field that changed and the diff."""
    from toolbridge.trust.pins.definition import field_changes

    changes = field_changes(tool.pinned, tool.listed)
    return {
        "name": tool.name,
        "why": tool.why,
        "problem": tool.problem,
        "changes": [{"field": each.field, "pinned": each.pinned, "listed": each.listed} for each in changes],
        "diff": tool.diff,
    }


_DIFFERS = 1


@click.command(
    "lock",
    epilog="Exit codes: 0 all is as pinned; 1 something differs; 2 wrong usage; 4 a server's tools are not known.",
)
@click.argument("name", required=False, shell_complete=complete_servers)
@click.argument("tools", nargs=-1, metavar="[TOOL]...")
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 and a diff if a tool differs from its pin.")
@click.option(
    "--update", is_flag=True, help="Accept the current definitions: of all servers, one server, or some of its tools."
)
@click.option("--trust", is_flag=True, help="Accept all pinned tools for this user, seen or not. Starts nothing.")
@config_option
@click.option("--json", "as_json_object", is_flag=True, help="Print one JSON object.")
def command(
    *,
    name: str | None,
    tools: tuple[str, ...],
    check: bool,
    update: bool,
    trust: bool,
    config_file: str | None,
    as_json_object: bool,
) -> int:
    """Pin tool definitions in toolbridge.lock, and review changes.

    At a terminal, new and changed tools are shown with audit findings, and you are asked. Without a terminal, tools
    are pinned unseen, except those with high findings: they wait for --update. Each user of the lock is shown tools
    that were pinned unseen once.

    A pinned tool that changes is blocked, and a new one hidden, until --update accepts it. A project's lock lies next
    to its configuration: commit it. Connects approved servers only.

    \b
    Examples:  toolbridge lock
               toolbridge lock --check
               toolbridge lock --update weather get_forecast
    """
    if check + update + trust > 1:
        raise click.UsageError("--check, --update and --trust don't go with each other: give one of them.")
    if tools and not update:
        raise click.UsageError("Tools are named with --update only; a check is of whole servers.")
    config = read_config(config_file, named=[] if name is None else [name])
    mode: LockMode = "check" if check else "update" if update else "lock"
    if name is not None:
        servers = [configured_server(config, name)]
    else:
        servers = [server for _, server in sorted(config.servers.items()) if server.enabled]
    if trust:
        return _trust(servers, as_json=as_json_object)
    outcomes = _outcomes(config, servers, tools, mode, config_file)
    if as_json_object:
        write(sys.stdout, json.dumps({"servers": [as_json(outcome) for outcome in outcomes]}, indent=2) + "\n")
    else:
        text = "".join(for_people(outcome) for outcome in outcomes)
        write(sys.stdout, text or "No servers are configured. `toolbridge doctor` shows which files were looked for.\n")
    if any(outcome.differs for outcome in outcomes):
        return _DIFFERS
    return FAILED if any(outcome.error for outcome in outcomes) else OK


def _trust(servers: Sequence[ServerConfig], *, as_json: bool) -> int:
    """Accept the pinned definitions for this user without asking, and print them with findings; starts nothing.

    For machines without a terminal. Exit code 1 if a server has no pins.
    """
    import anyio

    from toolbridge.describe.modules import count_of_tools
    from toolbridge.trust.audit.detector import finding_as_json
    from toolbridge.trust.pins.pins import LockPins
    from toolbridge.trust.pins.review import found_prompt, pinned_listing

    pins, facts, lines = LockPins(), list[dict[str, Any]](), list[str]()
    for server in servers:
        pinned = anyio.run(pins.trust, server)
        if pinned is None:
            facts.append({"name": server.name, "accepted": None, "findings": []})
            lines.append(f"{server.name}: has no pins; write them with {advised(f'lock {server.name}')}\n")
            continue
        listing = pinned_listing(server, pinned)
        found = [finding_as_json(finding) for finding in listing.findings]
        facts.append({"name": server.name, "accepted": len(pinned.tools), "findings": found})
        shown = found_prompt(listing)
        lines.append(
            f"{server.name}: accepted {count_of_tools(len(pinned.tools))} as pinned\n{shown and shown + chr(10)}"
        )
    write(sys.stdout, json.dumps({"servers": facts}, indent=2) + "\n" if as_json else "".join(lines))
    return _DIFFERS if any(each["accepted"] is None for each in facts) else OK


def _outcomes(
    config: Config, servers: Sequence[ServerConfig], tools: Sequence[str], mode: LockMode, config_file: str | None
) -> list[LockOutcome]:
    """Connect the servers, compare each with its pins and, by mode, ask and write new pins; in the given order.

    Blocks. A server that can't be connected gets an outcome with its error.

    Raises:
        ToolbridgeError: a lock file is broken; before any server is started.
    """
    import anyio

    from toolbridge.trust.pins.pins import FirstListing, LockPins

    pins = LockPins(on_first_use="refuse", own=False)
    for server in servers:
        pins.pinned(server)  # fails on a broken lock before any server starts
    found: dict[str, LockOutcome] = {}

    async def work(manager: ServerManager) -> None:
        """List all servers concurrently, then compare one after another."""
        # Bounded by the connection cap; each server is closed after its listing.
        room = anyio.CapacityLimiter(config.limits.connections)
        listings: dict[str, Listing] = {}

        async def look(server: ServerConfig) -> None:
            """Connect a server, keep its listing, and close it; a failure becomes its outcome."""
            from toolbridge import ServerError

            async with room:
                try:
                    listings[server.name] = await manager.connect(server.name)
                    await manager.close_server(server.name)
                except ServerError as error:
                    found[server.name] = LockOutcome(server.name, _path(pins, server), error=str(error))

        async with anyio.create_task_group() as tasks:
            for server in servers:
                tasks.start_soon(look, server)
        # Audit only now: it needs the tool names of all servers.
        for server in servers:
            if server.name in listings:
                listing = listings[server.name]
                others = manager.other_tools(server.name)
                first = FirstListing(server, listing.tools, listing.instructions, others, listing.about)
                found[server.name] = await _outcome(pins, first, listing, tools, mode)

    if servers:
        open_servers(config, work, config_file=config_file, pins=pins)
    return [found[server.name] for server in servers]


def _path(pins: LockPins, server: ServerConfig) -> str:
    """The path of a server's pins, written or not; empty if it is not pinned at all."""
    place = pins.where(server)
    return "" if place is None else place.path


async def _outcome(
    pins: LockPins, first: FirstListing, listing: Listing, tools: Sequence[str], mode: LockMode
) -> LockOutcome:
    """Compare a server with its pins, and write new pins as far as agreed; errors go into the outcome.

    May ask at the terminal. With `check`, nothing is written.
    """
    from toolbridge import ToolbridgeError
    from toolbridge.servers.listing import original_names

    server = first.server
    outcome = LockOutcome(server.name, _path(pins, server), pins.admit(server, listing))
    person_needed = outcome.admission is not None and outcome.admission.needs_person
    if not outcome.differs and not tools and not (mode == "update" and person_needed):
        return outcome
    outcome = outcome.with_findings(first.findings)
    wanted: Listing | None = listing
    seen = True
    if mode != "update":
        outcome, wanted = (outcome, None) if mode == "check" else await _agreed(pins, first, listing, outcome)
        seen = outcome.was_shown
    if wanted is None:
        return outcome
    try:
        # The listing that was shown is the listing that is pinned.
        known = [
            *(tool.name for tool in wanted.tools),
            *(() if outcome.admission is None else outcome.admission.removed),
        ]
        names = original_names(server.name, known, tools) if tools else None
        await pins.accept(server, wanted, names, seen=seen)
        outcome = replace(outcome, lock=_path(pins, server))
    except ToolbridgeError as error:
        return replace(outcome, error=str(error))
    left = pins.admit(server, listing)
    if left.is_as_pinned:
        return replace(outcome, pinned=True)
    return replace(outcome, admission=left, was_shown=False).with_findings(first.findings)


async def _agreed(
    pins: LockPins, first: FirstListing, listing: Listing, outcome: LockOutcome
) -> tuple[LockOutcome, Listing | None]:
    """Ask at the terminal what to pin without --update; also returns the listing to pin, None for nothing.

    A no is stored as a refusal. Without a terminal, existing pins are kept, and a first listing is pinned without what
    has high findings.
    """
    from toolbridge.trust.approval.approver import Terminal
    from toolbridge.trust.pins.review import TerminalAcceptance

    terminal = Terminal()
    if not terminal.is_there:
        kept = first.without(first.withheld)
        unseen = replace(listing, tools=kept.tools, instructions=kept.instructions)
        return outcome, None if outcome.is_pinned else unseen
    if outcome.admission is not None and outcome.is_pinned:
        shown, agreed = first.only(outcome.admission.different), await accepted_at(terminal, outcome)
    else:
        shown, agreed = first, await TerminalAcceptance(terminal)(first)
    if agreed is False:
        await pins.refuse(shown)
    return replace(outcome, was_shown=True), listing if agreed else None
