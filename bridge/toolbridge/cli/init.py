"""`toolbridge init`: take over the servers that other clients have."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from toolbridge.cli.exit_codes import FAILED, OK
from toolbridge.cli.table import table
from toolbridge.cli.terminal import write

if TYPE_CHECKING:
    from toolbridge.cli.client_entries import FoundServer

_FILE = "toolbridge.json"


@click.command(
    "init",
    epilog=(
        "Exit codes: 0 the file is written, or there was nothing to add; 2 wrong usage; "
        "4 the file could not be changed safely, or nobody could be asked."
    ),
)
@click.option("--to", "target", default=_FILE, show_default=True, metavar="FILE", help="The file to add servers to.")
@click.option("--yes", is_flag=True, help="Add all that was found, without asking. Approves none of them.")
@click.option("--copy-values", is_flag=True, help="Copy the values of variables and headers, keys among them, as well.")
@click.option("--dry-run", is_flag=True, help="Show what was found, and change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as one JSON object, and change nothing.")
def command(target: str, *, yes: bool, copy_values: bool, dry_run: bool, as_json: bool) -> int:
    """Look for servers in the files of other clients, show them, and add those that you want to toolbridge.json.

    Each one that you add is then shown as `toolbridge approve` shows it, and you are asked whether it may be started.
    Nothing in the file is changed or lost. Values of variables and headers are left behind: ${NAME} stands for them.

    \b
    Examples:  toolbridge init
               toolbridge init --dry-run
               toolbridge init --yes --to ~/.config/toolbridge/config.json
    """
    from toolbridge.cli.found_servers import look_for_servers, named
    from toolbridge.cli.json_splice import SpliceError

    search = look_for_servers(os.getcwd(), os.environ, copy_values=copy_values)
    try:
        text, key, taken = _target(target)
    except (OSError, UnicodeError, SpliceError) as error:
        raise click.ClickException(f"{target} can't be added to: {error}.") from None
    found = named(search.servers, taken)
    if as_json:
        write(
            sys.stdout, json.dumps(_as_json(found, search.files, search.problems), indent=2, ensure_ascii=False) + "\n"
        )
        return OK
    for problem in search.problems:
        write(sys.stderr, f"Warning: {problem}\n")
    _show(found, search.files)
    usable = [(name, server) for name, server in found if not server.problem]
    if dry_run or not usable:
        return OK
    chosen = usable if yes else _chosen(usable)
    if chosen is None:
        write(sys.stderr, "Nothing was added: nobody can be asked here. --yes adds all of them.\n")
        return FAILED
    return _add(target, text, key, chosen, ask=not yes) if chosen else OK


def _target(path: str) -> tuple[str | None, str, dict[str, Any]]:
    """The text of the file, under which key it has servers, and which."""
    from toolbridge.cli.careful_file import read_text
    from toolbridge.cli.json_splice import SpliceError, read_json

    text = read_text(path)
    document = read_json(text or "")
    key = "servers" if "servers" in document else "mcpServers"
    servers: Any = document.get(key, {})
    if not isinstance(servers, dict):
        raise SpliceError(f"its {key!r} is no object")
    return text, key, servers  # pyright: ignore[reportUnknownVariableType]


def _show(found: list[tuple[str, FoundServer]], files: tuple[str, ...]) -> None:
    if not files:
        write(sys.stdout, "No client's file was found here. `toolbridge install` lists where they are looked for.\n")
        return
    if not found:
        write(sys.stdout, f"No new server was found in {', '.join(files)}.\n")
        return
    rows = [
        (name or server.written, server.source.client.title, server.problem or _command(server))
        for name, server in found
    ]
    write(sys.stdout, table(("NAME", "FROM", "COMMAND OR URL"), rows))


def _command(server: FoundServer) -> str:
    entry = server.entry
    return str(entry.get("url") or " ".join(map(str, [entry["command"], *entry.get("args", [])])))


def _chosen(usable: list[tuple[str, FoundServer]]) -> list[tuple[str, FoundServer]] | None:
    """Those that the person wants; None if there is none to ask."""
    import anyio

    from toolbridge.trust.terminal_question import Terminal

    terminal = Terminal()
    if not terminal.is_there:
        return None
    chosen: list[tuple[str, FoundServer]] = []
    for name, server in usable:
        text = f"\n{name}, from {server.source.path}\n  {_command(server)}"
        if server.left_out:
            text += f"\n  left out: {', '.join(server.left_out)}"
        answer = anyio.run(terminal.ask, _inert(text), f"Add {name}? [y/N] ")
        if answer.strip().lower() in ("y", "yes"):
            chosen.append((name, server))
    return chosen


def _inert(text: str) -> str:
    from toolbridge.trust.sanitise import for_terminal

    return for_terminal(text)


def _add(target: str, text: str | None, key: str, chosen: list[tuple[str, FoundServer]], *, ask: bool) -> int:
    from toolbridge.cli.careful_file import write_text
    from toolbridge.cli.json_splice import SpliceError, with_member

    entries = {name: dict(server.entry) for name, server in chosen}
    after = text or ""
    try:
        for name, entry in reversed(list(entries.items())):  # each is put before the others
            after = with_member(after, key, name, entry)
        copy = write_text(target, after, before=text)
    except (OSError, SpliceError) as error:
        snippet = json.dumps({key: entries}, indent=2, ensure_ascii=False)
        write(sys.stderr, f"{target} was left as it is: {error}. Write this into it:\n\n{snippet}\n")
        return FAILED
    write(
        sys.stdout, f"Added {', '.join(entries)} to {target}." + (f" What it was is in {copy}." if copy else "") + "\n"
    )
    files = ", ".join(sorted({server.source.path for _, server in chosen}))
    write(
        sys.stdout,
        f"The clients still start these servers themselves, past toolbridge: take them out of {files} once "
        "`toolbridge install CLIENT` has put toolbridge there.\n",
    )
    variables = sorted({each for _, server in chosen for each in server.variables} - set(os.environ))
    if variables:
        write(sys.stdout, f"Set these variables before you use them: {', '.join(variables)}\n")
    if ask:
        _approve(target, list(entries))
    else:
        write(sys.stdout, f"None of them is approved yet: `toolbridge approve {' '.join(entries)}` asks about each.\n")
    return OK


def _approve(target: str, names: list[str]) -> None:
    """Shows each of them as it would be started, and remembers a yes."""
    import anyio

    from toolbridge import ApprovalStore, ToolbridgeError, load_config
    from toolbridge.servers.start import prepare
    from toolbridge.trust.approvers import ask_at_terminal
    from toolbridge.trust.terminal_question import Terminal

    store = ApprovalStore()
    try:
        config = load_config(target)
    except ToolbridgeError as error:
        write(sys.stderr, f"None of them can be approved yet: {error}\n")
        return
    for name in names:
        try:
            request, _ = prepare(config.servers[name], os.environ)
            if anyio.run(ask_at_terminal, Terminal(), request, store.answer(request)):
                store.approve(request)
                write(sys.stdout, f"Approved {name}.\n")
            else:
                write(sys.stdout, f"Not approved: `toolbridge approve {name}` asks again.\n")
        except ToolbridgeError as error:
            write(sys.stderr, f"{name} is not approved: {error}\n")


def _as_json(found: list[tuple[str, FoundServer]], files: tuple[str, ...], problems: tuple[str, ...]) -> dict[str, Any]:
    return {
        "servers": [
            {
                "name": name or None,
                "written": server.written,
                "client": server.source.client.name,
                "file": server.source.path,
                "entry": dict(server.entry),
                "variables": list(server.variables),
                "leftOut": list(server.left_out),
                "problem": server.problem or None,
            }
            for name, server in found
        ],
        "files": list(files),
        "problems": list(problems),
    }
