"""T15, schema bombs: bounded time, memory and text for any schema; nothing fetched; the neighbours unharmed."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from codegen import corpus
from threats.schema_bombs import BOMBS, ELSEWHERE
from toolbridge_codegen.catalog import ToolDefinition
from toolbridge_codegen.model import Diagnostic
from toolbridge_codegen.stubs import generate

MOST_SECONDS = 5.0
"""Of plain work, see `work_within`: a process that took more is dead."""
MOST_MEGABYTES = 512
MOST_CHARACTERS = 3 * 256 * 1024
"""Of one tool's stub: a bound of 256 KB, which input, output and comments may each round up."""
_PROCESSES = 4
_PATIENCE = 250

# In other processes: a hang or a crash costs one bomb, and memory can be measured.
# An audit hook sees every file and socket that is opened.
_PROGRAM = """
import json, sys
sys.path[:0] = [sys.argv[1]]
from codegen import corpus
from codegen.peak_memory import peak_kilobytes
from growth import work_within
from threats.schema_bombs import BOMBS
from toolbridge_codegen.catalog import ServerListing, build_catalog
from toolbridge_codegen.stubs import generate
healthy = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
for language in ("typescript", "python"):
    for detail in ("full", "compact"):  # nothing is left to be imported
        generate(corpus.catalog_of("warm", [corpus.tool_of("up", healthy)]), language=language, detail=detail)
touched = []
watching = [False]
def watch(event, arguments):
    if watching[0] and event.startswith(("socket.", "urllib.", "open", "subprocess.", "os.system", "http.", "ftplib.")):
        touched.append(f"{event} {arguments!r}"[:200])
sys.addaudithook(watch)
for name in sys.argv[3:]:
    schema = BOMBS[name]()
    report = {"name": name, "characters": {}, "healthy": {}, "diagnostics": {}}
    touched.clear()
    watching[0] = True
    for language in ("typescript", "python"):
        for detail in ("full", "compact"):
            tools = (corpus.tool_of("bomb", schema), corpus.tool_of("healthy", healthy))
            key = f"{language} {detail}"
            with work_within(float(sys.argv[2])):
                stubs = generate(build_catalog([ServerListing("s", tools)]), language=language, detail=detail)
            report["characters"][key] = sum(len(text) for name, text in stubs.files.items() if "mcp" in name)
            report["healthy"][key] = [
                line.strip() for text in stubs.files.values() for line in text.splitlines() if "city" in line
            ]
            report["diagnostics"][key] = [
                [item.server, item.tool, item.path, item.message] for item in stubs.diagnostics
            ]
    watching[0] = False
    report["megabytes"] = peak_kilobytes() / 1024
    report["touched"] = touched
    print(json.dumps(report), flush=True)
"""


@dataclass(frozen=True, slots=True)
class Report:
    """What one bomb did, by language and detail."""

    characters: dict[str, int]
    healthy: dict[str, list[str]]
    diagnostics: dict[str, list[list[str]]]
    megabytes: float
    touched: list[str]


@cache
def reports() -> dict[str, Report]:
    """Of every bomb. A process takes several, so that its start is paid once; what it doesn't survive is left out."""
    names = list(BOMBS)
    with ThreadPoolExecutor(2) as threads:
        found = threads.map(explode, [names[start::_PROCESSES] for start in range(_PROCESSES)])
        return {name: report for group in found for name, report in group.items()}


def explode(names: list[str]) -> dict[str, Report]:
    """The bombs one after another; after one that hangs or kills the process, the rest have a new one."""
    found: dict[str, Report] = {}
    left = names
    while left:
        command = [sys.executable, "-c", _PROGRAM, str(corpus.ROOT / "tests"), str(MOST_SECONDS), *left]
        with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(command, stdout=output, check=False, timeout=_PATIENCE)
            output.seek(0)
            lines = [json.loads(line) for line in output if line.endswith("\n")]
        for fields in lines:
            name = fields.pop("name")
            found[name] = Report(**fields)
        left = left[len(lines) + 1 :]
    return found


def report_of(name: str) -> Report:
    assert name in reports(), "it hung, or the process died of it"
    return reports()[name]


