"""Callbacks of a host: every form is called, a plain one stalls nothing, anything else is refused at once."""

from __future__ import annotations

import contextvars
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

import test_embedding
from cases import each
from runtime.worlds import named
from toolbridge import Config, MisuseError, Permissions, ServerConfig, ServerManager, callbacks, open_runtime
from toolbridge.approval import ElicitationAnswer
from toolbridge.callbacks import call_in_thread, callback, observers_of, settle
from toolbridge.events import RunEnded, RunStarted
from toolbridge.servers.auth.sign_in import SignInFailedError, SignInLike, sign_in_of

pytestmark = pytest.mark.anyio


def plain(word: str) -> str:
    return word.upper()


async def awaited(word: str) -> str:
    await anyio.lowlevel.checkpoint()
    return word.upper()


def begun(word: str) -> object:
    return awaited(word)


class Plain:
    def say(self, word: str) -> str:
        return plain(word)


class Awaited:
    async def say(self, word: str) -> str:
        return await awaited(word)


class Called:
    async def __call__(self, word: str) -> str:
        return await awaited(word)


FORMS: dict[str, Any] = {
    "a plain function": plain,
    "an async function": awaited,
    "an object with a plain method": Plain(),
    "an object with an async method": Awaited(),
    "an object to be called": Called(),
    "a method": Awaited().say,
    "a partial": partial(awaited),
    "a plain function that gives a coroutine": begun,
    "a function of C": str.upper,
}


@pytest.mark.parametrize("form", FORMS)
async def test_every_form_is_called(form: str) -> None:
    say = callback("speaker", FORMS[form], "say", "word")
    assert await say("word") == "WORD"
    assert await callback("speaker", say, "say", "word")("again") == "AGAIN"


async def test_a_plain_function_that_blocks_leaves_the_event_loop_running() -> None:
    go_on = threading.Event()

    def block(word: str) -> str:
        assert go_on.wait(20)
        return word

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(callback("speaker", block, "say", "word"), "word")
        await anyio.sleep(0.01)
        go_on.set()  # never, were the loop what is blocked


async def test_a_plain_function_has_the_callers_context_and_its_error_is_raised() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("the caller's")

    def fail(word: str) -> str:
        raise LookupError(f"{word} {variable.get()}")

    with pytest.raises(LookupError, match="of the caller's"):
        await callback("speaker", fail, "say", "word")("of")


def too_much(a: int, b: int, c: int, d: int) -> bool:
    return True


WRONG: dict[str, Any] = {
    "a number": 3,
    "a text": "yes",
    "an object without the method": object(),
    "a class": Awaited,
    "a function of nothing": lambda: True,
    "a function of too much": too_much,
}
OPTIONS = ("approver", "can_use_tool", "elicitor", "sampler", "roots", "sign_in")


@each("wrong", WRONG)
@each("option", OPTIONS)
async def test_anything_else_is_refused_when_a_runtime_is_opened(option: str, wrong: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {option: WRONG[wrong]}
    with pytest.raises(MisuseError, match=rf"^{option} is of type .*plain or async function"):
        open_runtime(Config.of(), directory=tmp_path, **given)
    if option != "can_use_tool":
        with pytest.raises(MisuseError, match=rf"^{option} "):
            ServerManager(Config.of(), **given)


@each("wrong", [*WRONG.values(), None])
async def test_so_is_an_observer(wrong: Any, tmp_path: Path) -> None:
    for given in ([wrong], wrong):
        with pytest.raises(MisuseError, match="observer"):
            open_runtime(Config.of(), directory=tmp_path, observers=given)
        with pytest.raises(MisuseError, match="observer"):
            ServerManager(Config.of(), observers=given)


async def test_an_async_observer_gets_every_event_in_order_before_a_runtime_is_closed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    at_once: list[object] = []
    later: list[object] = []

    async def slow(event: object) -> None:
        await anyio.sleep(0.001)
        later.append(event)
        if isinstance(event, RunStarted):
            raise RuntimeError("broken")

    observers = [at_once.append, slow]
    async with open_runtime(Config.of(named("own")), directory=tmp_path, observers=observers) as runtime:
        assert (await runtime.run('require("host:mcp-own").who()')).value == "own"
    assert any(isinstance(event, RunEnded) for event in later)
    assert later == at_once
    assert [record.message for record in caplog.records] == ["An observer raised"]


async def test_an_async_observer_that_never_ends_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callbacks, "SETTLE_SECONDS", 0.01)
    monkeypatch.setattr(callbacks, "MOST_QUEUED", 10)
    heard: list[int] = []
    go_on = anyio.Event()

    async def stuck(event: int) -> None:
        heard.append(event)
        await go_on.wait()

    observers = observers_of([stuck])
    for number in range(5):
        observers[0](number)
    with anyio.fail_after(20):
        await settle(observers)
    assert heard == [0]
    for number in range(5, 30):
        observers[0](number)
    go_on.set()
    monkeypatch.setattr(callbacks, "SETTLE_SECONDS", 20)
    await settle(observers)
    assert heard == [0, *range(20, 30)], "the oldest are dropped"


