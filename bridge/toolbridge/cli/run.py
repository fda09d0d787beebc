"""`toolbridge run`: one program, one result."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from toolbridge import Limits, LimitsError, RunResult, Sandbox
from toolbridge.cli.engines import make_ready
from toolbridge.cli.exit_codes import OF_FAILURE, OK
from toolbridge.cli.server_choice import ServerChoice, choice_options
from toolbridge.cli.server_options import config_option, refuse_inside_run
from toolbridge.cli.source import language_of, read_source
from toolbridge.cli.terminal import write
from toolbridge.sandbox.dialect import DIALECTS

if TYPE_CHECKING:
    from toolbridge.sandbox.dialect import SandboxLanguage

# A program without any of these imports nothing of the host's, and needs no servers.
_WORDS_OF_MODULES = {
    "javascript": ("host:", "import", "require"),
    "typescript": ("host:", "import", "require"),
    "python": ("host", "import_module", "__import__"),
}
_UNITS = {"": 2**20, "k": 2**10, "m": 2**20, "g": 2**30}


class _Memory(click.ParamType[int]):
    """A size: `64` (MiB), `512K`, `64M`, `1G`."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"(\d{1,9})\s*([kmg]?)i?b?", str(value).strip(), re.IGNORECASE)
        if not match:
            self.fail(f"{value!r} is not a size: write 64, 64M or 1G.", param, ctx)
        return int(match[1]) * _UNITS[match[2].lower()]


@click.command(
    "run",
    epilog=(
        "Exit codes: 0 the program ran to its end; 1 it failed (syntax, types, uncaught exception); 2 wrong usage or a "
        "file that can't be read; 3 it was stopped at a limit; 4 toolbridge itself failed; 130 interrupted."
    ),
)
@click.argument("files", metavar="FILE...", nargs=-1)
@click.option(
    "--language",
    type=click.Choice(["javascript", "typescript", "python"]),
    help="What the program is written in. Default: as the file's name says (.js, .ts, .py), else javascript.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as one JSON object.")
@click.option("--timeout", type=float, metavar="SECONDS", help="Stop after this long. Default: 30.")
@click.option(
    "--memory", type=_Memory(), metavar="SIZE", help="Memory the program may use (64, 64M, 1G). Default: 64M."
)
@config_option
@choice_options
@click.option("--session", metavar="NAME", help="Run several files in one guest: each sees what earlier ones defined.")
@click.option("--dry-run", is_flag=True, help="Print which servers there would be, and why. Nothing is run or started.")
@click.option("--no-check", is_flag=True, help="Run it without checking it against the types of the tools first.")
@click.option("--audit-log", metavar="FILE", help="Append a record of every call to this file, as lines of JSON.")
def command(
    files: tuple[str, ...],
    *,
    language: SandboxLanguage | None,
    as_json: bool,
    timeout: float | None,
    memory: int | None,
    config_file: str | None,
    servers: tuple[str, ...],
    task: str | None,
    capabilities: tuple[str, ...],
    session: str | None,
    dry_run: bool,
    no_check: bool,
    audit_log: str | None,
) -> int:
    """Run a JavaScript, TypeScript or Python program from FILE, or from standard input for "-".

    Every configured MCP server is a module to it: "host:mcp-NAME" in JavaScript, host.mcp_NAME in Python. One that was
    never approved is asked about first, if there is a terminal, and else refused. A program that calls tools is checked
    against their types first, and not run if that finds a mistake. Its value is its last expression; in JavaScript also
    the default export or a top-level return, in Python also a variable "result".

    With --session, several files are run one after another in one guest, up to the first that fails; the audit log has
    the session's NAME. A guest's state lives in this process: it ends with the command, and no later one finds it.

    \b
    Examples:  toolbridge run program.py
               echo '[1, 2, 3].map((n) => n * n)' | toolbridge run -
               echo 'require("host:mcp-weather").list_stations()' | toolbridge run -
               echo 'sum(range(10))' | toolbridge run --language python -
               toolbridge run --session report fetch.py sum.py
               toolbridge run --task "rename the shared assets" --dry-run
    """
    chosen = ServerChoice(config_file, servers, task, capabilities)
    if dry_run:
        from toolbridge.cli.dry_run import show_servers

        return show_servers(chosen)
    refuse_inside_run()
    if not files:
        raise click.MissingParameter(param_hint="'FILE'", param_type="argument")
    if len(files) > 1 and session is None:
        raise click.UsageError("Several files are run in a session: give it a name with --session.")
    told = language or _one_language(files)
    written_in: SandboxLanguage = told or "javascript"
    limits = limits_of(timeout, memory, written_in)
    sources = [read_source(file, limits) for file in files]
    source = sources[-1]
    if session is not None or chosen.is_made or audit_log or _imports(source, written_in):
        from toolbridge.cli.run_with_servers import run_with_servers

        def tell(result: RunResult) -> None:
            if session is not None and not as_json:
                write(sys.stderr, "" if result.ok else f"{files[len(results)]}:\n")
                _show(result)
            results.append(result)

        results: list[RunResult] = []
        options: Any = {"check": not no_check, "audit_log": audit_log, "session": session, "on_result": tell}
        result = run_with_servers(sources, written_in, limits, chosen, **options)
        if session is not None:
            if as_json:
                facts = {"session": session, "ok": result.ok, "results": [_as_json(each) for each in results]}
                write(sys.stdout, json.dumps(facts, ensure_ascii=False) + "\n")
            return OK if result.failure is None else OF_FAILURE[result.failure.kind]
    else:
        if written_in == "typescript":
            make_ready("javascript")
        make_ready(written_in)
        with Sandbox(limits=limits) as sandbox:
            result = sandbox.run_sync(source, language=written_in)
    if as_json:
        write(sys.stdout, json.dumps(_as_json(result), ensure_ascii=False) + "\n")
    else:
        _show(result)
        if told is None and result.failure is not None and result.failure.kind == "syntax":
            write(sys.stderr, "\nIt was read as JavaScript. If it is not: --language python, or typescript\n")
    return OK if result.failure is None else OF_FAILURE[result.failure.kind]


