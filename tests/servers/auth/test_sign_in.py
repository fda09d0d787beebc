"""How a person signs in: the browser comes back to this machine, or its address is pasted."""

from __future__ import annotations

import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlencode, urlsplit

import anyio
import anyio.to_thread
import pytest

from growth import patience
from servers.http_servers import until
from toolbridge.servers.auth.sign_in import (
    AuthorizationAnswer,
    BrowserSignIn,
    HeadlessSignIn,
    RedirectListener,
    SignInAttempt,
    SignInFailedError,
    open_listener,
    read_answer,
)

pytestmark = pytest.mark.anyio

STATE = "st4te"


def page(redirect_uri: str, **more: str) -> str:
    """A page to sign in at, as the SDK makes it."""
    return "https://auth.example.com/authorize?" + urlencode({"state": STATE, "redirect_uri": redirect_uri, **more})


def visit(url: str, **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=5) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def browser(**answer: str) -> Callable[[str], None]:
    """A browser in which somebody signs in."""

    def open_page(url: str) -> None:
        query = parse_qs(urlsplit(url).query)
        back = query["redirect_uri"][0] + "?" + urlencode({"state": query["state"][0], **answer})
        threading.Thread(target=visit, args=(back,), daemon=True).start()

    return open_page


async def authorize(attempt: SignInAttempt, **more: str) -> AuthorizationAnswer:
    with anyio.fail_after(60):
        return await attempt.authorize(page(attempt.redirect_uri, **more))


async def test_a_browser_comes_back_with_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    sign_in = BrowserSignIn(open_page=browser(code="c0de", iss="https://auth.example.com"))
    async with sign_in.attempt("weather", port=None, fixed=False) as attempt:
        answer = await authorize(attempt)
    assert (answer.code, answer.state, answer.issuer) == ("c0de", STATE, "https://auth.example.com")
    assert "c0de" not in repr(answer)
    shown = capsys.readouterr().err
    assert "Server 'weather' asks you to sign in at https://auth.example.com." in shown
    assert "c0de" not in shown


async def test_a_refusal_is_an_error_without_the_servers_own_words() -> None:
    sign_in = BrowserSignIn(open_page=browser(error="access_denied", error_description="<b>Pay first</b>"))
    async with sign_in.attempt("weather", port=None, fixed=False) as attempt:
        with pytest.raises(SignInFailedError, match=r"refused: access_denied$"):
            await authorize(attempt)


async def test_nobody_signing_in_is_an_error_in_time() -> None:
    sign_in = BrowserSignIn(seconds=0.2, open_page=lambda _: None)
    async with sign_in.attempt("weather", port=None, fixed=False) as attempt:
        began = time.monotonic()
        with pytest.raises(SignInFailedError, match=r"within 0\.2 s"):
            await authorize(attempt)
        assert time.monotonic() - began < patience(2)


async def test_a_browser_that_can_not_be_opened_leaves_the_address(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_url: str) -> None:
        raise OSError("no display")

    sign_in = BrowserSignIn(seconds=0.2, open_page=fail)
    async with sign_in.attempt("weather", port=None, fixed=False) as attempt:
        with pytest.raises(SignInFailedError):
            await authorize(attempt)
    shown = capsys.readouterr().err
    assert "https://auth.example.com/authorize?" in shown
    assert "No browser could be opened" in shown


async def test_a_browser_that_does_not_return_is_not_waited_for() -> None:
    released = threading.Event()
    come_back = browser(code="c0de")

    def in_the_foreground(url: str) -> None:
        come_back(url)
        released.wait(60)

    sign_in = BrowserSignIn(open_page=in_the_foreground)
    async with sign_in.attempt("weather", port=None, fixed=False) as attempt:
        assert (await authorize(attempt)).code == "c0de"
    released.set()


