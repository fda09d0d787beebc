"""Guest threads: reused, as many as there are jobs at a time, gone when idle."""

from __future__ import annotations

import threading
from queue import SimpleQueue

import pytest

from toolbridge.sandbox import scheduler as guest_threads
from toolbridge.sandbox.scheduler import GuestThreads

STACK = 1024 * 1024


def run_and_wait(threads: GuestThreads) -> threading.Thread:
    """Runs a job; the thread that it ran on."""
    done: SimpleQueue[threading.Thread] = SimpleQueue()
    threads.submit(lambda: done.put(threading.current_thread()))
    return done.get(timeout=60)


def wait_until_idle(threads: GuestThreads, count: int) -> None:
    for _ in range(5000):
        with threads._lock:
            if len(threads._idle) == count:
                return
        threading.Event().wait(0.001)
    raise AssertionError(f"{len(threads._idle)} idle threads instead of {count}")


def test_a_job_runs_on_a_thread_of_its_own() -> None:
    thread = run_and_wait(GuestThreads(STACK))
    assert thread is not threading.current_thread()
    assert (thread.name, thread.daemon) == ("toolbridge-guest", True)


def test_jobs_that_follow_each_other_share_one_thread() -> None:
    threads = GuestThreads(STACK)
    used: set[threading.Thread] = set()
    for _ in range(20):
        used.add(run_and_wait(threads))
        wait_until_idle(threads, 1)
    assert len(used) == 1


def test_jobs_at_the_same_time_have_a_thread_each() -> None:
    threads = GuestThreads(STACK)
    together = threading.Barrier(5, timeout=60)

    def meet() -> None:
        together.wait()

    for _ in range(4):
        threads.submit(meet)
    together.wait()
    wait_until_idle(threads, 4)


def test_the_stack_size_of_other_threads_is_left_alone() -> None:
    before = threading.stack_size()
    run_and_wait(GuestThreads(32 * STACK))
    assert threading.stack_size() == before


def test_an_idle_thread_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_threads, "_IDLE_SECONDS", 0.05)
    threads = GuestThreads(STACK)
    thread = run_and_wait(threads)
    thread.join(60)
    assert not thread.is_alive()
    assert threads._idle == []


def test_a_job_after_the_threads_have_ended_gets_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_threads, "_IDLE_SECONDS", 0.02)
    threads = GuestThreads(STACK)
    first = run_and_wait(threads)
    first.join(60)
    assert run_and_wait(threads) is not first


def test_a_thread_that_works_for_longer_than_idle_threads_live_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_threads, "_IDLE_SECONDS", 0.02)
    threads = GuestThreads(STACK)
    done: SimpleQueue[str] = SimpleQueue()
    release = threading.Event()

    def job() -> None:
        release.wait(60)
        done.put("done")

    threads.submit(job)
    run_and_wait(threads).join(60)
    release.set()
    assert done.get(timeout=60) == "done"


def test_a_finished_job_is_not_kept_alive() -> None:
    import weakref

    class Job:
        def __init__(self) -> None:
            self.done = threading.Event()

        def __call__(self) -> None:
            self.done.set()

    threads = GuestThreads(STACK)
    job = Job()
    done, kept = job.done, weakref.ref(job)
    threads.submit(job)
    del job
    assert done.wait(60)
    wait_until_idle(threads, 1)
    assert kept() is None
