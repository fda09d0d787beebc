"""`toolbridge init`: import servers from other clients' configurations."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import click

from toolbridge.cli import FAILED, OK
from toolbridge.cli.client_files import ClientFile, SpliceError, client_files, read_json
from toolbridge.cli.terminal import table, write
from toolbridge.config.fields import starts_toolbridge
from toolbridge.config.parse import EntryContext, parse_server
from toolbridge.config.server_config import Origin
from toolbridge.config.values import name_for, twin_key
from toolbridge.errors import ConfigError

# SECURITY: conversion of other clients' entries (T35).
# #
# # Values of variables and headers are replaced by references, and the person is told which variables to set: a file
# # that may be committed must hold no keys.


_REFERENCE = re.compile(r"\$\{(?:env:)?[A-Za-z_][A-Za-z0-9_]*\}")
_BARE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_INPUT = re.compile(r"\$\{input:([^}]+)\}")
_UNFIT = re.compile(r"[^A-Za-z0-9]+")
# Values that are no secret under any name: booleans, small numbers, log levels.
_PLAIN_VALUE = re.compile(r"(?i)true|false|yes|no|on|off|\d{1,5}|debug|info|warn|warning|error|production|development")
_TELLING_NAME = re.compile(r"(?i)key|token|secret|pass|auth|cred|pin|pwd")
_SCHEMES = re.compile(r"(?i)(bearer|basic|token) ")


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A server of another client, converted."""

    written: str
    """Its name there."""
    source: ClientFile
    entry: Mapping[str, Any]
    variables: tuple[str, ...] = ()
    """Variables that replace values."""
    left_out: tuple[str, ...] = ()
    """Settings without a counterpart here."""
    problem: str = ""
    """Why it can't be imported."""


@dataclass(slots=True)
class _Notes:
    variables: list[str] = field(default_factory=list[str])
    left_out: list[str] = field(default_factory=list[str])


_DIRECT = ("command", "args", "cwd", "url", "description", "allowTools", "denyTools", "enabled", "disabled")
_RENAMED = {
    "serverUrl": "url",
    "httpUrl": "url",
    "includeTools": "allowTools",
    "excludeTools": "denyTools",
    "enabled_tools": "allowTools",
    "disabled_tools": "denyTools",
}
_VALUES = ("env", "environment", "env_vars", "headers", "http_headers", "env_http_headers", "bearer_token_env_var")
_OTHERWISE_TAKEN = (*_VALUES, "type", "transport", "source")


def converted(written: str, given: object, source: ClientFile, *, copy_values: bool = False) -> FoundServer:
    """Convert one entry of another client's file to ours; one that can't be used gets a `problem`. Raises nothing.

    Values of variables and headers become references, unless `copy_values`.
    """
    if not isinstance(given, Mapping):
        return FoundServer(written, source, {}, problem="it is no object")
    theirs = dict(cast("Mapping[str, Any]", given))
    nested = _mapping(theirs.get("command"))
    if nested:  # Zed's former format
        theirs |= {**nested, "command": nested.get("path")}
        theirs.pop("path", None)
    words = _list(theirs.get("command"))
    if words:  # command and arguments in one list
        theirs["command"], theirs["args"] = words[0], [*words[1:], *_list(theirs.get("args"))]
    notes = _Notes()
    entry: dict[str, Any] = {}
    for key, value in theirs.items():
        name = _RENAMED.get(key, key)
        if name in _DIRECT:
            entry[name] = _placed(value, source)
        elif key not in _OTHERWISE_TAKEN:
            notes.left_out.append(key)
    _take_transport(entry, theirs)
    _take_values(entry, theirs, written, notes, copy_values=copy_values)
    if not entry.get("command") and not entry.get("url"):
        return FoundServer(written, source, entry, problem="it has neither a command nor a URL")
    return FoundServer(written, source, entry, tuple(dict.fromkeys(notes.variables)), tuple(notes.left_out))


def _take_transport(entry: dict[str, Any], theirs: Mapping[str, Any]) -> None:
    """Set the entry's `type` to `sse` where a URL is marked as that; a URL is HTTP otherwise."""
    said = str(theirs.get("type") or theirs.get("transport") or "").lower()
    is_sse = said == "sse" or ("url" in theirs and "httpUrl" not in theirs and str(theirs["url"]).endswith("/sse"))
    if entry.get("url") and is_sse:
        entry["type"] = "sse"


