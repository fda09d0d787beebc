"""`toolbridge run` and `toolbridge check`."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from toolbridge import Limits, RunResult, Sandbox
from toolbridge.cli import FAILED, OF_FAILURE, OK, PROGRAM_FAILED
from toolbridge.cli.server_options import ServerChoice, choice_options, config_option, refuse_inside_run
from toolbridge.cli.terminal import write
from toolbridge.errors import LimitsError
from toolbridge.sandbox.outcome import DIALECTS

if TYPE_CHECKING:
    from toolbridge import CheckReport
    from toolbridge.observe.progress import TerminalLine
    from toolbridge.sandbox.outcome import SandboxLanguage


# Compiling a language's engine before its first program: up to half a minute, once per machine.


_NAMES = {"javascript": "JavaScript", "typescript": "TypeScript", "python": "Python"}
_USUALLY = {"javascript": "a few seconds", "typescript": "a few seconds", "python": "10 to 30 seconds"}
_SECONDS_BETWEEN = 0.2


def make_ready(language: SandboxLanguage) -> None:
    """Compile the engine of a language unless this machine has it cached; blocks, the first time up to half a minute.

    Compiles on a thread, so that waiting can be interrupted; at a terminal, the elapsed time is shown.

    Raises:
        ToolbridgeError: the installation is broken.
    """
    work = _Work(language)
    threading.Thread(target=work.do, name="toolbridge-compile", daemon=True).start()
    work.changed.wait()
    if not work.done.is_set():
        _show_while(work)
    if work.problem is not None:
        raise work.problem


class _Work:
    """A compilation on a thread, and its progress."""

    def __init__(self, language: SandboxLanguage) -> None:
        self.language = language
        self.changed = threading.Event()
        """Set when the compiler begins, and again when all is done."""
        self.done = threading.Event()
        self.problem: BaseException | None = None

    def do(self) -> None:
        """Load or compile the engine; the body of the thread. Stores an exception in `problem`."""
        try:
            from toolbridge.sandbox.engine import shared_engine

            if self.language == "python":
                shared_engine().python_image(self._compiles)
            else:
                shared_engine().image(self.language, self._compiles)
        except BaseException as error:  # re-raised by make_ready
            self.problem = error
        self.done.set()
        self.changed.set()

    def _compiles(self, _language: str) -> None:
        self.changed.set()


def _show_while(work: _Work) -> None:
    """Block until the work is done; on a terminal, show the elapsed time and finally the total."""
    if sys.stderr is None or not sys.stderr.isatty():  # pyright: ignore[reportUnnecessaryComparison]
        work.done.wait()
        return
    from toolbridge.observe.progress import line_of

    name, began = _NAMES[work.language], monotonic()
    text = f"Compiling the {name} engine for this machine (once, {_USUALLY[work.language]}) …"
    line = line_of(sys.stderr)
    if line is None:
        print(text, file=sys.stderr)
        work.done.wait()
    else:
        _draw_until_done(work, line, text, began)
    if work.problem is None:
        with suppress(OSError):
            print(f"Compiled the {name} engine for this machine in {monotonic() - began:.0f} s.", file=sys.stderr)


def _draw_until_done(work: _Work, line: TerminalLine, text: str, began: float) -> None:
    """Redraw a line until the work is done, then erase it; a lost terminal doesn't end the wait."""
    try:
        with suppress(OSError):  # the terminal is gone; the work goes on
            while not work.done.wait(_SECONDS_BETWEEN):
                line.show(f"{text} {monotonic() - began:.0f} s")
        work.done.wait()
    finally:
        with suppress(OSError):
            line.erase()


# Reading programs.


_LANGUAGES: dict[str, SandboxLanguage] = {
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".py": "python",
}


def language_of(path: str) -> SandboxLanguage | None:
    """The language of a file by its extension; None if that says nothing.

    Raises:
        click.ClickException: it is JSX, which can't be run.
    """
    extension = os.path.splitext(path)[1].lower()
    if extension in (".tsx", ".jsx"):
        raise click.ClickException(f"{path}: JSX can't be run. Give a JavaScript, TypeScript or Python file.")
    return _LANGUAGES.get(extension)


def read_source(path: str, limits: Limits) -> str:
    """Read the text of a program from a file, or from standard input for `-`; blocks until its end.

    Raises:
        click.ClickException: it is unreadable, too large, not UTF-8 or blank.
    """
    name = "Standard input" if path == "-" else path
    data = _read_bytes(path, name, limits.frame_bytes)
    if len(data) > limits.frame_bytes:
        most = limits.frame_bytes // 2**20
        raise click.ClickException(f"{name} is larger than {most} MiB, the most that a program may be.")
    try:
        source = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise click.ClickException(
            f"{name} is not UTF-8 text: byte 0x{data[error.start]:02x} in line {line}. Save it as UTF-8."
        ) from error
    if not source.strip():
        raise click.ClickException(f"{name} is empty: there is no program to run.")
    return source


