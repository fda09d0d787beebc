"""T9, proliferation: the caps on servers, connections, tools, pages and bytes hold, also when all come at once."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from servers.fault_expectations import text_of
from servers.fault_servers import fault_server, manager_of
from servers.live_processes import processes, processes_by_a_word
from toolbridge.config.config import Config
from toolbridge.config.server_config import ServerLimits
from toolbridge.errors import ConfigError, ConnectionLimitError, ServerError

BACKENDS = ("asyncio", "trio")


def test_one_server_too_many_is_an_error_that_names_the_count() -> None:
    servers = [fault_server(f"server-{number}", "fine") for number in range(51)]
    with pytest.raises(ConfigError, match=r"51 servers.*50"):
        Config.of(*servers)
    assert len(Config.of(*servers[:50]).servers) == 50
    assert len(Config.of(*servers, limits=ServerLimits(servers=60)).servers) == 51


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", ["fine", "slow-start", "hang-at-list"])
def test_connections_that_are_being_opened_count_too(mode: str, backend: str) -> None:
    """Twelve at once, and room for three: never more than three processes, whether they are quick, slow or stuck."""
    limits = ServerLimits(connections=3, connect_seconds=1.5 if mode == "hang-at-list" else 20.0, close_seconds=0.2)
    most = 0

    async def main() -> None:
        with processes_by_a_word() as word:
            servers = [fault_server(f"server-{number}", mode, word) for number in range(12)]
            refused: list[ServerError] = []

            async def watch() -> None:
                nonlocal most
                while True:
                    most = max(most, len(processes(word)))
                    await anyio.sleep(0.005)

            async with manager_of(servers, limits) as manager:

                async def connect(name: str) -> None:
                    try:
                        await manager.connect(name)
                    except ServerError as error:
                        refused.append(error)

                async with anyio.create_task_group() as watching:
                    watching.start_soon(watch)
                    async with anyio.create_task_group() as tasks:
                        for server in servers:
                            tasks.start_soon(connect, server.name)
                    watching.cancel_scope.cancel()
                states = [status.state for status in manager.statuses()]
                assert states.count("connected") == (0 if mode == "hang-at-list" else 3)
            beyond = [error for error in refused if isinstance(error, ConnectionLimitError)]
            assert len(beyond) == 9
            assert all(error.server in str(error) and "3" in str(error) for error in beyond)

    anyio.run(main, backend=backend)
    assert 1 <= most <= 3


def test_a_connection_that_failed_was_closed_or_is_idle_leaves_its_place_to_another() -> None:
    """Never to two at once: the stubborn process is gone before the next is started."""
    limits = ServerLimits(connections=1, close_seconds=0.2)

    async def main() -> None:
        with processes_by_a_word() as word:
            servers = [
                fault_server("broken", "fail-at-list", word),
                fault_server("first", "ignores-sigterm-and-eof", word),
                fault_server("second", "fine", word),
            ]
            async with manager_of(servers, limits) as manager:
                with pytest.raises(ServerError, match="'broken'"):
                    await manager.connect("broken")
                await manager.connect("first")
                await manager.close_server("first")
                assert text_of(await manager.call("second", "echo", {"text": "x"})) == "x"
                assert len(processes(word)) == 1
                await manager.connect("first")
                assert manager.status("second").state == "closed"
                assert len(processes(word)) == 1
                assert text_of(await manager.call("second", "echo", {"text": "x"})) == "x"
                assert len(processes(word)) == 1

    anyio.run(main)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_server_that_a_reload_closes_holds_its_place_until_it_is_gone(backend: str) -> None:
    limits = ServerLimits(connections=1, close_seconds=0.3, connect_seconds=20.0)

    async def main() -> None:
        with processes_by_a_word() as word:
            stubborn, other = fault_server("old", "ignores-sigterm-and-eof", word), fault_server("new", "fine", word)
            async with manager_of([stubborn], limits) as manager:
                await manager.connect("old")
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(manager.reload, Config.of(other, limits=limits))
                    while "new" not in [status.name for status in manager.statuses()]:
                        await anyio.lowlevel.checkpoint()
                    await manager.connect("new")  # waits, and is not refused
                    assert len(processes(word)) == 1

    anyio.run(main, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_servers_that_list_too_much_are_cut_all_at_once_and_a_modest_one_is_served(backend: str) -> None:
    caps = {
        "tools-10000": "1000 tools",
        "pages-500": "100 pages",
        "endless-empty-pages": "100 pages",
        "endless-large-pages": "2000000 bytes",
    }
    limits = ServerLimits(
        connections=10, connect_seconds=30.0, close_seconds=0.2, listing_bytes=2_000_000, message_bytes=8_000_000
    )

    async def main() -> None:
        with processes_by_a_word() as word:
            servers = [fault_server(mode, mode, word) for mode in (*caps, "pages-5")]
            async with manager_of(servers, limits) as manager:
                async with anyio.create_task_group() as tasks:
                    for server in servers:
                        tasks.start_soon(manager.connect, server.name)
                for mode, cap in caps.items():
                    status = manager.status(mode)
                    assert any(cap in problem and "cut after" in problem for problem in status.problems), status
                    assert (status.tools or 0) <= limits.tools
                assert manager.status("pages-5").tools == 102
                assert manager.status("pages-5").problems == ()

    anyio.run(main, backend=backend)


def test_no_more_calls_are_under_way_at_once_than_may_be() -> None:
    """A server that never answers holds no more than its share: others wait in line, and take no time of their own."""
    limits = ServerLimits(calls_in_flight=4, call_seconds=0.3, connect_seconds=20.0, close_seconds=0.2)
    answered: list[str] = []

    async def main() -> None:
        with processes_by_a_word() as word:
            async with manager_of([fault_server("silent", "silent-at-call", word)], limits) as manager:
                await manager.connect("silent")

                async def call(tool: str, text: str) -> None:
                    try:
                        answered.append(text_of(await manager.call("silent", tool, {"text": text})))
                    except ServerError:
                        answered.append("nothing")

                async with anyio.create_task_group() as tasks:
                    for _ in range(4):
                        tasks.start_soon(call, "faulty", "x")
                    await anyio.sleep(0.05)
                    tasks.start_soon(call, "echo", "later")
        assert answered == ["nothing"] * 4 + ["later"]

    anyio.run(main)
