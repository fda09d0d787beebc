"""Requests of ours over lines: answered, timed out, cancelled, closed; and never stuck behind a full pipe."""

from __future__ import annotations

import itertools
import re
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError

from servers.line_peer import LinePeer, Talk, talk
from toolbridge.servers.failures import BadAnswerError, ChannelClosedError, RequestTimedOutError
from toolbridge.servers.jsonrpc import LineDispatcher

pytestmark = pytest.mark.anyio

LONG = "x" * 300_000


class Asked:
    """A request in a task of its own, and what became of it."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self._outcome: Any = None
        self._settled = anyio.Event()

    async def outcome(self) -> Any:
        """What came back, or the error that did."""
        await self._settled.wait()
        return self._outcome

    async def ask(self, session: Talk, params: dict[str, Any] | None = None, opts: CallOptions | None = None) -> None:
        with self.scope:
            try:
                self._outcome = await session.dispatcher.send_raw_request("tools/call", params, opts)
            except Exception as error:
                self._outcome = error
            self._settled.set()


async def test_a_request_and_its_answer() -> None:
    async with talk() as session, anyio.create_task_group() as tasks:
        asked = Asked()
        tasks.start_soon(asked.ask, session, {"name": "add"})
        request = await session.peer.hear()
        assert request == {
            "jsonrpc": "2.0",
            "id": request["id"],
            "method": "tools/call",
            "params": {"name": "add"},
        }
        session.peer.say({"jsonrpc": "2.0", "id": request["id"], "result": {"sum": 3}})
        assert await asked.outcome() == {"sum": 3}


@pytest.mark.parametrize("params", [None, {}])
async def test_empty_params_are_left_out(params: dict[str, Any] | None) -> None:
    async with talk() as session, anyio.create_task_group() as tasks:
        tasks.start_soon(Asked().ask, session, params, CallOptions(timeout=0.1))
        assert "params" not in await session.peer.hear()


async def test_answers_find_their_requests_in_any_order() -> None:
    async with talk() as session:
        asked = [Asked() for _ in range(20)]
        async with anyio.create_task_group() as tasks:
            for number, one in enumerate(asked):
                tasks.start_soon(one.ask, session, {"n": number})
            requests = [await session.peer.hear() for _ in asked]
            for request in reversed(requests):
                session.peer.say({"jsonrpc": "2.0", "id": str(request["id"]), "result": request["params"]})
        assert [await one.outcome() for one in asked] == [{"n": number} for number in range(20)]


async def test_an_id_of_the_callers_choice_goes_out_as_it_is() -> None:
    async with talk() as session, anyio.create_task_group() as tasks:
        chosen, minted = Asked(), Asked()
        tasks.start_soon(chosen.ask, session, None, CallOptions(request_id="1"))
        assert (await session.peer.hear())["id"] == "1"
        with pytest.raises(ValueError, match="already in flight"):
            await session.dispatcher.send_raw_request("x", None, {"request_id": 1})
        tasks.start_soon(minted.ask, session)
        new = (await session.peer.hear())["id"]
        session.peer.say({"jsonrpc": "2.0", "id": new, "result": {"n": 2}}, {"jsonrpc": "2.0", "id": 1, "result": {}})
        assert (await chosen.outcome(), await minted.outcome()) == ({}, {"n": 2})


async def test_ids_are_new_fit_into_31_bits_and_do_not_count_up() -> None:
    async with talk() as session:
        ids: list[int] = []
        for _ in range(50):
            with pytest.raises(RequestTimedOutError):
                await session.dispatcher.send_raw_request("x", None, {"timeout": 0.001, "cancel_on_abandon": False})
            ids.append((await session.peer.hear())["id"])
    assert len(set(ids)) == 50
    assert all(0 < one < 2**31 for one in ids)
    assert all(abs(after - before) > 1000 for before, after in itertools.pairwise(ids))


async def test_an_error_of_the_server_is_raised_with_its_code_and_data() -> None:
    async with talk() as session, anyio.create_task_group() as tasks:
        asked = Asked()
        tasks.start_soon(asked.ask, session)
        request = await session.peer.hear()
        session.peer.say(
            {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32000, "message": "no", "data": [1]}}
        )
        error = await asked.outcome()
        assert type(error) is MCPError  # the code of a closed connection does not make it one
        assert (error.code, error.message, error.data) == (-32000, "no", [1])


# ---- giving up


async def test_a_timeout_is_our_own_error_and_tells_the_server() -> None:
    async with talk() as session:
        with pytest.raises(RequestTimedOutError) as raised:
            await session.dispatcher.send_raw_request("slow", None, {"timeout": 0.05})
        assert "0.05 s" in raised.value.message
        request = await session.peer.hear()
        assert request["method"] == "slow"
        assert await session.peer.hear() == {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": request["id"], "reason": "the caller no longer waits for the answer"},
        }


async def test_a_cancelled_caller_tells_the_server() -> None:
    async with talk() as session, anyio.create_task_group() as tasks:
        asked = Asked()
        tasks.start_soon(asked.ask, session)
        request = await session.peer.hear()
        asked.scope.cancel()
        assert (await session.peer.hear())["params"]["requestId"] == request["id"]


async def test_where_the_protocol_forbids_it_the_server_is_not_told() -> None:
    async with talk() as session:
        with pytest.raises(RequestTimedOutError):
            await session.dispatcher.send_raw_request("x", None, {"timeout": 0.01, "cancel_on_abandon": False})
        await session.peer.hear()
        assert await session.peer.hears_nothing()


async def test_a_caller_who_is_cancelled_before_it_asks_asks_nothing() -> None:
    async with talk() as session:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await session.dispatcher.send_raw_request("x", None)
        assert scope.cancelled_caught
        assert await session.peer.hears_nothing()


@pytest.mark.parametrize("seconds", [0, -1])
async def test_without_any_time_left_nothing_is_sent(seconds: float) -> None:
    async with talk() as session:
        with pytest.raises(RequestTimedOutError):
            await session.dispatcher.send_raw_request("x", None, {"timeout": seconds})
        assert await session.peer.hears_nothing()


async def test_late_and_second_answers_are_counted_and_answer_nobody_else() -> None:
    async with talk() as session, anyio.create_task_group() as tasks:
        with pytest.raises(RequestTimedOutError):
            await session.dispatcher.send_raw_request("slow", None, {"timeout": 0.01})
        asked = Asked()
        tasks.start_soon(asked.ask, session)
        first, _, second = [await session.peer.hear() for _ in range(3)]
        late = {"jsonrpc": "2.0", "id": first["id"], "result": {"late": True}}
        right = {"jsonrpc": "2.0", "id": second["id"], "result": {"right": True}}
        session.peer.say(late, right, {**right, "result": {"second": True}})
        assert await asked.outcome() == {"right": True}
        while session.dispatcher.problems.stray_answers < 2:
            await anyio.lowlevel.checkpoint()


# ---- a server that does not read


async def test_a_full_pipe_holds_up_neither_a_timeout_nor_a_cancellation() -> None:
    async with talk() as session, anyio.create_task_group() as tasks:
        asked = [Asked() for _ in range(3)]
        for one in asked:
            tasks.start_soon(one.ask, session, {"text": LONG}, CallOptions(timeout=0.05))
        cancelled = Asked()
        tasks.start_soon(cancelled.ask, session, {"text": LONG})
        await anyio.wait_all_tasks_blocked()
        cancelled.scope.cancel()
        for one in asked:
            assert isinstance(await one.outcome(), RequestTimedOutError)
        # Only the one of which a part was written is still there, with the word that nobody waits for it.
        first, second = await session.peer.hear(), await session.peer.hear()
        assert first["id"] == second["params"]["requestId"]
        assert await session.peer.hears_nothing()


async def test_what_a_server_never_reads_does_not_pile_up() -> None:
    async with talk() as session:
        for _ in range(100):
            with pytest.raises(RequestTimedOutError):
                await session.dispatcher.send_raw_request("x", {"text": LONG}, {"timeout": 0.001})
            await session.dispatcher.notify("notifications/note", {"text": LONG})
        assert session.dispatcher._write_queue._waiting_bytes < 3 * 1024 * 1024
        assert session.dispatcher.problems.unsent_messages > 90


async def test_a_server_that_closed_its_stdin_ends_the_channel_after_its_last_answers() -> None:
    async with talk() as session, anyio.create_task_group() as tasks:
        asked = Asked()
        tasks.start_soon(asked.ask, session)
        request = await session.peer.hear()
        session.peer.close_stdin()
        session.peer.say({"jsonrpc": "2.0", "id": request["id"], "result": {"last": True}})
        with pytest.raises(ChannelClosedError):
            await session.dispatcher.send_raw_request("x", None)
        await session.ended.wait()
        assert await asked.outcome() == {"last": True}


# ---- the end


async def test_the_end_of_the_stream_fails_who_waits_and_who_asks_later() -> None:
    async with talk() as session, anyio.create_task_group() as tasks:
        asked = Asked()
        tasks.start_soon(asked.ask, session)
        await session.peer.hear()
        session.peer.close_stdout()
        await session.ended.wait()
        assert isinstance(await asked.outcome(), ChannelClosedError)
        with pytest.raises(ChannelClosedError):
            await session.dispatcher.send_raw_request("x", None)
        await session.dispatcher.notify("notifications/note", None)


async def test_a_peer_that_is_gone_ends_the_channel_though_its_pipe_stays_open_and_full() -> None:
    async with talk() as session, anyio.create_task_group() as tasks:
        answered, unanswered = Asked(), Asked()
        tasks.start_soon(answered.ask, session)
        request = await session.peer.hear()
        tasks.start_soon(unanswered.ask, session)
        await session.peer.hear()
        session.peer.say({"jsonrpc": "2.0", "id": request["id"], "result": {"last": True}}, b'{"jsonrpc":"2.0","id"')
        session.peer.go()
        await session.ended.wait()
        assert await answered.outcome() == {"last": True}
        assert isinstance(await unanswered.outcome(), ChannelClosedError)


async def test_a_last_line_without_a_newline_is_an_answer() -> None:
    async with talk() as session, anyio.create_task_group() as tasks:
        asked = Asked()
        tasks.start_soon(asked.ask, session)
        request = await session.peer.hear()
        session.peer.say(b'{"jsonrpc":"2.0","id":%d,"result":{"last":true}}' % request["id"])
        session.peer.close_stdout()
        await session.ended.wait()
        assert await asked.outcome() == {"last": True}


async def test_cancelling_run_fails_who_waits() -> None:
    peer = LinePeer()
    dispatcher = LineDispatcher(peer, 1000)
    raised: list[Exception] = []

    async def never(*_: Any) -> Any:
        raise AssertionError

    async def ask() -> None:
        try:
            await dispatcher.send_raw_request("x", None)
        except ChannelClosedError as error:
            raised.append(error)

    async with anyio.create_task_group() as outer, anyio.create_task_group() as tasks:
        await tasks.start(dispatcher.run, never, never)
        outer.start_soon(ask)
        await peer.hear()
        tasks.cancel_scope.cancel()
    assert len(raised) == 1
    with pytest.raises(RuntimeError):
        await dispatcher.run(never, never)
    peer.pipes.close()


async def test_a_request_before_run_is_a_mistake_of_ours() -> None:
    peer = LinePeer()
    with pytest.raises(RuntimeError):
        await LineDispatcher(peer, 1000).send_raw_request("x", None)
    peer.pipes.close()


# ---- answers that are none


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"jsonrpc":"2.0","id":ID,"result":{"text":"' + b"x" * 2_000 + b'"}}\n', r"too long: 20\d\d bytes"),
        (b'{"result":{"text":"' + b"x" * 2_000 + b'"},"jsonrpc":"2.0","id":ID}\n', "too long"),
        (b'{"jsonrpc":"2.0","id":ID,"result":{"text":"\x00"}}\n', "not JSON"),
        (b'{"jsonrpc":"2.0","id":ID,"result":{"list":' + b"[" * 900 + b"}}\n", "not JSON"),
        (b'{"jsonrpc":"2.0","id":ID,"result":"text"}\n', "not an object"),
        (b'{"jsonrpc":"2.0","id":ID}\n', "neither a result nor an error"),
    ],
)
async def test_an_unreadable_answer_fails_its_request_at_once_and_no_other(line: bytes, words: str) -> None:
    async with talk(message_bytes=1000) as session, anyio.create_task_group() as tasks:
        asked, other = Asked(), Asked()
        tasks.start_soon(asked.ask, session)
        first = await session.peer.hear()
        tasks.start_soon(other.ask, session)
        second = await session.peer.hear()
        line = line.replace(b"ID", b"%d" % first["id"])
        session.peer.say(line, {"jsonrpc": "2.0", "id": second["id"], "result": {"fine": True}})
        error = await asked.outcome()
        assert isinstance(error, BadAnswerError)
        assert re.search(words, error.message)
        assert await other.outcome() == {"fine": True}


async def test_params_that_are_no_json_are_the_callers_error_and_send_nothing() -> None:
    async with talk() as session:
        with pytest.raises(MCPError, match="can't be written as JSON"):
            await session.dispatcher.send_raw_request("x", {"value": float("nan")})
        assert await session.peer.hears_nothing()
