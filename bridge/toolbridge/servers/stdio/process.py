"""A server's process: started exactly as approved, watched, and ended with its whole process tree.

If the host itself is killed (SIGKILL), no clean-up runs: the server sees the end of its stdin.
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
from toolbridge.trust.sanitise import masked

_log = logging.getLogger("toolbridge")

Line: TypeAlias = bytes | bytearray

END_BYTES = 1024
"""The size of each end that is kept of an overlong line."""


@dataclass(frozen=True, slots=True)
class OverlongLine:
    """The two ends of a line that was dropped while it came in."""

    head: bytes
    tail: bytes
    size: int


class LineReader:
    """SECURITY: splits bytes into lines in bounded memory.

    Splits at newlines only: U+2028, a form feed or a carriage return is part of a line.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._begun = bytearray()
        """The unfinished line. One growing array: a server may write byte by byte."""
        self._overlong_head: bytes | None = None
        self._overlong_size = 0

    def feed(self, chunk: bytes) -> list[Line | OverlongLine]:
        """Add bytes, and return the lines that they complete, without newlines; of an overlong line, its two ends."""
        *ends, begun = chunk.split(b"\n")
        lines: list[Line | OverlongLine] = []
        for end in ends:
            if self._begun or self._overlong_head is not None or len(end) > self._max_bytes:
                self._add(end)
                lines.append(self._take())
            else:
                lines.append(end)
        if begun:
            self._add(begun)
        return lines

    def rest(self) -> Line | OverlongLine:
        """Return the bytes after the last newline as a line, and forget them; may be empty."""
        return self._take()

    def _add(self, piece: bytes) -> None:
        """Append to the unfinished line; above the limit, keep only its two ends."""
        if self._overlong_head is not None:
            self._overlong_size += len(piece)
            # From here on the array holds the line's last bytes only.
            self._begun += piece[-END_BYTES:]
            del self._begun[:-END_BYTES]
            return
        self._begun += piece
        if len(self._begun) > self._max_bytes:
            self._overlong_head = bytes(self._begun[:END_BYTES])
            self._overlong_size = len(self._begun)
            self._begun = self._begun[-END_BYTES:]

    def _take(self) -> Line | OverlongLine:
        """Finish and return the unfinished line, and begin an empty one."""
        begun, self._begun = self._begun, bytearray()
        if self._overlong_head is None:
            return begun
        line = OverlongLine(self._overlong_head, bytes(begun), self._overlong_size)
        self._overlong_head = None
        return line


class SendPipe(Protocol):
    """A pipe to a server."""

    def send_nowait(self, data: bytes | memoryview) -> int:
        """Send as many bytes as there is room for, and return how many.

        Raises:
            OSError: the pipe has no reader any more.
        """
        ...

    async def wait_until_sendable(self) -> None:
        """Wait until there may be room."""
        ...


class QueuedLine:
    """A line for which the pipe had no room."""

    __slots__ = ("data", "sent")

    def __init__(self, data: bytes, sent: int) -> None:
        self.data = data
        self.sent = sent


