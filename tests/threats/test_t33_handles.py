"""T33, state bleed between runs: a handle is good in its own run or session, and nobody else can name it.

tests/calls/test_tool_call_handles.py has what handles are good for.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from runtime.pictures import PICTURE, HandleNumbers, gallery
from runtime.worlds import runtime_of
from toolbridge import RunResult, Runtime, ServerConfig
from toolbridge.demo.atlas import server as atlas_server

pytestmark = pytest.mark.anyio

TAKE = 'const image = require("host:mcp-gallery").picture(); image.size'


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def numbers(monkeypatch: pytest.MonkeyPatch) -> HandleNumbers:
    return HandleNumbers(monkeypatch)


@asynccontextmanager
async def world(directory: Path) -> AsyncGenerator[Runtime]:
    atlas = ServerConfig.in_process("atlas", atlas_server)
    async with runtime_of(directory, gallery(), atlas, pins="none") as runtime:
        yield runtime


def naming(number: int) -> str:
    """A program that names a handle by its number, as the guest's own code does on the wire."""
    return f"""
        const {{ add_picture }} = require("host:mcp-atlas");
        add_picture({{ name: "x", data: {{ "\\u0000handle": {number} }} }}).sha256
    """


def check_refused(result: RunResult) -> None:
    assert result.failure is not None
    assert result.failure.message.startswith("ToolArgumentsError")
    assert "handle" in result.failure.message
    assert result.servers == (), "the tool was called"


async def test_a_handle_is_gone_with_its_run(tmp_path: Path, numbers: HandleNumbers) -> None:
    async with world(tmp_path) as runtime:
        assert (await runtime.run(TAKE)).value == len(PICTURE)
        check_refused(await runtime.run(naming(numbers.given[0]), check=False))


async def test_a_handle_that_is_alive_can_be_named_in_its_own_session_only(
    tmp_path: Path, numbers: HandleNumbers
) -> None:
    async with (
        world(tmp_path) as runtime,
        runtime.session(check=False) as holder,
        runtime.session(check=False) as thief,
    ):
        assert (await holder.run(TAKE)).value == len(PICTURE)
        program = naming(numbers.given[0])
        check_refused(await thief.run(program))
        check_refused(await runtime.run(program, check=False))
        own = await holder.run(program)
    # The number was right: it is the session that decides.
    assert own.value == hashlib.sha256(PICTURE).hexdigest()


async def test_a_handle_is_gone_with_its_session(tmp_path: Path, numbers: HandleNumbers) -> None:
    async with world(tmp_path) as runtime:
        async with runtime.session() as session:
            await session.run(TAKE)
        async with runtime.session(check=False) as following:
            check_refused(await following.run(naming(numbers.given[0])))


async def test_numbers_of_handles_are_not_to_be_guessed(tmp_path: Path, numbers: HandleNumbers) -> None:
    async with world(tmp_path) as runtime:
        for _ in range(20):
            await runtime.run(TAKE)
    assert len(set(numbers.given)) == 20
    differences = {after - before for before, after in zip(numbers.given, numbers.given[1:], strict=False)}
    assert len(differences) == 19
    assert max(numbers.given) > 2**48
