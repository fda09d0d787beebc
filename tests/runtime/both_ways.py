"""The same program with calls of the host's own tools answered at once where they can be, and with none that is."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from observe.recorder import Recorder
from toolbridge import Config, Limits, open_runtime
from toolbridge.events import CallEnded, CallStarted, DecisionMade
from toolbridge.runtime import Language
from toolbridge.servers.manager import ServerManager


class Told(NamedTuple):
    """All that anybody is told of a run, but for how long it took."""

    value: Any
    failure: str
    records: list[tuple[Any, ...]]
    events: list[tuple[Any, ...]]
    servers: tuple[str, ...]


def _none(*_: object) -> None:
    return None


@contextmanager
def never_ready(patch: pytest.MonkeyPatch) -> Generator[None]:
    """Every call goes through the manager, as that of any other server's tool."""
    with patch.context() as patched:
        patched.setattr(ServerManager, "ready_tool", _none)
        yield


async def told(
    directory: Path,
    config: Config,
    program: str,
    *,
    language: Language = "javascript",
    limits: Limits | None = None,
    observed: bool = True,
    **options: Any,
) -> Told:
    """Runs a program, and says what came of it."""
    recorder = Recorder()
    observers = [recorder] if observed else []
    async with open_runtime(config, directory=directory, observers=observers, **options) as runtime:
        result = await runtime.run(program, language=language, limits=limits, check=False)
    records = [
        (call.module, call.function, call.outcome, call.request_bytes, call.server, call.tool, call.notes)
        for call in result.calls
    ]
    return Told(result.value, str(result.failure), records, _events(recorder), result.servers)


def _events(recorder: Recorder) -> list[tuple[Any, ...]]:
    assert recorder.broken_promises() == []
    found: list[tuple[Any, ...]] = []
    for event in recorder.events:
        if isinstance(event, CallStarted):
            found.append(("started", event.call, event.server, event.tool))
        elif isinstance(event, DecisionMade):
            found.append(("decided", event.call, event.server, event.tool, event.allowed, event.rule))
        elif isinstance(event, CallEnded):
            found.append(("ended", event.call, event.server, event.tool, event.outcome, event.request_bytes))
    return found


async def told_both_ways(
    patch: pytest.MonkeyPatch, directory: Path, config: Config, program: str, **options: Any
) -> Told:
    """What came of a program, which must be the same both ways."""
    at_once = await told(directory, config, program, **options)
    with never_ready(patch):
        awaited = await told(directory, config, program, **options)
    assert at_once == awaited
    return at_once
