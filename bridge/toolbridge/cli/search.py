"""`toolbridge search`: which tool does this?"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from toolbridge.advice import advised
from toolbridge.cli.approval_state import approval_state
from toolbridge.cli.exit_codes import OK, PROGRAM_FAILED
from toolbridge.cli.server_choice import ServerChoice, choice_options, chosen_servers
from toolbridge.cli.server_options import config_option, connect_option, tell_problems, unknown_words, with_servers
from toolbridge.cli.terminal import write

if TYPE_CHECKING:
    from toolbridge import SearchHit, ServerManager, ServerStatus

_MARKS = {
    "unknown": ("approve", "not approved: {}"),
    "changed": ("approve", "changed since it was approved: {}"),
    "unclear": ("info", "its approval can't be told: {} says why"),
    "revoked": ("approve", "its approval was revoked: {}"),
}


@click.command(
    "search",
    epilog="Exit codes: 0 something was found; 1 nothing was; 2 wrong usage.",
)
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="At most so many tools.")
@config_option
@choice_options
@connect_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    words: tuple[str, ...],
    *,
    limit: int,
    config_file: str | None,
    servers: tuple[str, ...],
    task: str | None,
    capabilities: tuple[str, ...],
    connect: bool,
    as_json: bool,
) -> int:
    """Find tools by what they do: the best match first.

    Nothing is started: the tools are those of the last time. With --connect, approved servers are. Those of plugins are
    searched if they are named, or the task wants them.

    \b
    Examples:  toolbridge search weather tomorrow
               toolbridge search --server acme__notes shared
    """
    config = chosen_servers(ServerChoice(config_file, servers, task, capabilities)).config

    def look(
        manager: ServerManager, statuses: Sequence[ServerStatus]
    ) -> tuple[tuple[SearchHit, ...], Sequence[ServerStatus]]:
        from toolbridge.describe.search import ToolSearch

        if connect and not as_json:
            tell_problems(statuses)
        return ToolSearch(manager.catalog).find(" ".join(words), limit, errors=config.errors), statuses

    hits, statuses = with_servers(config, look, connect=None if connect else (), config_file=config_file)
    named = {hit.server for hit in hits}
    standings: dict[str, str] = {name: approval_state(config.servers[name]).standing for name in named}
    if as_json:
        shown = [{**hit.as_json(), "approval": standings[hit.server]} for hit in hits]
        facts = {"hits": shown, "neverAsked": [status.name for status in statuses if status.tools is None]}
        write(sys.stdout, json.dumps(facts, ensure_ascii=False, indent=2) + "\n")
    else:
        for hit in hits:
            mark = ""
            if standings[hit.server] in _MARKS:
                verb, said = _MARKS[standings[hit.server]]
                mark = f"    [{said.format(advised(f'{verb} {hit.server}'))}]\n"
            write(sys.stdout, f"{hit.module}  {hit.signature}\n    {hit.summary}\n{mark}")
        write(sys.stderr, "".join(f"{line}\n" for line in unknown_words(statuses)))
    if not hits and not as_json:
        write(sys.stderr, "No tool matches.\n")
    return OK if hits else PROGRAM_FAILED
