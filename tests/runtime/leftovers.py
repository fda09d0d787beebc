"""What a run may not leave behind: tasks, threads, guests, processes, open descriptors."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import astuple, dataclass
from time import monotonic

import anyio
import sniffio
import trio

from servers.live_processes import left_after, processes_by_a_word, zombies
from servers.scripted_server import open_descriptors
from toolbridge.sandbox import execution
from toolbridge.sandbox.engine import shared_engine

# These wait for the next work for a few seconds, then end by themselves; whether one is busy is seen by its run.
_POOLED = ("toolbridge-guest", "toolbridge-ticker", "toolbridge-tool", "AnyIO worker thread", "Trio thread")


@dataclass(frozen=True)
class Kept:
    """What there is at a moment."""

    tasks: int
    threads: int
    descriptors: int
    zombies: int
    runs: int

    def is_more_than(self, other: Kept) -> bool:
        """Whether there is more of anything; less is what an earlier test's idle thread leaves when it ends."""
        return any(mine > theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True))


def kept_now() -> Kept:
    """What this process has now."""
    if sniffio.current_async_library() == "trio":
        tasks = trio.lowlevel.current_statistics().tasks_living
    else:
        tasks = len(asyncio.all_tasks())
    threads = [thread for thread in threading.enumerate() if not thread.name.startswith(_POOLED)]
    return Kept(tasks, len(threads), len(open_descriptors()), zombies(), len(execution._active))


@asynccontextmanager
async def nothing_left(seconds: float = 5.0) -> AsyncGenerator[str]:
    """Gives a word for the servers' arguments; after the block, all is as it was before it."""
    for language in ("javascript", "typescript"):  # they stay open for the whole process
        shared_engine().image(language, None)
    with processes_by_a_word() as word:
        gc.collect()
        before = kept_now()
        yield word
        assert await left_after(word, seconds) == {}
        deadline = monotonic() + seconds
        while (after := kept_now()).is_more_than(before) and monotonic() < deadline:
            gc.collect()
            await anyio.sleep(0.02)  # a thread's end is no event
        assert not after.is_more_than(before), f"{after} is left of {before}"