def healthy_lines() -> dict[str, list[str]]:
    """What the neighbour looks like beside a harmless tool."""
    return report_of("array_of_minimum_1000000000").healthy


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_bounded_and_harms_nobody(bomb: str) -> None:
    report = report_of(bomb)
    assert report.megabytes <= MOST_MEGABYTES
    assert max(report.characters.values()) <= MOST_CHARACTERS, report.characters
    assert report.touched == []
    assert report.healthy == healthy_lines()
    assert all(report.healthy.values())


MUST_DEGRADE = [
    "deep_objects_1000",
    "deep_arrays_100000",
    "doubling_mixed_all_of",
    "combinations_of_10_times_10",
    "multiplied_12",
    "multiplied_20",
    "multiplied_40",
    "properties_10000",
    "enum_100000",
    "any_of_10000_objects",
    "tuple_of_100000",
    "reference_loop_10000",
    "references_100000_remote",
    "references_to_elsewhere",
]


@pytest.mark.parametrize("bomb", MUST_DEGRADE)
def test_what_was_cut_off_is_said_with_its_place(bomb: str) -> None:
    for found in report_of(bomb).diagnostics.values():
        assert found, bomb
        for server, tool, path, message in found:
            assert (server, tool) == ("s", "bomb")
            assert path.startswith(("/inputSchema", "/outputSchema"))
            assert message
            assert len(path) < 5000


def test_a_shared_definition_is_written_once_however_often_it_is_used() -> None:
    """Two to the power of 64 when written out, a few kilobytes when named."""
    assert max(report_of("doubling_objects").characters.values()) < 50_000


def test_every_reference_to_elsewhere_is_refused_by_name() -> None:
    for found in report_of("references_to_elsewhere").diagnostics.values():
        paths = {path.removesuffix("/$ref") for _, _, path, _ in found}
        assert {f"/inputSchema/properties/p{number}" for number in range(len(ELSEWHERE))} <= paths


def objects(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        inner = {"type": "object", "properties": {"a": inner}}
    return inner


def properties(count: int) -> dict[str, Any]:
    return {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(count)}}


def union(count: int) -> dict[str, Any]:
    """Of objects that exclude each other: what several of them could be at once has a bound of its own."""
    return {
        "anyOf": [
            {"type": "object", "properties": {"kind": {"const": f"k{number}"}}, "required": ["kind"]}
            for number in range(count)
        ]
    }


@pytest.mark.parametrize(
    ("within", "beyond"),
    [
        (objects(30), objects(34)),
        (properties(1000), properties(1001)),
        (union(100), union(101)),
        ({"enum": [str(number) for number in range(200)]}, {"enum": [str(number) for number in range(201)]}),
        ({"const": "v" * 500}, {"const": "v" * 501}),
        ({"type": "object", "properties": {"n" * 500: {}}}, {"type": "object", "properties": {"n" * 501: {}}}),
    ],
    ids=["depth", "properties", "union", "constants", "constant", "name"],
)
def test_a_bound_cuts_off_what_is_beyond_it_and_nothing_else(within: dict[str, Any], beyond: dict[str, Any]) -> None:
    def diagnostics(schema: dict[str, Any]) -> tuple[Diagnostic, ...]:
        whole = {"type": "object", "properties": {"bomb": schema}}
        return generate(corpus.catalog_of("s", [corpus.tool_of("bomb", whole)]), language="typescript").diagnostics

    assert diagnostics(within) == ()
    assert diagnostics(beyond) != ()
    assert all(
        item.path.startswith(("/inputSchema/properties/bomb", "/outputSchema/properties/bomb"))
        for item in diagnostics(beyond)
    )


def test_the_parts_of_a_schema_are_counted() -> None:
    """Even where they all come to the same type, so that no other bound is met."""
    for count, is_beyond in ((5_000, False), (50_000, True)):
        whole = {
            "type": "object",
            "properties": {f"p{n}": {"anyOf": [{"type": "string"} for _ in range(100)]} for n in range(count // 100)},
        }
        tool = ToolDefinition("bomb", whole)
        found = generate(corpus.catalog_of("s", [tool]), language="typescript").diagnostics
        assert bool(found) is is_beyond, found
