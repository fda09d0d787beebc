"""Checking a program before it runs, and removing its types: beside tsc on Node, and mypy without its cache."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import anyio

from bench.case import Bench
from bench.cases.check_programs import python_program, python_program_of, typescript_program, typescript_program_of
from bench.measure import Batch, batch, compare, take_turns
from bench.peer_packages import Missing, node_packages
from bench.report import Finding, Row, Skipped
from bench.rich_tools import catalog_of, rich_servers
from toolbridge import Sandbox
from toolbridge.check.checker import CheckReport, World
from toolbridge.check.javascript import check_javascript
from toolbridge.check.python.ty import check_python
from toolbridge.sandbox.typescript import request
from toolbridge_codegen.catalog import Catalog
from toolbridge_codegen.stubs import Language, generate

_SERVERS = Path(__file__).parents[2] / "fixtures" / "programs" / "servers.json"
_TSC = "tsc on Node"
_MYPY = "mypy without its cache"
_TSC_OPTIONS = (
    *("--noEmit", "--strict", "--target", "esnext", "--module", "esnext", "--moduleResolution", "bundler"),
    *("--lib", "esnext", "--skipLibCheck"),
)


def measure(bench: Bench) -> Iterable[Finding]:
    """60 lines against the stubs of three servers, and of one with 200 tools: every check from nothing."""
    three = {name: tools for name, tools in json.loads(_SERVERS.read_text("utf-8")).items() if name != "mail"}
    for tools in three.values():
        for tool in tools:
            tool.setdefault("outputSchema", None)
    many = rich_servers(1, 200)
    names = [tool["name"] for tool in many["server-0"]]
    small, large = catalog_of(three), catalog_of(many)
    with Sandbox() as sandbox, tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        yield from _typescript(bench, sandbox, place / "ts 3", _Task("3 servers", small, typescript_program()))
        many_tools = _Task("200 tools", large, typescript_program_of(names))
        yield from _typescript(bench, sandbox, place / "ts 200", many_tools)
        yield from _python(bench, place / "py 3", _Task("3 servers", small, python_program()))
        yield from _python(bench, place / "py 200", _Task("200 tools", large, python_program_of(names)))


class _Task(NamedTuple):
    what: str
    catalog: Catalog
    program: str


def _typescript(bench: Bench, sandbox: Sandbox, directory: Path, task: _Task) -> Iterable[Finding]:
    what, catalog, program = task
    where = _world(catalog, "typescript")

    async def check() -> CheckReport:
        return (await check_javascript(program, "typescript", where, None, sandbox.ask_compiler)).report

    async def erase() -> object:
        return await sandbox.ask_compiler(request(program, "typescript"))

    _must_pass(anyio.run(check))
    packages = node_packages("typescript")
    if isinstance(packages, Missing):
        yield Skipped(f"TypeScript checked against {what}", packages.reason)
        return
    folder = _written(directory, where.stubs, "main.ts", program)
    command = ["node", str(packages / "node_modules/typescript/bin/tsc"), *_TSC_OPTIONS, *_names(folder)]
    contenders: dict[str, Batch] = {
        "check": batch(lambda: anyio.run(check)),
        "erase": batch(lambda: anyio.run(erase)),
        _TSC: batch(lambda: _run(command, folder)),
    }
    samples = take_turns(contenders, bench.rounds(15))
    yield Row(f"TypeScript, 60 lines, {what}: check", _TSC, compare(samples["check"], samples[_TSC]), 1 / 3)
    yield Row(f"TypeScript, 60 lines, {what}: types removed", _TSC, compare(samples["erase"], samples[_TSC]), 1 / 10)


def _python(bench: Bench, directory: Path, task: _Task) -> Iterable[Finding]:
    what, catalog, program = task
    where = _world(catalog, "python")

    async def check() -> CheckReport:
        return await check_python(program, where, None)

    _must_pass(anyio.run(check))
    if importlib.util.find_spec("mypy") is None:
        yield Skipped(f"Python checked against {what}", "mypy is not installed")
        return
    folder = _written(directory, where.stubs, "main.py", program)
    command = [sys.executable, "-m", "mypy", "--cache-dir", "/dev/null", "main.py"]
    contenders: dict[str, Batch] = {
        "check": batch(lambda: anyio.run(check)),
        _MYPY: batch(lambda: _run(command, folder)),
    }
    samples = take_turns(contenders, bench.rounds(10))
    yield Row(f"Python, 60 lines, {what}: check", _MYPY, compare(samples["check"], samples[_MYPY]), 1 / 4)


def _world(catalog: Catalog, language: Language) -> World:
    return World(generate(catalog, language=language).files, tuple(module.specifier for module in catalog.modules))


def _must_pass(report: CheckReport) -> None:
    if not report.ok or not report.is_checked:
        raise RuntimeError(f"{report.failure or report.warning}")


def _written(folder: Path, stubs: Mapping[str, str], name: str, program: str) -> Path:
    for file, text in {**stubs, name: program}.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


def _names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.ts"))


def _run(command: list[str], folder: Path) -> None:
    """Whatever it finds: what counts is how long it takes."""
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
