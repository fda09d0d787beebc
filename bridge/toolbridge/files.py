"""SECURITY: files that only this user can read and write; atomic writes, and locks between processes.

Approvals, pins, tokens, cached listings and compiled code are kept here: another user, or a repository, must not plant
or read them. A directory or file that others could have written is refused, never silently repaired. Paths are plain
strings: every command takes this path at start-up, and importing pathlib is slow.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import sys
import time
from collections.abc import Generator, Mapping

AnyPath = str | os.PathLike[str]

# Where this user's files are kept: the XDG base directories, and their counterparts on macOS.


def user_path(xdg_variable: str, xdg_default: str, on_macos: str, home: str, environ: Mapping[str, str]) -> str:
    """Returns `toolbridge` below a base directory of this user; relative if the home directory is unknown.

    Args:
        xdg_variable: names the base directory, outside of macOS; ignored if it is relative.
        xdg_default: the directory in `home` without it.
        on_macos: the directory in `~/Library` on macOS.
        home: the home directory.
        environ: the environment variables.
    """
    base = os.path.join(home, "Library", on_macos)
    if sys.platform != "darwin":
        base = environ.get(xdg_variable, "")
        base = base if os.path.isabs(base) else os.path.join(home, xdg_default)
    return os.path.join(base, "toolbridge")


def cache_directory() -> str:
    """Returns the directory of reproducible files: compiled images, cached listings; it may not exist.

    `TOOLBRIDGE_CACHE_DIR` overrides it. May be relative: callers check before they trust its files.
    """
    chosen = os.environ.get("TOOLBRIDGE_CACHE_DIR")
    return chosen or user_path("XDG_CACHE_HOME", ".cache", "Caches", os.path.expanduser("~"), os.environ)


def state_directory() -> str | None:
    """Returns the directory of what must not be lost: approvals, pins, tokens; it may not exist.

    `TOOLBRIDGE_STATE_DIR` overrides it. None without an absolute path: a relative one would resolve within the current
    repository.
    """
    path = os.environ.get("TOOLBRIDGE_STATE_DIR") or user_path(
        "XDG_STATE_HOME", ".local/state", "Application Support", os.path.expanduser("~"), os.environ
    )
    return path if os.path.isabs(path) else None


class UnsafePathError(OSError):
    """A directory or file that another user could have written."""


def private_directory(path: AnyPath, *, create: bool) -> str:
    """Checks that only this user can enter a directory, and returns its path; `create` makes a missing one.

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
    if facts.st_uid != os.geteuid():
        raise UnsafePathError(f"{directory} belongs to another user")
    if facts.st_mode & 0o077:
        raise UnsafePathError(f"{directory} is accessible to others; run `chmod 700` on it")
    return directory


def check_ancestors(directory: AnyPath) -> None:
    """Checks that no other user could rename or replace a directory through one above it.

    Every directory above must belong to this user or to root, and must not be world-writable without the sticky bit
    (as `/tmp` has it). The owner of `/` counts as root, for user namespaces. Missing ones are ignored.

    Raises:
        UnsafePathError: one above it belongs to another user, or is writable by all.
        OSError: one can't be looked at.
    """
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
    """Lists the directories above a path, the nearest first."""
    found = [os.path.dirname(path)]
    while found[-1] != os.path.dirname(found[-1]):
        found.append(os.path.dirname(found[-1]))
    return found


def make_private_directories(directory: str) -> None:
    """Creates a directory and its missing parents, all with mode 0700; leaves existing ones as they are.

    Raises:
        OSError: one can't be made.
    """
    missing: list[str] = []
    while directory and not os.path.isdir(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    for each in reversed(missing):
        with contextlib.suppress(FileExistsError):
            os.mkdir(each, mode=0o700)


def read_private_file(path: AnyPath, *, limit: int) -> bytes:
    """Reads a private file of at most `limit` bytes.

    Raises:
        UnsafePathError: another user could have written it or its directory, or it is longer than `limit`.
        OSError: it is not there or can't be read.
    """
    with open(open_private_file(path, limit=limit), "rb") as file:
        return file.read(limit)


def open_private_file(path: AnyPath, *, limit: int) -> int:
    """Opens a private file for reading and returns its descriptor, which the caller closes.

    The open descriptor is checked, so that check and use see one file (no TOCTOU race).

    Raises:
        UnsafePathError: another user could have written it or its directory, or it is longer than `limit`.
        OSError: it is not there or can't be read.
    """
    private_directory(os.path.dirname(path), create=False)
    # Without O_NONBLOCK, opening a named pipe would wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise UnsafePathError(f"{path} is not a regular file")
        if facts.st_uid != os.geteuid():
            raise UnsafePathError(f"{path} belongs to another user")
        if facts.st_mode & 0o077 or facts.st_nlink != 1:
            raise UnsafePathError(f"{path} is accessible to others or has a second name")
        if facts.st_size > limit:
            raise UnsafePathError(f"{path} has {facts.st_size} bytes; at most {limit} are read")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def write_private_file(path: AnyPath, content: bytes) -> None:
    """Writes a file of mode 0600 atomically, and makes its directory: concurrent readers and writers see a whole file.

    Raises:
        UnsafePathError: its directory is open to others.
        OSError: it can't be written; an earlier file is as it was.
    """
    private_directory(os.path.dirname(path), create=True)
    replace_file(path, content)


def replace_file(path: AnyPath, content: bytes, *, mode: int = 0o600) -> None:
    """Writes a file atomically (to disk, then renamed), in an existing directory, which is not checked.

    Raises:
        OSError: it can't be written; an earlier file is as it was.
    """
    import tempfile

    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".new-", suffix=".tmp")
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), mode)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


_RETRY_SECONDS = 0.01


class LockTimeoutError(OSError):
    """Another process has held the lock for too long."""


@contextlib.contextmanager
def file_lock(path: AnyPath, *, seconds: float) -> Generator[None]:
    """Holds an exclusive lock between processes and threads; blocks for at most `seconds`. Makes file and directory.

    The system releases the lock when its holder ends, however that happens. The lock file stays: deleting it would let
    two processes hold two locks of one name.

    Raises:
        LockTimeoutError: the lock was not released in time.
        UnsafePathError: the directory is open to others, or the path is no regular file.
        OSError: the lock file can't be made or opened.
    """
    private_directory(os.path.dirname(path), create=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnsafePathError(f"{os.fspath(path)} is not a regular file")
        wait_for_lock(descriptor, path, seconds=seconds)
        try:
            yield
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def wait_for_lock(descriptor: int, path: AnyPath, *, seconds: float) -> None:
    """Locks an open file or directory exclusively; blocks for at most `seconds`. Closing it releases the lock.

    Raises:
        LockTimeoutError: the lock was not released in time; the error shows `path`.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                problem = f"another process has held {os.fspath(path)} for more than {seconds:g} s"
                raise LockTimeoutError(problem) from None
        time.sleep(_RETRY_SECONDS)
