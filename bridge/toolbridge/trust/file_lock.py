"""A lock between processes, and between threads of one: who holds it is the only one to read, change and write."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
from collections.abc import Generator

from toolbridge.private_files import AnyPath, UnsafePathError, private_directory

_PAUSE = 0.01


class LockTimeoutError(OSError):
    """Another process has held the lock for too long."""


@contextlib.contextmanager
def file_lock(path: AnyPath, *, seconds: float) -> Generator[None]:
    """Hold the lock that this file stands for; it is made, in a private directory, where it isn't there.

    The system lets go of it when its holder ends, however that happens. The file stays: taking it away would let two
    processes hold two locks of one name.

    Raises:
        LockTimeoutError: it was not to be had in time.
        UnsafePathError: the directory is open to others, or the file is not one of ours.
        OSError: it can't be made or opened.
    """
    private_directory(os.path.dirname(path), create=True)
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnsafePathError(f"{os.fspath(path)} is not a regular file")
        until = time.monotonic() + seconds
        while not _taken(descriptor):
            if time.monotonic() > until:
                raise LockTimeoutError(f"another process has held {os.fspath(path)} for more than {seconds:g} s")
            time.sleep(_PAUSE)
        try:
            yield
        finally:
            _let_go(descriptor)
    finally:
        os.close(descriptor)


if sys.platform == "win32":
    import msvcrt

    def _taken(descriptor: int) -> bool:
        os.lseek(descriptor, 0, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _let_go(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _taken(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _let_go(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
