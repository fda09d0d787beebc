"""Streamable HTTP: every way in which an answer can be wrong, and every form in which it can be right."""

from __future__ import annotations

import gzip
import json
import time
import zlib
from collections.abc import Callable
from dataclasses import replace

import anyio
import pytest
from anyio.abc import SocketStream
from mcp.shared.exceptions import MCPError

from growth import patience
from servers.http_servers import (
    EVENTS_HEAD,
    LIMITS,
    Answer,
    Received,
    answered,
    chunk,
    events,
    hang_up,
    raw_server,
    reply,
    result,
    session,
)
from toolbridge.errors import ServerConnectError, ServerDisconnectedError, ServerError
from toolbridge.servers.failures import BadAnswerError, RequestTimedOutError
from toolbridge.servers.http.answers import HttpStatusError

pytestmark = pytest.mark.anyio


def broken(*pieces: bytes) -> Answer:
    """Answers `tools/call` with these bytes and hangs up; everything else properly."""

    async def answer(request: Received, stream: SocketStream) -> None:
        if request.rpc != "tools/call":
            await stream.send(reply(result(request)))
            return
        for piece in pieces:
            await stream.send(piece)
        hang_up()

    return answer


DEEP = b"[" * 100_000 + b"]" * 100_000
HTML = "<html><script>alert(1)</script>\x1b[31m</html>"

