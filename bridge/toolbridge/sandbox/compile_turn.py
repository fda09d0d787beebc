"""One process compiles an image, and others that want it at the same time wait for that: it takes all their cores."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Generator

# Longer than any compilation: then something is stuck, and whoever waits compiles for itself.
_MOST_SECONDS = 120.0
_LOOK_SECONDS = 0.05


@contextlib.contextmanager
def compile_turn(path: str, seconds: float = _MOST_SECONDS) -> Generator[None]:
    """Holds the lock file at `path`, in a directory of ours. Where there are no such locks, everybody goes ahead."""
    descriptor = _taken(path, time.monotonic() + seconds)
    try:
        yield
    finally:
        if descriptor is not None:
            with contextlib.suppress(OSError):
                os.unlink(path)
            os.close(descriptor)  # which gives the lock back


def _taken(path: str, until: float) -> int | None:
    """The locked file; None when there is no lock to be had, or not in time."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    while time.monotonic() < until:
        try:
            import fcntl

            descriptor = os.open(path, flags, 0o600)
        except (ImportError, OSError):
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_ino == os.stat(path).st_ino:
                return descriptor
        except OSError:
            time.sleep(_LOOK_SECONDS)
        os.close(descriptor)  # another's turn, or the file of one that has just ended
    return None
