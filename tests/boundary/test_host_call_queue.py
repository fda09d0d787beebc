"""The queue: what is handed over arrives in order, and a wait ends when it should."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from time import monotonic

import pytest

from toolbridge.boundary.host_call import DeadlineQueue, QueueTimeoutError


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads take turns as often as can be, so that one is put aside between any two steps."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def test_items_come_in_order() -> None:
    queue = DeadlineQueue[int]()
    for number in range(3):
        queue.put(number)
    assert [queue.take(0.0) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(QueueTimeoutError):
        queue.take(0.0)


def test_a_wait_ends_at_its_time() -> None:
    began = monotonic()
    with pytest.raises(QueueTimeoutError):
        DeadlineQueue[int]().take(began + 0.05)
    assert monotonic() >= began + 0.05


def test_a_wait_ends_with_an_item_from_another_thread() -> None:
    queue = DeadlineQueue[str]()
    threading.Timer(0.02, queue.put, ["here"]).start()
    assert queue.take(float("inf")) == "here"


@pytest.mark.usefixtures("switching")
def test_no_wait_that_is_nearly_over_becomes_an_endless_one() -> None:
    """As one of a `SimpleQueue` does, within a second of this."""
    ended = threading.Event()
    rounds = [0, 0, 0, 0]

    def busy() -> None:
        while not ended.is_set():
            sum(range(50))

    def wait(index: int) -> None:
        queue = DeadlineQueue[int]()
        while not ended.is_set():
            with pytest.raises(QueueTimeoutError):
                queue.take(monotonic() + 0.00002)
            rounds[index] += 1

    workers = [threading.Thread(target=wait, args=(index,), daemon=True) for index in range(4)]
    for thread in (threading.Thread(target=busy, daemon=True), *workers):
        thread.start()
    ended.wait(2.0)
    ended.set()
    for worker in workers:
        worker.join(60)
    assert not any(worker.is_alive() for worker in workers)
    assert all(rounds)


@pytest.mark.usefixtures("switching")
def test_nothing_is_lost_between_many_who_give_and_one_who_takes() -> None:
    queue = DeadlineQueue[int]()

    def give(first: int) -> None:
        for number in range(first, first + 2_000):
            queue.put(number)

    givers = [threading.Thread(target=give, args=(10_000 * index,)) for index in range(4)]
    for giver in givers:
        giver.start()
    taken = [queue.take(monotonic() + 20) for _ in range(8_000)]
    for giver in givers:
        giver.join()
    assert sorted(taken) == sorted(
        number for index in range(4) for number in range(10_000 * index, 10_000 * index + 2_000)
    )
    for index in range(4):  # each one's in the order in which it gave them
        own = [number for number in taken if number // 10_000 == index]
        assert own == sorted(own)
