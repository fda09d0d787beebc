"""A server's process: started with exactly what was approved, watched, and ended with all that it started.

If the host itself is killed (SIGKILL), nothing here runs any more: the server sees the end of its stdin.
"""

from __future__ import annotations

import logging
import os
import re
import signal
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import anyio
import anyio.abc
import anyio.lowlevel

from toolbridge.errors import ServerConnectError
from toolbridge.servers.stdio.launch import Launch, why_not_started
from toolbridge.servers.stdio.process_tree import MARK, ProcessTree, new_mark
from toolbridge.trust.text.sanitise import masked

# SECURITY: bytes of a server into lines, in bounded memory whatever it sends.


Line: TypeAlias = bytes | bytearray

EDGE_BYTES = 1024
"""What is kept of each end of a line that is too long."""


@dataclass(frozen=True, slots=True)
class OverlongLine:
    """A line that was dropped while it came in."""

    head: bytes
    tail: bytes
    size: int


class LineReader:
    """Splits at newlines only: U+2028, a form feed or a carriage return inside a line is a part of it."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._begun = bytearray()
        """The line that has no end yet. One growing array: a server may write byte by byte."""
        self._overlong_head: bytes | None = None
        self._overlong_size = 0

    def feed(self, chunk: bytes) -> list[Line | OverlongLine]:
        """The lines that these bytes complete."""
        *ends, begun = chunk.split(b"\n")
        lines: list[Line | OverlongLine] = []
        for end in ends:
            if self._begun or self._overlong_head is not None or len(end) > self._most_bytes:
                self._add(end)
                lines.append(self._take())
            else:
                lines.append(end)
        if begun:
            self._add(begun)
        return lines

    def rest(self) -> Line | OverlongLine:
        """What came after the last newline: all there is when the stream has ended."""
        return self._take()

    def _add(self, piece: bytes) -> None:
        if self._overlong_head is not None:
            self._overlong_size += len(piece)
            # From here on the array holds the end only.
            self._begun += piece[-EDGE_BYTES:]
            del self._begun[:-EDGE_BYTES]
            return
        self._begun += piece
        if len(self._begun) > self._most_bytes:
            self._overlong_head = bytes(self._begun[:EDGE_BYTES])
            self._overlong_size = len(self._begun)
            self._begun = self._begun[-EDGE_BYTES:]

    def _take(self) -> Line | OverlongLine:
        begun, self._begun = self._begun, bytearray()
        if self._overlong_head is None:
            return begun
        line = OverlongLine(self._overlong_head, bytes(begun), self._overlong_size)
        self._overlong_head = None
        return line


# Lines on their way to a server that may read slowly, or never. Sending never waits, and never cuts a line in two.


class SendPipe(Protocol):
    """Where lines go."""

    def send_nowait(self, data: bytes | memoryview) -> int:
        """How many of the bytes there was room for.

        Raises:
            OSError: nobody reads any more.
        """
        ...

    async def wait_until_sendable(self) -> None:
        """Until there may be room."""
        ...


class WaitingLine:
    """A line for which the pipe had no room yet."""

    __slots__ = ("data", "sent")

    def __init__(self, data: bytes, sent: int) -> None:
        self.data = data
        self.sent = sent


class Outbox:
    """Writes at once where the pipe has room, which costs one system call and no task; keeps the rest in line."""

    def __init__(self, pipe: SendPipe, most_waiting_bytes: int) -> None:
        self._pipe = pipe
        self._most_waiting_bytes = most_waiting_bytes
        self._waiting: deque[WaitingLine] = deque()
        self._waiting_bytes = 0
        self._filled = anyio.Event()

    @property
    def is_full(self) -> bool:
        """Whether nothing should be added that nobody waits for."""
        return self._waiting_bytes > self._most_waiting_bytes

    def send(self, data: bytes) -> WaitingLine | None:
        """Send a line; what is returned still waits, and can be withdrawn.

        Raises:
            OSError: nobody reads any more.
        """
        sent = 0 if self._waiting else self._pipe.send_nowait(data)
        if sent == len(data):
            return None
        line = WaitingLine(data, sent)
        self._waiting.append(line)
        self._waiting_bytes += len(data)
        self._filled.set()
        return line

    def withdraw(self, line: WaitingLine) -> bool:
        """Take back a line of which the server has seen nothing. So what waits is bounded by who waits for it."""
        if line.sent or line not in self._waiting:
            return False
        self._remove(line)
        return True

    async def write_waiting(self) -> None:
        """Write what waits, for as long as the channel is open.

        Raises:
            OSError: nobody reads any more.
        """
        while True:
            if not self._waiting:
                self._filled = anyio.Event()
                await self._filled.wait()
            await self._pipe.wait_until_sendable()
            if self._waiting:
                line = self._waiting[0]
                line.sent += self._pipe.send_nowait(memoryview(line.data)[line.sent :])
                if line.sent == len(line.data):
                    self._remove(line)

    def _remove(self, line: WaitingLine) -> None:
        self._waiting.remove(line)
        self._waiting_bytes -= len(line.data)


# The three pipes of a child process, and our ends of them: read and written without ever blocking.
#
# They are our own, not the event loop's: what a dead process left in its pipe can be read to the last byte even while
# another holds it open, a line is written without a task, and closing them leaves nothing behind.


_CHUNK = 65536


class Pipes:
    """Our ends: `stdin` to write, `stdout` and `stderr` to read; the child's ends until it has them."""

    def __init__(self) -> None:
        """Open all three.

        Raises:
            OSError: there are no descriptors left.
        """
        with ExitStack() as undo:
            ends: list[int] = []
            for _ in range(3):
                pair = os.pipe()
                for end in pair:
                    undo.callback(os.close, end)
                ends += pair
            self.child_stdin, self.stdin, self.stdout, self.child_stdout, self.stderr, self.child_stderr = ends
            for end in (self.stdin, self.stdout, self.stderr):
                os.set_blocking(end, False)
            undo.pop_all()
        self._open = set(ends)

    def close(self, *ends: int) -> None:
        """Close some, or all of them; again is fine. Whoever waits for one is woken with `ClosedResourceError`."""
        for end in ends or tuple(self._open):
            if end in self._open:
                self._open.remove(end)
                if end in (self.stdin, self.stdout, self.stderr):
                    anyio.notify_closing(end)
                os.close(end)

    def close_child_ends(self) -> None:
        """The child has them now, and ours would keep its streams from ending."""
        self.close(self.child_stdin, self.child_stdout, self.child_stderr)

    async def read(self, end: int) -> bytes:
        """The next bytes; none at the end."""
        while True:
            if end not in self._open:
                return b""
            try:
                await anyio.wait_readable(end)
                return os.read(end, _CHUNK)
            except BlockingIOError:
                continue
            except (OSError, anyio.ClosedResourceError):
                return b""

    def read_nowait(self, end: int) -> bytes:
        """What is there; none when there is nothing, or no more."""
        try:
            return os.read(end, _CHUNK) if end in self._open else b""
        except OSError:
            return b""

    def write_nowait(self, data: bytes | memoryview) -> int:
        """How much of it the pipe took.

        Raises:
            OSError: nobody reads any more.
        """
        if self.stdin not in self._open:
            raise BrokenPipeError
        try:
            return os.write(self.stdin, data)
        except BlockingIOError:
            return 0

    async def wait_until_writable(self) -> None:
        """Until the pipe may take something.

        Raises:
            OSError: it is closed.
        """
        try:
            if self.stdin in self._open:
                await anyio.wait_writable(self.stdin)
        except anyio.ClosedResourceError:
            raise BrokenPipeError from None


