"""The type checkers that check stubs: tsc, pyright and mypy, in strict mode, once for many files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import registry_packages

_HERE = Path(__file__).resolve().parent
_SECONDS = 300
_PYRIGHT = {
    "typeCheckingMode": "strict",
    "pythonVersion": "3.11",
    "include": ["."],
    # Guest modules have no source on the host: the stub is all there is.
    "reportMissingModuleSource": "none",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """What a checker objects to, and where: the file's path within the directory, the line from 1."""

    file: str
    line: int
    message: str
    rule: str = ""
    """What pyright calls it."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message[:500]}"


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What all three say of one directory's files."""

    tsc: tuple[Problem, ...]
    pyright: tuple[Problem, ...]
    mypy: tuple[Problem, ...]

    def lines(self, checker: str, file: str) -> dict[int, str]:
        """The lines of a program that a checker objects to, with the first message of each.

        That it knows little of a variable which the stub calls `Any` is no objection.
        """
        found: dict[int, str] = {}
        for problem in getattr(self, checker):
            if problem.file == file and not problem.rule.startswith("reportUnknown"):
                found.setdefault(problem.line, problem.message)
        return found


def check(directory: Path, files: Mapping[str, str]) -> Verdicts:
    """Writes the files and has all three checkers judge them, two at a time."""
    write_files(directory, files)
    with ThreadPoolExecutor(2) as threads:
        runs = [threads.submit(run, directory) for run in (run_pyright, run_tsc, run_mypy)]
        pyright, tsc, mypy = (run.result() for run in runs)
    return Verdicts(tsc=tsc, pyright=pyright, mypy=mypy)


def write_files(directory: Path, files: Mapping[str, str]) -> None:
    """Stubs and programs, each where its name says."""
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8", newline="\n")


def run_tsc(directory: Path) -> tuple[Problem, ...]:
    """`tsc --strict --noEmit --lib es2022`, over every TypeScript file of the directory."""
    files = sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*.ts"))
    found = run_node("typescript_check.mjs", directory, files)
    return tuple(Problem(item["file"], item["line"], item["message"]) for item in found)


def run_node(script: str, directory: Path, files: list[str]) -> Any:
    """One of the scripts beside this file: it is given the names of files, and answers with JSON."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    packages = registry_packages.node_modules()
    # A program of thousands of declarations needs more than Node's usual heap on small machines.
    command = [node, "--max-old-space-size=2048", str(_HERE / script), str(packages)]
    done = _run(command, directory, json.dumps(files))
    assert done.returncode == 0, f"{script} broke: {done.stderr[-3000:]}"
    return json.loads(done.stdout)


def run_pyright(directory: Path) -> tuple[Problem, ...]:
    """Pyright in strict mode over the directory; warnings count."""
    (directory / "pyrightconfig.json").write_text(json.dumps(_PYRIGHT), "utf-8")
    done = _run([sys.executable, "-m", "pyright", "--outputjson", "--project", "."], directory)
    assert done.returncode in {0, 1}, f"pyright broke: {done.stdout[-3000:]} {done.stderr[-3000:]}"
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] > 0
    gave_up = [item["message"] for item in report["generalDiagnostics"] if "range" not in item]
    assert not gave_up, gave_up
    return tuple(
        Problem(
            Path(item["file"]).relative_to(directory.resolve()).as_posix(),
            item["range"]["start"]["line"] + 1,
            item["message"],
            item.get("rule", ""),
        )
        for item in report["generalDiagnostics"]
    )


def run_mypy(directory: Path) -> tuple[Problem, ...]:
    """`mypy --strict` over the directory."""
    command = [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.11", "--output", "json"]
    command += ["--explicit-package-bases", "--cache-dir", os.devnull, "."]
    done = _run(command, directory)
    assert done.returncode in {0, 1}, f"mypy broke: {done.stdout[-3000:]} {done.stderr[-3000:]}"
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert found or done.returncode == 0, f"mypy said nothing: {done.stdout[-3000:]} {done.stderr[-3000:]}"
    return tuple(
        Problem(Path(item["file"]).as_posix(), item["line"], item["message"])
        for item in found
        if item["severity"] == "error"
    )


def _run(command: list[str], directory: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=directory,
        input=text,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=_SECONDS,
        check=False,
        env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1", "PYTHONWARNINGS": "default"},
    )
