"""A host function that may answer: its reply is taken as it is, or awaited; whatever it does, the guest gets one."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from toolbridge import Limits, RunResult, Sandbox
from toolbridge.boundary.host_call import HostFunction, HostSide, Reply
from toolbridge.boundary.wire import encode_value
from toolbridge.sandbox.sandbox import SandboxLanguage
from toolbridge.sandbox.scheduler import TaskScheduler

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


Answer = Callable[[Any], "Reply | Awaitable[Reply]"]


def at_once(value: Any) -> Reply:
    return Reply(encode_value(value), "ok", ("noted",))


def later(value: Any) -> Awaitable[Reply]:
    async def wait() -> Reply:
        await anyio.sleep(0.001)
        return at_once(value)

    return wait()


def refusing(_value: Any) -> Reply:
    raise ValueError("no")


def leaving(_value: Any) -> Reply:
    raise SystemExit(3)


def where(_value: Any) -> Reply:
    return at_once(threading.current_thread().name)


def offering(answer: Answer) -> HostSide:
    function = HostFunction(answer, is_async=True, keeps_time=True, server="own", tool="act", may_answer=True)
    return HostSide({"host:demo": {"act": function}})


JAVASCRIPT = """
import { act } from "host:demo";
import { act as start } from "host:demo/async";
const tried = async (call) => { try { return await call(); } catch (error) { return [error.name, error.message]; } };
[await tried(() => act(5)), await tried(() => start(6))]
"""
PYTHON = """
from host.demo import act
from host.demo.aio import act as start
async def tried(call, value):
    try:
        given = call(value)
        return await given if hasattr(given, "__await__") else given
    except Exception as error:
        return [type(error).__name__, str(error)]
[await tried(act, 5), await tried(start, 6)]
"""
PROGRAMS: dict[SandboxLanguage, str] = {"javascript": JAVASCRIPT, "python": PYTHON}


async def run(answer: Answer, language: SandboxLanguage = "javascript", **options: Any) -> RunResult:
    with Sandbox() as sandbox:
        return await sandbox.run(PROGRAMS[language], language=language, host=offering(answer), **options)


@pytest.mark.parametrize("language", PROGRAMS)
@pytest.mark.parametrize("answer", [at_once, later])
async def test_a_reply_is_the_same_at_once_and_later(answer: Answer, language: SandboxLanguage) -> None:
    result = await run(answer, language)
    assert (result.value, result.failure) == ([5, 6], None)
    assert [(call.function, call.outcome, call.server, call.tool, call.notes) for call in result.calls] == [
        ("act", "ok", "own", "act", ("noted",)),
    ] * 2
    assert all(call.seconds >= 0 and call.started >= 0 and call.reply_bytes == 8 for call in result.calls)


@pytest.mark.parametrize("language", PROGRAMS)
@pytest.mark.parametrize(("answer", "words"), [(refusing, "ValueError: no"), (leaving, "SystemExit: 3")])
async def test_what_a_function_raises_instead_is_an_error_in_the_guest(
    answer: Answer, words: str, language: SandboxLanguage
) -> None:
    result = await run(answer, language)
    assert result.failure is None
    assert [message for _, message in result.value] == [words, words]
    assert [call.outcome for call in result.calls] == ["failed", "failed"]


async def test_a_reply_at_once_is_given_on_the_event_loops_own_thread() -> None:
    assert (await run(where)).value == [threading.current_thread().name] * 2


@pytest.mark.parametrize("answer", [at_once, later])
async def test_a_reply_that_is_too_large_is_refused(answer: Answer) -> None:
    result = await run(lambda _value: answer("x" * 5_000), limits=Limits(frame_bytes=4_000))
    assert [call.outcome for call in result.calls] == ["limit", "limit"]
    assert all("more than the limit of 4000" in message for _, message in result.value)


async def test_a_call_that_is_answered_at_once_is_never_performed_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: Any) -> Reply:
        raise AssertionError("performed elsewhere")

    monkeypatch.setattr(TaskScheduler, "perform", refuse)
    with Sandbox() as sandbox:
        program = 'import { act } from "host:demo"; [act(1), act(2)]'
        assert (await sandbox.run(program, host=offering(at_once))).value == [1, 2]


async def test_a_run_that_is_cancelled_ends_a_call_that_has_begun() -> None:
    ended = anyio.Event()

    def endless(_value: Any) -> Awaitable[Reply]:
        async def wait() -> Reply:
            try:
                await anyio.sleep_forever()
            finally:
                ended.set()
            raise AssertionError

        return wait()

    with anyio.move_on_after(0.1):
        await run(endless)
    assert ended.is_set()


async def test_a_call_that_has_begun_and_has_no_reply_is_unfinished() -> None:
    async def forever() -> Reply:
        await anyio.sleep_forever()
        raise AssertionError

    result = await run(lambda _value: forever(), limits=Limits(wall_seconds=0.2))
    assert [(call.function, call.outcome) for call in result.calls] == [("act", "unfinished")]
