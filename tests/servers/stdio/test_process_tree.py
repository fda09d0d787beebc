"""Who belongs to a server: by group, by session, by descent and by mark; and never a stranger."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from servers.live_processes import processes, processes_by_a_word
from toolbridge.servers.stdio.process_tree import MARK, ProcessTree, new_mark, process_table, table_of_ps

linux = pytest.mark.skipif(sys.platform != "linux", reason="marks are read from /proc")

STAY = "import time; time.sleep(60)"
FORK = "import os, time; os.fork(); time.sleep(60)"
SETSID = "import os, time\nif os.fork() == 0: os.setsid()\ntime.sleep(60)"
DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    for descriptor in range(3): os.close(descriptor)
time.sleep(60)
"""


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def leader(code: str, mark: str, members: int) -> Generator[tuple[subprocess.Popen[bytes], str]]:
    """A process with this code, once it has become so many."""
    with processes_by_a_word() as word:
        command = [sys.executable, "-S", "-E", "-c", code, word]
        with subprocess.Popen(command, env={MARK: mark}, start_new_session=True, stdin=subprocess.PIPE) as process:
            try:
                wait_for(lambda: len(alive(word)) == members)
                yield process, word
            finally:
                process.kill()


def alive(word: str) -> set[int]:
    return set(processes(word)) & set(process_table() or {})


@pytest.mark.parametrize(
    ("code", "members"),
    [(STAY, 1), (FORK, 2), (SETSID, 2), pytest.param(DAEMON, 2, marks=linux)],
    ids=["alone", "child", "child in a session of its own", "daemon"],
)
def test_everybody_is_found_and_ended(code: str, members: int) -> None:
    mark = new_mark()
    with leader(code, mark, members) as (process, word):
        tree = ProcessTree(process.pid, mark)
        assert tree.scan(leader_ended=False)
        tree.signal(signal.SIGKILL, leader_ended=False)
        process.wait()
        wait_for(lambda: not alive(word))
        assert not tree.scan(leader_ended=True)


@linux
@pytest.mark.parametrize("code", [FORK, SETSID, DAEMON], ids=["child", "session", "daemon"])
def test_who_is_left_of_a_server_that_died_before_anybody_looked_is_found(code: str) -> None:
    mark = new_mark()
    with leader(code, mark, 2) as (process, word):
        tree = ProcessTree(process.pid, mark)
        process.kill()
        process.wait()
        assert tree.scan(leader_ended=True)
        tree.signal(signal.SIGTERM, leader_ended=True)
        wait_for(lambda: not alive(word))
        assert not tree.scan(leader_ended=True)


def test_another_server_is_not_touched() -> None:
    ours, theirs = new_mark(), new_mark()
    with leader(FORK, ours, 2) as (process, word), leader(DAEMON, theirs, 2) as (_, other_word):
        tree = ProcessTree(process.pid, ours)
        tree.scan(leader_ended=False)
        tree.signal(signal.SIGKILL, leader_ended=False)
        process.wait()
        wait_for(lambda: not alive(word))
        assert len(alive(other_word)) == 2


def test_we_ourselves_are_no_part_of_it() -> None:
    tree = ProcessTree(os.getpid(), new_mark())
    tree.scan(leader_ended=False)
    assert os.getpid() not in tree._members


def test_a_process_that_got_the_id_of_a_known_one_is_left_alone() -> None:
    mark = new_mark()
    with leader(SETSID, mark, 2) as (process, word):
        tree = ProcessTree(process.pid, mark)
        tree.scan(leader_ended=False)
        (stray,) = (pid for pid in tree._members if pid != process.pid)
        started_at_another_time = type(tree._members[stray])(stray, "1", 1, stray, stray)
        tree._members[stray] = started_at_another_time
        tree.signal(signal.SIGKILL, leader_ended=False)
        process.wait()
        assert alive(word) == {stray}


def test_an_empty_session_is_never_signalled_again() -> None:
    mark = new_mark()
    with leader(STAY, mark, 1) as (process, _), leader(STAY, new_mark(), 1) as (bystander, _):
        process.kill()
        process.wait()
        tree = ProcessTree(process.pid, mark)
        assert not tree.scan(leader_ended=True)
        tree._leader = bystander.pid  # as if it had been given the id
        assert not tree.scan(leader_ended=True)
        tree.signal(signal.SIGKILL, leader_ended=True)
        with pytest.raises(subprocess.TimeoutExpired):
            bystander.wait(0.1)


@linux
def test_a_zombie_is_dead() -> None:
    with subprocess.Popen(["/bin/true"], start_new_session=True) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert process.pid not in (process_table() or {})


@linux
def test_a_name_can_not_forge_its_descent() -> None:
    mark = new_mark()
    forged = "open('/proc/self/comm', 'w').write(') S 1 1 1'); " + STAY
    with leader(forged, mark, 1) as (process, _):
        wait_for(lambda: Path(f"/proc/{process.pid}/comm").read_text().startswith(")"))
        member = (process_table() or {})[process.pid]
        assert (member.parent, member.group, member.session) == (os.getpid(), process.pid, process.pid)


def test_ps_shows_the_same_family() -> None:
    mark = new_mark()
    with leader(SETSID, mark, 2) as (process, word):
        table = table_of_ps()
        assert table is not None
        child = (set(processes(word)) - {process.pid}).pop()
        assert (table[process.pid].parent, table[process.pid].group) == (os.getpid(), process.pid)
        assert table[child].parent == process.pid
        assert table[child].group == child


def test_without_any_table_the_group_still_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    mark = new_mark()
    with leader(FORK, mark, 2) as (process, word):
        monkeypatch.setattr("toolbridge.servers.stdio.process_tree.process_table", lambda: None)
        tree = ProcessTree(process.pid, mark)
        assert tree.scan(leader_ended=False)
        tree.signal(signal.SIGKILL, leader_ended=False)
        process.wait()
        wait_for(lambda: not alive(word))
        wait_for(lambda: not tree.scan(leader_ended=True))
