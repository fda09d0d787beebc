"""A megabyte of any text of a server, wherever it puts it, never holds up the event loop.

A stall is the CPU time that the loop's own thread spends in one callback: unlike the time on a clock, it is the same on
a busy machine. What worker threads do counts as little as the GIL lets them: see test_secret_masks.py for that.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from growth import PLAIN_SECONDS, cpu_seconds, is_at_most, plain_python
from runtime.worlds import runtime_of, value_of
from serve.serving import Person, approve, call, client_of, no, service_of, text_of
from toolbridge import Config, Limits, Runtime, ServerConfig
from toolbridge.config.server_config import ServerLimits
from toolbridge.servers.http.answers import Exchange
from toolbridge.servers.http.network import Body
from toolbridge.trust.sanitise import for_error, for_form, for_guest_error
from toolbridge_codegen.escaping import clean_line, clean_text

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).resolve().parents[2] / "fixtures" / "hostile" / "servers" / "long_texts.py"
SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
SECONDS = 0.05
PIECES = [
    *("%25", "<p class='x'><a href='/a/b?c=d&amp;e'>word</a></p>\n", "\u200b", "é ", "'/home/x", "\x1b]", "\\u0067"),
    *("    at f (/a/b.js:1:2)\n", SECRET + " ", SECRET[:30]),
]
TEXTS = [
    *("text", "texts", "value", "JSON", "binary", "error", "refusal", "refusal with data"),
    *("resources", "links", "requests", "progress", "log", "stderr", "noise"),
]
STRUCTURES = ["lists", "objects", "numbers", "keys", "digits", "not UTF-8", "notices", "batch", "lines"]
OUTCOMES = {
    **dict.fromkeys(["error", "refusal", "refusal with data"], "failed"),
    **dict.fromkeys(["stderr", "noise"], "disconnected"),
}
PLACES = ["description", "schema", "output", "many", "names", "about", "instructions", "no tools"]
SHAPES = ["properties", "required", "values", "choices", "all", "references", "wide", "deep", "pattern"]
SAY_NOTHING = 'require("host:mcp-long").say({ how: "nothing" })'


@pytest.fixture(params=["asyncio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Only here: how long a callback takes is asked of asyncio's own handle."""
    return request.param


