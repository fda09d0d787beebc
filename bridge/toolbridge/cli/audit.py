"""`toolbridge audit`: what in the servers' own words looks like an attack on a model."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from toolbridge.cli.exit_codes import FAILED, OK
from toolbridge.cli.listing_file import read_listing
from toolbridge.cli.server_options import (
    config_option,
    configured_server,
    connect_option,
    read_config,
    unknown_words,
    with_servers,
)
from toolbridge.cli.terminal import write
from toolbridge.describe.summaries import count_of_tools

if TYPE_CHECKING:
    from toolbridge import ServerManager, ServerStatus
    from toolbridge.servers.listing import Listing
    from toolbridge.trust.audit import Finding
    from toolbridge.trust.audit_rules import Severity

FOUND = 1
"""There are findings as grave as --fail-on."""
_ADVICE = (
    "The audit is advisory: it knows common attacks, and finding nothing does not make a server safe.\n"
    "Read what is found; `toolbridge info NAME` shows the tools.\n"
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
    help="Exit with 1 if there are findings of this severity or a graver one.",
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
    """Look for hidden instructions and other tricks in what servers say of their tools.

    Nothing is started: what is read is what the servers listed the last time. With --connect, approved servers are
    asked anew. Nothing is pinned.

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
        from toolbridge.trust.audit_report import findings_as_sarif

        _print_json(findings_as_sarif(findings, origins))
    elif as_json:
        from toolbridge.trust.audit_report import finding_as_json

        servers = [listing.server for listing in listings if not names or listing.server in names]
        found = [finding_as_json(finding) for finding in findings]
        _print_json({"servers": servers, "notKnown": [status.name for status in unknown], "findings": found})
    else:
        _print_for_people(listings, findings, names)
    write(sys.stderr, "".join(f"Warning: {line}\n" for line in unknown_words(unknown)))
    return _exit_code(findings, fail_on, incomplete=bool(unknown) and (bool(names) or not listings))


def _exit_code(findings: Sequence[Finding], fail_on: str, *, incomplete: bool) -> int:
    from toolbridge.trust.audit import at_least

    levels: Mapping[str, Severity] = {"high": "high", "medium": "medium", "low": "low"}
    if fail_on in levels and at_least(findings, levels[fail_on]):
        return FOUND
    return FAILED if incomplete else OK


_Sources = tuple[list["Listing"], Sequence["ServerStatus"], dict[str, str]]


def _from_files(files: Sequence[str]) -> _Sources:
    listings = [read_listing(file, "stdin" if file == "-" else None) for file in files]
    names = [listing.server for listing in listings]
    for name in names:
        if names.count(name) > 1:
            raise click.ClickException(f"Two of the files are named {name!r}: rename one.")
    origins = {listing.server: file for listing, file in zip(listings, files, strict=True) if file != "-"}
    return listings, (), origins


def _known(names: Sequence[str], config_file: str | None, *, connect: bool) -> _Sources:
    """What is known of all configured servers, also those not asked about: the others' tools are in it."""
    from toolbridge.trust.pins import LockPins

    config = read_config(config_file, named=names)
    asked = [configured_server(config, name).name for name in names] or sorted(config.servers)

    def look(manager: ServerManager, statuses: Sequence[ServerStatus]) -> tuple[list[Listing], Sequence[ServerStatus]]:
        found = map(manager.listing, sorted(config.servers))
        unknown = [status for status in statuses if status.name in asked and manager.listing(status.name) is None]
        return [listing for listing in found if listing is not None], unknown

    # To look is not to accept: nothing is pinned here, whoever looks.
    pins = LockPins(on_first_use="refuse")
    listings, unknown = with_servers(config, look, connect=asked if connect else (), config_file=config_file, pins=pins)
    return listings, unknown, {}


def _audited(listings: Sequence[Listing], only: Sequence[str]) -> tuple[Finding, ...]:
    from toolbridge.trust.audit import audit

    tools = {listing.server: [tool.name for tool in listing.tools] for listing in listings}
    return tuple(
        finding
        for listing in listings
        if not only or listing.server in only
        for finding in audit(listing.server, listing.tools, listing.instructions, tools, listing.about)
    )


def _print_json(value: object) -> None:
    # ASCII: what a server hid in its text stays visible in a file, too.
    write(sys.stdout, json.dumps(value, indent=2) + "\n")


def _print_for_people(listings: Sequence[Listing], findings: Sequence[Finding], names: Sequence[str]) -> None:
    from toolbridge.trust.audit import counted

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
