"""T18, endless listing: repeating cursors and huge pages are capped, floods of list_changed are one change."""

from __future__ import annotations

import re
import time

import anyio
import pytest

from servers.fault_expectations import text_of
from servers.fault_servers import fault_server, manager_of
from servers.live_processes import processes_by_a_word
from toolbridge.config.server_config import ServerLimits
from toolbridge.events import ServerEvent, ToolsChanged

LIMITS = ServerLimits(connect_seconds=30.0, close_seconds=0.2, listing_bytes=2_000_000, message_bytes=4_000_000)
PROMPT = 5.0


@pytest.mark.parametrize("era", [(), ("--modern",)], ids=["legacy", "modern"])
@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("cursor-loop", "same cursor twice"),
        ("cursor-cycle", "same cursor twice"),
        ("cursor-growing", "further page|pages"),
        ("endless-pages", "100 pages"),
        ("endless-empty-pages", "100 pages"),
        ("endless-large-pages", "2000000 bytes"),
    ],
)
def test_a_listing_without_end_is_cut(mode: str, words: str, era: tuple[str, ...]) -> None:
    async def main() -> None:
        with processes_by_a_word() as word:
            async with manager_of([fault_server("endless", mode, *era, word)], LIMITS) as manager:
                listing = await manager.connect("endless")
                assert any(re.search(f"{words}.*cut after", each.problem) for each in listing.problems)
                assert len(listing.tools) <= LIMITS.tools
                assert any(re.search(words, each) for each in manager.status("endless").problems)

    anyio.run(main)


@pytest.mark.parametrize("era", [(), ("--modern",)], ids=["legacy", "modern"])
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_flood_of_changes_costs_few_listings(backend: str, era: tuple[str, ...]) -> None:
    """Thousands of changes in two seconds: the server is asked for its tools a few times, and calls go on."""

    async def main() -> None:
        with processes_by_a_word() as word:
            async with manager_of([fault_server("flood", "list-changed-storm", *era, word)], LIMITS) as manager:
                await manager.connect("flood")
                began = time.monotonic()
                storms = asked = 0
                while time.monotonic() - began < 2.0:
                    asked = int(text_of(await manager.call("flood", "faulty", {"text": "x"})))
                    storms += 1
                    await anyio.sleep(0.01)
                assert storms >= 5
                # Not once a change, but not never, either.
                assert 2 <= asked <= 6, f"asked {asked} times in {storms} storms of 300 changes"

    anyio.run(main, backend=backend)


@pytest.mark.parametrize("era", [(), ("--modern",)], ids=["legacy", "modern"])
def test_what_changed_is_listed_again_without_being_asked(era: tuple[str, ...]) -> None:
    async def main() -> None:
        changes = 0
        changed = anyio.Event()

        def observe(event: ServerEvent) -> None:
            nonlocal changes
            changes += isinstance(event, ToolsChanged)
            if changes == 2:  # the first listing is a change, too
                changed.set()

        with processes_by_a_word() as word:
            server = fault_server("changing", "list-changes", *era, word)
            async with manager_of([server], LIMITS, observers=[observe]) as manager:
                before = await manager.connect("changing")
                await manager.call("changing", "faulty", {"text": "x"})
                with anyio.fail_after(60):
                    await changed.wait()
                now = await manager.connect("changing")
                assert {tool.name for tool in now.tools} - {tool.name for tool in before.tools} == {"fresh"}
                assert text_of(await manager.call("changing", "fresh", {"text": "y"})) == "y"

    anyio.run(main)


@pytest.mark.parametrize("mode", ["changed-list-hangs", "changed-list-is-refused", "changed-list-is-spoilt"])
def test_a_change_that_can_not_be_listed_leaves_the_old_list_and_the_connection(mode: str) -> None:
    async def main() -> None:
        with processes_by_a_word() as word:
            limits = ServerLimits(connect_seconds=1.5, close_seconds=0.2)
            server = fault_server("changing", mode, word, connect_timeout=20.0)
            async with manager_of([server], limits) as manager:
                before = await manager.connect("changing")
                await manager.call("changing", "faulty", {"text": "x"})
                with anyio.fail_after(60):
                    while not manager.status("changing").last_error:  # noqa: ASYNC110  # nobody is told of it
                        await anyio.sleep(0.02)
                assert manager.listing("changing") == before
                assert text_of(await manager.call("changing", "echo", {"text": "y"})) == "y"
                assert manager.status("changing").respawns == 0, "it was the connection that was lost"

    anyio.run(main)
