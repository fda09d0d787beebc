"""`toolbridge doctor`: diagnose configuration and servers, with a fix for each problem."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import click

from toolbridge.cli import FAILED, OK
from toolbridge.cli.server_options import chosen_profiles, config_option, switched, switched_off, with_servers
from toolbridge.cli.terminal import write
from toolbridge.describe.modules import count_of_tools
from toolbridge.trust.sanitise import for_terminal

if TYPE_CHECKING:
    from toolbridge import Config, ServerConfig, ServerManager, ServerStatus

    _Looked: TypeAlias = tuple[Sequence[ServerStatus], tuple[str, ...], frozenset[str]]

_DOES_NOTHING = "Correct it: as it is, it does nothing."
_MARKS = {"ok": "✓", "note": "·", "problem": "✗"}


@dataclass(frozen=True, slots=True)
class _Finding:
    """A diagnosis."""

    subject: str
    verdict: Literal["ok", "note", "problem"]
    text: str
    fix: str = ""


@click.command("doctor", epilog="Exit codes: 0 nothing is wrong; 4 something is, and the output says what to do.")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array of findings.")
def command(config_file: str | None, as_json: bool) -> int:
    """Diagnose configuration files, servers' commands and variables, and connections to approved servers.

    No server is started that is not approved; the command that approves it is printed.

    \b
    Examples:  toolbridge doctor
               toolbridge doctor --json
    """
    from toolbridge import ConfigError, load_config
    from toolbridge.config.profiles import with_profiles

    findings = _file_findings(config_file)
    try:
        config = load_config(config_file)
        config = with_profiles(config, chosen_profiles()) if config.gateway else config
    except ConfigError as error:
        findings += [_Finding("configuration", "problem", str(problem)) for problem in error.problems]
    else:
        from toolbridge.trust.permissions import stray_patterns

        findings += [_Finding("configuration", "note", warning) for warning in config.warnings]
        findings += [_Finding("configuration", "problem", stray, _DOES_NOTHING) for stray in stray_patterns(config)]
        if not config.gateway:
            findings.append(_Finding("configuration", "note", switched_off(config), 'Remove `"gateway": false`.'))
        elif not config.servers:
            text = "no servers are configured"
            fix = "`toolbridge init` imports those of your clients; or add some to one of the files above."
            findings.append(_Finding("configuration", "note", text, fix))
        findings += _store_findings()
        config = switched(config)
        statuses, stray, unusable = with_servers(config, _looked_at(config), connect=None, config_file=config_file)
        findings += [_Finding("configuration", "problem", words, _DOES_NOTHING) for words in stray]
        answers = _answers(config, statuses, unusable)
        for name, server in config.servers.items():
            # A problem found before the start repeats as its failure.
            found = _server_findings(server, os.environ)
            seen = {finding.text for finding in found}
            findings += [*found, *(finding for finding in answers[name] if finding.text not in seen)]
    if as_json:
        write(sys.stdout, json.dumps([asdict(finding) for finding in findings], indent=2) + "\n")
    else:
        write(sys.stdout, _for_people(findings))
    return FAILED if any(finding.verdict == "problem" for finding in findings) else OK


def _looked_at(config: Config) -> Callable[[ServerManager, Sequence[ServerStatus]], _Looked]:
    """Return a function for `with_servers` that gives statuses, rules that match no tool, and fatal pin problems."""

    def look(manager: ServerManager, statuses: Sequence[ServerStatus]) -> _Looked:
        """The statuses, warnings about rules, and problems of admissions."""
        from toolbridge.trust.permissions import label_warnings, pattern_warnings

        listed = manager.listed()
        rules = (*pattern_warnings(config, listed), *label_warnings(config, listed))
        admissions = [manager.admission(status.name) for status in statuses]
        return statuses, rules, frozenset(each.problem for each in admissions if each is not None)

    return look


def _file_findings(config_file: str | None) -> list[_Finding]:
    """Diagnose the places of configuration files: which are read, and why others are not.

    Raises:
        click.ClickException: the current directory is gone.
        ConfigError: the path given with --config is invalid.
    """
    from toolbridge.config.read_file import locate

    findings: list[_Finding] = []
    try:
        directory = os.getcwd()
    except FileNotFoundError:
        raise click.ClickException("The current directory no longer exists. Change into another one.") from None
    for place in locate(config_file, directory=directory, environ=os.environ):
        if place.given and not place.exists:
            findings.append(_Finding(place.path, "problem", "is not there", "Check the path given with --config."))
        elif place.used:
            findings.append(_Finding(place.path, "ok", f"is the {place.origin}'s configuration"))
        else:
            text = "is there, and not read: an earlier one is" if place.exists else "is not there"
            findings.append(_Finding(place.path, "note", text))
    return findings


def _store_findings() -> list[_Finding]:
    """Read the store of approvals; a finding only if it can't be read."""
    from toolbridge.trust.approval.store import ApprovalStore, ApprovalStoreError

    try:
        ApprovalStore().read()
    except ApprovalStoreError as error:
        return [_Finding("approvals", "problem", str(error))]
    return []


