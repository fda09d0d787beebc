"""Renewing a sign-in whose refresh token counts once: beside other processes, and for requests that are given up."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp.shared.auth import OAuthToken
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from servers.auth.test_oauth import browser, initialize, kept
from servers.authorization_server import ProtectedServer, json_answer, protected_server
from servers.http_servers import LIMITS, config, place, session, until
from toolbridge.errors import ServerConnectError
from toolbridge.servers.auth import oauth as oauth_renewal
from toolbridge.servers.auth import tokens as oauth_kept
from toolbridge.servers.auth import tokens as token_store
from toolbridge.servers.auth.tokens import Credentials, TokenStore
from toolbridge.servers.http.transport import sign_in_to

pytestmark = pytest.mark.anyio


@pytest.fixture
def protected() -> Generator[ProtectedServer]:
    with protected_server() as server:
        yield server


@pytest.fixture
async def store(tmp_path: Path, protected: ProtectedServer) -> TokenStore:
    """With a sign-in."""
    store = TokenStore(tmp_path / "tokens", use_keyring=False)
    await sign_in_to(config(protected.url), {}, LIMITS, sign_in=browser(protected), store=store)
    return store


class HeldAnswer:
    """The authorization server has taken a refresh token, and does not say so before it is let go."""

    def __init__(self, server: ProtectedServer) -> None:
        self.taken, self._let_go = threading.Event(), threading.Event()
        exchange = server.provider.exchange_refresh_token

        async def held(*given: Any, **named: Any) -> OAuthToken:
            answer = await exchange(*given, **named)
            self.taken.set()
            await anyio.to_thread.run_sync(self._let_go.wait, 20)
            return answer

        server.provider.exchange_refresh_token = held

    def let_go(self) -> None:
        self._let_go.set()


async def given_up(running: Any, answer: HeldAnswer) -> None:
    """A request that is cancelled in the middle of a renewal."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(initialize, running)
        await until(answer.taken.is_set)
        tasks.cancel_scope.cancel()


def renewals(server: ProtectedServer) -> int:
    return server.authorization.paths.count("/token") - len(server.visited)


# ---- beside other processes


async def test_what_another_process_has_renewed_is_taken_over_before_it_is_renewed_again(
    protected: ProtectedServer, store: TokenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with session(protected.url, store=store) as one, session(protected.url, store=store) as other:
        await initialize(one)
        await initialize(other)
        monkeypatch.setattr(oauth_kept, "time", SimpleNamespace(time=lambda: time.time() + 4000))
        protected.provider.lifetime = 100_000
        await initialize(one)
        await initialize(other)
    assert renewals(protected) == 1
    assert (await kept(store, protected)).tokens is not None


async def test_two_that_renew_at_once_do_so_once(protected: ProtectedServer, store: TokenStore) -> None:
    protected.forget_access()
    sessions = [session(protected.url, store=store) for _ in range(2)]
    async with sessions[0] as one, sessions[1] as other, anyio.create_task_group() as tasks:
        tasks.start_soon(initialize, one)
        tasks.start_soon(initialize, other)
    assert renewals(protected) == 1


async def test_a_refused_refresh_leaves_the_other_processes_tokens(
    protected: ProtectedServer, store: TokenStore
) -> None:
    """As when the other one could not have the lock, or is of a version that knows none."""
    before = await kept(store, protected)
    protected.forget_access()
    issued = protected.provider._issue(next(iter(protected.provider.clients)), ["read"], protected.url)
    renewed = Credentials(
        tokens=issued.model_dump(mode="json"),
        expires_at=time.time() + 3600,
        client=before.client,
        authorization_server=before.authorization_server,
        resource=before.resource,
    )

    class RefusedMeanwhile(Response):
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            await store.save("weather", place(protected.url), renewed)
            await json_answer({"error": "invalid_grant"}, 400)(scope, receive, send)

    protected.authorization.instead["/token"] = RefusedMeanwhile()
    async with session(protected.url, store=store) as running:
        await initialize(running)
    assert await kept(store, protected) == renewed


async def test_a_lock_that_another_process_does_not_let_go_of_is_not_waited_for_without_end(
    protected: ProtectedServer, store: TokenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_store, "_LOCK_SECONDS", 0.2)
    protected.forget_access()
    async with store.exclusive("weather", place(protected.url)), session(protected.url, store=store) as running:
        await initialize(running)
    assert renewals(protected) == 1


async def test_a_place_for_the_lock_that_can_not_be_used_costs_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    async with TokenStore(tmp_path / "file" / "tokens", use_keyring=False).exclusive("weather", "https://x.example"):
        assert "without a lock" in caplog.text


# ---- for requests that are given up


async def test_a_renewal_that_nobody_waits_for_any_more_is_seen_through(
    protected: ProtectedServer, store: TokenStore
) -> None:
    protected.forget_access()
    answer = HeldAnswer(protected)
    async with session(protected.url, store=store) as running:
        await given_up(running, answer)
        answer.let_go()
        await initialize(running)
    assert renewals(protected) == 1
    assert len(protected.visited) == 1


async def test_a_channel_that_closes_waits_for_the_renewal(protected: ProtectedServer, store: TokenStore) -> None:
    protected.forget_access()
    answer = HeldAnswer(protected)
    async with session(protected.url, store=store) as running:
        await given_up(running, answer)
        threading.Timer(0.3, answer.let_go).start()
    async with session(protected.url, store=store) as running:
        await initialize(running)
    assert renewals(protected) == 1


async def test_a_channel_that_closes_does_not_wait_for_long(
    protected: ProtectedServer, store: TokenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oauth_renewal, "_LAST_SECONDS", 0.1)
    protected.forget_access()
    answer = HeldAnswer(protected)
    try:
        with anyio.fail_after(60):
            async with session(protected.url, store=store) as running:
                await given_up(running, answer)
    finally:
        answer.let_go()


@pytest.mark.parametrize("how", [Response(b"{}"), Response(b"", 307, headers={"location": "/elsewhere"})])
async def test_an_authorization_server_that_answers_badly_does_not_cost_the_sign_in(
    protected: ProtectedServer, store: TokenStore, how: Response
) -> None:
    protected.forget_access()
    protected.authorization.instead = {"/token": how, "/elsewhere": how}
    async with session(protected.url, store=store) as running:
        with pytest.raises(ServerConnectError, match="could not be renewed"):
            await initialize(running)
        protected.authorization.instead = {}
        await initialize(running)
    assert len(protected.visited) == 1