def _take_values(
    entry: dict[str, Any], theirs: Mapping[str, Any], server: str, notes: _Notes, *, copy_values: bool
) -> None:
    """Set the entry's `env` and `headers` from all spellings of other clients; notes the variables that are needed."""
    env = {**_mapping(theirs.get("env")), **_mapping(theirs.get("environment"))}
    for name in _list(theirs.get("env_vars")):
        env[str(name)] = f"${{{name}}}"
    if env and entry.get("command"):
        entry["env"] = {name: _value(str(value), name, notes, copy_values=copy_values) for name, value in env.items()}
    headers = {**_mapping(theirs.get("headers")), **_mapping(theirs.get("http_headers"))}
    for name, variable in _mapping(theirs.get("env_http_headers")).items():
        headers[name] = f"${{{variable}}}"
    if theirs.get("bearer_token_env_var"):
        headers["Authorization"] = f"Bearer ${{{theirs['bearer_token_env_var']}}}"
    if headers and entry.get("url"):
        entry["headers"] = {
            name: _header(str(value), f"{server}_{name}", notes, copy_values=copy_values)
            for name, value in headers.items()
        }


def _header(value: str, variable: str, notes: _Notes, *, copy_values: bool) -> str:
    """Convert a header's value; a scheme such as `Bearer` is kept before the reference."""
    scheme = _SCHEMES.match(value)
    if scheme is None:
        return _value(value, variable, notes, copy_values=copy_values)
    return scheme[0] + _value(value[scheme.end() :], variable, notes, copy_values=copy_values)


def _value(value: str, name: str, notes: _Notes, *, copy_values: bool) -> str:
    """Keep references and plain values; replace others by a reference to `name`, and note the variable.

    With `copy_values`, literal values are kept, too.
    """
    value = _INPUT.sub(lambda match: f"${{{_variable(match[1])}}}", value)
    if _BARE.fullmatch(value):
        value = f"${{{value[1:]}}}"
    if _REFERENCE.fullmatch(value) or not value:
        notes.variables += [each.strip("${}").removeprefix("env:") for each in _REFERENCE.findall(value)]
        return value
    if copy_values or (_PLAIN_VALUE.fullmatch(value) and not _TELLING_NAME.search(name)):
        return value
    variable = _variable(name)
    notes.variables.append(variable)
    return f"${{{variable}}}"


def _variable(name: str) -> str:
    """Shape a name into that of an environment variable."""
    shaped = _UNFIT.sub("_", name).strip("_").upper()
    return shaped if shaped[:1].isalpha() else f"VALUE_{shaped}"


def _placed(value: Any, source: ClientFile) -> Any:
    """Expand an editor's directory variables in a text or list; anything else is returned as it is."""
    if isinstance(value, str):
        place = source.project or os.path.expanduser("~")
        home = os.path.expanduser("~")
        return (
            value.replace("${workspaceFolder}", place).replace("${userHome}", home).replace("${pathSeparator}", os.sep)
        )
    return [_placed(each, source) for each in cast("list[Any]", value)] if isinstance(value, list) else value


def _mapping(value: object) -> dict[str, Any]:
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return list(cast("list[Any]", value)) if isinstance(value, list) else []


# Searching the files of other clients.


_MOST_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Search:
    """The search result."""

    servers: tuple[FoundServer, ...]
    files: tuple[str, ...]
    """Files that were read."""
    problems: tuple[str, ...]
    """Files that could not be read."""


def look_for_servers(directory: str, environ: Mapping[str, str], *, copy_values: bool = False) -> Search:
    """Read the files of all known clients, and convert their servers, without duplicates and toolbridge itself.

    Files that can't be read are among the problems; raises nothing for them.
    """
    servers: list[FoundServer] = []
    files: list[str] = []
    problems: list[str] = []
    seen_files: set[str] = set()
    for file in client_files(directory, environ):
        real = os.path.realpath(file.path)
        if real in seen_files or not os.path.isfile(real):
            continue
        seen_files.add(real)
        try:
            entries = list(_entries(file, directory))
        except (OSError, UnicodeError, SpliceError, ValueError) as error:
            problems.append(f"{file.path} can't be read: {error}")
            continue
        files.append(file.path)
        for written, entry in entries:
            found = converted(written, entry, file, copy_values=copy_values)
            known = any(each.written == written and each.entry == found.entry for each in servers)
            words = [str(each) for each in cast("list[object]", found.entry.get("args") or [])]
            if not known and not starts_toolbridge(str(found.entry.get("command") or ""), words):
                servers.append(found)
    return Search(tuple(servers), tuple(files), tuple(problems))


def named(servers: tuple[FoundServer, ...], taken: Mapping[str, Any]) -> list[tuple[str, FoundServer]]:
    """Give each server a unique name, empty if none is valid; skips those that the target file has.

    `taken` are the entries of the target file. Sets the `problem` of a server that would invalidate that file.
    """
    used = {twin_key(_name(name) or name): entry for name, entry in taken.items()}
    result: list[tuple[str, FoundServer]] = []
    for found in servers:
        name = _name(found.written)
        if name is None:
            result.append(("", replace(found, problem=found.problem or "its name can't be used here")))
            continue
        if any(entry == found.entry for entry in taken.values()):
            continue
        own, number = name, 1
        while twin_key(own) in used:
            own = f"{name}-{found.source.client.name}" if number == 1 else f"{name}-{number}"
            number += 1
        used[twin_key(own)] = found.entry
        result.append((own, found if found.problem else replace(found, problem=_problem(own, found.entry))))
    return result


