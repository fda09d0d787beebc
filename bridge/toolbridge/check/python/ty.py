"""Type-checks Python with `ty`, in a subprocess that gets text in a private directory.

`ty` parses, and neither imports nor runs anything. It is native code all the same: it gets an empty environment, no
configuration but ours, and limits on time and memory.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import anyio
from anyio.abc import Process

from toolbridge.check.checker import (
    ANY_MODULE,
    MOST_PROBLEMS,
    TOO_LARGE,
    CheckReport,
    SessionNames,
    World,
    problem,
    unended,
)
from toolbridge.check.python.comparisons import REDUNDANT_CONDITION, Comparisons, constant_list_edits
from toolbridge.check.python.mistakes import Alternatives, find_mistakes, has_syntax_error
from toolbridge.check.python.program import Program, TyFinding
from toolbridge.check.python.rewriting import (
    HELPERS,
    HELPERS_STUB,
    Edit,
    PairCalls,
    Rewriting,
    TypeQueries,
    collection_edits,
    relocated,
    result_edits,
)
from toolbridge.check.python.text import checkable_stubs
from toolbridge.check.python.tool_arguments import BuiltinCalls
from toolbridge.check.python.user_functions import ARGUMENT_PREFIX, TrialCalls, argument_edits

# Bounded subprocesses.

# `ulimit` in a shell limits the process before it starts; the shell then execs it.
_LIMITED = 'ulimit -v "$1" 2>/dev/null; ulimit -t "$2" 2>/dev/null; ulimit -c 0 2>/dev/null; shift 2; exec "$@"'


class ProcessFailed(Exception):  # noqa: N818  # a fact about the process, reported as a warning
    """The process failed; the message continues a sentence that begins with its name."""


class ProcessTooSlow(ProcessFailed):
    """It exceeded its CPU time."""


class ProcessTooLarge(ProcessFailed):
    """It aborted, as native code does without memory or stack."""


async def run_bounded(
    command: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str],
    cpu_seconds: float,
    memory_bytes: int,
    most_output: int,
) -> bytes:
    """Runs a process and returns its standard output. Waits for its end; cancellation kills its process group.

    It gets no input, and its error output is dropped.

    Raises:
        ProcessTooSlow: it exceeded its CPU time.
        ProcessTooLarge: it aborted, as without memory or stack.
        ProcessFailed: it could not be started, ended with another exit code, or wrote more than `most_output` bytes.
    """
    limits = [str(memory_bytes // 1024), str(int(cpu_seconds) + 1)]
    try:
        process = await anyio.open_process(
            ["/bin/sh", "-c", _LIMITED, "sh", *limits, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=directory,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise ProcessFailed(f"could not be started ({error.strerror})") from error
    try:
        output = await _read_output(process, most_output)
        code = await process.wait()
    finally:
        with suppress(OSError):  # it has ended already
            os.killpg(process.pid, signal.SIGKILL)
        with anyio.CancelScope(shield=True):
            await process.aclose()
    if code in (-signal.SIGXCPU, -signal.SIGKILL):  # the limit, and the limit after it
        raise ProcessTooSlow(f"took longer than {cpu_seconds:g} s of CPU time")
    if code == -signal.SIGABRT:
        raise ProcessTooLarge("ran out of memory or stack")
    if code:
        raise ProcessFailed(f"ended with exit code {code}")
    return output


async def _read_output(process: Process, most: int) -> bytes:
    """Reads a process's standard output to its end. Raises ProcessFailed if it is longer than `most` bytes."""
    assert process.stdout is not None
    output = bytearray()
    async for chunk in process.stdout:
        output += chunk
        if len(output) > most:
            raise ProcessFailed(f"wrote more than {most} bytes")
    return bytes(output)


P = ParamSpec("P")
T = TypeVar("T")
NO_TY = "Python programs are not checked before they run: the package `ty` is not installed."
_MEMORY_BYTES = 2 * 1024**3
_MOST_OUTPUT = 4 * 1024**2
_SETTINGS = f"""
[analysis]
return-type-inference = "always"
[rules]
{REDUNDANT_CONDITION} = "warn"
"""
_Ask = Callable[[Mapping[str, str]], Awaitable[dict[str, list[TyFinding]]]]
_ANY_STUB = "from typing import Any\ndef __getattr__(name: str) -> Any: ...\n"


def find_ty() -> str | None:
    """Returns the path of `ty` in this installation, never elsewhere on the machine; None if not installed."""
    try:
        from ty import find_ty_bin

        return find_ty_bin()
    except (ImportError, FileNotFoundError):
        return None


