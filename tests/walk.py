"""Traces one warm call: which source files it passes, in which order. `python tests/walk.py javascript` draws it.

The trace begins with `Runtime.run` (or the client's call of `run_code`) and ends with its result, on all threads. A
visit of a file is an unbroken sequence of calls into it. Run as a process of its own: `sys.setprofile` is global.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import anyio

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (f"{ROOT}/bridge/toolbridge/", f"{ROOT}/codegen/toolbridge_codegen/")
TRIES = 5
"""A run on a busy machine takes detours, such as an epoch's tick: the shortest of a few is the walk."""

_JAVASCRIPT = 'require("host:mcp-weather").get_forecast({ location: "Austin, TX" })'
_TYPESCRIPT = 'import { get_forecast as f } from "host:mcp-weather";\nexport default f({ location: "Austin, TX" });'
_PYTHON = 'from host import mcp_weather\nmcp_weather.get_forecast(location="Austin, TX")'
PROGRAMS = {"javascript": _JAVASCRIPT, "typescript": _TYPESCRIPT, "python": _PYTHON}


class Visit(NamedTuple):
    """A stay in one file, and the functions that were called in it."""

    file: str
    functions: tuple[str, ...]


class Walk:
    """The visits of one call, in order."""

    def __init__(self, visits: list[Visit]) -> None:
        self.visits = visits

    @property
    def files(self) -> list[str]:
        """The files, in the order in which they are first visited."""
        return list(dict.fromkeys(visit.file for visit in self.visits))

    @property
    def most_visited(self) -> tuple[str, int]:
        """The file that is visited most often, and how often."""
        return Counter(visit.file for visit in self.visits).most_common(1)[0]

    def __str__(self) -> str:
        lines = [f"{visit.file}  {' '.join(visit.functions)}" for visit in self.visits]
        file, count = self.most_visited
        return "\n".join([*lines, f"{len(self.files)} files, {len(self.visits)} changes, {file} {count} times"])


class Tracer:
    """Records calls into our sources, on every thread that starts after `install`."""

    def __init__(self) -> None:
        self._calls: list[tuple[str, str]] = []
        self._is_on = False

    def install(self) -> None:
        """Begins to see calls; they are recorded within `walk_of` only."""
        threading.setprofile(self._on_event)
        sys.setprofile(self._on_event)

    def _on_event(self, frame: FrameType, event: str, _argument: object) -> None:
        if self._is_on and event == "call" and frame.f_code.co_filename.startswith(SOURCES):
            self._calls.append((frame.f_code.co_filename, frame.f_code.co_qualname))

    async def walk_of(self, call: Callable[[], Awaitable[object]]) -> Walk:
        """The shortest walk of a few tries."""
        walks: list[Walk] = []
        for _ in range(TRIES):
            self._calls = []
            self._is_on = True
            await call()
            self._is_on = False
            parts = itertools.groupby(self._calls, key=lambda each: each[0])
            walks.append(Walk([Visit(_name(file), tuple(name for _, name in group)) for file, group in parts]))
            await anyio.sleep(0.1)  # what follows a run, such as a spare guest, is no part of the next
        return min(walks, key=lambda walk: len(walk.visits))


def _name(file: str) -> str:
    """A file as documents name it: below its source root."""
    bridge, codegen = SOURCES
    return file.removeprefix(bridge) if file.startswith(bridge) else f"codegen/{file.removeprefix(codegen)}"


async def run_walk(language: Any) -> Walk:
    """The walk of a warm `Runtime.run` with one call of a stdio server's tool, type-check on."""
    from runtime.worlds import runtime_of, value_of, weather_process

    tracer = Tracer()
    tracer.install()
    with tempfile.TemporaryDirectory() as directory:
        async with runtime_of(Path(directory), weather_process()) as runtime:

            async def call() -> None:
                value_of(await runtime.run(PROGRAMS[language], language=language))

            for _ in range(3):
                await call()
                await anyio.sleep(0.1)
            return await tracer.walk_of(call)


async def served_walk() -> Walk:
    """The walk of a warm `run_code` over an in-memory connection, with one call of a stdio server's tool."""
    from runtime.worlds import weather_process
    from serve.serving import approve, client_of, service_of

    tracer = Tracer()
    tracer.install()
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        approve(directory, weather_process())
        service = await stack.enter_async_context(service_of(directory, weather_process()))
        client = await stack.enter_async_context(client_of(service, "auto"))

        async def call() -> None:
            result = await client.call_tool("run_code", {"code": _JAVASCRIPT})
            assert result.structured_content is not None
            assert result.structured_content["failure"] is None, result

        for _ in range(3):
            await call()
            await anyio.sleep(0.1)
        return await tracer.walk_of(call)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))
    kind, *options = sys.argv[1:]
    found = anyio.run(served_walk) if kind == "served" else anyio.run(run_walk, kind)
    sys.stdout.write(json.dumps(found.visits) if "--json" in options else str(found))
