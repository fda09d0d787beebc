"""What a server sends of its own accord: noise, notifications, progress, requests; bounded, and in nobody's way."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from servers.line_peer import Talk, talk

pytestmark = pytest.mark.anyio

NOISE = (
    b"Listening on stdio\n",
    b"\x1b[32mready\x1b[0m\n",
    b"\xff\xfe\n",
    b"[]\n",
    b"[1, null]\n",
    b"{}\n",
    b"null\n",
    b"12\n",
    b'"text"\n',
    b'{"level":"info","id":1,"result":{"forged":true}}\n',
    b'{"jsonrpc":"1.0","id":1,"result":{"forged":true}}\n',
    b'{"jsonrpc":"2.0"}\n',
    b'{"jsonrpc":"2.0","result":{"forged":true}}\n',
    b'{"jsonrpc":"2.0","method":5,"id":1}\n',
    b'{"jsonrpc":"2.0","method":"notifications/message","params":[1]}\n',
    b"[" * 100_000 + b"\n",
    b'{"n":' + b"1" * 5_000 + b"}\n",
)


def note(number: int = 0, method: str = "notifications/message") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": {"data": number}}


async def ask(session: Talk) -> dict[str, Any]:
    """One request that is answered rightly: the session is alive."""
    answer: dict[str, Any] = {}

    async def wait() -> None:
        answer.update(await session.dispatcher.send_raw_request("echo", {"n": 1}, {"timeout": 5}))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        request = await session.peer.hear()
        session.peer.say({"jsonrpc": "2.0", "id": request["id"], "result": {"right": True}})
    return answer


@pytest.mark.parametrize("line", NOISE, ids=lambda line: repr(line[:30]))
async def test_a_line_that_is_no_message_costs_itself_only(line: bytes) -> None:
    async with talk() as session:
        await session.peer.say_all(line)
        assert await ask(session) == {"right": True}
        assert session.dispatcher.problems.lines == 1
        assert session.notifications == []


@pytest.mark.parametrize("line", [b"\n", b"\r\n", b"  \t\n"])
async def test_a_blank_line_is_nothing_at_all(line: bytes) -> None:
    async with talk() as session:
        session.peer.say(line)
        assert await ask(session) == {"right": True}
        assert session.dispatcher.problems.lines == 0


async def test_problems_are_told_with_the_last_line() -> None:
    async with talk() as session:
        assert session.dispatcher.problems.summary() == ""
        session.peer.say(b"Listening\n")
        await ask(session)
        assert session.dispatcher.problems.summary() == "its stdout had a line that is not MCP: Listening"
        session.peer.say(b"x" * 5_000 + b"\n")
        await ask(session)
        summary = session.dispatcher.problems.summary()
        assert summary == "its stdout had 2 lines that are not MCP messages, the last: " + "x" * 1_000


async def test_an_error_for_nobody_explains_itself() -> None:
    async with talk() as session:
        session.peer.say({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}})
        await ask(session)
        assert "Parse error" in session.dispatcher.problems.summary()


async def test_the_messages_of_a_batch_are_taken_one_by_one() -> None:
    async with talk() as session:
        session.peer.say([note(1), 5, note(2), {"jsonrpc": "2.0", "id": "s1", "method": "ping"}])
        await session.until_noticed(2)
        assert await session.peer.hear() == {"jsonrpc": "2.0", "id": "s1", "result": {"method": "ping"}}
        assert session.dispatcher.problems.lines == 1


async def test_a_batch_is_bounded() -> None:
    async with talk(message_bytes=8 * 1024 * 1024) as session:
        await session.peer.say_all(json.dumps([{"jsonrpc": "2.0", "id": 99, "result": {}}] * 50_000).encode() + b"\n")
        assert await ask(session) == {"right": True}
        assert session.dispatcher.problems.stray_answers == 1_000
        assert session.dispatcher.problems.lines == 1


# ---- notifications


async def test_notifications_are_handled_in_order() -> None:
    async with talk() as session:
        session.peer.say(*(note(number) for number in range(100)))
        await session.until_noticed(100)
        assert session.notifications == [("notifications/message", {"data": number}) for number in range(100)]


async def test_an_intercepted_notification_goes_no_further() -> None:
    seen: list[str] = []

    def intercept(method: str, _params: Any) -> bool:
        seen.append(method)
        if method == "c":
            raise ZeroDivisionError
        return method == "a"

    async with talk(intercept=intercept) as session:
        session.peer.say(note(method="a"), note(method="b"), note(method="c"))
        await session.until_noticed(2)
        assert seen == ["a", "b", "c"]
        assert [method for method, _ in session.notifications] == ["b", "c"]


async def test_a_flood_of_notifications_holds_up_no_answer_and_is_dropped_where_nobody_keeps_up() -> None:
    async def stuck(*_: Any) -> None:
        await anyio.sleep_forever()

    async with talk(on_notify=stuck) as session:
        flood = b"".join(json.dumps(note(number)).encode() + b"\n" for number in range(5_000))
        await session.peer.say_all(flood)
        assert await ask(session) == {"right": True}
        assert session.dispatcher.problems.dropped_notifications == 5_000 - 256 - 1
        assert len(session.dispatcher._inbound._queue._waiting) == 256


async def test_large_notifications_are_bounded_by_their_bytes() -> None:
    async def stuck(*_: Any) -> None:
        await anyio.sleep_forever()

    async with talk(on_notify=stuck) as session:
        for _ in range(10):
            large = {"jsonrpc": "2.0", "method": "x", "params": {"text": "x" * 500_000}}
            await session.peer.say_all(json.dumps(large).encode() + b"\n")
        assert await ask(session) == {"right": True}
        assert session.dispatcher._inbound._queue._bytes < 1024 * 1024 + 500_000


async def test_progress_goes_to_the_request_it_belongs_to() -> None:
    reports: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, total, message))

    async with talk() as session, anyio.create_task_group() as tasks:

        async def wait() -> None:
            params = {"a": 1, "_meta": {"b": 2}}
            await session.dispatcher.send_raw_request("x", params, {"on_progress": on_progress})

        tasks.start_soon(wait)
        request = await session.peer.hear()
        token = request["params"]["_meta"]["progressToken"]
        assert request["params"] == {"a": 1, "_meta": {"b": 2, "progressToken": token}}

        def progress(**params: Any) -> dict[str, Any]:
            return {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, **params}}

        session.peer.say(
            progress(progress=1, total=4, message="one"),
            progress(progress=2, total="4", message=5),
            progress(progress=10**400),
            progress(progress=True),
            progress(progress="2"),
            progress(progressToken=True, progress=3),
            progress(progressToken=[], progress=3),
            progress(progressToken="other", progress=3),
            progress(progressToken=str(token), progress=4, total=10**400),
            {"jsonrpc": "2.0", "id": token, "result": {}},
        )
        await session.until_noticed(9)
        assert reports == [(1.0, 4.0, "one"), (2.0, None, None), (4.0, None, None)]


# ---- requests of the server


async def test_a_request_is_answered() -> None:
    async with talk() as session:
        session.peer.say({"jsonrpc": "2.0", "id": "7", "method": "ping", "params": {}})
        assert await session.peer.hear() == {"jsonrpc": "2.0", "id": "7", "result": {"method": "ping"}}


async def test_a_request_of_the_server_and_one_of_ours_may_have_the_same_id() -> None:
    async with talk() as session:
        session.peer.say({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        assert (await session.peer.hear())["result"] == {"method": "ping"}
        assert await ask(session) == {"right": True}


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (MCPError(-5, "no", {"a": 1}), -5, "no"),
        (MCPError(-5, "no", {1, 2}), -5, "no"),
        (ZeroDivisionError("/home/me/secret.py"), INTERNAL_ERROR, "Internal error"),
    ],
)
async def test_a_handler_that_fails_answers_with_an_error_that_tells_nothing_of_ours(
    error: Exception, code: int, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: Any) -> dict[str, Any]:
        raise error

    async with talk(on_request=fail) as session:
        session.peer.say({"jsonrpc": "2.0", "id": 1, "method": "x\ud800\x1b"})
        answer = await session.peer.hear()
        assert (answer["error"]["code"], answer["error"]["message"]) == (code, message)
        assert "secret" not in str(answer)


async def test_a_result_that_is_no_json_is_an_error_to_the_server() -> None:
    async def odd(*_: Any) -> dict[str, Any]:
        return {"value": object()}

    async with talk(on_request=odd) as session:
        session.peer.say({"jsonrpc": "2.0", "id": 1, "method": "x"})
        assert (await session.peer.hear())["error"]["code"] == INVALID_PARAMS


async def test_requests_are_handled_at_once_up_to_a_bound_and_refused_beyond() -> None:
    begun = 0

    async def slow(*_: Any) -> dict[str, Any]:
        nonlocal begun
        begun += 1
        await anyio.sleep_forever()
        raise AssertionError

    async with talk(on_request=slow) as session:
        session.peer.say(*({"jsonrpc": "2.0", "id": number, "method": "x"} for number in range(20)))
        refused = [await session.peer.hear() for _ in range(4)]
        await anyio.wait_all_tasks_blocked()
        assert begun == 16
        assert [answer["id"] for answer in refused] == [16, 17, 18, 19]
        assert {answer["error"]["code"] for answer in refused} == {-32000}
        assert await ask(session) == {"right": True}
        assert session.dispatcher.problems.refused_requests == 4


async def test_large_requests_are_bounded_by_their_bytes() -> None:
    async def slow(*_: Any) -> dict[str, Any]:
        await anyio.sleep_forever()
        raise AssertionError

    async with talk(on_request=slow) as session:
        for number in range(3):
            large = {"jsonrpc": "2.0", "id": number, "method": "x", "params": {"text": "x" * 500_000}}
            await session.peer.say_all(json.dumps(large).encode() + b"\n")
        answer = await session.peer.hear()
        assert (answer["id"], answer["error"]["code"]) == (2, -32000)


async def test_a_flood_of_requests_from_a_server_that_does_not_read_piles_up_nothing() -> None:
    async with talk() as session:
        flood = b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % number for number in range(40_000))
        await session.peer.say_all(flood)
        await anyio.wait_all_tasks_blocked()
        assert session.dispatcher._write_queue._waiting_bytes < 1024 * 1024 + 100_000
        assert session.dispatcher.problems.unsent_messages > 0


@pytest.mark.parametrize("wire_id", [None, True, 1.5, [], {}])
async def test_a_request_without_a_real_id_is_not_answered(wire_id: object) -> None:
    async with talk() as session:
        session.peer.say({"jsonrpc": "2.0", "id": wire_id, "method": "ping"})
        assert await ask(session) == {"right": True}
        assert session.dispatcher.problems.refused_requests == 1


async def test_params_that_are_no_object_are_refused() -> None:
    async with talk() as session:
        session.peer.say({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]})
        assert (await session.peer.hear())["error"]["code"] == INVALID_PARAMS


async def test_a_request_that_the_server_takes_back_is_ended_and_not_answered() -> None:
    ended: list[bool] = []

    async def slow(context: Any, *_: Any) -> dict[str, Any]:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(context.cancel_requested.is_set())
        raise AssertionError

    async with talk(on_request=slow) as session:
        session.peer.say({"jsonrpc": "2.0", "id": 5, "method": "x"}, {"jsonrpc": "2.0", "id": 5, "method": "twice"})
        await anyio.wait_all_tasks_blocked()
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "5"}}
        session.peer.say(cancelled, {**cancelled, "params": {"requestId": []}})
        assert await ask(session) == {"right": True}
        assert ended == [True]


async def test_a_handler_can_ask_back_and_report_progress_until_it_is_done() -> None:
    contexts: list[Any] = []

    async def handle(context: Any, *_: Any) -> dict[str, Any]:
        contexts.append(context)
        await context.progress(1, 2, "half")
        return await context.send_raw_request("back", None)

    async with talk(on_request=handle) as session:
        session.peer.say({"jsonrpc": "2.0", "id": 5, "method": "x", "params": {"_meta": {"progressToken": "t"}}})
        progress = {"progressToken": "t", "progress": 1, "total": 2, "message": "half"}
        assert (await session.peer.hear())["params"] == progress
        back = await session.peer.hear()
        session.peer.say({"jsonrpc": "2.0", "id": back["id"], "result": {"asked": "back"}})
        assert await session.peer.hear() == {"jsonrpc": "2.0", "id": 5, "result": {"asked": "back"}}
        (context,) = contexts
        assert not context.can_send_request
        with pytest.raises(MCPError):
            await context.send_raw_request("late", None)
        await context.progress(2)
        assert await session.peer.hears_nothing()