def _read_bytes(path: str, name: str, most: int) -> bytes:
    """Read at most one byte more than `most`, so that a huge file costs nothing.

    Raises:
        click.ClickException: it can't be read.
    """
    try:
        if path == "-":
            if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
                raise click.ClickException("Standard input is closed: there is no program to run.")
            return sys.stdin.buffer.read(most + 1)
        with open(path, "rb") as file:
            return file.read(most + 1)
    except FileNotFoundError as error:
        raise click.ClickException(f"There is no file {name}.") from error
    except IsADirectoryError as error:
        raise click.ClickException(f"{name} is a directory: give a program's file.") from error
    except OSError as error:
        raise click.ClickException(f"{name} can't be read: {error.strerror or error}.") from error


# A program without any of these words imports no host module and needs no servers.
_WORDS_OF_MODULES = {
    "javascript": ("host:", "import", "require"),
    "typescript": ("host:", "import", "require"),
    "python": ("host", "import_module", "__import__"),
}
_UNITS = {"": 2**20, "k": 2**10, "m": 2**20, "g": 2**30}


class _MemorySize(click.ParamType[int]):
    """A size: `64` (MiB), `512K`, `64M`, `1G`."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse a size into bytes; a usage error if it is none."""
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
    help="Language of the program. Default: by the file's extension (.js, .ts, .py), else javascript.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as one JSON object.")
@click.option("--timeout", type=float, metavar="SECONDS", help="Stop after this long. Default: 30.")
@click.option(
    "--memory", type=_MemorySize(), metavar="SIZE", help="Memory the program may use (64, 64M, 1G). Default: 64M."
)
@config_option
@choice_options
@click.option("--session", metavar="NAME", help="Run several files in one guest: each sees what earlier ones defined.")
@click.option("--dry-run", is_flag=True, help="Print the selected servers with reasons; run and start nothing.")
@click.option("--no-check", is_flag=True, help="Skip the type check.")
@click.option("--audit-log", metavar="FILE", help="Append one line of JSON per event to this file.")
def run(
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

    Every configured MCP server is a module to it: "host:mcp-NAME" in JavaScript, host.mcp_NAME in Python. An
    unapproved one is asked about at the terminal; without a terminal, it is refused. A program that calls tools is
    type-checked first, and not run if that finds a mistake. Its value is its last expression; in JavaScript also the
    default export or a top-level return, in Python also a variable "result".

    With --session, several files are run one after another in one guest, up to the first that fails; the audit log has
    the session's NAME. The guest's state ends with the command.

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
        from toolbridge.cli.run_with_servers import show_servers

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
    """Whether a program may import a host module; without any such word it needs no servers."""
    return any(word in source for word in _WORDS_OF_MODULES[language])


def _one_language(files: Sequence[str]) -> SandboxLanguage | None:
    """The common language of the files, None if their names don't tell; UsageError if they differ."""
    languages: set[SandboxLanguage | None] = {language_of(file) for file in files}
    if len(languages) > 1:
        raise click.UsageError("A session has one language: give files of one, or --language.")
    return languages.pop()


def limits_of(timeout: float | None, memory: int | None, language: SandboxLanguage) -> Limits:
    """The default limits with those of the options.

    Raises:
        click.ClickException: one is out of range, or below the least memory of the language.
    """
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
    """Print a result: warnings, stderr and the failure on stderr; stdout and the value on stdout."""
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
    """A result as the JSON object of --json."""
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


# ── toolbridge check ──────────────────────────────────────────────────────────────────────────────────────────────


@click.command(
    "check",
    epilog=(
        "Exit codes: 0 no problem was found; 1 the program has problems; 2 wrong usage or a file that can't be "
        "read; 4 the program could not be checked; 130 interrupted."
    ),
)
@click.argument("file")
@click.option(
    "--language",
    type=click.Choice(["javascript", "typescript", "python"]),
    help="Language of the program. Default: by the file's extension (.js, .ts, .py), else javascript.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@config_option
@click.option(
    "--server", "servers", multiple=True, metavar="NAME", help="Offer only this server. May be given more than once."
)
def check(
    file: str,
    *,
    language: SandboxLanguage | None,
    as_json: bool,
    config_file: str | None,
    servers: tuple[str, ...],
) -> int:
    """Check a program from FILE, or from standard input for "-", against the types of the tools it calls.

    Runs nothing and calls no tool, but connects the servers that it imports, as a run would.

    \b
    Example:  toolbridge check program.ts
    """
    written_in: SandboxLanguage = language or language_of(file) or "javascript"
    source = read_source(file, Limits())
    from toolbridge.cli.run_with_servers import check_with_servers

    report = check_with_servers(source, written_in, ServerChoice(config_file, servers))
    if as_json:
        write(sys.stdout, json.dumps(_report_as_json(report), ensure_ascii=False) + "\n")
    else:
        _show_report(report)
    if report.ok or report.unended is not None:
        return OK if report.is_checked else FAILED
    return PROGRAM_FAILED


def _show_report(report: CheckReport) -> None:
    """Print the report of a check: problems on stdout, a warning on stderr."""
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


def _report_as_json(report: CheckReport) -> dict[str, Any]:
    """The report of a check as the JSON object of --json."""
    from dataclasses import asdict

    return {
        "ok": report.ok,
        "checked": report.is_checked,
        "problems": [asdict(problem) for problem in report.problems],
        "syntax": None if report.syntax is None else {**asdict(report.syntax), "text": str(report.syntax)},
        "unended": None if report.unended is None else str(report.unended),
        "warning": report.warning,
    }