async def check_python(
    source: str, world: World, session: SessionNames | None, *, cpu_seconds: float = 10.0
) -> CheckReport:
    """Type-checks a program in one or two runs of `ty`. Text analysis runs in a worker thread.

    A checker that is missing or fails gives a warning; one that exceeds its limits an `unended` report.

    Raises:
        OSError: the temporary project can't be written.
    """
    ty = find_ty()
    if ty is None:
        return CheckReport(warning=NO_TY, is_checked=False, has_checker=False)
    earlier = "".join(f"{text}\n" for text in session.imports) if session is not None else ""
    words = session.words if session is not None else set[str]()
    program, calls, edits = await _in_thread(_prepare, source, world, words)
    ask = partial(_ask, ty, world, cpu_seconds)
    try:
        asked, findings = await _first_pass(ask, program, edits, earlier, calls)
        if edits and has_syntax_error(findings):
            edits = list[Edit]()  # our edits may be the cause
            asked, findings = await _first_pass(ask, program, edits, earlier, calls)
    except ProcessTooSlow:
        return unended()
    except (ProcessFailed, ValueError) as error:
        if isinstance(error, ProcessTooLarge) and await _can_check_imports(ask, world):
            return unended(TOO_LARGE)
        warning = f"The program was not checked before it ran: the checker {error}."
        return CheckReport(warning=warning, is_checked=False)
    analysis = await _in_thread(_Analysis, findings, program, edits, asked)
    answers: dict[str, list[TyFinding]] = {}
    if analysis.files:
        with suppress(ProcessFailed, ValueError):  # without an answer, nothing is certain
            answers = await ask(analysis.files)
    return await _in_thread(analysis.report, answers)