class Stalls:
    """The callbacks of a loop that took longest."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.what = ""

    def check(self, of: object = "") -> None:
        """None was too long; begins anew."""
        slowness = max(1.0, cpu_seconds(plain_python) / PLAIN_SECONDS) if self.longest >= SECONDS else 1.0
        assert self.longest < slowness * SECONDS, (of, self.longest, self.what)
        self.longest = 0.0


@pytest.fixture
def stalls(monkeypatch: pytest.MonkeyPatch) -> Stalls:
    found, run = Stalls(), asyncio.events.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        run(handle)
        took = time.thread_time() - began
        if took > found.longest:
            found.longest, found.what = took, repr(handle)

    gc.collect()
    gc.freeze()  # else a collection has all that other tests left to look at
    monkeypatch.setattr(asyncio.events.Handle, "_run", timed)
    return found


def _ignored(event: object) -> None:
    del event


def long_server(piece: str, place: str = "", size: int = 1_000_000) -> ServerConfig:
    env = {"LONG_TOKEN": SECRET, "LONG_PIECE": json.dumps(piece), "LONG_PLACE": place, "LONG_SIZE": str(size)}
    return ServerConfig.stdio("long", sys.executable, ["-S", "-E", str(SERVER)], env=env)


LIMITS = ServerLimits(connect_seconds=60.0, call_seconds=60.0, close_seconds=0.2)


@asynccontextmanager
async def world(
    directory: Path, piece: str, place: str = "", size: int = 1_000_000, **options: Any
) -> AsyncGenerator[Runtime]:
    config = Config.of(long_server(piece, place, size), limits=LIMITS)
    async with runtime_of(directory, config=config, observers=[_ignored], **options) as runtime:
        await runtime.run("1")
        yield runtime


def call_of(how: str, **arguments: str) -> str:
    return f'require("host:mcp-long").say({json.dumps({"how": how, **arguments})}); 1'


@pytest.mark.parametrize("piece", PIECES, ids=lambda piece: ascii(piece[:8]))
async def test_a_call_never_stalls_the_loop(piece: str, tmp_path: Path, stalls: Stalls) -> None:
    async with world(tmp_path, piece) as runtime:
        value_of(await runtime.run(call_of("nothing")))
        stalls.longest = 0.0
        for how in [*TEXTS, *(STRUCTURES if piece == PIECES[0] else ())]:
            result = await runtime.run(call_of(how))
            assert [call.outcome for call in result.calls] == [OUTCOMES.get(how, "ok")], str(result.failure)
            assert SECRET not in str(result)
            stalls.check(how)


@pytest.fixture
async def imported(tmp_path: Path) -> None:
    """What the first server, and the first program in Python, have the process import."""
    async with world(tmp_path / "first", "x", size=10) as runtime:
        value_of(await runtime.run(SAY_NOTHING))
        value_of(await runtime.run('from host.mcp_long import say\nsay(how="nothing")', language="python"))


def size_of(place: str) -> int:
    """150 tools of 18 KB each; everywhere else a megabyte."""
    return 2_700_000 if place == "many" else 1_000_000


@pytest.mark.parametrize("pins", ["lock", "none"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.usefixtures("imported")
async def test_a_listing_never_stalls_the_loop(place: str, pins: str, tmp_path: Path, stalls: Stalls) -> None:
    for piece in ("%25", PIECES[1], "é ", "\u200b"):
        async with world(tmp_path / str(PIECES.index(piece)), piece, place, size_of(place), pins=pins) as runtime:
            stalls.longest = 0.0
            await runtime.servers.connect("long")
            stalls.check((place, piece))
            result = await runtime.run(SAY_NOTHING)
            # What a megabyte is said of is too long to be pinned; then the stubs have none of it.
            assert pins == "lock" or value_of(result) == "done"
            await runtime.run('from host.mcp_long import say\nsay(how="nothing")', language="python")
            stalls.check((place, piece))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.usefixtures("imported")
async def test_a_schema_never_stalls_the_loop(shape: str, tmp_path: Path, stalls: Stalls) -> None:
    async with world(tmp_path, "é ", shape, pins="none") as runtime:
        stalls.longest = 0.0
        await runtime.servers.connect("long")
        stalls.check(shape)
        assert value_of(await runtime.run(SAY_NOTHING)) == "done"
        await runtime.run('require("host:mcp-long").say({ how: "value", x: { z: 1, a: [1] } })', check=False)
        value_of(await runtime.run(call_of("keys"), check=False))
        stalls.check(shape)


@pytest.mark.parametrize("place", ["many", "names", "description", "no tools"])
@pytest.mark.usefixtures("imported")
async def test_a_client_that_looks_for_tools_never_stalls_the_loop(place: str, tmp_path: Path, stalls: Stalls) -> None:
    server = long_server(PIECES[1], place, size_of(place))
    approve(tmp_path, server)
    asked = Person(no)
    async with service_of(tmp_path, server, limits=LIMITS) as service, client_of(service, "legacy", asked) as client:
        for name, arguments in (
            ("list_mcp_servers", {}),  # whatever the first call imports
            ("search_tools", {"query": "say a word", "limit": 50}),
            ("describe", {"names": ["long"]}),
            ("describe", {"names": ["long"], "language": "python", "detail": "compact"}),
            ("mcp_server_info", {"server": "long"}),
            ("list_mcp_servers", {}),
        ):
            result = await call(client, name, arguments)
            if name != "list_mcp_servers" or service.runtime.servers.listing("long"):
                stalls.check((place, name, text_of(result)[:100]))
            stalls.longest = 0.0


class Chunks:
    """The body of an HTTP answer, as the network gives it: 64 KB of the same at a time."""

    def __init__(self, piece: bytes) -> None:
        self._chunks = [piece * (65_536 // len(piece))] * 4

    async def next_chunk(self) -> bytes | None:
        await asyncio.sleep(0)
        return self._chunks.pop() if self._chunks else None


@pytest.mark.parametrize("piece", [b"\n", b"data: x\n\n", b"data: {}\r\r", b"data:\n", b"id: x\n"], ids=repr)
async def test_a_stream_of_events_never_stalls_the_loop(piece: bytes, stalls: Stalls) -> None:
    response: Any = SimpleNamespace(extensions=Body.marked(cast("Any", Chunks(piece))), headers={})
    assert await Exchange(1, lambda _message, _size: None, 16 * 2**20).read_events(response) is None
    stalls.check(piece)


async def test_eight_megabytes_never_stall_the_loop(tmp_path: Path, stalls: Stalls) -> None:
    async with world(tmp_path, "x", size=8_000_000) as runtime:
        value_of(await runtime.run(call_of("nothing")))
        stalls.longest = 0.0
        value_of(await runtime.run(call_of("text", piece="%25")))
        stalls.check()


@pytest.mark.unchecked
async def test_an_error_that_repeats_the_arguments_never_stalls_the_loop(tmp_path: Path, stalls: Stalls) -> None:
    named = {f"p{number}": (f"/srv/{number}/" * 600)[:4000] for number in range(20)}
    async with world(tmp_path, "x") as runtime:
        value_of(await runtime.run(call_of("nothing")))
        stalls.longest = 0.0
        result = await runtime.run(call_of("repeated", piece="'/home/x" * 8000, **named))
        assert result.failure is not None
        stalls.check()


async def test_the_deadline_of_a_run_holds_while_its_result_is_masked(tmp_path: Path, stalls: Stalls) -> None:
    async with world(tmp_path, "x", size=8_000_000, limits=Limits(wall_seconds=1.0, handle_bytes=1 << 30)) as runtime:
        result = await runtime.run("for (;;) " + call_of("value", piece="%25"))
        assert result.failure is not None
        assert result.failure.kind == "timeout", result.failure
        stalls.check()


SANITISERS: dict[str, Callable[[str], object]] = {
    "error": lambda text: for_error(text, [SECRET]),
    "guest error": lambda text: for_guest_error(text, [SECRET]),
    "question": lambda text: for_form(text, [SECRET]),
    "stub": clean_text,
    "line of a stub": clean_line,
}


@pytest.mark.parametrize("name", SANITISERS)
async def test_what_is_cut_is_cut_before_it_is_looked_at(name: str) -> None:
    for piece in PIECES:
        text = piece * (1_000_000 // len(piece))
        assert is_at_most(SECONDS / PLAIN_SECONDS, lambda: SANITISERS[name](text), plain_python), piece  # noqa: B023  # called at once
