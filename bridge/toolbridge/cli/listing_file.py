"""Reading a saved answer to `tools/list`."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import replace
from typing import Any, cast

import click

from toolbridge.cli.terminal import write
from toolbridge.config.names import check_name, name_for
from toolbridge.errors import ConfigError
from toolbridge.servers.listing import Listing, parse_tool
from toolbridge.trust.sanitise import for_error
from toolbridge_codegen.catalog import ToolDefinition

MOST_BYTES = 64 * 2**20
_EXPECTED = 'expected {"tools": [...]}, as a server answers to tools/list'


def read_listing(path: str, server: str | None) -> Listing:
    """The listing in a file, or on standard input for `-`; its server is called so, or after the file.

    An entry that is no tool costs that entry only: a line on stderr says so.

    Raises:
        click.ClickException: there is no listing; the message says why.
    """
    name = "Standard input" if path == "-" else path
    # The name first: it is the cheaper mistake to find.
    called = _server_name(path, server)
    document = _parsed(_read_bytes(path, name), name)
    tools: list[ToolDefinition] = []
    for place, raw in enumerate(_tools(document, name), start=1):
        tool, problem = parse_tool(raw, place)
        if tool is not None:
            tools.append(tool)
        if problem is not None and not problem.usable:
            _warn(f"tool {for_error(problem.tool, limit=100)} is left out: it {for_error(problem.problem)}")
        elif problem is not None and _has_no_schema(raw):  # of others, the stubs' diagnostics tell
            _warn(f"tool {for_error(problem.tool, limit=100)} {for_error(problem.problem)}")
    names = [tool.name for tool in tools]
    for twice in sorted({name for name in names if names.count(name) > 1}):
        _warn(f"tool {for_error(twice, limit=100)} is listed twice or more: one of its definitions is used")
    if _has_more(document):
        _warn("the listing has further pages, whose tools are not in this file")
    return _with_about(Listing(called, tuple(tools), live=False), document)


def _has_no_schema(raw: object) -> bool:
    """Whether what an entry has for its schemas is none."""
    entry = cast("dict[str, Any]", raw)
    return not isinstance(entry.get("inputSchema"), dict) or not isinstance(entry.get("outputSchema", {}), dict | None)


def _warn(text: str) -> None:
    write(sys.stderr, f"Warning: {text}.\n")


def _has_more(document: object) -> bool:
    known = _members(document)
    return any(page.get("nextCursor") for page in (known, _members(known.get("result"))))


def _server_name(path: str, server: str | None) -> str:
    if server is None and path == "-":
        raise click.UsageError("Standard input has no name: give the server's with --server.")
    try:
        if server is not None:
            return check_name(server)
        stem = os.path.splitext(os.path.basename(path))[0]
        return name_for(re.sub("_{2,}", "_", stem))
    except ConfigError as error:
        hint = "" if server is not None else " Give the server's name with --server."
        raise click.ClickException(f"{str(error)[:1].upper()}{str(error)[1:]}{hint}") from None


def _read_bytes(path: str, name: str) -> bytes:
    try:
        if path == "-":
            if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
                raise click.ClickException("Standard input is closed: there is no listing.")
            data = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise click.ClickException(f"There is no file {name}.") from error
    except IsADirectoryError as error:
        raise click.ClickException(f"{name} is a directory: give a file with a listing.") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise click.ClickException(f"{name} can't be read: {reason}.") from error
    if len(data) > MOST_BYTES:
        raise click.ClickException(f"{name} is larger than {MOST_BYTES // 2**20} MiB, the most that a listing may be.")
    return data


def _parsed(data: bytes, name: str) -> object:
    try:
        return json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        problem = "is not UTF-8 text"
    except json.JSONDecodeError as error:
        problem = f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
    except RecursionError:
        problem = "is nested too deeply"
    except ValueError:
        problem = "has a number that is too long"
    # Outside: the parser's error holds the whole text, and would be part of this one's context.
    raise click.ClickException(f"{name} {problem}.")


def _tools(document: object, name: str) -> list[object]:
    found = document
    for key in ("result", "tools"):  # a whole JSON-RPC answer has its result in "result"
        if isinstance(found, dict) and key in found:
            found = cast("dict[str, object]", found)[key]
    if not isinstance(found, list):
        raise click.ClickException(f"{name} is not a listing: {_EXPECTED}.")
    return cast("list[object]", found)


def _with_about(listing: Listing, document: object) -> Listing:
    """With what the file has of the server itself: in its own fields, or in those of an answer to `initialize`."""
    known = _members(document)
    places = [known, _members(known.get("server")), _members(known.get("result"))]
    infos = [_members(place.get(name)) for place in places for name in ("serverInfo", "server_info")]
    return replace(
        listing,
        instructions=_first_text(places, "instructions"),
        server_name=_first_text(infos, "name"),
        server_version=_first_text(infos, "version"),
        server_title=_first_text(infos, "title"),
        server_description=_first_text(infos, "description"),
    )


def _members(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _first_text(places: list[dict[str, Any]], name: str) -> str:
    return next((text for place in places if isinstance(text := place.get(name), str)), "")