# The end of what a server wrote to its stderr, for error messages: bounded, however much it writes.


_TAIL_BYTES = 4096
# Somewhat more is kept: a secret of which the beginning is not there any more would not be known.
_KEPT_BYTES = 2 * _TAIL_BYTES

# What tells most in a crash: in a trace of Node the last lines are frames and its version, in npm's the name of a log.
_TELLING = re.compile(r"error|exception|err!|fatal|panic|cannot|not (?:be )?found|no matching|denied", re.IGNORECASE)
_NOT_TELLING = re.compile(r"^\s+at |complete log of this run")
# npm says so on every line, whatever that line is about.
_NPM = re.compile(r"^npm (?:error|ERR!)")


class StderrTail:
    """Keeps the last few kilobytes."""

    def __init__(self) -> None:
        self._tail = bytearray()

    def add(self, chunk: bytes) -> None:
        """More of it."""
        self._tail += chunk
        del self._tail[:-_KEPT_BYTES]

    def last_words(self, secrets: frozenset[str] = frozenset()) -> str:
        """The line that says most about the end: the last that speaks of an error, or just the last.

        Not sanitised, but for secrets: one that was written over several lines is not known by its last.
        """
        text = masked(self._tail.decode("utf-8", "replace"), secrets)[-_TAIL_BYTES:]
        lines = [line for line in text.splitlines() if line.strip()]
        telling = [line for line in lines if _TELLING.search(_NPM.sub("", line)) and not _NOT_TELLING.search(line)]
        return (telling or lines or [""])[-1].strip()


# How long a server may take to leave by itself once its stdin is closed, and to vanish once it is killed.
_GRACE_SECONDS = 0.7
_KILL_SECONDS = 1.0
_POLL_SECONDS = 0.01
_LOOK_SECONDS = 0.05
_MOST_READ_AT_ONCE = 1024 * 1024

_LOGGER = logging.getLogger("toolbridge")