def test_an_async_observer_keeps_what_it_wants() -> None:
    async def quiet(event: object) -> None: ...

    quiet.wants_arguments = True  # pyright: ignore[reportFunctionMemberAccess]
    quiet.wants_progress = False  # pyright: ignore[reportFunctionMemberAccess]
    (observer,) = observers_of([quiet])
    assert (observer.wants_arguments, observer.wants_progress) == (True, False)  # pyright: ignore[reportFunctionMemberAccess]
    observer("before there is an event loop")


@pytest.mark.parametrize("form", ["plain", "async"])
async def test_every_callback_of_a_runtime_may_be_plain_or_async(form: str, tmp_path: Path) -> None:
    called: list[str] = []

    def callback_of(name: str, answer: object) -> Any:
        def plain(*_: object) -> object:
            called.append(name)
            return answer

        async def awaited(*_: object) -> object:
            await anyio.lowlevel.checkpoint()
            return plain()

        return plain if form == "plain" else awaited

    (tmp_path / "forms.py").write_text(test_embedding.FORMS, encoding="utf-8")
    server = ServerConfig.stdio("forms", sys.executable, [str(tmp_path / "forms.py")])
    answers: dict[str, object] = {
        "approver": True,
        "can_use_tool": True,
        "elicitor": ElicitationAnswer("accept", {"name": "Ada"}),
        "sampler": {"role": "assistant", "model": "m", "content": {"type": "text", "text": "42"}},
        "roots": ["file:///srv"],
        "sign_in": None,
    }
    options: dict[str, Any] = {name: callback_of(name, answer) for name, answer in answers.items()}
    config = Config.of(server, permissions=Permissions(default="ask"))
    observers = [callback_of("observers", None)]
    async with open_runtime(config, directory=tmp_path, observers=observers, **options) as runtime:
        result = await runtime.run('require("host:mcp-forms").ask_all()')
        assert result.value == "Ada, 42, file:///srv"
    assert {*called} == {"observers", *answers} - {"sign_in"}


@pytest.mark.parametrize("form", ["plain", "async"])
async def test_a_notice_of_compiling_may_be_plain_or_async(form: str) -> None:
    told: list[str] = []

    def plain(language: str) -> None:
        told.append(language)

    async def awaited(language: str) -> None:
        await anyio.lowlevel.checkpoint()
        told.append(language)

    notice = plain if form == "plain" else awaited
    await anyio.to_thread.run_sync(call_in_thread, notice, "python")
    assert told == ["python"]
    thread = threading.Thread(target=call_in_thread, args=(notice, "javascript"))  # of a program without an event loop
    thread.start()
    await anyio.to_thread.run_sync(thread.join)
    assert told == ["python", "javascript"]


def refuses(server: str, url: str) -> bool:
    return False


async def fails(server: str, url: str) -> None:
    raise LookupError("no window at /home/alice")


@pytest.mark.parametrize(("function", "words"), [(refuses, "cancelled it$"), (fails, "failed with LookupError$")])
async def test_a_function_gives_a_sign_in_up(function: SignInLike, words: str) -> None:
    async with sign_in_of(function).attempt("weather", port=None, fixed=False) as attempt:
        with anyio.fail_after(20), pytest.raises(SignInFailedError, match=words):
            await attempt.authorize("https://auth.example.com/authorize?state=s")
