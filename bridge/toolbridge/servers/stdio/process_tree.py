"""The process tree of a server: its children, their children, and processes that left its process group.

A server is started in a session of its own, and signals go to its whole process group. That misses children with
sessions of their own and daemons, so the process table is scanned, too. On Linux every process of a server inherits a
mark in its environment; elsewhere `ps` shows parents.

A process is identified by its id *and* its start time, so that no stranger with a reused id is signalled.
Not found: on Linux, a process that cleared its environment after its parent died; elsewhere, a process that began a
session and lost its parent.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

MARK = "TOOLBRIDGE_PROCESS_MARK"
"""The variable that is added to a server's environment. Its value is random."""

_SECONDS_FOR_PS = 1.0


def new_mark() -> str:
    """A unique value of the mark."""
    return secrets.token_hex(16)


@dataclass(frozen=True, slots=True)
class Member:
    """A snapshot of one process."""

    pid: int
    started: str
    parent: int
    group: int
    session: int


Table: TypeAlias = Mapping[int, Member]
"""Living processes by id."""


class ProcessTree:
    """The living processes of one server; `leader` is the first one."""

    def __init__(self, leader: int, mark: str) -> None:
        self._leader = leader
        self._mark = f"{MARK}={mark}".encode("ascii")
        first = _member(leader)
        self._started = int(first.started) if first else 0
        self._members: dict[int, Member] = {}
        self._session_is_ours = True

    def scan(self, *, leader_ended: bool) -> bool:
        """Find the tree's processes and remember them for `signal`; False when none is left. Blocks briefly."""
        table = process_table()
        if table is None:
            return self._group_answers() or not leader_ended
        found = {pid: table[pid] for pid, known in self._members.items() if _same(table.get(pid), known)}
        if self._session_is_ours:
            found |= {pid: one for pid, one in table.items() if self._leader in (pid, one.group, one.session)}
        found |= {pid: one for pid, one in table.items() if pid not in found and self._is_marked(one)}
        found.pop(os.getpid(), None)
        _add_descendants(found, table)
        self._members = found
        if leader_ended:
            # The id of an empty session may be reused at any time from now on.
            self._session_is_ours = any(self._leader in (one.group, one.session) for one in found.values())
        return bool(found)

    def signal(self, number: signal.Signals, *, leader_ended: bool) -> None:
        """Signal the server's process group, and each living process of the last scan. Errors are ignored."""
        if not leader_ended or self._session_is_ours:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._leader, number)
        current = _member if sys.platform == "linux" else (process_table() or {}).get
        for member in self._members.values():
            if member.group != self._leader and _same(current(member.pid), member):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(member.pid, number)

    def _is_marked(self, one: Member) -> bool:
        """Return whether a process has our mark in its environment. Always False outside Linux."""
        if sys.platform != "linux" or int(one.started) < self._started:  # most are older than the server
            return False
        return self._mark in _environment(one.pid)

    def _group_answers(self) -> bool:
        """Return whether the leader's process group still has a process; if not, its id is no longer ours."""
        try:
            os.killpg(self._leader, 0)
        except ProcessLookupError:
            self._session_is_ours = False
        except PermissionError:
            pass  # a process is there
        return self._session_is_ours


def process_table() -> Table | None:
    """List all living processes of the system; None if they can't be listed. Blocks on /proc, or runs `ps`."""
    if sys.platform != "linux":
        return table_of_ps()
    try:
        names = os.listdir("/proc")
    except OSError:
        return None
    members = (_member(int(name)) for name in names if name.isdigit())
    return {member.pid: member for member in members if member is not None} or None


def table_of_ps() -> Table | None:
    """List all processes by running `ps`, without session ids; None if it fails. Blocks for up to a second."""
    command = ["/bin/ps", "-A", "-o", "pid=,ppid=,pgid=,state=,lstart="]
    try:
        done = subprocess.run(  # noqa: S603  # no server text is in it
            command, capture_output=True, text=True, timeout=_SECONDS_FOR_PS, check=True
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    table: dict[int, Member] = {}
    for line in done.stdout.splitlines():
        pid, parent, group, state, *started = line.split()
        if "Z" not in state:
            table[int(pid)] = Member(int(pid), " ".join(started), int(parent), int(group), int(group))
    return table


def _same(now: Member | None, known: Member) -> bool:
    return now is not None and now.started == known.started


def _add_descendants(found: dict[int, Member], table: Table) -> None:
    """Add to `found`, in place, every process in the table that descends from one in it."""
    children: dict[int, list[Member]] = {}
    for member in table.values():
        children.setdefault(member.parent, []).append(member)
    waiting = list(found)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child.pid not in found:
                found[child.pid] = child
                waiting.append(child.pid)


def _member(pid: int) -> Member | None:
    """Read one process from /proc; None when it is dead or a zombie. Linux only."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            text = file.read()
        # The name, in parentheses, is the process's own choice and may contain any character.
        state, parent, group, session, *rest = text[text.rindex(b")") + 2 :].split()
        if state in (b"Z", b"X"):
            return None
        return Member(pid, rest[15].decode("ascii"), int(parent), int(group), int(session))
    except (OSError, ValueError, IndexError):
        return None


def _environment(pid: int) -> list[bytes]:
    """Read a process's environment; empty if the process is gone or its environment isn't readable. Linux only."""
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            return file.read().split(b"\0")
    except OSError:
        return []