FAULTS: dict[str, tuple[Answer, type[Exception], str]] = {
    "hangs up": (broken(), ServerDisconnectedError, "broke off"),
    "half a status line": (broken(b"HTTP/1.1 20"), ServerDisconnectedError, "broke off"),
    "no HTTP": (broken(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), ServerDisconnectedError, "broke off"),
    "half a JSON body": (
        broken(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"),
        ServerDisconnectedError,
        "broke off",
    ),
    "half an event": (
        broken(EVENTS_HEAD, chunk(b'data: {"jsonrpc":')),
        BadAnswerError,
        "ended before the answer",
    ),
    "an event stream without events": (
        broken(EVENTS_HEAD, b"0\r\n\r\n"),
        BadAnswerError,
        "ended before the answer",
    ),
    "a body that is no JSON": (answered(lambda _: reply("nonsense")), BadAnswerError, "not JSON"),
    "notifications only": (
        answered(lambda _: reply({"jsonrpc": "2.0", "method": "notifications/x"})),
        BadAnswerError,
        "other messages only",
    ),
    "an event that is no JSON": (
        answered(lambda _: reply(events(b"nonsense"), kind="text/event-stream")),
        BadAnswerError,
        "not JSON",
    ),
    "an event with the id of another": (
        answered(lambda r: reply(events({**result(r), "id": 999}), kind="text/event-stream")),
        BadAnswerError,
        "id of another",
    ),
    "an answer in an event that is no JSON": (
        answered(
            lambda r: reply(
                events(json.dumps(result(r, {"x": "Y"})).encode().replace(b"Y", b"\x00")), kind="text/event-stream"
            )
        ),
        BadAnswerError,
        "not JSON",
    ),
    "an empty body": (answered(lambda _: reply(b"")), BadAnswerError, "not JSON"),
    "JSON that is no message": (answered(lambda _: reply([1, "two", None])), BadAnswerError, "no JSON-RPC message"),
    "a number": (answered(lambda _: reply(b"7")), BadAnswerError, "no JSON-RPC message"),
    "an empty batch": (answered(lambda _: reply(b"[]")), BadAnswerError, "no JSON-RPC message"),
    "invalid UTF-8": (answered(lambda _: reply(b'{"result": "\xff\xfe"}')), BadAnswerError, "id of another"),
    "JSON 100,000 deep": (answered(lambda _: reply(DEEP)), BadAnswerError, "not JSON"),
    "the id of another": (answered(lambda r: reply({**result(r), "id": 999})), BadAnswerError, "id of another"),
    "no id": (answered(lambda _: reply({"jsonrpc": "2.0", "result": {}})), BadAnswerError, "id of another"),
    "true as an id": (answered(lambda r: reply({**result(r), "id": True})), BadAnswerError, "id of another"),
    "a result that is no object": (answered(lambda r: reply(result(r, [1]))), BadAnswerError, "not an object"),
    "neither result nor error": (
        answered(lambda r: reply({"jsonrpc": "2.0", "id": r.message["id"]})),
        BadAnswerError,
        "neither a result nor an error",
    ),
    "an error that is no object": (
        answered(lambda r: reply({"jsonrpc": "2.0", "id": r.message["id"], "error": "no"})),
        BadAnswerError,
        "not an object",
    ),
    "a web page": (answered(lambda _: reply(HTML, kind="text/html")), BadAnswerError, "text/html in place of JSON"),
    "no content type": (
        broken(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"),
        BadAnswerError,
        "no content type in place of JSON",
    ),
    "202 for a request": (answered(lambda _: reply(status="202 Accepted", kind="text/plain")), BadAnswerError, "202"),
    "204 for a request": (broken(b"HTTP/1.1 204 No Content\r\n\r\n"), BadAnswerError, "204"),
    "gzip that is none": (
        answered(lambda r: reply(result(r), headers={"content-encoding": "gzip"})),
        BadAnswerError,
        "said to be compressed",
    ),
    "an encoding that was not asked for": (
        answered(lambda r: reply(result(r), headers={"content-encoding": "br"})),
        BadAnswerError,
        "not asked for",
    ),
    "400": (answered(lambda _: reply(HTML, status="400 Bad", kind="text/html")), HttpStatusError, "400 Bad Request"),
    "401": (
        answered(lambda _: reply(HTML, status="401 Unauthorized", kind="text/html")),
        ServerConnectError,
        "401 Unauthorized: it wants a sign-in: run `toolbridge sign-in weather`",
    ),
    "403": (answered(lambda _: reply(HTML, status="403 No", kind="text/html")), HttpStatusError, "does not allow"),
    "404": (answered(lambda _: reply(HTML, status="404 No", kind="text/html")), HttpStatusError, "MCP endpoint"),
    "405": (answered(lambda _: reply(b"", status="405 No")), HttpStatusError, "sse"),
    "418": (answered(lambda _: reply(b"", status="418 I'm \x1b[31ma teapot")), HttpStatusError, "418 I'm a Teapot"),
    "429": (
        answered(lambda _: reply(b"", status="429 No", headers={"retry-after": "7"})),
        HttpStatusError,
        "too many requests, and asks to wait for 7 s",
    ),
    "500": (answered(lambda _: reply(HTML, status="500 Oops", kind="text/html")), HttpStatusError, "it has failed"),
    "502": (answered(lambda _: reply(HTML, status="502 Oops", kind="text/html")), HttpStatusError, "a proxy"),
    "503": (answered(lambda _: reply(b"{]", status="503 Oops")), HttpStatusError, "not available"),
    "599": (answered(lambda _: reply(b"", status="599 Oops")), HttpStatusError, "HTTP 599"),
    "a redirect elsewhere": (
        answered(lambda _: reply(status="307 T", headers={"location": "https://evil.example/mcp"})),
        BadAnswerError,
        "redirect to https://evil.example",
    ),
    "a redirect in a circle": (
        answered(lambda _: reply(status="307 T", headers={"location": "/mcp"})),
        BadAnswerError,
        "without end",
    ),
    "a redirect that loses the message": (
        answered(lambda _: reply(status="302 T", headers={"location": "/login"})),
        BadAnswerError,
        "turn a POST into a GET",
    ),
    "a redirect to nonsense": (
        answered(lambda _: reply(status="307 T", headers={"location": "https://[::1"})),
        (ServerDisconnectedError, BadAnswerError),  # pyright: ignore[reportAssignmentType]
        "broke off|can't be understood",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_bad_answer_fails_its_own_request_with_words_and_the_next_one_is_answered(fault: str) -> None:
    answer, kind, words = FAULTS[fault]
    async with raw_server(answer) as server, session(server.url()) as running:
        with anyio.fail_after(60), pytest.raises(kind, match=words) as raised:
            await running.ask(timeout=50)
        assert isinstance(raised.value, (MCPError, ServerError))
        assert "\x1b" not in str(raised.value)
        assert "<html>" not in str(raised.value)
        assert await running.ask("ping") == {"ok": True}
        assert not running.ended.is_set()


async def test_an_error_of_the_server_arrives_whatever_the_status() -> None:
    def refuse(request: Received) -> bytes:
        error = {"code": -32602, "message": "No such city", "data": {"city": "Atlantis"}}
        return reply({"jsonrpc": "2.0", "id": None, "error": error}, status="400 Bad Request")

    async with raw_server(answered(refuse)) as server, session(server.url()) as running:
        error = await running.error()
        assert (error.error.code, error.error.message, error.error.data) == (
            -32602,
            "No such city",
            {"city": "Atlantis"},
        )


@pytest.mark.parametrize("error", [{"code": 10**30, "message": 7}, {"code": "x"}, {"message": "\ud800"}, {}])
async def test_an_odd_error_is_still_one(error: object) -> None:
    def refuse(request: Received) -> bytes:
        return reply({"jsonrpc": "2.0", "id": request.message["id"], "error": error})

    async with raw_server(answered(refuse)) as server, session(server.url()) as running:
        assert isinstance(await running.error(), MCPError)


@pytest.mark.parametrize("place", ["headers", "body", "event"])
async def test_a_server_that_goes_quiet_costs_no_more_than_the_deadline(place: str) -> None:
    async def quiet(request: Received, stream: SocketStream) -> None:
        if request.rpc != "tools/call":
            await stream.send(reply(result(request)))
            return
        if place == "body":
            await stream.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{")
        elif place == "event":
            await stream.send(EVENTS_HEAD)
        await anyio.sleep_forever()

    async with raw_server(quiet) as server, session(server.url()) as running:
        began = time.monotonic()
        assert isinstance(await running.error(timeout=0.3), RequestTimedOutError)
        assert time.monotonic() - began < patience(1.3)
        assert await running.ask("ping") == {"ok": True}


async def test_headers_that_drip_in_end_at_the_deadline() -> None:
    async def drip(request: Received, stream: SocketStream) -> None:
        await stream.send(b"HTTP/1.1 200 OK\r\n")
        while True:
            await stream.send(b"x-a: b\r\n")
            await anyio.sleep(0.02)

    async with raw_server(drip) as server, session(server.url()) as running:
        assert isinstance(await running.error(timeout=0.3), RequestTimedOutError)


async def test_endless_headers_are_not_read_for_ever() -> None:
    async def flood(request: Received, stream: SocketStream) -> None:
        await stream.send(b"HTTP/1.1 200 OK\r\n")
        while True:
            await stream.send(b"x-a: " + b"b" * 10_000 + b"\r\n")

    async with raw_server(flood) as server, session(server.url()) as running:
        with anyio.fail_after(60), pytest.raises(ServerDisconnectedError):
            await running.ask()


# ---- caps


@pytest.mark.parametrize(
    "form", ["body", "chunks", "gzip", "deflate", "event", "many lines of one event", "error body"]
)
async def test_an_answer_past_the_cap_fails_its_own_request(form: str) -> None:
    limits = replace(LIMITS, message_bytes=100_000)
    filler = b"x" * 200_000

    async def flood(request: Received, stream: SocketStream) -> None:
        if request.rpc != "tools/call":
            await stream.send(reply(result(request)))
            return
        body = json.dumps(result(request, {"text": filler.decode()})).encode()
        if form == "body":
            await stream.send(reply(body))
        elif form == "chunks":
            await stream.send(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
            )
            while True:
                await stream.send(chunk(filler))
        elif form in ("gzip", "deflate"):
            packed = gzip.compress(body) if form == "gzip" else zlib.compress(body)
            await stream.send(reply(packed, headers={"content-encoding": form}))
        elif form == "event":
            await stream.send(EVENTS_HEAD + chunk(events(body)))
        elif form == "many lines of one event":
            await stream.send(EVENTS_HEAD)
            while True:
                await stream.send(chunk(b"data: " + b"x" * 50_000 + b"\n"))
        else:
            await stream.send(reply(body, status="500 Oops"))
            await anyio.sleep_forever()

    async with raw_server(flood) as server, session(server.url(), limits=limits) as running:
        kind, words = BadAnswerError, "too long"
        if form == "error body":
            kind, words = HttpStatusError, "it has failed"
        elif form == "many lines of one event":
            kind, words = RequestTimedOutError, "No answer"
        with pytest.raises(kind, match=words):
            await running.ask(timeout=1)
        assert await running.ask("ping") == {"ok": True}


async def test_a_bomb_of_compressed_zeros_is_not_unpacked() -> None:
    packed = gzip.compress(b"\0" * 200_000_000, compresslevel=1)
    bomb = answered(lambda _: reply(packed, headers={"content-encoding": "gzip"}))
    limits = replace(LIMITS, message_bytes=1_000_000)
    async with raw_server(bomb) as server, session(server.url(), limits=limits) as running:
        with pytest.raises(BadAnswerError, match="too long"):
            await running.ask()


async def test_one_event_past_the_cap_costs_no_other_message_on_the_stream() -> None:
    limits = replace(LIMITS, message_bytes=100_000)

    async def answer(request: Received, stream: SocketStream) -> None:
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * 200_000}}
        other = {"jsonrpc": "2.0", "id": 777, "result": {"text": "x" * 200_000}}
        await stream.send(reply(events(other, result(request)) if note else b"", kind="text/event-stream"))

    async with raw_server(answer) as server, session(server.url(), limits=limits) as running:
        assert await running.ask() == {"ok": True}


# ---- good answers in unusual forms


FORMS: dict[str, Callable[[Received], bytes]] = {
    "string id": lambda r: reply({**result(r), "id": str(r.message["id"])}),
    "batch": lambda r: reply([{"jsonrpc": "2.0", "method": "notifications/x"}, result(r)]),
    "charset": lambda r: reply(result(r), kind="application/json; charset=utf-8"),
    "capitals": lambda r: reply(result(r), kind="Application/JSON"),
    "BOM": lambda r: reply(b"\xef\xbb\xbf" + json.dumps(result(r)).encode()),
    "gzip": lambda r: reply(gzip.compress(json.dumps(result(r)).encode()), headers={"content-encoding": "gzip"}),
    "event": lambda r: reply(events(result(r)), kind="text/event-stream;charset=utf-8"),
    "CRLF": lambda r: reply(events(result(r)).replace(b"\n", b"\r\n"), kind="text/event-stream"),
    "CR": lambda r: reply(events(result(r)).replace(b"\n", b"\r"), kind="text/event-stream"),
    "comments": lambda r: reply(b": hello\n\n\n" + events(b"", result(r)), kind="text/event-stream"),
    "other events": lambda r: reply(b"event: other\ndata: x\n\n" + events(result(r)), kind="text/event-stream"),
    "lines of data": lambda r: reply(
        events(json.dumps(result(r), indent=1).replace("\n", "\ndata: ").encode()), kind="text/event-stream"
    ),
    "after nonsense": lambda r: reply(
        events(b"nonsense", b"\xff", b"[]", {**result(r, {"forged": 1}), "id": 999}, result(r)),
        kind="text/event-stream",
    ),
    "an empty result is one": lambda r: reply([result(r), result(r, {})]),
    "after a request": lambda r: reply(
        events({"jsonrpc": "2.0", "id": 999, "method": "ping"}, result(r)), kind="text/event-stream"
    ),
}


@pytest.mark.parametrize("form", FORMS)
async def test_a_good_answer_arrives_in_whatever_form(form: str) -> None:
    async with raw_server(answered(FORMS[form])) as server, session(server.url()) as running:
        assert await running.ask() == {"ok": True}


async def test_an_event_that_comes_byte_by_byte_is_read() -> None:
    async def drip(request: Received, stream: SocketStream) -> None:
        await stream.send(EVENTS_HEAD)
        for byte in events(result(request)):
            await stream.send(chunk(bytes([byte])))
        await anyio.sleep_forever()

    async with raw_server(drip) as server, session(server.url()) as running:
        assert await running.ask() == {"ok": True}


async def test_a_redirect_within_the_origin_is_followed_with_the_message_and_the_headers() -> None:
    async def answer(request: Received, stream: SocketStream) -> None:
        moved = reply(status="307 Temporary Redirect", headers={"location": "/mcp/"})
        await stream.send(reply(result(request)) if request.target == "/mcp/" else moved)

    async with raw_server(answer) as server, session(server.url(), headers={"X-Key": "k"}) as running:
        assert await running.ask() == {"ok": True}
        assert [each.headers["x-key"] for each in server.received] == ["k", "k"]
        assert server.received[0].body == server.received[1].body
