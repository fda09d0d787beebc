"""A pytest plugin that makes every run end: signals, a limit for each test, lost workers, a limit for the whole run.

An async test that hangs is cancelled, and pytest-timeout fails any other one in the main thread. What neither reaches,
such as C code or a hanging teardown, ends the worker with every thread's place: the run goes on with another worker.
"""

from __future__ import annotations

import faulthandler
import functools
import inspect
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from typing import Any, cast

import anyio
import pytest
from xdist.scheduler import LoadFileScheduling  # pyright: ignore[reportMissingTypeStubs]
from xdist.workermanage import WorkerController  # pyright: ignore[reportMissingTypeStubs]

from servers.live_processes import kill_processes

RUN_SECONDS = float(os.environ.get("TOOLBRIDGE_RUN_SECONDS", "3600"))
WORD = "TOOLBRIDGE_TEST_WORKER"
"""The variable by which the processes that a lost worker's tests started are found."""

_STDERR = pytest.StashKey[int]()
_WATCHDOG = pytest.StashKey[threading.Timer]()
_FAILED = pytest.StashKey[set[str]]()


def _stay(_number: int, _frame: object) -> None:
    pass


_HANDLERS: dict[signal.Signals, Callable[[int, Any], Any]] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGHUP: _stay,
}


def restore_signals() -> None:
    """Handle what nohup, cron or a shell made this process ignore or block, so that nothing it starts ignores it.

    A hang-up still doesn't end the run: a handler, unlike being ignored, is not inherited by a new program.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM, signal.SIGCHLD):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, _HANDLERS.get(number, signal.SIG_DFL))


restore_signals()


def descendants(parent: int) -> list[int]:
    """The children of a process, and theirs."""
    listed = subprocess.run(["ps", "-ax", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = [(int(pid), int(above)) for pid, above in map(str.split, listed.splitlines())]
    found = [parent]
    for one in found:
        found += [pid for pid, above in parents if above == one]
    return found[1:]


def _signal_all(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


# ---- one test


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_STDERR] = os.dup(2)  # capturing takes the number 2 for itself
    config.stash[_FAILED] = set()
    faulthandler.register(signal.SIGUSR1, file=config.stash[_STDERR])
    worker: Mapping[str, object] | None = getattr(config, "workerinput", None)
    if worker is not None:
        os.environ[WORD] = _word(worker)
    else:
        config.stash[_WATCHDOG] = watchdog = threading.Timer(RUN_SECONDS, _give_up, [config.stash[_STDERR]])
        watchdog.daemon = True
        watchdog.start()


def pytest_unconfigure(config: pytest.Config) -> None:
    if (watchdog := config.stash.get(_WATCHDOG, None)) is not None:
        watchdog.cancel()
    faulthandler.unregister(signal.SIGUSR1)


def _seconds(config: pytest.Config) -> float:
    """What pytest-timeout gives a test."""
    return float(config.getoption("timeout") or config.getini("timeout") or 300)


def _limit(item: pytest.Item) -> None:
    faulthandler.dump_traceback_later(2 * _seconds(item.config), exit=True, file=item.config.stash[_STDERR])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """Limit a test; with the last one of a file in which one failed, end what they left running."""
    _limit(item)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
        if _file(item.nodeid) in item.config.stash[_FAILED] and (nextitem is None or nextitem.path != item.path):
            _signal_all(descendants(os.getpid()), signal.SIGKILL)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    test = pyfuncitem.obj
    if inspect.iscoroutinefunction(test):

        @functools.wraps(test)
        async def limited(*args: Any, **kwargs: Any) -> None:
            with anyio.fail_after(0.8 * _seconds(pyfuncitem.config)):
                await test(*args, **kwargs)

        pyfuncitem.obj = limited
    try:
        return (yield)
    finally:
        pyfuncitem.obj = test


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    _limit(item)  # pytest cancels it when a test fails


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.config.stash[_FAILED].add(_file(item.nodeid))
    return report


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


# ---- the workers, and the whole run


SLOW_FILES = (
    *("tests/servers/test_faults", "tests/check/test_corpus", "tests/cli/", "tests/codegen/test_agreement"),
    *(
        "tests/examples/",
        "tests/runtime/",
        "tests/check/test_hostile",
        "tests/servers/test_conformance",
        "tests/threats/test_t04",
    ),
)
"""Scheduled first, so that no worker is alone with one of them at the end."""


class FileScheduling(LoadFileScheduling):
    """Files are given to workers, and the rest of a lost worker's file to another one.

    xdist would run the test that ended a worker again, would give finished files out again, and leaves a worker waiting
    that was given a single test: it runs its last test when it is told what follows, or that nothing does.
    """

    def remove_node(self, node: WorkerController) -> str | None:
        work = self.assigned_work[node]
        running = next((name for unit in work.values() for name, done in unit.items() if not done), None)
        for file, unit in list(work.items()):
            if running in unit:
                unit[running] = True
            if all(unit.values()):
                del work[file]
        super().remove_node(node)
        return running

    def _assign_work_unit(self, node: WorkerController) -> None:
        slow = next((file for file in self.workqueue if file.startswith(SLOW_FILES)), None)
        if slow is not None:
            self.workqueue.move_to_end(slow, last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        if node not in self.registered_collections:
            return  # it still collects
        super()._reschedule(node)
        while self.workqueue and not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            self._assign_work_unit(node)
        if not self.workqueue:
            node.shutdown()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileScheduling | None:
    return FileScheduling(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController, error: object | None) -> None:
    if error:
        kill_processes(_word(cast("Any", node).workerinput))


def _word(worker: Mapping[str, object]) -> str:
    return f"{worker['testrunuid']}-{worker['workerid']}-"


def _give_up(stderr: int) -> None:
    """End the run, with the place of every thread of every process of ours in its output."""
    os.write(stderr, f"\nThe run takes longer than {RUN_SECONDS:.0f} s and is given up.\n".encode())
    faulthandler.dump_traceback(file=stderr)
    started = descendants(os.getpid())
    _signal_all(started, signal.SIGUSR1)
    time.sleep(1)
    _signal_all(started, signal.SIGKILL)
    sys.stdout.flush()
    os._exit(1)
