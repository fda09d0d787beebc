"""SECURITY: files that only this user can read and write.

Used for whatever another user, or a repository, must not be able to plant or read: approvals, pins, tokens, kept
listings, compiled code. A directory or file that others could have written is refused, never repaired in silence.
Paths are plain strings: this is on the way of every command, and pathlib takes its time to import.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
from collections.abc import Generator

# Where this user's files are kept. Found by hand: a library would cost a command a tenth of its start-up.


_CACHE_VARIABLE = "TOOLBRIDGE_CACHE_DIR"
_STATE_VARIABLE = "TOOLBRIDGE_STATE_DIR"


def cache_directory() -> str:
    """What can be made again: compiled images, kept listings. `TOOLBRIDGE_CACHE_DIR` moves it."""
    chosen = os.environ.get(_CACHE_VARIABLE)
    if chosen:
        return chosen
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        return os.path.join(
            os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local"), "toolbridge", "Cache"
        )
    if sys.platform == "darwin":
        base = os.path.join(home, "Library", "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        base = base if os.path.isabs(base) else os.path.join(home, ".cache")
    return os.path.join(base, "toolbridge")


def state_directory() -> str | None:
    """What must not be lost and belongs to this machine: approvals. `TOOLBRIDGE_STATE_DIR` moves it.

    None where there is no absolute path: a relative one would be found in whichever repository one is in.
    """
    chosen = os.environ.get(_STATE_VARIABLE)
    if chosen:
        return chosen if os.path.isabs(chosen) else None
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    elif sys.platform == "darwin":
        base = os.path.join(home, "Library", "Application Support")
    else:
        base = os.environ.get("XDG_STATE_HOME", "")
        base = base if os.path.isabs(base) else os.path.join(home, ".local", "state")
    return os.path.join(base, "toolbridge") if os.path.isabs(base) else None


AnyPath = str | os.PathLike[str]

# Other users can't be told apart by mode bits on Windows; the profile directory is the protection there.
_POSIX = os.name == "posix"


class UnsafePathError(OSError):
    """A directory or file that somebody else could have written."""


def private_directory(path: AnyPath, *, create: bool) -> str:
    """A directory of ours that nobody else can enter.

    Raises:
        UnsafePathError: it is a link, no directory, another user's, or open to others.
        OSError: it can't be made or looked at.
    """
    directory = os.fspath(path)
    if create:
        make_private_directories(directory)
    facts = os.lstat(directory)
    if not stat.S_ISDIR(facts.st_mode):
        raise UnsafePathError(f"{directory} is not a directory (a symbolic link isn't followed)")
    if _POSIX and facts.st_uid != os.geteuid():
        raise UnsafePathError(f"{directory} belongs to another user")
    if _POSIX and facts.st_mode & 0o077:
        raise UnsafePathError(f"{directory} is accessible to others; run `chmod 700` on it")
    return directory


def check_ancestors(directory: AnyPath) -> None:
    """Refuse a directory that another user could rename or replace by way of one above it.

    One above it belongs to this user or to root, and not everybody can rename its entries: it is not writable by
    all, or has the sticky bit, as `/tmp` has. Whoever owns `/` counts as root, for user namespaces.

    Raises:
        UnsafePathError: one above it belongs to another user, or is writable by all.
        OSError: one can't be looked at.
    """
    if not _POSIX:
        return
    trusted = {0, os.geteuid(), os.stat("/").st_uid}
    path = os.path.abspath(directory)
    # As it is written and with its links followed: a link can be replaced in the directory that holds it.
    for above in dict.fromkeys([*_above(path), *_above(os.path.realpath(path))]):
        try:
            facts = os.stat(above)
        except FileNotFoundError:
            continue  # made for this user only, once it is needed
        if facts.st_uid not in trusted:
            raise UnsafePathError(f"{above}, above it, belongs to another user")
        if facts.st_mode & stat.S_IWOTH and not facts.st_mode & stat.S_ISVTX:
            raise UnsafePathError(f"{above}, above it, can be written by everybody; run `chmod o-w` on it")


def _above(path: str) -> list[str]:
    found = [os.path.dirname(path)]
    while found[-1] != os.path.dirname(found[-1]):
        found.append(os.path.dirname(found[-1]))
    return found


def make_private_directories(directory: str) -> None:
    """Makes a directory and those above it that are missing, all of them for this user only."""
    missing: list[str] = []
    while directory and not os.path.isdir(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    for each in reversed(missing):
        with contextlib.suppress(FileExistsError):
            os.mkdir(each, mode=0o700)


def read_private_file(path: AnyPath, *, limit: int) -> bytes:
    """The content of a file of ours.

    Raises:
        UnsafePathError: it, or its directory, could have been written by somebody else, or it is too long.
        OSError: it is not there or can't be read.
    """
    descriptor = open_private_file(path, limit=limit)
    try:
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(limit)
    finally:
        os.close(descriptor)


def open_private_file(path: AnyPath, *, limit: int) -> int:
    """The descriptor of a file of ours, for whoever must be sure to go on with the very file that was looked at.

    Raises:
        UnsafePathError: it, or its directory, could have been written by somebody else, or it is too long.
        OSError: it is not there or can't be read.
    """
    private_directory(os.path.dirname(path), create=False)
    # Without O_NONBLOCK, opening a named pipe would wait for a writer.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise UnsafePathError(f"{path} is not a regular file")
        if _POSIX and facts.st_uid != os.geteuid():
            raise UnsafePathError(f"{path} belongs to another user")
        if _POSIX and (facts.st_mode & 0o077 or facts.st_nlink != 1):
            raise UnsafePathError(f"{path} is accessible to others or has a second name")
        if facts.st_size > limit:
            raise UnsafePathError(f"{path} has {facts.st_size} bytes; at most {limit} are read")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def write_private_file(path: AnyPath, content: bytes) -> None:
    """Put a file in place, readable by this user only: all of it or nothing, whoever else is writing.

    Raises:
        UnsafePathError: its directory is open to others.
        OSError: it can't be written.
    """
    import tempfile

    directory = private_directory(os.path.dirname(path), create=True)
    descriptor, temporary = tempfile.mkstemp(dir=directory, prefix="new-", suffix=".tmp")
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


# A lock between processes, and between threads of one: who holds it is the only one to read, change and write.


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
