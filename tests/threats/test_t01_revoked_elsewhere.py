"""T1, what a person takes back in another terminal, a host that is at work closes before it runs anything more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from runtime.programs import FORECAST
from runtime.worlds import check_failure, runtime_of, value_of, weather_process
from serve.serving import Person, approve, client_of, no, run, service_of
from toolbridge import CallbackApprover, StoredApprovals, TerminalApprover
from toolbridge.approval import Approver
from toolbridge.trust.approval.store import ApprovalStore

pytestmark = pytest.mark.anyio

WEATHER = weather_process()
CALL = 'get_forecast({ location: "Austin, TX" })'


def revoke(store: ApprovalStore) -> None:
    store.revoke("weather")


def disable(store: ApprovalStore) -> None:
    store.set_enabled(WEATHER, False)


def spoil(store: ApprovalStore) -> None:
    Path(store.path).write_text("{}")


TAKEN_BACK: dict[str, tuple[Callable[[ApprovalStore], None], str]] = {
    "revoked": (revoke, "its approval was revoked"),
    "disabled": (disable, "you disabled it"),
    "spoilt": (spoil, "can't be used"),
}


async def refuse(_request: object) -> bool:
    return False


APPROVERS: dict[str, Callable[[ApprovalStore], Approver]] = {
    "stored": StoredApprovals,
    "terminal": TerminalApprover,
    "callback": lambda store: CallbackApprover(refuse, store=store),
}


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize("how", TAKEN_BACK)
async def test_a_server_is_closed_before_the_next_run(tmp_path: Path, how: str) -> None:
    take_back, words = TAKEN_BACK[how]
    approve(tmp_path, WEATHER)
    store = ApprovalStore(tmp_path / "approvals")
    async with runtime_of(tmp_path, WEATHER, approver=StoredApprovals(store)) as runtime, runtime.session() as session:
        value_of(await session.run(f'const {{ get_forecast }} = require("host:mcp-weather"); {CALL}'))
        take_back(ApprovalStore(tmp_path / "approvals"))
        check_failure(await session.run(CALL), "denied", words)
        check_failure(await runtime.run(FORECAST.javascript), "denied", words)
        assert runtime.servers.status("weather").state == "needs_approval"


@pytest.mark.parametrize("who", APPROVERS)
async def test_whoever_goes_by_the_store_takes_notice_of_it(tmp_path: Path, who: str) -> None:
    approve(tmp_path, WEATHER)
    store = ApprovalStore(tmp_path / "approvals")
    async with runtime_of(tmp_path, WEATHER, approver=APPROVERS[who](store)) as runtime:
        value_of(await runtime.run(FORECAST.javascript))
        store.set_enabled(weather_process("other"), False)  # the file is another, and this server's entry is not
        await runtime.servers.close_revoked()
        assert runtime.servers.status("weather").state == "connected"
        revoke(store)
        async with anyio.create_task_group() as tasks:  # each of them waits until it is closed
            for _ in range(3):
                tasks.start_soon(runtime.servers.close_revoked)
        assert runtime.servers.status("weather").state == "closed"
        assert (await runtime.run(FORECAST.javascript)).failure is not None


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_served_program_does_not_reach_it_and_the_person_is_asked_again(tmp_path: Path) -> None:
    approve(tmp_path, WEATHER)
    person = Person(no)
    async with service_of(tmp_path, WEATHER) as service, client_of(service, "auto", person) as client:
        assert (await run(client, FORECAST.javascript))["failure"] is None
        revoke(ApprovalStore(tmp_path / "approvals"))
        assert "the person said no" in (await run(client, FORECAST.javascript))["failure"]["text"]
        assert len(person.asked) == 1