def _server_findings(server: ServerConfig, environ: Mapping[str, str]) -> list[_Finding]:
    """Diagnose a server's variables and command without starting it; the first problem ends it."""
    from toolbridge import ServerError
    from toolbridge.config.references import resolve_environment

    subject = f"server {server.name}"
    if not server.enabled:
        return [_Finding(subject, "note", "is disabled")]
    try:
        environment = resolve_environment(server, environ)
    except ServerError as error:
        return [_Finding(subject, "problem", str(error))]
    findings = [_Finding(subject, "note", warning) for warning in environment.warnings]
    names = sorted({*server.env, *server.env_required, *server.headers})
    if names:
        findings.append(_Finding(subject, "ok", f"has values for {', '.join(names)}"))
    if server.transport == "stdio":
        from toolbridge.servers.stdio.launch import find_executable

        try:
            found = find_executable(server, environment.env.get("PATH", os.defpath))
        except ServerError as error:
            path = for_terminal(environment.env.get("PATH", os.defpath)) or "empty"
            is_searched = server.command is not None and os.path.basename(server.command) == server.command
            return [*findings, _Finding(subject, "problem", str(error), f"Its PATH is {path}" if is_searched else "")]
        findings.append(_Finding(subject, "ok", f"its command is {found}"))
    return findings


def _answers(config: Config, statuses: Sequence[ServerStatus], unusable: Collection[str]) -> dict[str, list[_Finding]]:
    """Diagnose the connection attempts, by server; problems in `unusable` are more than notes."""
    findings: dict[str, list[_Finding]] = {}
    for status in statuses:
        found = findings[status.name] = []
        subject = f"server {status.name}"
        if status.state == "connected":
            found.append(_Finding(subject, "ok", f"answers, with {count_of_tools(status.tools)}"))
            found += [
                _Finding(subject, "problem" if problem in unusable else "note", problem) for problem in status.problems
            ]
        elif status.state == "needs_approval":
            found.append(_Finding(subject, "note", f"was not started. {status.last_error}."))
        elif config.servers[status.name].enabled:
            found.append(_Finding(subject, "problem", status.last_error or "was not started"))
    return findings


def _for_people(findings: list[_Finding]) -> str:
    """The findings as text, grouped by subject, with the number of problems."""
    lines: list[str] = []
    subject = None
    for finding in findings:
        if finding.subject != subject:
            subject = finding.subject
            lines.append(for_terminal(subject))
        lines.append(f"  {_MARKS[finding.verdict]} {for_terminal(finding.text)}")
        if finding.fix:
            lines.append(f"    {finding.fix}")
    problems = sum(finding.verdict == "problem" for finding in findings)
    lines.append("Nothing is wrong." if not problems else f"{problems} problem{'s' if problems > 1 else ''} found.")
    return "\n".join(lines) + "\n"
