"""A server's process: started with exactly what was approved, watched, and ended with all that it started.

If the host itself is killed (SIGKILL), nothing here runs any more: the server sees the end of its stdin.
"""

from __future__ import annotations

import logging
import signal
import sys

import anyio
import anyio.abc
import anyio.lowlevel

from toolbridge.errors import ServerConnectError
from toolbridge.servers.launch import Launch, why_not_started
from toolbridge.servers.pipes import Pipes
from toolbridge.servers.process_tree import MARK, ProcessTree, new_mark
from toolbridge.servers.stderr_tail import StderrTail

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
    if sys.platform == "win32":
        raise ServerConnectError(server, "can't be started: stdio servers need Linux or macOS so far.")
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
