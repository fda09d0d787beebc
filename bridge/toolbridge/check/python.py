"""Checking Python: `ty`, a type checker, as a process of its own that gets text in a private directory.

It neither imports nor runs anything: it parses. It is native code all the same, so it gets no environment, no
configuration of anybody's, and limits on memory and time.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from toolbridge.check.bounded_process import ProcessFailed, run_bounded
from toolbridge.check.checkable_stubs import checkable_stubs
from toolbridge.check.python_alternatives import Alternatives
from toolbridge.check.python_mistakes import find_mistakes
from toolbridge.check.python_pairs import PairCalls
from toolbridge.check.python_program import Finding, Program
from toolbridge.check.report import MOST_PROBLEMS, CheckReport, problem
from toolbridge.check.world import ANYTHING, SessionNames, World

NO_TY = "Python programs are not checked before they run: the package `ty` is not installed."
_SECONDS = 10.0
_MEMORY_BYTES = 2 * 1024**3
_MOST_OUTPUT = 4 * 1024**2
_ANYTHING = "from typing import Any\ndef __getattr__(name: str) -> Any: ...\n"


def find_ty() -> str | None:
    """Where the checker is: in this installation, never elsewhere on the machine."""
    try:
        from ty import find_ty_bin

        return find_ty_bin()
    except (ImportError, FileNotFoundError):
        return None


async def check_python(source: str, world: World, session: SessionNames | None) -> CheckReport:
    """Checks a program. A checker that fails is a warning, and nothing else."""
    ty = find_ty()
    if ty is None:
        return CheckReport(warning=NO_TY, is_checked=False, has_checker=False)
    earlier = "".join(f"{text}\n" for text in session.imports) if session is not None else ""
    program = Program(source, world, session.words if session is not None else set())
    calls = PairCalls(program)
    before = earlier + calls.text
    try:
        found = await _ask(ty, world, {"main.py": before + source})
    except (ProcessFailed, ValueError) as error:
        warning = f"The program was not checked before it ran: the checker {error}."
        return CheckReport(warning=warning, is_checked=False)
    findings = list(_placed(found.get("main.py", []), earlier.count("\n"), calls))
    mistakes = find_mistakes(findings, program)
    alternatives = Alternatives(findings, mistakes, program, before)
    answers: dict[str, list[Finding]] = {}
    if alternatives.files:
        with suppress(ProcessFailed, ValueError):  # without an answer, nothing is sure
            answers = await _ask(ty, world, alternatives.files)
    if mistakes:
        mistakes = find_mistakes(alternatives.sure(answers), program)
    shown = mistakes[:MOST_PROBLEMS]
    return CheckReport(tuple(problem(source, (m.line, m.column), m.message, m.rule, m.stub) for m in shown))


async def _ask(ty: str, world: World, programs: Mapping[str, str]) -> dict[str, list[Finding]]:
    """What the checker says about each of these files.

    Raises:
        ProcessFailed: it took too long, or crashed.
        ValueError: what it wrote was not understood.
    """
    from anyio import to_thread

    directory = await to_thread.run_sync(_write, _files(world, programs))
    try:
        output = await run_bounded(
            _command(ty, directory, programs),
            directory=directory / "program",
            environment={"HOME": str(directory), "XDG_CONFIG_HOME": str(directory), "NO_COLOR": "1"},
            seconds=_SECONDS,
            memory_bytes=_MEMORY_BYTES,
            most_output=_MOST_OUTPUT,
        )
    finally:
        await to_thread.run_sync(_remove, directory)
    return _findings(output)


def _command(ty: str, directory: Path, programs: Iterable[str]) -> list[str]:
    return [
        *(ty, "check", "--project", str(directory / "program"), "--python", str(directory / "environment")),
        *("--python-version", "3.14", "--python-platform", "linux"),
        *("--output-format", "gitlab", "--no-progress", "--color", "never", "--exit-zero", *programs),
    ]


def _files(world: World, programs: Mapping[str, str]) -> dict[str, str]:
    files = {f"program/{name}": text for name, text in checkable_stubs(world.stubs).items()}
    files[f"program/{ANYTHING}.pyi"] = _ANYTHING
    for specifier in world.untyped:
        folder = f"program/host/{specifier.removeprefix('host:').replace('-', '_')}"
        files[f"{folder}/__init__.pyi"] = files[f"{folder}/aio.pyi"] = _ANYTHING
    libraries = "Lib/site-packages" if os.name == "nt" else "lib/python3.14/site-packages"
    return {
        **files,
        **{f"program/{name}": text for name, text in programs.items()},
        "program/ty.toml": "",
        "environment/pyvenv.cfg": "home = environment\nversion_info = 3.14.0\n",
        f"environment/{libraries}/nothing": "",
    }


def _write(files: Mapping[str, str]) -> Path:
    directory = Path(tempfile.mkdtemp(prefix="toolbridge-check-"))  # nobody else's to read
    try:
        for folder in sorted({os.path.dirname(name) for name in files}):
            os.makedirs(directory / folder, exist_ok=True)
        for name, text in files.items():
            (directory / name).write_text(text, encoding="utf-8", errors="replace", newline="")
    except BaseException:
        _remove(directory)
        raise
    return directory


def _remove(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)


def _findings(output: bytes) -> dict[str, list[Finding]]:
    """What the checker found, by the file's name.

    Raises:
        ValueError: that is not what it usually writes.
    """
    found: dict[str, list[Finding]] = {}
    try:
        for each in json.loads(output):
            found.setdefault(str(each["location"]["path"]), []).append(_finding(each))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"gave an answer that was not understood ({type(error).__name__})") from error
    return found


def _placed(findings: Iterable[Finding], imported: int, calls: PairCalls) -> Iterator[Finding]:
    """The findings where they are in the author's program; what is about the lines before it is left out."""
    before = imported + calls.text.count("\n")
    for each in findings:
        if each.line > before:
            yield each._replace(line=each.line - before, end_line=each.end_line - before)
        elif each.line > imported:
            placed = calls.placed(each._replace(line=each.line - imported))
            if placed is not None:
                yield placed


def _finding(fields: Any) -> Finding:
    rule = str(fields["check_name"])
    begin, end = (fields["location"]["positions"][name] for name in ("begin", "end"))
    message = str(fields["description"]).removeprefix(f"{rule}: ")
    places = (int(position[name]) for position in (begin, end) for name in ("line", "column"))
    line, column, end_line, end_column = places
    return Finding(line, column, rule, message, end_line, end_column)
