"""`toolbridge check`: what is wrong with a program, without running it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from toolbridge import CheckReport, Limits
from toolbridge.cli import FAILED, OK, PROGRAM_FAILED
from toolbridge.cli.run import ServerChoice, language_of, read_source
from toolbridge.cli.server_options import config_option
from toolbridge.cli.terminal import write

if TYPE_CHECKING:
    from toolbridge.sandbox.outcome import SandboxLanguage


@click.command(
    "check",
    epilog=(
        "Exit codes: 0 nothing was found; 1 something is wrong with the program; 2 wrong usage or a file that can't be "
        "read; 4 the program could not be checked; 130 interrupted."
    ),
)
@click.argument("file")
@click.option(
    "--language",
    type=click.Choice(["javascript", "typescript", "python"]),
    help="What the program is written in. Default: as the file's name says (.js, .ts, .py), else javascript.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was found as one JSON object.")
@config_option
@click.option(
    "--server", "servers", multiple=True, metavar="NAME", help="Offer only this server. May be given more than once."
)
def command(
    file: str,
    *,
    language: SandboxLanguage | None,
    as_json: bool,
    config_file: str | None,
    servers: tuple[str, ...],
) -> int:
    """Check a program from FILE, or from standard input for "-", against the types of the tools it calls.

    It is not run, and no tool is called; but the servers that it names are connected, as running it would.

    \b
    Example:  toolbridge check program.ts
    """
    written_in: SandboxLanguage = language or language_of(file) or "javascript"
    source = read_source(file, Limits())
    from toolbridge.cli.run_with_servers import check_with_servers

    report = check_with_servers(source, written_in, ServerChoice(config_file, servers))
    if as_json:
        write(sys.stdout, json.dumps(_as_json(report), ensure_ascii=False) + "\n")
    else:
        _show(report)
    if report.ok or report.unended is not None:
        return OK if report.is_checked else FAILED
    return PROGRAM_FAILED


def _show(report: CheckReport) -> None:
    if report.warning:
        write(sys.stderr, f"Warning: {report.warning}\n")
    failure = report.syntax or report.unended
    if failure is not None:
        write(sys.stdout, f"{failure}\n")
    for problem in report.problems:
        write(sys.stdout, f"{problem}\n\n")
    if report.ok:
        write(sys.stdout, "Nothing was found.\n" if report.is_checked else "Nothing was checked.\n")
    elif report.problems:
        count = len(report.problems)
        write(sys.stdout, f"{count} problem{'' if count == 1 else 's'}.\n")


def _as_json(report: CheckReport) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "ok": report.ok,
        "checked": report.is_checked,
        "problems": [asdict(problem) for problem in report.problems],
        "syntax": None if report.syntax is None else {**asdict(report.syntax), "text": str(report.syntax)},
        "unended": None if report.unended is None else str(report.unended),
        "warning": report.warning,
    }
