"""Calls of the host's own tools that need not be awaited: as cheap as can be, and in nothing else different."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest

from runtime.both_ways import never_ready, told, told_both_ways
from runtime.own_handlers import (
    ERRORS,
    EVERYTHING,
    HINTS,
    KINDS,
    VALUES,
    of_values,
    quickly,
    returning,
)
from runtime.programs import Program, on_each_backend_and_in_each_language
from runtime.worlds import value_of
from toolbridge import (
    Config,
    Limits,
    create_server,
    open_runtime,
    tool,
)
from toolbridge.runtime import Language
from toolbridge.sandbox.scheduler import TaskScheduler
from toolbridge.servers.manager import ServerManager

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


SMALL = Limits(result_bytes=1_000)


@on_each_backend_and_in_each_language
@pytest.mark.parametrize("kind", KINDS)
async def test_whatever_a_handler_returns_or_raises_is_told_the_same_both_ways(
    kind: Callable[..., Any], tmp_path: Path, language: Language, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config.of(of_values(kind, Any))
    found = await told_both_ways(
        monkeypatch, tmp_path, config, EVERYTHING.of(language), language=language, limits=SMALL
    )
    assert len(found.value) == len(found.records) == len(VALUES) + len(ERRORS)
    assert {record[2] for record in found.records} == {"ok", "failed"}
    assert any("NaN" in note for record in found.records for note in record[-1])


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("hint", HINTS.values(), ids=HINTS)
async def test_results_are_held_against_what_is_declared_the_same_both_ways(
    hint: Any, strict: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config.of(of_values(quickly, hint))
    options: dict[str, Any] = {"limits": SMALL, "observed": False, "strict_results": strict}
    found = await told_both_ways(monkeypatch, tmp_path, config, EVERYTHING.javascript, **options)
    kinds_of_note = "is not as declared" if strict else "is not as its schema says"
    told_of = [*(str(each) for each in found.value), *(note for record in found.records for note in record[-1])]
    assert any(kinds_of_note in text for text in told_of) == (hint not in (Any,))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_errors_that_are_returned_are_the_same_both_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config.of(of_values(quickly, Any))
    found = await told_both_ways(monkeypatch, tmp_path, config, EVERYTHING.javascript, limits=SMALL, errors="return")
    assert any(str(each[-1]).startswith('{"error":"') for each in found.value)


# ---- values and arguments by chance


def by_chance(random: Random, depth: int = 0) -> Any:
    scalars = [None, True, 0, -7, 2**53 + random.randrange(9), 0.1, 1e21, "", 'a\\"\n', "\u2029", "\ud83d", "long " * 9]
    match random.randrange(5) if depth < 4 else 0:
        case 3:
            return [by_chance(random, depth + 1) for _ in range(random.randrange(5))]
        case 4:
            return {random.choice('abcé"') * random.randrange(3): by_chance(random, depth + 1) for _ in range(4)}
        case _:
            return random.choice([*scalars, math.inf] if random.random() < 0.1 else scalars)


@on_each_backend_and_in_each_language
async def test_values_by_chance_are_told_the_same_both_ways(
    tmp_path: Path, language: Language, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(10)
    values = [by_chance(random) for _ in range(300)]

    @tool(quick=True)
    def value(index: int) -> Any:
        return values[index]

    program = Program(
        """
const { value } = require("host:mcp-own");
JSON.stringify(Array.from({ length: 300 }, (_, index) => value({ index })))
        """,
        "import json\nfrom host.mcp_own import value\njson.dumps([value(index=index) for index in range(300)])",
    )
    options: dict[str, Any] = {"language": language, "observed": False}
    server = create_server("own", [value])
    found = await told_both_ways(monkeypatch, tmp_path, Config.of(server), program.of(language), **options)
    exact = [each for each in values if not _is_changed(each)]
    got = json.loads(found.value)
    assert len(exact) > 100
    assert [each for each, given in zip(got, values, strict=True) if not _is_changed(given)] == exact


def _is_changed(value: Any) -> bool:
    """Whether guest code can't get a value as it is: some numbers, and half of a character."""
    text = json.dumps(value)
    return "Infinity" in text or "90071992547" in text or "\\ud83d" in text


@tool(quick=True)
def take(text: str, count: int, factor: float = 1.0, flag: bool | None = None) -> list[Any]:
    return [text, count, factor, flag]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_arguments_by_chance_are_judged_the_same_both_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(11)
    pool: list[Any] = ["x", "", 3, 3.0, 2.5, True, None, [], {}, "12345678901234567890", -0.0]
    names = ["text", "count", "factor", "flag", "other"]
    chosen = [{name: random.choice(pool) for name in names if random.random() < 0.6} for _ in range(300)]
    fitting = [{"text": "x", "count": number} for number in range(20)]
    repaired = [{"text": "x", "count": 1, "factor": None}, {"text": "x", "count": "12345678901234567890"}]
    given: list[Any] = [*([each] for each in (*chosen, *fitting, *repaired)), [], [3], [None], [{}, {}], [[]]]
    program = f"""
const {{ take }} = require("host:mcp-own");
{json.dumps(given)}.map((given) => {{
  try {{ return take(...given); }} catch (error) {{ return [error.kind, error.message]; }}
}})
    """
    config = Config.of(create_server("own", [take]))
    found = await told_both_ways(monkeypatch, tmp_path, config, program)
    outcomes = {record[2] for record in found.records}
    assert outcomes == {"ok", "invalid_arguments"}
    assert found.value[300] == ["x", 0, 1, None]
    assert len([record for record in found.records if record[-1]]) >= len(repaired)


# ---- that it is taken

CALLS = 20
ACT_OFTEN = f'const own = require("host:mcp-own"); for (let i = 0; i < {CALLS}; i++) own.act()'


@pytest.mark.parametrize("kind", KINDS)
async def test_a_tool_that_is_connected_is_called_without_the_manager(
    kind: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("called through the manager")

    monkeypatch.setattr(ServerManager, "call", refuse)
    config = Config.of(create_server("own", [kind("act", returning({"a": 1}), dict[str, Any])]))
    found = await told(tmp_path, config, ACT_OFTEN)
    assert [record[2] for record in found.records] == ["ok"] * CALLS


async def test_a_quick_tool_is_answered_without_anything_being_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    performed: list[str] = []
    perform = TaskScheduler.perform

    async def counted(self: TaskScheduler, call: Any, begun: Any = None) -> Any:
        performed.append(call.request.function)
        return await perform(self, call, begun)

    monkeypatch.setattr(TaskScheduler, "perform", counted)
    config = Config.of(create_server("own", [quickly("act", returning({"a": 1}), dict[str, Any])]))
    found = await told(tmp_path, config, ACT_OFTEN, observed=False)
    assert len(found.records) == CALLS
    assert performed == ["import"]
    with never_ready(monkeypatch):
        await told(tmp_path, config, ACT_OFTEN, observed=False)
    assert performed.count("act") == CALLS


async def test_others_have_their_turn_while_a_program_only_calls_quick_tools(tmp_path: Path) -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.sleep(0.001)

    server = create_server("own", [quickly("act", returning(1), int)])
    async with open_runtime(Config.of(server), directory=tmp_path) as runtime, anyio.create_task_group() as tasks:
        tasks.start_soon(count)
        program = 'const own = require("host:mcp-own"); for (let i = 0; i < 5000; i++) own.act()'
        value_of(await runtime.run(program, limits=Limits(host_calls=10_000)))
        tasks.cancel_scope.cancel()
    assert turns > 3
