"""Looking through the files of other clients."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from toolbridge.cli.client_entries import FoundServer, converted
from toolbridge.cli.json_splice import SpliceError, read_json
from toolbridge.cli.known_clients import ClientFile, client_files
from toolbridge.config.names import name_for, twin_key
from toolbridge.config.parse_server import Surroundings, parse_server
from toolbridge.config.server_config import Origin
from toolbridge.config.validate import starts_toolbridge
from toolbridge.errors import ConfigError

_MOST_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Search:
    """What was found where."""

    servers: tuple[FoundServer, ...]
    files: tuple[str, ...]
    """Those that were read."""
    problems: tuple[str, ...]
    """Files that could not be."""


def look_for_servers(directory: str, environ: Mapping[str, str], *, copy_values: bool = False) -> Search:
    """All servers that known clients have, without those that are the same."""
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
    """A name of its own for each, that no server has yet; those that are there already are left out.

    `taken` are the entries of the file that they are to be added to.
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
    """Why an entry would make its whole file unusable here; empty if it would not."""
    around = Surroundings(Origin("user"), os.sep, None, None, "error", {})
    problems: list[ConfigError] = []
    parse_server(name, entry, around, problems, [])
    return f"it can't be used here: {problems[0]}" if problems else ""


def _name(written: str) -> str | None:
    try:
        return name_for(written)
    except ConfigError:
        return None


def _entries(file: ClientFile, directory: str) -> Iterator[tuple[str, object]]:
    with open(file.path, "rb") as opened:
        data = opened.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ValueError("it is too long")
    text = data.decode("utf-8-sig")
    document = tomllib.loads(text) if file.client.form == "toml" else read_json(text)
    yield from _servers(document.get(file.client.key))
    if file.client.name == "claude-code" and file.project is None:  # there, servers may be one project's only
        projects = document.get("projects")
        project = cast("dict[str, Any]", projects).get(directory) if isinstance(projects, dict) else None
        if isinstance(project, dict):
            yield from _servers(cast("dict[str, Any]", project).get("mcpServers"))


def _servers(given: object) -> Iterator[tuple[str, object]]:
    if isinstance(given, dict):
        yield from cast("dict[str, object]", given).items()
