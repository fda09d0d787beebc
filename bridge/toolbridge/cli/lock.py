"""`toolbridge lock`: pin tools as they are, see what changed, accept it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import click

from toolbridge.cli.exit_codes import FAILED, OK
from toolbridge.cli.server_options import complete_servers, config_option, configured_server, open_servers, read_config
from toolbridge.cli.terminal import write
from toolbridge.trust.sanitise import for_error

if TYPE_CHECKING:
    from toolbridge import Config, Listing, ServerConfig, ServerManager
    from toolbridge.trust.admission import Admission, BlockedTool
    from toolbridge.trust.pins import LockPins

_DIFFERS = 1
_Mode: TypeAlias = Literal["lock", "check", "update"]


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How one server compares with its pins."""

    server: str
    lock: str
    """The file with its pins."""
    admission: Admission | None = None
    """Before anything was accepted; None if it is not known what the server lists."""
    pinned: bool = False
    """Whether pins were written now."""
    error: str = ""
    """Why it is not known, or could not be pinned."""

    @property
    def differs(self) -> bool:
        """Whether something is left that somebody has to look at."""
        return self.admission is not None and not self.pinned and not self.admission.is_as_pinned


@click.command(
    "lock",
    epilog="Exit codes: 0 all is as pinned; 1 something differs; 2 wrong usage; 4 a server's tools are not known.",
)
@click.argument("name", required=False, shell_complete=complete_servers)
@click.argument("tools", nargs=-1, metavar="[TOOL]...")
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 and a diff if anything differs from its pin.")
@click.option("--update", is_flag=True, help="Accept what the servers list now: all, one server, or some of its tools.")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    *,
    name: str | None,
    tools: tuple[str, ...],
    check: bool,
    update: bool,
    config_file: str | None,
    as_json: bool,
) -> int:
    """Pin the tools of servers that have no pins yet, in toolbridge.lock.

    A pinned tool that changes is blocked, and a new one hidden, until somebody accepts it with --update. The lock of
    a project lies next to its configuration and is meant to be committed. Approved servers are connected, others never.

    \b
    Examples:  toolbridge lock
               toolbridge lock --check
               toolbridge lock --update weather get_forecast
    """
    if check and update:
        raise click.UsageError("--check changes nothing: it does not go with --update.")
    if tools and not update:
        raise click.UsageError("Tools are named with --update only; a check is of whole servers.")
    config = read_config(config_file, plugins=name is not None and "__" in name)
    mode: _Mode = "check" if check else "update" if update else "lock"
    if name is not None:
        servers = [configured_server(config, name)]
    else:
        servers = [server for _, server in sorted(config.servers.items()) if server.enabled]
    outcomes = _outcomes(config, servers, tools, mode, config_file)
    if as_json:
        write(sys.stdout, json.dumps({"servers": [_as_json(outcome) for outcome in outcomes]}, indent=2) + "\n")
    else:
        text = "".join(_for_people(outcome, mode) for outcome in outcomes)
        write(sys.stdout, text or "No servers are configured. `toolbridge doctor` shows which files were looked for.\n")
    if any(outcome.differs for outcome in outcomes):
        return _DIFFERS
    return FAILED if any(outcome.error for outcome in outcomes) else OK


def _outcomes(
    config: Config, servers: Sequence[ServerConfig], tools: Sequence[str], mode: _Mode, config_file: str | None
) -> list[_Outcome]:
    import anyio

    from toolbridge.trust.pins import LockPins

    pins = LockPins(on_first_use="refuse")
    for server in servers:
        pins.pinned(server)  # a lock that can't be used is an error of the command, before anything is started
    found: dict[str, _Outcome] = {}

    async def work(manager: ServerManager) -> None:
        # No more at once than may be connected; each is closed as soon as its listing is here.
        room = anyio.CapacityLimiter(config.limits.connections)

        async def look(server: ServerConfig) -> None:
            async with room:
                found[server.name] = await _outcome(manager, pins, server, tools, mode)

        async with anyio.create_task_group() as tasks:
            for server in servers:
                tasks.start_soon(look, server)

    if servers:
        open_servers(config, work, config_file=config_file, pins=pins)
    return [found[server.name] for server in servers]


