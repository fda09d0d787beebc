"""`toolbridge audit`: scan servers' texts for prompt injection."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import click

from toolbridge.cli import FAILED, OK
from toolbridge.cli.server_options import (
    config_option,
    configured_server,
    connect_option,
    read_config,
    unknown_words,
    with_servers,
)
from toolbridge.cli.terminal import write
from toolbridge.config.values import check_name, name_for
from toolbridge.describe.modules import count_of_tools
from toolbridge.errors import ConfigError
from toolbridge.servers.listing import Listing, parse_tool
from toolbridge.trust.sanitise import for_error
from toolbridge_codegen.catalog import ToolDefinition

if TYPE_CHECKING:
    from toolbridge import ServerManager, ServerStatus
    from toolbridge.trust.audit.detector import Finding
    from toolbridge.trust.audit.rules import Severity


# Reading a saved tools/list answer.


MOST_BYTES = 64 * 2**20
_EXPECTED = 'expected {"tools": [...]}, as a server answers to tools/list'


def read_listing(path: str, server: str | None) -> Listing:
    """Read a saved listing from a file, or standard input for `-`; its server gets `server` or the file's name.

    An entry that is no tool is left out. Warns on stderr of it, and of twins and missing pages.

    Raises:
        click.ClickException: there is no listing, or no valid name; the message says why.
    """
    name = "Standard input" if path == "-" else path
    # Validate the name first: the cheaper check.
    called = _server_name(path, server)
    document = _parsed(_read_bytes(path, name), name)
    tools: list[ToolDefinition] = []
    for place, raw in enumerate(_tools(document, name), start=1):
        tool, problem = parse_tool(raw, place)
        if tool is not None:
            tools.append(tool)
        if problem is not None and not problem.usable:
            _warn(f"tool {for_error(problem.tool, limit=100)} is left out: it {for_error(problem.problem)}")
        elif problem is not None and _has_no_schema(raw):  # stub diagnostics report the others
            _warn(f"tool {for_error(problem.tool, limit=100)} {for_error(problem.problem)}")
    names = [tool.name for tool in tools]
    for twice in sorted({name for name in names if names.count(name) > 1}):
        _warn(f"tool {for_error(twice, limit=100)} is listed twice or more: one of its definitions is used")
    if _has_more(document):
        _warn("the listing has further pages, whose tools are not in this file")
    return _with_about(Listing(called, tuple(tools), live=False), document)


def _has_no_schema(raw: object) -> bool:
    """Whether an entry's schemas are malformed."""
    entry = cast("dict[str, Any]", raw)
    return not isinstance(entry.get("inputSchema"), dict) or not isinstance(entry.get("outputSchema", {}), dict | None)


def _warn(text: str) -> None:
    write(sys.stderr, f"Warning: {text}.\n")


def _has_more(document: object) -> bool:
    """Whether a listing is a page with more after it."""
    known = _members(document)
    return any(page.get("nextCursor") for page in (known, _members(known.get("result"))))


def _server_name(path: str, server: str | None) -> str:
    """The name of the server: the given one, or by the file's name; ClickException if it is invalid."""
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
    """Read a file or standard input; ClickException if it is unreadable or longer than `MOST_BYTES`."""
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
    """Parse JSON; ClickException, without the text, if it is malformed."""
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
    # Raised outside: the parser's error would keep the whole text as context.
    raise click.ClickException(f"{name} {problem}.")


def _tools(document: object, name: str) -> list[object]:
    """The list of tools, bare or within an answer; ClickException if there is none."""
    found = document
    for key in ("result", "tools"):  # JSON-RPC answers nest it in "result"
        if isinstance(found, dict) and key in found:
            found = cast("dict[str, object]", found)[key]
    if not isinstance(found, list):
        raise click.ClickException(f"{name} is not a listing: {_EXPECTED}.")
    return cast("list[object]", found)


def _with_about(listing: Listing, document: object) -> Listing:
    """A copy of the listing with the server's own facts: fields of the document or of an `initialize` answer in it."""
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


FOUND = 1
"""Findings at or above --fail-on."""
_ADVICE = (
    "The audit is advisory: it knows common attacks; a server without findings is not proven safe.\n"
    "Review the findings; `toolbridge info NAME` shows the tools.\n"
)