async def _in_thread(read: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Runs text analysis in a worker thread, abandoned when cancelled; the program's length bounds it."""
    from anyio.to_thread import run_sync

    return await run_sync(partial(read, *given, **named), abandon_on_cancel=True)


class _Analysis:
    """The findings in a program, and the checker's second pass over them."""

    def __init__(self, findings: list[TyFinding], program: Program, edits: list[Edit], asked: Rewriting) -> None:
        self._program = program
        self._mistakes = find_mistakes(findings, program)
        self._alternatives = Alternatives(findings, self._mistakes, program)
        self._compared = Comparisons(findings, program)
        self._builtins = BuiltinCalls(findings, program)
        spans = [*self._alternatives.spans, *self._compared.spans, *self._builtins.spans]
        self._queries = TypeQueries(program.source, edits, asked.head, spans)
        self._trials = TrialCalls(findings, program, edits, asked.head)
        self.files = {**self._queries.files, **self._trials.files}

    def report(self, answers: Mapping[str, list[TyFinding]]) -> CheckReport:
        """Returns the report, given the second pass's answers by file name: the first problems by position."""
        program, mistakes, types = self._program, self._mistakes, self._queries.types(answers)
        if mistakes:
            mistakes = find_mistakes(self._alternatives.sure(types), program)
        more = (*self._compared.mistakes(types), *self._builtins.mistakes(types), *self._trials.mistakes(answers))
        shown = sorted([*mistakes, *more], key=lambda each: (each.line, each.column))[:MOST_PROBLEMS]
        made = (problem(program.source, (m.line, m.column), m.message, m.rule, m.stub) for m in shown)
        return CheckReport(tuple(made))


def _prepare(source: str, world: World, words: set[str]) -> tuple[Program, PairCalls, list[Edit]]:
    """Reads a program: returns it with its calls of `parallel` and its edits for the checker."""
    program = Program(source, world, words)
    return program, PairCalls(program), _program_edits(program)


def _program_edits(program: Program) -> list[Edit]:
    """Returns the edits of the program for the checker; none for a long program."""
    if not program.is_small:
        return []
    return [*result_edits(program), *argument_edits(program), *constant_list_edits(program), *collection_edits(program)]


async def _first_pass(
    ask: _Ask, program: Program, edits: Iterable[Edit], earlier: str, calls: PairCalls
) -> tuple[Rewriting, list[TyFinding]]:
    """Checks the rewritten program; returns it, and the findings at their positions in the original.

    Raises what `ask` raises: ProcessFailed, ValueError, OSError.
    """
    imported = f"import {HELPERS}\n" + earlier
    asked = Rewriting(program.source, edits, imported + calls.text)
    found = (await ask({"main.py": asked.text})).get("main.py", [])
    of_pairs = (calls.relocated(each._replace(line=each.line - imported.count("\n"))) for each in found)
    own = (each for each in relocated(found, asked) if f"`{ARGUMENT_PREFIX}" not in each.message)
    return asked, [*(each for each in of_pairs if each is not None), *own]


async def _can_check_imports(ask: _Ask, world: World) -> bool:
    """Runs the checker on imports alone; returns whether that works.

    Then the program is too large, not the stubs.
    """
    names = (specifier.removeprefix("host:").replace("-", "_") for specifier in world.modules)
    with suppress(ProcessFailed, ValueError):
        await ask({"imports.py": "".join(f"import host.{name}\n" for name in names)})
        return True
    return False


async def _ask(ty: str, world: World, cpu_seconds: float, programs: Mapping[str, str]) -> dict[str, list[TyFinding]]:
    """Runs the checker over these files, in a temporary project; returns its findings by file name.

    Raises:
        ProcessFailed: it exceeded a limit, or crashed.
        ValueError: its output was malformed.
        OSError: the project can't be written.
    """
    from anyio import CancelScope, to_thread

    directory = await to_thread.run_sync(_write_project, _project_files(world, programs))
    try:
        output = await run_bounded(
            _command(ty, directory, programs),
            directory=directory / "program",
            environment={"HOME": str(directory), "XDG_CONFIG_HOME": str(directory), "NO_COLOR": "1"},
            cpu_seconds=cpu_seconds,
            memory_bytes=_MEMORY_BYTES,
            most_output=_MOST_OUTPUT,
        )
    finally:
        with CancelScope(shield=True):
            await to_thread.run_sync(_remove_project, directory)
    return await _in_thread(_parse_findings, output)


def _command(ty: str, directory: Path, programs: Iterable[str]) -> list[str]:
    """Returns the command that checks these programs in the project of a directory."""
    return [
        *(ty, "check", "--project", str(directory / "program"), "--python", str(directory / "environment")),
        *("--python-version", "3.14", "--python-platform", "linux"),
        *("--output-format", "gitlab", "--no-progress", "--color", "never", "--exit-zero", *programs),
    ]


def _project_files(world: World, programs: Mapping[str, str]) -> dict[str, str]:
    """Returns the files of the checker's project: stubs, programs, settings and an empty environment."""
    files = {f"program/{name}": text for name, text in checkable_stubs(world.stubs).items()}
    files[f"program/{ANY_MODULE}.pyi"] = _ANY_STUB
    files[f"program/{HELPERS}.pyi"] = HELPERS_STUB
    for specifier in world.untyped:
        folder = f"program/host/{specifier.removeprefix('host:').replace('-', '_')}"
        files[f"{folder}/__init__.pyi"] = files[f"{folder}/aio.pyi"] = _ANY_STUB
    return {
        **files,
        **{f"program/{name}": text for name, text in programs.items()},
        "program/ty.toml": _SETTINGS,
        "environment/pyvenv.cfg": "home = environment\nversion_info = 3.14.0\n",
        "environment/lib/python3.14/site-packages/nothing": "",
    }


def _write_project(files: Mapping[str, str]) -> Path:
    """Writes files into a new private directory and returns it. Removes it and raises OSError if that fails."""
    directory = Path(tempfile.mkdtemp(prefix="toolbridge-check-"))  # mode 0700
    try:
        for folder in sorted({os.path.dirname(name) for name in files}):
            os.makedirs(directory / folder, exist_ok=True)
        for name, text in files.items():
            (directory / name).write_text(text, encoding="utf-8", errors="replace", newline="")
    except BaseException:
        _remove_project(directory)
        raise
    return directory


def _remove_project(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)


def _parse_findings(output: bytes) -> dict[str, list[TyFinding]]:
    """Parses the checker's output; returns its findings by file name.

    Raises:
        ValueError: it is malformed.
    """
    found: dict[str, list[TyFinding]] = {}
    try:
        for each in json.loads(output):
            found.setdefault(str(each["location"]["path"]), []).append(_parse_finding(each))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"gave an answer that was not understood ({type(error).__name__})") from error
    return found


def _parse_finding(fields: Any) -> TyFinding:
    """Parses one finding. Raises KeyError, TypeError, AttributeError or ValueError if it is malformed."""
    rule = str(fields["check_name"])
    begin, end = (fields["location"]["positions"][name] for name in ("begin", "end"))
    message = str(fields["description"]).removeprefix(f"{rule}: ")
    spans = (int(position[name]) for position in (begin, end) for name in ("line", "column"))
    line, column, end_line, end_column = spans
    return TyFinding(line, column, rule, message, end_line, end_column)