def _imports(source: str, language: SandboxLanguage) -> bool:
    return any(word in source for word in _WORDS_OF_MODULES[language])


def _one_language(files: Sequence[str]) -> SandboxLanguage | None:
    languages: set[SandboxLanguage | None] = {language_of(file) for file in files}
    if len(languages) > 1:
        raise click.UsageError("A session has one language: give files of one, or --language.")
    return languages.pop()


def limits_of(timeout: float | None, memory: int | None, language: SandboxLanguage) -> Limits:
    """The limits that the options ask for."""
    limits = Limits()
    least = DIALECTS[language].least_memory
    try:
        if timeout is not None:
            limits = limits.with_(wall_seconds=timeout, cpu_seconds=timeout)
        if memory is not None:
            limits = limits.with_(memory_bytes=memory)
            if memory < least:
                raise LimitsError("memory_bytes", memory, f"at least {least}")
    except LimitsError as error:
        sizes = f"{least // 2**20}M to 4095M{' for Python' if language == 'python' else ''}"
        seconds = "--timeout takes seconds above 0 and below a thousand million"
        expected = {"memory_bytes": f"--memory takes {sizes}", "wall_seconds": seconds}
        raise click.ClickException(f"{expected[error.name]}.") from error
    return limits


def _show(result: RunResult) -> None:
    for warning in result.warnings:
        write(sys.stderr, f"Warning: {warning}\n")
    write(sys.stdout, result.stdout)
    write(sys.stderr, result.stderr)
    if result.failure is not None:
        write(sys.stderr, f"{result.failure}\n")
    elif isinstance(result.value, str):
        write(sys.stdout, result.value + "\n")
    elif result.value is not None:
        write(sys.stdout, json.dumps(result.value, ensure_ascii=False, indent=2) + "\n")


def _as_json(result: RunResult) -> dict[str, Any]:
    from dataclasses import asdict

    failure = result.failure
    return {
        "ok": result.ok,
        "value": result.value,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "failure": None if failure is None else {**asdict(failure), "text": str(failure)},
        "calls": [call._asdict() for call in result.calls],
        "servers": list(result.servers),
        "warnings": list(result.warnings),
        "usage": asdict(result.usage),
    }