async def start_process(server: str, launch: Launch) -> ServerProcess:
    """Start a server's process.

    Raises:
        ServerConnectError: the system would not start it; says why and what to do.
    """
    await anyio.lowlevel.checkpoint()
    mark = new_mark()
    pipes: Pipes | None = None
    process: anyio.abc.Process | None = None
    try:
        pipes = Pipes()
        # Shielded, so that a process which has started always has an owner. It takes milliseconds.
        with anyio.CancelScope(shield=True):
            process = await anyio.open_process(
                [launch.executable, *launch.args],
                stdin=pipes.child_stdin,
                stdout=pipes.child_stdout,
                stderr=pipes.child_stderr,
                env={**launch.env, MARK: mark},
                cwd=launch.cwd,
                start_new_session=True,
            )
    except BaseException as error:
        if pipes is not None:
            pipes.close()
        if isinstance(error, (OSError, ValueError)):
            raise ServerConnectError(server, f"can't be started: {why_not_started(launch, error)}") from None
        raise
    assert process is not None
    pipes.close_child_ends()
    return ServerProcess(process, pipes, ProcessTree(process.pid, mark), launch.secrets)


class ServerProcess:
    """The running process, as the pipe of a `LineDispatcher`."""

    def __init__(
        self, process: anyio.abc.Process, pipes: Pipes, tree: ProcessTree, secrets: frozenset[str] = frozenset()
    ) -> None:
        self.pid = process.pid
        self._process = process
        self._pipes = pipes
        self._stderr = StderrTail()
        self._secrets = secrets
        self._tree = tree
        self._closing = False

    # ---- the pipe

    async def receive(self) -> bytes:
        """The next bytes of its stdout; none at the end."""
        return await self._pipes.read(self._pipes.stdout)

    def receive_nowait(self) -> bytes:
        """What its stdout has now."""
        return self._pipes.read_nowait(self._pipes.stdout)

    def send_nowait(self, data: bytes | memoryview) -> int:
        """How much of it its stdin took."""
        return self._pipes.write_nowait(data)

    async def wait_until_sendable(self) -> None:
        """Until its stdin may take something."""
        await self._pipes.wait_until_writable()

    async def attend(self) -> None:
        """Keep its stderr flowing; returns when it has ended, whoever still holds its pipes."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow_stderr)
            await self._process.wait()
            tasks.cancel_scope.cancel()
        self._drain(self._pipes.stderr)
        # While ids that it has left behind can't have been given to others yet.
        self._tree.look(leader_ended=True)

    # ---- the end

    def how_it_ended(self) -> str:
        """Its exit status or signal, and what it last wrote to stderr. Not sanitised; empty where there is nothing."""
        code = self._process.returncode
        parts: list[str] = []
        if code is not None:
            parts.append(f"it was ended by {_signal_name(-code)}" if code < 0 else f"it exited with status {code}")
        if words := self._stderr.last_words(self._secrets):
            parts.append(f"it last wrote to stderr: {words}")
        return "; ".join(parts)

    async def close(self, seconds: float) -> None:
        """End it and everything it started: stdin closed, SIGTERM after a moment, SIGKILL after `seconds` more.

        Takes less than `seconds` + 2 s. Run it shielded; should it still be interrupted, all are killed at once.
        """
        if self._closing:
            return
        self._closing = True
        gone = False
        try:
            self._tree.look(leader_ended=self._ended)
            self._pipes.close(self._pipes.stdin)
            gone = await self._gone_within(_GRACE_SECONDS)
            if not gone:
                self._signal(signal.SIGTERM)
                gone = await self._gone_within(seconds)
        finally:
            if not gone:
                self._signal(signal.SIGKILL)
            self._pipes.close()
        if not gone and not await self._gone_within(_KILL_SECONDS, killing=True):
            _LOGGER.warning("Process %d, or one that it started, could not be ended", self.pid)

    @property
    def _ended(self) -> bool:
        return self._process.returncode is not None

    def _signal(self, number: signal.Signals) -> None:
        self._tree.look(leader_ended=self._ended)
        self._tree.signal(number, leader_ended=self._ended)

    async def _gone_within(self, seconds: float, *, killing: bool = False) -> bool:
        """Whether the whole tree is gone, as soon as it is. Its output is read, for it may need to write to leave."""
        deadline = anyio.current_time() + seconds
        next_look = 0.0
        while True:
            flowed = self._drain(self._pipes.stdout) + self._drain(self._pipes.stderr)
            now = anyio.current_time()
            if self._ended and now >= next_look:
                if not self._tree.look(leader_ended=True):
                    return True
                if killing:  # also those who were started while others were killed
                    self._tree.signal(signal.SIGKILL, leader_ended=True)
                next_look = now + _LOOK_SECONDS
            if now >= deadline:
                return False
            await anyio.sleep(_POLL_SECONDS if not flowed else _POLL_SECONDS / 10)

    async def _follow_stderr(self) -> None:
        while chunk := await self._pipes.read(self._pipes.stderr):
            self._stderr.add(chunk)

    def _drain(self, end: int) -> int:
        """Read what is there, up to a bound; how much that was."""
        size = 0
        while size < _MOST_READ_AT_ONCE and (chunk := self._pipes.read_nowait(end)):
            size += len(chunk)
            if end == self._pipes.stderr:
                self._stderr.add(chunk)
        return size


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