class WriteQueue:
    """Write queue to a server that may read slowly, or never. Sending never blocks, and never cuts a line in two.

    If the pipe has room, a line is written at once, by one system call and without a task; else it is queued.
    """

    def __init__(self, pipe: SendPipe, max_waiting_bytes: int) -> None:
        self._pipe = pipe
        self._max_waiting_bytes = max_waiting_bytes
        self._waiting: deque[QueuedLine] = deque()
        self._waiting_bytes = 0
        self._filled = anyio.Event()

    @property
    def is_full(self) -> bool:
        """Whether messages that no caller waits for must be dropped."""
        return self._waiting_bytes > self._max_waiting_bytes

    def send(self, data: bytes) -> QueuedLine | None:
        """Write a line at once, or queue and return it, so that it can be withdrawn; None if it was written.

        Raises:
            OSError: the pipe has no reader any more.
        """
        sent = 0 if self._waiting else self._pipe.send_nowait(data)
        if sent == len(data):
            return None
        line = QueuedLine(data, sent)
        self._waiting.append(line)
        self._waiting_bytes += len(data)
        self._filled.set()
        return line

    def withdraw(self, line: QueuedLine) -> bool:
        """Remove an unsent line from the queue; False if the server may have seen a part of it."""
        if line.sent or line not in self._waiting:
            return False
        self._remove(line)
        return True

    async def write_waiting(self) -> None:
        """Write queued lines until cancelled.

        Raises:
            OSError: the pipe has no reader any more.
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

    def _remove(self, line: QueuedLine) -> None:
        self._waiting.remove(line)
        self._waiting_bytes -= len(line.data)


_CHUNK = 65536


class Pipes:
    """The three pipes of a child process, read and written without blocking.

    They are not the event loop's: the bytes that a dead process left can be read even while another process holds its
    pipe open, and a line is written without a task.
    """

    def __init__(self) -> None:
        """Open all three pipes.

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
        """Close the named ends, or all; safe to repeat. A task waiting for one gets a `ClosedResourceError`."""
        for end in ends or tuple(self._open):
            if end in self._open:
                self._open.remove(end)
                if end in (self.stdin, self.stdout, self.stderr):
                    anyio.notify_closing(end)
                os.close(end)

    def close_child_ends(self) -> None:
        """Close our copies of the child's ends, which would keep its streams from ending."""
        self.close(self.child_stdin, self.child_stdout, self.child_stderr)

    async def read(self, end: int) -> bytes:
        """Wait for the next bytes; empty at the end, on an error, and once the pipe is closed."""
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
        """Return bytes that are there already; empty if there are none, on an error, and once the pipe is closed."""
        try:
            return os.read(end, _CHUNK) if end in self._open else b""
        except OSError:
            return b""

    def write_nowait(self, data: bytes | memoryview) -> int:
        """Write as many bytes as there is room for, and return how many.

        Raises:
            OSError: the pipe has no reader any more.
        """
        if self.stdin not in self._open:
            raise BrokenPipeError
        try:
            return os.write(self.stdin, data)
        except BlockingIOError:
            return 0

    async def wait_until_writable(self) -> None:
        """Wait until stdin may have room; returns at once if it is closed.

        Raises:
            BrokenPipeError: it is closed meanwhile.
        """
        try:
            if self.stdin in self._open:
                await anyio.wait_writable(self.stdin)
        except anyio.ClosedResourceError:
            raise BrokenPipeError from None


_TAIL_BYTES = 4096
# Twice as much is kept: a secret without its beginning would not be recognised.
_KEPT_BYTES = 2 * _TAIL_BYTES

# The most telling lines of a crash: the last lines of a Node trace are frames and its version, npm's name a log.
_TELLING = re.compile(r"error|exception|err!|fatal|panic|cannot|not (?:be )?found|no matching|denied", re.IGNORECASE)
_NOT_TELLING = re.compile(r"^\s+at |complete log of this run")
# npm begins every line with this.
_NPM = re.compile(r"^npm (?:error|ERR!)")


class StderrTail:
    """The end of a server's stderr, for error messages, in bounded memory."""

    def __init__(self) -> None:
        self._tail = bytearray()

    def add(self, chunk: bytes) -> None:
        """Append bytes, and drop the oldest."""
        self._tail += chunk
        del self._tail[:-_KEPT_BYTES]

    def last_words(self, secrets: frozenset[str] = frozenset()) -> str:
        """Return the last line that mentions an error, or else the last line, or "". Not sanitised.

        Secrets are masked before the line is chosen: one may span several lines.
        """
        text = masked(self._tail.decode("utf-8", "replace"), secrets)[-_TAIL_BYTES:]
        lines = [line for line in text.splitlines() if line.strip()]
        telling = [line for line in lines if _TELLING.search(_NPM.sub("", line)) and not _NOT_TELLING.search(line)]
        return (telling or lines or [""])[-1].strip()


# Timeouts for a server to exit once its stdin is closed, and once it is killed.
_GRACE_SECONDS = 0.7
_KILL_SECONDS = 1.0
_POLL_SECONDS = 0.01
_SCAN_SECONDS = 0.05
_MAX_READ_AT_ONCE = 1024 * 1024


