"""Places for programs: given up while a person thinks, taken back once, and half of them left for others."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp_types import ElicitResult

from runtime.worlds import weather
from serve.http_service import http_service_of
from serve.serving import Era, Person, client_of, run, service_of
from toolbridge import Permissions
from toolbridge.serve.fairness import LOOPBACK, Holder, RunPermit, RunPermits
from toolbridge.serve.service import ServeOptions

pytestmark = pytest.mark.anyio

ASK = Permissions(ask=("mcp__weather__*",))
FORECAST = 'require("host:mcp-weather").get_forecast({ location: "Oslo" }).days.length'
AT_ONCE = """
import { get_forecast } from "host:mcp-weather/async";
(await Promise.all(["Oslo", "Rome", "Bern"].map((location) => get_forecast({ location })))).length
"""


def at(peer: str, name: str = "a") -> Holder:
    return Holder(peer, ("session", name))


def local(name: str) -> Holder:
    return at(LOOPBACK, name)


async def is_free(permits: RunPermits, owner: Holder | None = None) -> bool:
    """Whether somebody gets a place without waiting for another to end."""
    permit = RunPermit(permits, owner)
    with anyio.move_on_after(0.05):
        await permit.take()
        permit.end()
        return True
    return False


async def test_two_programs_of_one_client_ask_one_after_the_other(tmp_path: Path, era: Era) -> None:
    """With one place for both: who has it must not wait for the person, and who asks the person not for the place."""
    options = ServeOptions(runs_at_once=1)
    person = Person()
    values: list[object] = []

    async def use(client: Client) -> None:
        values.append((await run(client, FORECAST))["value"])

    async with (
        service_of(tmp_path, weather(), permissions=ASK, options=options) as service,
        client_of(service, era, person) as client,
    ):
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for _ in range(4):
                    tasks.start_soon(use, client)
    assert values == [3, 3, 3, 3]
    assert len(person.asked) == 4


async def test_a_program_that_asks_three_things_at_once_takes_one_place_back(tmp_path: Path, era: Era) -> None:
    async with (
        service_of(tmp_path, weather(), permissions=ASK, options=ServeOptions(runs_at_once=2)) as service,
        client_of(service, era, Person()) as client,
    ):
        with anyio.fail_after(60):
            for _ in range(3):
                assert (await run(client, AT_ONCE))["value"] == 3
            assert (await run(client, "1 + 1"))["value"] == 2


async def test_a_place_is_taken_back_when_the_last_question_is_answered() -> None:
    permits = RunPermits(1)
    permit = RunPermit(permits, None)
    await permit.take()
    with permit.released():
        with permit.released():
            assert await is_free(permits)
        await permit.take()
        assert await is_free(permits)
    await permit.take()
    await permit.take()
    assert not await is_free(permits)
    permit.end()
    assert await is_free(permits)
    await permit.take()
    assert await is_free(permits)


async def test_a_program_that_ends_in_line_leaves_no_place_taken() -> None:
    permits = RunPermits(1)
    first, second = RunPermit(permits, local("a")), RunPermit(permits, local("b"))
    await first.take()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(second.take)
        await anyio.wait_all_tasks_blocked()
        second.end()
        first.end()
    assert await is_free(permits)


async def test_who_gives_up_waiting_in_line_leaves_no_place_taken() -> None:
    permits = RunPermits(2)
    held = RunPermit(permits, local("a")), RunPermit(permits, local("b"))
    for permit in held:
        await permit.take()
    assert not await is_free(permits, local("c"))
    assert not await is_free(permits, local("a"))
    for permit in held:
        permit.end()
    again = RunPermit(permits, local("a")), RunPermit(permits, local("c"))
    with anyio.fail_after(60):
        for permit in again:
            await permit.take()


@pytest.mark.parametrize(("total", "share"), [(1, 1), (2, 1), (3, 2), (16, 8)])
async def test_one_client_leaves_half_of_the_places(total: int, share: int) -> None:
    permits = RunPermits(total)
    held = [RunPermit(permits, local("greedy")) for _ in range(share)]
    for permit in held:
        await permit.take()
    assert not await is_free(permits, local("greedy"))
    assert await is_free(permits, local("other")) is (total > 1)
    for permit in held:
        permit.end()
    assert await is_free(permits, local("greedy"))


async def test_several_greedy_clients_leave_room_for_one_more() -> None:
    permits = RunPermits(16)
    for _ in range(16):
        for owner in ("a", "b", "c"):
            await is_taken(permits, local(owner))
    assert await is_free(permits, local("other"))


async def is_taken(permits: RunPermits, owner: Holder) -> None:
    with anyio.move_on_after(0.01):
        await permits.acquire(owner)


async def test_waiting_clients_take_turns() -> None:
    """Who waits with one program waits for one of a client that waits with many, not for all of them."""
    permits, order = RunPermits(1), list[str]()

    async def use(owner: str) -> None:
        await permits.acquire(local(owner))
        order.append(owner)
        permits.release(local(owner))

    await permits.acquire(local("first"))
    async with anyio.create_task_group() as tasks:
        for owner in ("greedy", "greedy", "greedy", "other"):
            tasks.start_soon(use, owner)
            await anyio.wait_all_tasks_blocked()
        permits.release(local("first"))
    assert order == ["greedy", "other", "greedy", "greedy"]


async def test_addresses_take_turns_however_many_sessions_each_has() -> None:
    permits, order = RunPermits(1), list[str]()

    async def use(owner: Holder) -> None:
        await permits.acquire(owner)
        order.append(owner.peer)
        permits.release(owner)

    await permits.acquire(at("10.0.0.1"))
    async with anyio.create_task_group() as tasks:
        for owner in (*(at("10.0.0.1", str(number)) for number in range(4)), at("10.0.0.2"), at("10.0.0.2", "b")):
            tasks.start_soon(use, owner)
            await anyio.wait_all_tasks_blocked()
        permits.release(at("10.0.0.1"))
    assert order == ["10.0.0.1", "10.0.0.2", "10.0.0.1", "10.0.0.2", "10.0.0.1", "10.0.0.1"]


async def test_one_address_leaves_half_of_the_places_however_many_sessions_it_has() -> None:
    permits = RunPermits(16)
    for number in range(16):
        await is_taken(permits, at("10.0.0.1", str(number)))
    assert not await is_free(permits, at("10.0.0.1", "new"))
    for number in range(7):
        assert await is_free(permits, at(f"10.0.1.{number}"))


async def test_a_client_with_many_programs_does_not_keep_another_waiting(tmp_path: Path, era: Era) -> None:
    """Over HTTP, where there are others. Those of 2026-07-28 count as one: nothing tells them apart."""
    forever = "while (true);"
    async with (
        http_service_of(tmp_path, options=ServeOptions(runs_at_once=2)) as http,
        Client(http.url, mode=era) as greedy,
        Client(http.url, mode="legacy") as other,
        anyio.create_task_group() as tasks,
    ):
        ended: list[object] = []

        async def compute() -> None:
            ended.append(await greedy.call_tool("run_code", {"code": forever}))

        for _ in range(3):
            tasks.start_soon(compute)
        with anyio.fail_after(30):
            while not http.service.watch.running:  # noqa: ASYNC110
                await anyio.sleep(0.01)
        assert (await run(other, "1 + 1"))["value"] == 2
        assert ended == []
        tasks.cancel_scope.cancel()


async def test_a_person_who_never_answers_holds_no_place(tmp_path: Path) -> None:
    asked = anyio.Event()

    async def never(*_: object) -> ElicitResult:
        asked.set()
        await anyio.sleep_forever()
        raise AssertionError

    async with (
        service_of(tmp_path, weather(), permissions=ASK, options=ServeOptions(runs_at_once=1)) as service,
        client_of(service, "legacy", never) as client,  # pyright: ignore[reportArgumentType]
        anyio.create_task_group() as tasks,
    ):
        for _ in range(2):
            tasks.start_soon(client.call_tool, "run_code", {"code": FORECAST})
        await asked.wait()
        with anyio.fail_after(30):
            assert (await run(client, "1 + 1"))["value"] == 2
        tasks.cancel_scope.cancel()
