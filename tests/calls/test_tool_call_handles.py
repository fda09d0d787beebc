"""Handles, the whole way: a tool's picture stays on the host while a program looks at parts of it and passes it on."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from runtime import handle_programs as programs
from runtime.pictures import LINES, PICTURE, gallery
from runtime.programs import in_each_language
from runtime.worlds import runtime_of, value_of
from toolbridge import Limits, ServerConfig
from toolbridge.calls import tool_call as handles
from toolbridge.calls.results import size_text
from toolbridge.demo.atlas import server as atlas_server
from toolbridge.runtime import Language

pytestmark = pytest.mark.anyio

SHA = hashlib.sha256(PICTURE).hexdigest()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def world(directory: Path, **options: Any) -> Any:
    """The gallery, and an album that takes pictures."""
    atlas = ServerConfig.in_process("atlas", atlas_server)
    return runtime_of(directory, gallery(), atlas, pins="none", **options)


@in_each_language
async def test_a_picture_is_looked_at_and_passed_on_with_the_same_bytes(tmp_path: Path, language: Language) -> None:
    async with world(tmp_path) as runtime:
        result = await runtime.run(programs.LOOK_AND_PASS_ON.of(language), language=language)
    value = value_of(result)
    assert value["is"] == [True, "image/png", len(PICTURE)]
    assert (bytes(value["head"]), bytes(value["tail"]), value["all"]) == (PICTURE[:8], PICTURE[-2:], len(PICTURE))
    assert value["album"] == {"name": "one", "size": len(PICTURE), "sha256": SHA}
    assert value["half"]["sha256"] == hashlib.sha256(PICTURE[:17_000]).hexdigest()
    assert value["image"] == "<image/png 34 KB>"
    assert json.loads(value["text"]) == {"image": "<image/png 34 KB>"}
    assert "34 KB" in value["shown"]
    assert base64.b64encode(PICTURE[:300]).decode()[:100] not in str(result)
    # The argument that crossed the boundary was a number, not the picture.
    sent = [call.request_bytes for call in result.calls if call.tool == "add_picture"]
    assert all(size < 300 for size in sent), sent
    assert result.servers == ("gallery", "atlas")


@in_each_language
async def test_a_sound_is_a_handle_too(tmp_path: Path, language: Language) -> None:
    async with world(tmp_path) as runtime:
        result = await runtime.run(programs.SOUND.of(language), language=language)
    shown, mime, text, size = value_of(result)
    assert shown.startswith("<audio/wav ")
    assert (mime, text, size) == ("audio/wav", "RIFFsound", 9)


@in_each_language
async def test_a_text_too_large_to_be_given_is_read_in_parts_or_as_json(tmp_path: Path, language: Language) -> None:
    async with world(tmp_path) as runtime:
        result = await runtime.run(programs.LINES.of(language), language=language)
    is_handle, mime, head, count, last = value_of(result)
    assert (is_handle, mime, head, count, last) == (True, "application/json", '[{"line":', len(LINES), LINES[-1])


@in_each_language
async def test_what_is_no_text_or_json_is_said_to_be_none(tmp_path: Path, language: Language) -> None:
    async with world(tmp_path) as runtime:
        result = await runtime.run(programs.NO_TEXT.of(language), language=language)
    assert [name for name, _ in value_of(result)] == ["ToolFailedError"] * 3


@in_each_language
async def test_handles_have_a_limit_in_bytes_that_a_program_can_hear_of(tmp_path: Path, language: Language) -> None:
    async with world(tmp_path, limits=Limits(handle_bytes=2 * len(PICTURE) + 10)) as runtime:
        program = programs.UNTIL_THE_LIMIT.of(language)
        result = await runtime.run(program, language=language)
        again = await runtime.run(program, language=language)
    kept, is_limit, tool, message, size = value_of(result)
    assert (kept, is_limit, tool, size) == (2, True, "picture", len(PICTURE))
    assert size_text(2 * len(PICTURE) + 10) in message
    assert [call.outcome for call in result.calls] == ["ok", "ok", "limit"]
    assert value_of(again) == value_of(result), "the first run's handles counted in the second"


@in_each_language
async def test_there_are_at_most_ten_thousand_handles(tmp_path: Path, language: Language) -> None:
    async with world(tmp_path, limits=Limits(host_calls=20_000)) as runtime:
        result = await runtime.run(programs.TEN_THOUSAND.of(language), language=language)
    assert value_of(result)[:2] == [10_000, "ToolLimitError"]


@in_each_language
async def test_a_session_keeps_its_handles_from_run_to_run_until_it_is_closed(
    tmp_path: Path, language: Language
) -> None:
    async with world(tmp_path) as runtime:
        session = runtime.session(language)
        await session.run(programs.FIRST_TURN.of(language))
        result = await session.run(programs.SECOND_TURN.of(language))
        assert value_of(result) == SHA
        store = session._scope._handles
        assert store._held
        session.close()
        assert store._held == {}


@in_each_language
async def test_a_run_that_fails_or_is_cancelled_frees_its_handles(
    tmp_path: Path, language: Language, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores: list[handles.HandleStore] = []
    keep = handles.HandleStore.add

    def add(self: handles.HandleStore, *arguments: Any) -> Any:
        stores.append(self)
        return keep(self, *arguments)

    monkeypatch.setattr(handles.HandleStore, "add", add)
    async with world(tmp_path) as runtime:
        failed = await runtime.run(programs.PICTURE_AND_STOP.of(language), language=language)
        with anyio.move_on_after(0.5):
            await runtime.run(programs.PICTURE_AND_LOOP.of(language), language=language)
    assert failed.failure is not None
    assert len(stores) == 2
    assert all(store._held == {} for store in stores)


@in_each_language
async def test_a_servers_data_that_looks_like_a_handle_is_data_and_names_none(
    tmp_path: Path, language: Language
) -> None:
    """Numbers of handles are random: a server that made its result before the handle was there can't know it."""
    async with world(tmp_path) as runtime:
        result = await runtime.run(programs.FORGERY.of(language), language=language)
    assert value_of(result) == [[False, "ToolArgumentsError"]] * 6
    assert result.servers == ("gallery",)
