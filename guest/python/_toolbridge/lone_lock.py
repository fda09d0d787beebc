"""A lock where there is only one thread: waiting for it is a mistake in the program, and is told as one."""

from __future__ import annotations

from types import TracebackType

from . import wire

_DEADLOCK = "this would wait forever: there are no threads here that could release the lock, or put into the queue"


class LoneLock:
    """In place of threading.Lock, also inside Condition, Event, Semaphore and Queue."""

    def __init__(self) -> None:
        self._is_locked = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Takes the lock; if it is taken already, there is nobody who would release it."""
        if self._is_locked:
            if blocking and timeout < 0:
                raise RuntimeError(_DEADLOCK)
            if blocking:
                wire.sleep(timeout)
            return False
        self._is_locked = True
        return True

    def release(self) -> None:
        """Gives it back."""
        if not self._is_locked:
            raise RuntimeError("release unlocked lock")
        self._is_locked = False

    def locked(self) -> bool:
        """Whether it is taken."""
        return self._is_locked

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _at_fork_reinit(self) -> None:
        self._is_locked = False