@click.command("audit")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@config_option
@connect_option
@click.option("--from", "files", multiple=True, metavar="FILE", help="Audit a saved answer to tools/list instead.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--sarif", "as_sarif", is_flag=True, help="Print SARIF 2.1.0, for code scanning.")
@click.option(
    "--fail-on",
    type=click.Choice(["high", "medium", "low", "never"]),
    default="high",
    show_default=True,
    help="Exit with 1 on findings of at least this severity.",
)
def command(
    *,
    names: tuple[str, ...],
    config_file: str | None,
    connect: bool,
    files: tuple[str, ...],
    as_json: bool,
    as_sarif: bool,
    fail_on: str,
) -> int:
    """Scan tool definitions for hidden instructions and other prompt injection.

    Reads the last known listings, and starts nothing. With --connect, approved servers are listed anew. Pins nothing.

    Exit codes: 0 nothing grave, 1 findings (see --fail-on), 4 the tools of a server are not known.

    \b
    Examples:  toolbridge audit
               toolbridge audit weather --connect --json
    """
    if as_json and as_sarif:
        raise click.UsageError("--json and --sarif are two formats: give one.")
    if files and (names or connect or config_file):
        raise click.UsageError("--from reads files only: give no names, --config or --connect with it.")
    listings, unknown, origins = _from_files(files) if files else _known(names, config_file, connect=connect)
    findings = _audited(listings, only=names)
    if as_sarif:
        from toolbridge.trust.audit.detector import findings_as_sarif

        _print_json(findings_as_sarif(findings, origins))
    elif as_json:
        from toolbridge.trust.audit.detector import finding_as_json

        servers = [listing.server for listing in listings if not names or listing.server in names]
        found = [finding_as_json(finding) for finding in findings]
        _print_json({"servers": servers, "notKnown": [status.name for status in unknown], "findings": found})
    else:
        _print_for_people(listings, findings, names)
    write(sys.stderr, "".join(f"Warning: {line}\n" for line in unknown_words(unknown)))
    return _exit_code(findings, fail_on, incomplete=bool(unknown) and (bool(names) or not listings))


def _exit_code(findings: Sequence[Finding], fail_on: str, *, incomplete: bool) -> int:
    """1 for findings at or above `fail_on`, else 4 if `incomplete`, else 0."""
    from toolbridge.trust.audit.detector import at_least

    levels: Mapping[str, Severity] = {"high": "high", "medium": "medium", "low": "low"}
    if fail_on in levels and at_least(findings, levels[fail_on]):
        return FOUND
    return FAILED if incomplete else OK


_Sources = tuple[list["Listing"], Sequence["ServerStatus"], dict[str, str]]


def _from_files(files: Sequence[str]) -> _Sources:
    """Read the files; ClickException if two have one name."""
    listings = [read_listing(file, "stdin" if file == "-" else None) for file in files]
    names = [listing.server for listing in listings]
    for name in names:
        if names.count(name) > 1:
            raise click.ClickException(f"Two of the files are named {name!r}: rename one.")
    origins = {listing.server: file for listing, file in zip(listings, files, strict=True) if file != "-"}
    return listings, (), origins


def _known(names: Sequence[str], config_file: str | None, *, connect: bool) -> _Sources:
    """The known listings of all servers, and the statuses of wanted servers without one; wanted are `names`, or all.

    With `connect`, wanted servers are listed anew. Pins nothing. ClickException for an unknown name.
    """
    from toolbridge.trust.pins.pins import LockPins

    config = read_config(config_file, named=names)
    asked = [configured_server(config, name).name for name in names] or sorted(config.servers)

    def look(manager: ServerManager, statuses: Sequence[ServerStatus]) -> tuple[list[Listing], Sequence[ServerStatus]]:
        """The known listings, and the statuses of wanted servers without one."""
        found = map(manager.listing, sorted(config.servers))
        unknown = [status for status in statuses if status.name in asked and manager.listing(status.name) is None]
        return [listing for listing in found if listing is not None], unknown

    # Auditing never pins.
    pins = LockPins(on_first_use="refuse")
    listings, unknown = with_servers(config, look, connect=asked if connect else (), config_file=config_file, pins=pins)
    return listings, unknown, {}


def _audited(listings: Sequence[Listing], only: Sequence[str]) -> tuple[Finding, ...]:
    """Audit the listings, those in `only` or all; every listing gives the names of other servers' tools."""
    from toolbridge.trust.audit.detector import audit

    tools = {listing.server: [tool.name for tool in listing.tools] for listing in listings}
    return tuple(
        finding
        for listing in listings
        if not only or listing.server in only
        for finding in audit(listing.server, listing.tools, listing.instructions, tools, listing.about)
    )


def _print_json(value: object) -> None:
    """Print JSON in ASCII: hidden characters stay visible."""
    # ASCII: hidden characters stay visible in a file, too.
    write(sys.stdout, json.dumps(value, indent=2) + "\n")


def _print_for_people(listings: Sequence[Listing], findings: Sequence[Finding], names: Sequence[str]) -> None:
    """Print counts and findings of the servers in `names`, or of all, and how to read them."""
    from toolbridge.trust.audit.detector import counted

    for listing in listings:
        if names and listing.server not in names:
            continue
        own = [finding for finding in findings if finding.server == listing.server]
        write(
            sys.stdout, f"{listing.server}: {count_of_tools(len(listing.tools))}, {counted(own) or 'nothing found'}\n"
        )
        for finding in own:
            write(sys.stdout, f"  {finding.severity.ljust(6)}  {finding.place}  [{finding.rule}]\n")
            write(sys.stdout, f"          {finding.why}:\n          {finding.excerpt}\n")
    if findings:
        write(sys.stdout, "\n" + _ADVICE)
    elif not listings:
        write(sys.stdout, "Nothing to audit: no server's tools are known.\n")
