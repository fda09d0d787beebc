"""Notifications that wait: in order, bounded in number and in bytes, and a change is never lost in a flood."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from toolbridge.servers.inbound import NotificationQueue, QueuedNotification

pytestmark = pytest.mark.anyio


class Handled:
    """What was handled, in order."""

    def __init__(self) -> None:
        self.methods: list[str] = []

    def notice(self, method: str, size: int = 1) -> QueuedNotification:
        async def handle() -> None:
            self.methods.append(method)

        return QueuedNotification(method, size, handle)


async def handle_all(notices: NotificationQueue) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(notices.handle_all)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()


async def test_they_are_handled_in_order() -> None:
    handled, notices = Handled(), NotificationQueue(10, 100)
    for number in range(10):
        assert notices.add(handled.notice(f"n{number}")) == 0
    await handle_all(notices)
    assert handled.methods == [f"n{number}" for number in range(10)]


async def test_the_newest_are_dropped_when_too_many_wait() -> None:
    handled, notices = Handled(), NotificationQueue(3, 100)
    assert [notices.add(handled.notice(f"n{number}")) for number in range(5)] == [0, 0, 0, 1, 1]
    await handle_all(notices)
    assert handled.methods == ["n0", "n1", "n2"]
    assert notices.add(handled.notice("again")) == 0


async def test_bytes_are_bounded_too_but_one_alone_is_always_taken() -> None:
    handled, notices = Handled(), NotificationQueue(10, 100)
    assert notices.add(handled.notice("large", 1000)) == 0
    assert notices.add(handled.notice("small", 1)) == 1
    await handle_all(notices)
    assert notices.add(handled.notice("small", 1)) == 0
    await handle_all(notices)
    assert handled.methods == ["large", "small"]


async def test_a_change_takes_the_place_of_the_oldest_and_counts_once() -> None:
    handled, notices = Handled(), NotificationQueue(3, 100)
    for number in range(5):
        notices.add(handled.notice(f"log{number}"))
    changed = "notifications/tools/list_changed"
    assert [notices.add(handled.notice(changed)) for _ in range(1000)] == [1] + [0] * 999
    await handle_all(notices)
    assert handled.methods == ["log1", "log2", changed]
    notices.add(handled.notice(changed))
    await handle_all(notices)
    assert handled.methods == ["log1", "log2", changed, changed]


async def test_one_that_can_not_be_handled_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    handled, notices = Handled(), NotificationQueue(3, 100)

    async def fail() -> None:
        await anyio.lowlevel.checkpoint()
        raise ZeroDivisionError

    notices.add(QueuedNotification("bad\x1b[2J\ud800", 1, fail))
    notices.add(handled.notice("good"))
    await handle_all(notices)
    assert handled.methods == ["good"]
    assert caplog.messages == [r"Handling a server's 'bad\x1b[2J\ud800' failed"]