def _problem(name: str, entry: Mapping[str, Any]) -> str:
    """Parse an entry as its file would, to say why it would invalidate the file; empty if it would not."""
    around = EntryContext(Origin("user"), os.sep, None, None, "error", {})
    problems: list[ConfigError] = []
    parse_server(name, entry, around, problems, [])
    return f"it can't be used here: {problems[0]}" if problems else ""


def _name(written: str) -> str | None:
    """The valid name for a written one; None if there is none."""
    try:
        return name_for(written)
    except ConfigError:
        return None


def _entries(file: ClientFile, directory: str) -> Iterator[tuple[str, object]]:
    """Yield the servers of a client's file by name, as they are written.

    Raises:
        OSError, UnicodeError, SpliceError, ValueError: it can't be read or parsed, or is too long.
    """
    with open(file.path, "rb") as opened:
        data = opened.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ValueError("it is too long")
    text = data.decode("utf-8-sig")
    document = tomllib.loads(text) if file.client.form == "toml" else read_json(text)
    yield from _servers(document.get(file.client.key))
    if file.client.name == "claude-code" and file.project is None:  # servers of a single project
        projects = document.get("projects")
        project = cast("dict[str, Any]", projects).get(directory) if isinstance(projects, dict) else None
        if isinstance(project, dict):
            yield from _servers(cast("dict[str, Any]", project).get("mcpServers"))


def _servers(given: object) -> Iterator[tuple[str, object]]:
    if isinstance(given, dict):
        yield from cast("dict[str, object]", given).items()


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
    """Import servers from other clients' configurations into toolbridge.json: shows them, and asks which to add.

    Each one that you add is then shown as `toolbridge approve` shows it, and you are asked whether it may be started.
    Nothing in the file is changed or lost. Values of variables and headers are left behind: ${NAME} stands for them.

    \b
    Examples:  toolbridge init
               toolbridge init --dry-run
               toolbridge init --yes --to ~/.config/toolbridge/config.json
    """
    from toolbridge.cli.client_files import SpliceError

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
    """Read the target file: its text, None if it is missing, the key of its servers, and the servers.

    Raises:
        OSError, UnicodeError, SpliceError: it can't be read, or has no object there.
    """
    from toolbridge.cli.client_files import SpliceError, read_json, read_text

    text = read_text(path)
    document = read_json(text or "")
    key = "servers" if "servers" in document else "mcpServers"
    servers: Any = document.get(key, {})
    if not isinstance(servers, dict):
        raise SpliceError(f"its {key!r} is no object")
    return text, key, servers  # pyright: ignore[reportUnknownVariableType]


def _show(found: list[tuple[str, FoundServer]], files: tuple[str, ...]) -> None:
    """Print a table of the servers found, or that no file or no new server was found; asks nothing."""
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
    """The URL of a server, or its command and arguments, to show."""
    entry = server.entry
    return str(entry.get("url") or " ".join(map(str, [entry["command"], *entry.get("args", [])])))


def _chosen(usable: list[tuple[str, FoundServer]]) -> list[tuple[str, FoundServer]] | None:
    """Ask about each server whether to add it, and return those with a yes; None without a terminal."""
    import anyio

    from toolbridge.trust.approval.approver import Terminal

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
    """Sanitise a text for a terminal."""
    from toolbridge.trust.sanitise import for_terminal

    return for_terminal(text)


def _add(target: str, text: str | None, key: str, chosen: list[tuple[str, FoundServer]], *, ask: bool) -> int:
    """Add the servers to the target file with a backup, print what to do next, and ask for approvals if `ask`.

    Returns the exit code. A file that can't be edited safely is left alone, and the text to write is printed.
    """
    from toolbridge.cli.client_files import SpliceError, with_member, write_text

    entries = {name: dict(server.entry) for name, server in chosen}
    after = text or ""
    try:
        for name, entry in reversed(list(entries.items())):  # each is inserted before the others
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
    """Load the target file, show each server as it would be started, ask, and store approvals; prints failures."""
    import anyio

    from toolbridge import ApprovalStore, ToolbridgeError, load_config
    from toolbridge.servers.lifecycle import prepare
    from toolbridge.trust.approval.approver import Terminal
    from toolbridge.trust.approval.approvers import ask_at_terminal

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
    """All findings as the JSON object of --json."""
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
