"""An operator's schema for results: typed, checked before the run, and compared with what comes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runtime.worlds import check_failure, value_of
from toolbridge import Config, Runtime, create_server, open_runtime, tool

pytestmark = pytest.mark.anyio

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["name", "people"],
}
NO_INPUT: dict[str, Any] = {"type": "object", "properties": {}}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def opened(directory: Path, result: Any, schema: Any = SCHEMA, **options: Any) -> Runtime:
    """A server whose tool gives this, and doesn't say what it gives."""

    async def handle(_arguments: dict[str, Any]) -> Any:
        return result

    city = tool("city", "A city.", NO_INPUT, handle)
    server = create_server("atlas", [city], output_schemas={"city": schema})
    return open_runtime(Config.of(server), directory=directory, **options)


OSLO = {"name": "Oslo", "people": 700_000}
PROGRAM = 'import { city } from "host:mcp-atlas"; city().name'


async def test_it_is_the_type_of_the_tools_results(tmp_path: Path) -> None:
    async with opened(tmp_path, OSLO) as runtime:
        await runtime.start_all()
        (declared,) = [name for name in runtime.stubs("typescript") if "atlas" in name]
        text = runtime.stubs("typescript")[declared]
        assert "interface CityOutput { name: string; people: number }" in text
        assert "export function city(input?: { [key: string]: never }): CityOutput;" in text


async def test_a_property_that_results_do_not_have_is_found_before_the_run(tmp_path: Path) -> None:
    async with opened(tmp_path, OSLO) as runtime:
        result = await runtime.run(PROGRAM.replace("name", "nam"))
    check_failure(result, "type", "nam")
    assert result.calls == ()


@pytest.mark.parametrize("strict", [False, True])
async def test_a_result_that_fits_has_no_note(tmp_path: Path, strict: bool) -> None:
    async with opened(tmp_path, OSLO, strict_results=strict) as runtime:
        result = await runtime.run(PROGRAM)
    assert value_of(result) == "Oslo"
    assert [(call.outcome, call.notes) for call in result.calls] == [("ok", ())]


async def test_a_result_that_does_not_fit_is_noted(tmp_path: Path) -> None:
    async with opened(tmp_path, {"name": "Oslo", "people": "many"}) as runtime:
        result = await runtime.run(PROGRAM)
    assert value_of(result) == "Oslo"
    ((outcome, (note,)),) = [(call.outcome, call.notes) for call in result.calls]
    assert outcome == "ok"
    assert note.startswith("The result is not as its schema says: ")
    assert "people" in note


async def test_a_result_that_does_not_fit_fails_with_strict_results(tmp_path: Path) -> None:
    async with opened(tmp_path, {"name": "Oslo"}, strict_results=True) as runtime:
        result = await runtime.run(PROGRAM)
    check_failure(result, "raised", "The result of city is not as declared", "people")
    assert [call.outcome for call in result.calls] == ["failed"]


async def test_it_is_of_what_a_program_gets_so_nothing_is_taken_for_a_wrapper(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]}
    async with opened(tmp_path, {"result": 5}, schema, strict_results=True) as runtime:
        result = await runtime.run('import { city } from "host:mcp-atlas"; city().result')
    assert value_of(result) == 5


async def test_results_are_compared_with_the_schema_of_a_configuration_that_was_reloaded(tmp_path: Path) -> None:
    async def handle(_arguments: dict[str, Any]) -> Any:
        return OSLO

    city = tool("city", "A city.", NO_INPUT, handle)
    before, after = (
        Config.of(create_server("atlas", [city], output_schemas={"city": schema}))
        for schema in ({"type": "object"}, {"type": "array"})
    )
    async with open_runtime(before, directory=tmp_path) as runtime:
        program = 'import { city } from "host:mcp-atlas"; city() && 1'
        assert [call.notes for call in (await runtime.run(program)).calls] == [()]
        await runtime.reload(after)
        ((note,),) = [call.notes for call in (await runtime.run(program)).calls]
    assert "array" in note
