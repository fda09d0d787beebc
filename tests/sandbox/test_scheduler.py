"""The scheduler: calls as tasks of an event loop, each with exactly one reply."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from growth import patience
from toolbridge import Limits, Sandbox
from toolbridge.boundary.host_call import HostFunction, PendingCall, Reply
from toolbridge.boundary.wire import CallRequest
from toolbridge.sandbox.scheduler import (
    BackgroundLoop,
    LoopTasks,
    TaskScheduler,
    event_loop_poster,
    is_in_event_loop,
)

setting: contextvars.ContextVar[str] = contextvars.ContextVar("setting", default="none")


class Replies:
    """What was delivered: which call, and its reply."""

    def __init__(self) -> None:
        self._arrived: SimpleQueue[tuple[int, bytes]] = SimpleQueue()

    def deliver(self, call: PendingCall, reply: Reply) -> None:
        self._arrived.put((call.identity, reply.frame))

    def next(self) -> tuple[int, bytes]:
        return self._arrived.get(timeout=60)

    def is_empty(self) -> bool:
        return self._arrived.empty()


@pytest.fixture
def loop() -> Iterator[BackgroundLoop]:
    made = BackgroundLoop()
    yield made
    made.close()


@pytest.fixture
def replies() -> Replies:
    return Replies()


def call_of(function: Callable[..., Any], *arguments: Any, identity: int = 1, is_async: bool = False) -> PendingCall:
    request = CallRequest("host:demo", "f", list(arguments))
    return PendingCall(identity, HostFunction(function, is_async), request, 0)


async def double(number: int) -> int:
    await anyio.lowlevel.checkpoint()
    return 2 * number


async def forever() -> None:
    await anyio.sleep_forever()


def test_a_coroutine_function_is_awaited(loop: BackgroundLoop, replies: Replies) -> None:
    scheduler = TaskScheduler(Limits(), loop.post)
    scheduler.start(call_of(double, 4, identity=7, is_async=True), replies.deliver)
    assert replies.next() == (7, b'{"ok":8}')


def test_a_plain_function_runs_on_another_thread_than_the_loop(loop: BackgroundLoop, replies: Replies) -> None:
    names: list[str] = []

    def plain() -> str:
        names.append(threading.current_thread().name)
        return "done"

    scheduler = TaskScheduler(Limits(), loop.post)
    scheduler.start(call_of(plain), replies.deliver)
    assert replies.next() == (1, b'{"ok":"done"}')
    assert names != ["toolbridge-calls"]


def test_what_a_plain_function_gave_to_await_is_awaited(loop: BackgroundLoop, replies: Replies) -> None:
    scheduler = TaskScheduler(Limits(), loop.post)
    scheduler.start(call_of(lambda: double(5)), replies.deliver)
    assert replies.next() == (1, b'{"ok":10}')
    scheduler.start_awaiting(call_of(double, identity=2), double(6), replies.deliver)
    assert replies.next() == (2, b'{"ok":12}')


def test_an_exception_is_a_reply(loop: BackgroundLoop, replies: Replies) -> None:
    def fail() -> None:
        raise LookupError("nothing")

    scheduler = TaskScheduler(Limits(), loop.post)
    scheduler.start(call_of(fail), replies.deliver)
    assert replies.next() == (1, b'{"error":{"kind":"failed","message":"LookupError: nothing"}}')


def test_a_call_that_takes_too_long_is_a_reply(loop: BackgroundLoop, replies: Replies) -> None:
    scheduler = TaskScheduler(Limits(call_seconds=0.02), loop.post)
    scheduler.start(call_of(forever, is_async=True), replies.deliver)
    message = b"f did not answer within 0.02 s. It may or may not have taken effect."
    assert replies.next() == (1, b'{"error":{"kind":"timeout","message":"%b"}}' % message)


def test_many_plain_functions_block_at_the_same_time(loop: BackgroundLoop, replies: Replies) -> None:
    together = threading.Barrier(30, timeout=60)
    scheduler = TaskScheduler(Limits(), loop.post)
    for identity in range(30):
        scheduler.start(call_of(lambda: together.wait() >= 0, identity=identity), replies.deliver)
    assert sorted(replies.next() for _ in range(30)) == [(identity, b'{"ok":true}') for identity in range(30)]


def test_calls_take_turns_in_the_order_in_which_they_were_started(loop: BackgroundLoop, replies: Replies) -> None:
    scheduler = TaskScheduler(Limits(calls_in_flight=1), loop.post)
    for identity in range(10):
        scheduler.start(call_of(double, identity, identity=identity, is_async=True), replies.deliver)
    assert [replies.next()[0] for _ in range(10)] == list(range(10))


def test_calls_left_over_are_cancelled_and_have_no_reply(loop: BackgroundLoop, replies: Replies) -> None:
    ended: SimpleQueue[str] = SimpleQueue()
    began = threading.Event()

    async def wait() -> None:
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.put("cancelled")

    scheduler = TaskScheduler(Limits(), loop.post)
    scheduler.start(call_of(wait, is_async=True), replies.deliver)
    assert began.wait(60)
    scheduler.cancel()
    assert ended.get(timeout=60) == "cancelled"
    assert replies.is_empty()


def test_the_loops_thread_starts_with_the_first_call_and_ends_with_the_sandbox(replies: Replies) -> None:
    def threads() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name == "toolbridge-calls"}

    before = threads()
    loop = BackgroundLoop()
    scheduler = TaskScheduler(Limits(), loop.post)
    assert threads() == before
    for identity in range(3):
        scheduler.start(call_of(double, 1, identity=identity, is_async=True), replies.deliver)
        replies.next()
    (started,) = threads() - before
    loop.close()
    started.join(60)
    assert not started.is_alive()


def test_a_call_after_the_loop_was_closed_has_a_reply_that_says_so(loop: BackgroundLoop, replies: Replies) -> None:
    scheduler = TaskScheduler(Limits(), loop.post)
    loop.close()
    scheduler.start(call_of(double, 1, is_async=True), replies.deliver)
    assert replies.next() == (1, b'{"error":{"kind":"failed","message":"RuntimeError: the sandbox is closed"}}')


def test_closing_the_loop_does_not_wait_for_a_plain_function(loop: BackgroundLoop, replies: Replies) -> None:
    leave, entered = threading.Event(), threading.Event()

    def stuck() -> None:
        entered.set()
        leave.wait(60)

    scheduler = TaskScheduler(Limits(), loop.post)
    scheduler.start(call_of(stuck), replies.deliver)
    assert entered.wait(60)
    began = time.perf_counter()
    loop.close()
    assert time.perf_counter() - began < patience(1)
    leave.set()


def test_cancelling_a_scheduler_leaves_the_calls_of_another_alone(loop: BackgroundLoop, replies: Replies) -> None:
    one, other = TaskScheduler(Limits(), loop.post), TaskScheduler(Limits(), loop.post)
    go_on = threading.Event()
    one.start(call_of(forever, identity=1, is_async=True), replies.deliver)
    other.start(call_of(lambda: go_on.wait(60), identity=2), replies.deliver)
    one.cancel()
    one.cancel()
    go_on.set()
    assert replies.next() == (2, b'{"ok":true}')
    assert replies.is_empty()


def test_a_scheduler_that_started_nothing_cancels_nothing_and_starts_no_thread() -> None:
    loop = BackgroundLoop()
    TaskScheduler(Limits(), loop.post).cancel()
    assert loop._thread is None
    loop.close()


@pytest.mark.anyio
async def test_calls_posted_from_any_thread_are_started_in_the_context_of_the_groups_owner(replies: Replies) -> None:
    setting.set("the owner's")

    async def seen() -> str:
        return setting.get()

    async with anyio.create_task_group() as tasks:
        scheduler = TaskScheduler(Limits(), LoopTasks(tasks).post)
        call = call_of(seen, is_async=True)
        await anyio.to_thread.run_sync(scheduler.start, call, replies.deliver)
        arrived = await anyio.to_thread.run_sync(replies.next)
        assert arrived == (1, b'{"ok":"the owner\'s"}')


@pytest.mark.anyio
async def test_a_call_posted_when_the_group_is_over_is_dropped(replies: Replies) -> None:
    tasks = anyio.create_task_group()
    inbox = LoopTasks(tasks)
    async with tasks:
        inbox.close()
    scheduler = TaskScheduler(Limits(), inbox.post)
    scheduler.start(call_of(double, 21, is_async=True), replies.deliver)
    await anyio.sleep(0.05)
    assert replies.is_empty()


@pytest.mark.anyio
async def test_waking_an_inbox_ends_the_wait_with_nothing_to_start() -> None:
    async with anyio.create_task_group() as tasks:
        inbox = LoopTasks(tasks)
        for _ in range(3):
            inbox.wake()
            with anyio.fail_after(60):
                await inbox.wait()


@pytest.mark.anyio
async def test_a_function_that_is_posted_runs_on_the_loops_own_thread() -> None:
    ran = anyio.Event()
    threads: list[threading.Thread] = []

    def note() -> None:
        threads.append(threading.current_thread())
        ran.set()

    post = event_loop_poster()
    await anyio.to_thread.run_sync(post, note)
    with anyio.fail_after(60):
        await ran.wait()
    assert threads == [threading.current_thread()]


variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


@pytest.mark.anyio
async def test_a_coroutine_function_sees_the_context_variables_of_whoever_awaits_the_run() -> None:
    from toolbridge import Sandbox

    async def read() -> str:
        return variable.get()

    variable.set("set")
    with Sandbox({"host:demo": {"read": read}}) as sandbox:
        assert (await sandbox.run('require("host:demo").read()')).value == "set"


def test_a_coroutine_function_is_called_on_a_loop_that_anyio_did_not_start() -> None:
    import asyncio

    async def main() -> object:
        with Sandbox({"host:demo": {"double": double}}) as sandbox:
            return (await sandbox.run('require("host:demo").double(21)')).value

    assert asyncio.run(main()) == 42


def test_a_thread_knows_whether_it_runs_an_event_loop() -> None:
    async def inside() -> bool:
        return is_in_event_loop()

    assert not is_in_event_loop()
    assert anyio.run(inside, backend="asyncio")
    assert anyio.run(inside, backend="trio")
