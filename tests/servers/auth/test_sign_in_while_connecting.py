"""A person signs in while a server is connected, or called: no deadline that is the server's is theirs."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import keyring.core
import pytest
from keyring.backends import fail
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from servers.authorization_server import ProtectedServer, protected_server
from servers.fault_run import ApproveAll
from toolbridge import Config, ServerConfig, ServerManager
from toolbridge.errors import ServerTimeoutError
from toolbridge.servers.auth.sign_in import BrowserSignIn, SignIn, SignInAttempt, SignInLock
from toolbridge.servers.connection import pausable, waiting_for_a_person

pytestmark = pytest.mark.anyio

SERVERS_SECONDS = 6.0
PERSONS_SECONDS = 7.0


@pytest.fixture
def protected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[ProtectedServer]:
    monkeypatch.setenv("TOOLBRIDGE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(keyring.core, "_keyring_backend", fail.Keyring())
    with protected_server() as server:
        yield server


def manager_of(server: ProtectedServer, sign_in: SignIn) -> ServerManager:
    config = ServerConfig.http("weather", server.url, connect_timeout=SERVERS_SECONDS, call_timeout=SERVERS_SECONDS)
    return ServerManager(Config.of(config), approver=ApproveAll(), sign_in=sign_in)


class _NeverAnswered(Response):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass


def slow_person(server: ProtectedServer) -> BrowserSignIn:
    def open_page(page: str) -> None:
        time.sleep(PERSONS_SECONDS)
        server.sign_in(page)

    return BrowserSignIn(seconds=60, open_page=open_page)


async def test_connecting_waits_for_a_person_who_takes_longer_than_a_server_may(protected: ProtectedServer) -> None:
    async with manager_of(protected, slow_person(protected)) as manager:
        listing = await manager.connect("weather")
    assert [tool.name for tool in listing.tools] == ["forecast"]


async def test_a_call_waits_for_a_person_who_takes_longer_than_a_call_may(protected: ProtectedServer) -> None:
    people = [BrowserSignIn(seconds=60, open_page=protected.sign_in), slow_person(protected)]

    class OneAfterTheOther:
        def attempt(self, server: str, *, port: int | None, fixed: bool) -> AbstractAsyncContextManager[SignInAttempt]:
            return people.pop(0).attempt(server, port=port, fixed=fixed)

    async with manager_of(protected, OneAfterTheOther()) as manager:
        await manager.connect("weather")
        protected.forget_access()
        protected.provider.refresh.clear()
        answer = await manager.call("weather", "forecast", {"city": "Bern"})
    assert "Sunny in Bern" in str(answer)
    assert people == []


async def test_a_server_that_is_slow_after_the_sign_in_still_runs_out_of_time(protected: ProtectedServer) -> None:
    def open_page(page: str) -> None:
        protected.resource.instead["/mcp"] = _NeverAnswered()
        protected.sign_in(page)

    async with manager_of(protected, BrowserSignIn(seconds=60, open_page=open_page)) as manager:
        with pytest.raises(ServerTimeoutError):
            await manager.connect("weather")
    assert len(protected.visited) == 1


async def test_all_deadlines_stand_still_and_go_on_with_what_was_left() -> None:
    outer, inner = (anyio.CancelScope(deadline=anyio.current_time() + seconds) for seconds in (100, 50))
    with pausable(outer), pausable(inner):
        with waiting_for_a_person(), waiting_for_a_person():
            assert (outer.deadline, inner.deadline) == (float("inf"), float("inf"))
        assert 90 < outer.deadline - anyio.current_time() <= 100
        assert 40 < inner.deadline - anyio.current_time() <= 50


async def test_a_deadline_that_was_lifted_meanwhile_does_not_come_back() -> None:
    scope = anyio.CancelScope(deadline=anyio.current_time() + 100)
    with pausable(scope) as deadline, waiting_for_a_person():
        deadline.lift()
    assert scope.deadline == float("inf")


async def test_who_waits_in_line_waits_for_the_person_who_is_asked_only_then() -> None:
    turns = SignInLock()
    scopes: list[anyio.CancelScope] = []

    async def come_second() -> None:
        with anyio.CancelScope(deadline=anyio.current_time() + 100) as scope, pausable(scope):
            scopes.append(scope)
            async with turns.held():
                pass
            assert 90 < scope.deadline - anyio.current_time() <= 100

    async with anyio.create_task_group() as tasks, turns.held():
        tasks.start_soon(come_second)
        await anyio.wait_all_tasks_blocked()
        assert scopes[0].deadline < float("inf")
        with turns.asking():
            assert scopes[0].deadline == float("inf")