async def _outcome(
    manager: ServerManager, pins: LockPins, server: ServerConfig, tools: Sequence[str], mode: _Mode
) -> _Outcome:
    from toolbridge import ServerError, ToolbridgeError

    place = pins.place(server)
    lock = "" if place is None else place.path
    try:
        listing: Listing = await manager.connect(server.name)
        await manager.close_server(server.name)
    except ServerError as error:
        return _Outcome(server.name, lock, error=str(error))
    admission = pins.admit(server, listing)
    if mode == "check" or (mode == "lock" and admission.is_pinned) or (admission.is_as_pinned and not tools):
        return _Outcome(server.name, lock, admission)
    try:
        # What is shown below is this listing, and this listing is what is pinned.
        left = await pins.accept(server, listing, tools or None)
    except ToolbridgeError as error:
        return _Outcome(server.name, lock, admission, error=str(error))
    return _Outcome(server.name, lock, admission if left.is_as_pinned else left, pinned=left.is_as_pinned)


# ── what is shown ────────────────────────────────────────────────────────────────────────────────────────────────────


def _for_people(outcome: _Outcome, mode: _Mode) -> str:
    admission = outcome.admission
    if admission is None:
        return f"{outcome.server}: not known: {outcome.error}\n"
    count = len(admission.tools)
    if admission.is_as_pinned and not outcome.error:
        return f"{outcome.server}: as pinned ({_tools(count)})\n"
    if outcome.pinned and not admission.is_pinned:
        unfit = [tool for tool in admission.blocked if tool.why == "unpinnable"]
        head = f"{outcome.server}: pinned {_tools(len(admission.blocked) - len(unfit))} in {outcome.lock}\n"
        return head + "".join(_tool_text(tool) for tool in unfit)
    head = _summary(admission)
    if outcome.error:
        return f"{outcome.server}: {head}; not pinned: {outcome.error}\n"
    if outcome.pinned:
        head = f"accepted: {head}"
    elif not admission.is_pinned and mode == "check":
        return f"{outcome.server}: has no pins; write them with `toolbridge lock {outcome.server}`\n"
    body = "".join(_tool_text(tool) for tool in admission.blocked)
    body += "".join(f"  removed {_name(name)}\n" for name in admission.removed)
    if admission.instructions_diff:
        body += f"  changed instructions\n{_indented(admission.instructions_diff)}"
    hint = "" if outcome.pinned else f"  Accept all of this with `toolbridge lock --update {outcome.server}`.\n"
    return f"{outcome.server}: {head}\n{body}{hint}"


def _summary(admission: Admission) -> str:
    counts = {why: sum(tool.why == why for tool in admission.blocked) for why in ("changed", "new", "unpinnable")}
    parts = [f"{number} {why}" for why, number in {**counts, "removed": len(admission.removed)}.items() if number]
    parts += ["instructions changed"] if admission.instructions_diff else []
    return "; ".join([*([", ".join(parts)] if parts else []), f"{_tools(len(admission.tools))} as pinned"])


def _tool_text(tool: BlockedTool) -> str:
    return f"  {tool.why} {_name(tool.name)}\n{_indented(tool.diff)}"


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.split("\n"))


def _tools(count: int) -> str:
    return "1 tool" if count == 1 else f"{count} tools"


def _name(name: str) -> str:
    return for_error(name, limit=200)


def _as_json(outcome: _Outcome) -> dict[str, Any]:
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
    }


def _tool_as_json(tool: BlockedTool) -> dict[str, Any]:
    from toolbridge.trust.pin_diff import field_changes

    changes = field_changes(tool.pinned, tool.listed)
    return {
        "name": tool.name,
        "why": tool.why,
        "problem": tool.problem,
        "changes": [{"field": each.field, "pinned": each.pinned, "listed": each.listed} for each in changes],
        "diff": tool.diff,
    }