async def start_process(server: str, launch: Launch) -> ServerProcess:
    """Start a server's process in a session of its own, with a mark in its environment. The caller must close it.

    Raises:
        ServerConnectError: the system would not start it; says why and what to do.
    """
    await anyio.lowlevel.checkpoint()
    mark = new_mark()
    pipes: Pipes | None = None
    process: anyio.abc.Process | None = None
    try:
        pipes = Pipes()
        # Shielded, so that a started process always has an owner. Starting takes milliseconds.
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
    """The running process of a server; the pipe of a `LineDispatcher`."""

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

    async def receive(self) -> bytes:
        """Wait for the next bytes of its stdout; empty at the end."""
        return await self._pipes.read(self._pipes.stdout)

    def receive_nowait(self) -> bytes:
        """Bytes that its stdout has already; empty when there are none."""
        return self._pipes.read_nowait(self._pipes.stdout)

    def send_nowait(self, data: bytes | memoryview) -> int:
        """Write as many bytes to its stdin as there is room for, and return how many."""
        return self._pipes.write_nowait(data)

    async def wait_until_sendable(self) -> None:
        """Wait until its stdin may have room."""
        await self._pipes.wait_until_writable()

    async def attend(self) -> None:
        """Read its stderr until the process has exited, even if another process still holds its pipes."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow_stderr)
            await self._process.wait()
            tasks.cancel_scope.cancel()
        self._drain(self._pipes.stderr)
        # Now: the ids that it left behind can't have been reused yet.
        self._tree.scan(leader_ended=True)

    def how_it_ended(self) -> str:
        """Return its exit status or signal and its last stderr line; may be empty. Not sanitised."""
        code = self._process.returncode
        parts: list[str] = []
        if code is not None:
            parts.append(f"it was ended by {_signal_name(-code)}" if code < 0 else f"it exited with status {code}")
        if words := self._stderr.last_words(self._secrets):
            parts.append(f"it last wrote to stderr: {words}")
        return "; ".join(parts)

    async def close(self, seconds: float) -> None:
        """End its process tree: close stdin, SIGTERM after a moment, SIGKILL after `seconds` more. Logs if that fails.

        Takes less than `seconds` + 2 s. Run it shielded; if it is cancelled all the same, it kills the tree at once.
        A second call returns at once.
        """
        if self._closing:
            return
        self._closing = True
        gone = False
        try:
            self._tree.scan(leader_ended=self._exited)
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
            _log.warning("Process %d, or one that it started, could not be ended", self.pid)

    @property
    def _exited(self) -> bool:
        return self._process.returncode is not None

    def _signal(self, number: signal.Signals) -> None:
        self._tree.scan(leader_ended=self._exited)
        self._tree.signal(number, leader_ended=self._exited)

    async def _gone_within(self, seconds: float, *, killing: bool = False) -> bool:
        """Wait for the process tree to exit, draining its pipes so that it can't block; False at the timeout.

        With `killing`, sends SIGKILL to what is left at each scan.
        """
        deadline = anyio.current_time() + seconds
        next_scan = 0.0
        while True:
            flowed = self._drain(self._pipes.stdout) + self._drain(self._pipes.stderr)
            now = anyio.current_time()
            if self._exited and now >= next_scan:
                if not self._tree.scan(leader_ended=True):
                    return True
                if killing:  # also processes that were started while others were killed
                    self._tree.signal(signal.SIGKILL, leader_ended=True)
                next_scan = now + _SCAN_SECONDS
            if now >= deadline:
                return False
            await anyio.sleep(_POLL_SECONDS if not flowed else _POLL_SECONDS / 10)

    async def _follow_stderr(self) -> None:
        while chunk := await self._pipes.read(self._pipes.stderr):
            self._stderr.add(chunk)

    def _drain(self, end: int) -> int:
        """Read the bytes that are there, up to a bound, and return how many."""
        size = 0
        while size < _MAX_READ_AT_ONCE and (chunk := self._pipes.read_nowait(end)):
            size += len(chunk)
            if end == self._pipes.stderr:
                self._stderr.add(chunk)
        return size


def _signal_name(number: int) -> str:
    """Return a signal's name, as SIGTERM, or "signal 99" if it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