@pytest.mark.parametrize(
    "url",
    [
        "http://auth.example.com/authorize?state=x",
        "file:///etc/passwd?state=x",
        "javascript:alert(1)?state=x",
        "https://accounts.example.com@evil.example/?state=x",
        "https://auth.example.com/\x1b]8;;?state=x",
        "https://auth.example.com/a b?state=x",
        "https://auth.example.com/authorize",
        "--version",
    ],
)
async def test_only_a_page_that_is_fit_for_it_is_opened(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    opened: list[str] = []
    for sign_in in (BrowserSignIn(open_page=opened.append), HeadlessSignIn(ask=lambda: "")):
        async with sign_in.attempt("weather", port=None, fixed=False) as attempt:
            with pytest.raises(SignInFailedError):
                await attempt.authorize(url)
    assert opened == []
    assert capsys.readouterr().err == ""


async def test_a_port_in_use_is_replaced_unless_it_is_fixed() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        async with BrowserSignIn().attempt("weather", port=port, fixed=False) as attempt:
            assert urlsplit(attempt.redirect_uri).port not in (None, port)
        with pytest.raises(SignInFailedError, match=f"port {port}"):
            async with BrowserSignIn().attempt("weather", port=port, fixed=True):
                pass


async def test_an_address_is_pasted_where_there_is_no_browser(capsys: pytest.CaptureFixture[str]) -> None:
    sign_in = HeadlessSignIn(ask=lambda: f" http://127.0.0.1:7777/callback?code=c0de&state={STATE}&iss=i \n")
    async with sign_in.attempt("weather", port=7777, fixed=True) as attempt:
        assert attempt.redirect_uri == "http://127.0.0.1:7777/callback"
        answer = await authorize(attempt)
    assert (answer.code, answer.issuer) == ("c0de", "i")
    assert "Server 'weather' asks you to sign in" in capsys.readouterr().err


@pytest.mark.parametrize(
    "pasted",
    [
        "",
        "\n",
        "hello",
        "http://[",
        "http://127.0.0.1/callback?code=c",
        f"?state={STATE}",
        "?code=c&state=other",
        "?code=c&state=\udcff",
    ],
)
async def test_what_is_pasted_wrongly_is_an_error_that_repeats_nothing(pasted: str) -> None:
    async with HeadlessSignIn(ask=lambda: pasted).attempt("weather", port=None, fixed=False) as attempt:
        with pytest.raises(SignInFailedError, match="the pasted"):
            await authorize(attempt)


async def test_nothing_being_pasted_is_an_error_in_time() -> None:
    released = threading.Event()

    def wait() -> str:
        released.wait(60)
        return ""

    async with HeadlessSignIn(seconds=0.2, ask=wait).attempt("weather", port=None, fixed=False) as attempt:
        with pytest.raises(SignInFailedError):
            await authorize(attempt)
    released.set()


# ---- the listener


@asynccontextmanager
async def listening() -> AsyncGenerator[tuple[RedirectListener, list[AuthorizationAnswer]]]:
    listener = await open_listener(None, fixed=False)
    answers: list[AuthorizationAnswer] = []
    async with anyio.create_task_group() as tasks:

        async def wait() -> None:
            answers.append(await listener.receive(STATE))

        tasks.start_soon(wait)
        yield listener, answers
        tasks.cancel_scope.cancel()
    await listener.aclose()


async def get(url: str, **headers: str) -> tuple[int, str]:
    return await anyio.to_thread.run_sync(lambda: visit(url, **headers))


async def test_whoever_does_not_know_the_state_is_turned_away_and_the_right_one_still_waited_for() -> None:
    async with listening() as (listener, answers):
        base = listener.redirect_uri
        for wrong in (
            "?code=evil&state=guess",
            "?code=evil",
            "?state=" + STATE,
            "",
            "?code=evil&state=é",
            "x?code=c&state=" + STATE,
        ):
            assert (await get(base + wrong.replace("é", "%C3%A9")))[0] == 404
        port = urlsplit(base).port
        assert (await get(f"http://127.0.0.1:{port}/favicon.ico"))[0] == 404
        assert answers == []
        status, text = await get(f"{base}?code=c0de&state={STATE}")
        assert status == 200
        assert "You can close this page" in text
        await until(lambda: answers)
    assert [answer.code for answer in answers] == ["c0de"]


async def test_a_page_elsewhere_that_was_made_to_lead_here_is_turned_away() -> None:
    async with listening() as (listener, answers):
        status, _ = await get(f"{listener.redirect_uri}?code=c&state={STATE}", Host="rebind.example.com")
        assert status == 404
    assert answers == []


async def test_the_page_shows_nothing_of_what_came_in() -> None:
    async with listening() as (listener, _):
        query = urlencode({"state": STATE, "error": "<script>alert(1)</script>", "error_description": "buy!"})
        _, text = await get(f"{listener.redirect_uri}?{query}")
    assert "script" not in text
    assert "buy" not in text


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\0\xff\r\n\r\n",
        b"POST /callback?code=c&state=st4te HTTP/1.1\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\n\r\n",
        b"x" * 100_000,
    ],
)
async def test_whatever_is_sent_does_not_end_the_waiting(sent: bytes) -> None:
    async with listening() as (listener, answers):
        port = urlsplit(listener.redirect_uri).port
        assert port is not None
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            try:
                await stream.send(sent or b" ")
                await stream.send_eof()
                while True:
                    await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                pass
        assert answers == []
        assert (await get(f"{listener.redirect_uri}?code=c0de&state={STATE}"))[0] == 200
        await until(lambda: answers)


async def test_connections_that_say_nothing_do_not_keep_the_browser_out() -> None:
    async with listening() as (listener, answers):
        port = urlsplit(listener.redirect_uri).port
        assert port is not None
        silent = [await anyio.connect_tcp("127.0.0.1", port) for _ in range(10)]
        assert (await get(f"{listener.redirect_uri}?code=c0de&state={STATE}"))[0] == 200
        await until(lambda: answers)
        for stream in silent:
            await stream.aclose()


def test_a_query_of_a_thousand_fields_is_no_answer() -> None:
    assert read_answer("&".join(f"a{n}=b" for n in range(1000)) + "&code=c&state=s") is None
