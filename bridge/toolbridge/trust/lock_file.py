"""SECURITY: `toolbridge.lock` on disk: where it is, who may have written it, and how it is changed without loss (T26).

A project's servers are pinned next to the project's configuration, to be committed; a user's and a plugin's in the
user's configuration directory. Those of a program are pinned in a file if the program names one, else in memory.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from toolbridge.config.locate import user_directory
from toolbridge.config.server_config import Origin
from toolbridge.directories import state_directory
from toolbridge.private_files import check_ancestors, make_private_directories
from toolbridge.trust.lock_text import MOST_BYTES, Lock, LockError, lock_text, parse_lock

LOCK_NAME = "toolbridge.lock"
WAIT_SECONDS = 5.0
"""How long another writer is waited for."""

_TOOL_FOLDERS = (".vscode", ".agents")
_POSIX = os.name == "posix"


class LockNotWritableError(LockError):
    """The system does not let this user write a lock."""


@dataclass(frozen=True, slots=True)
class LockPlace:
    """Where pins are kept."""

    path: str
    private: bool = False
    """Whether nobody but this user may have written it. A project's is as open as its repository."""
    in_memory: bool = False
    """Whether there is no such file: what is pinned is forgotten with the program."""


def lock_place(origin: Origin, environ: Mapping[str, str]) -> LockPlace | None:
    """The lock of servers from there; None for those of a program, which may name one.

    Raises:
        LockError: there is no such place on this machine.
    """
    if origin.kind == "code":
        return None
    if origin.kind == "project":
        folder, name = os.path.split(os.path.dirname(origin.detail))
        # Files of other tools are in a folder of theirs; the lock is the project's own.
        return LockPlace(os.path.join(folder if name in _TOOL_FOLDERS else os.path.join(folder, name), LOCK_NAME))
    directory = user_directory(environ)
    if directory is None:
        raise LockError("there is no home directory to keep pins in.", fix="Set TOOLBRIDGE_CONFIG_DIR.")
    return LockPlace(os.path.join(directory, LOCK_NAME), private=True)


def own_place(place: LockPlace) -> LockPlace:
    """Where this user's pins are for servers that another lock does not pin: unseen ones, and of read-only projects."""
    state = state_directory()
    if state is None:
        return LockPlace(place.path, in_memory=True)
    name = hashlib.sha256(place.path.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return LockPlace(os.path.join(state, "locks", f"{name}.lock"), private=True)


def read_lock(place: LockPlace) -> Lock:
    """The pins that are kept there: none, if there is no such file.

    Raises:
        LockError: the file is not a lock, or somebody else could have written it.
    """
    content = _content(place)
    return Lock() if content is None else parse_lock(content, place.path)


def change_lock(place: LockPlace, change: Callable[[Lock], Lock]) -> Lock:
    """Change the pins that are there at that moment: other writers wait, and nothing of theirs is lost.

    Gives what is there now. Blocks: call it in a thread.

    Raises:
        LockError: the lock can't be read or written; it is as it was.
    """
    directory = os.path.dirname(place.path)
    try:
        if place.private:
            make_private_directories(directory)
        with _alone(place.path):
            before = read_lock(place)
            after = change(before)
            if after == before and os.path.lexists(place.path):
                return before
            content = lock_text(after, place.path).encode("ascii")
            written = parse_lock(content, place.path)  # nothing is ever written that could not be read
            _replace(place, content)
            return written
    except LockError:
        raise
    except OSError as error:
        problem = f"can't be written: {error.strerror or error}."
        raise LockNotWritableError(
            problem, file=place.path, fix="Its tools stay blocked until they are pinned."
        ) from None


def _content(place: LockPlace) -> bytes | None:
    # Without O_NONBLOCK, opening a named pipe would wait for a writer.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(place.path, flags)
    except FileNotFoundError:
        return None
    except OSError as error:
        is_link = error.errno in (errno.ELOOP, errno.EMLINK)
        problem = "is a symbolic link, which isn't followed." if is_link else f"can't be opened: {error.strerror}."
        raise LockError(problem, file=place.path) from None
    except ValueError:
        raise LockError("is not the path of a file.", file=repr(place.path)) from None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise LockError("is not a regular file.", file=place.path)
        if place.private:
            _check_owner(place.path, facts)
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise LockError(f"can't be read: {error.strerror}.", file=place.path) from None
    finally:
        os.close(descriptor)
    if len(content) > MOST_BYTES:
        raise LockError(f"has more than the {MOST_BYTES:,} bytes that are read.", file=place.path)
    return content


def _check_owner(path: str, facts: os.stat_result) -> None:
    if not _POSIX:
        return
    directory = os.path.dirname(path)
    for what, found in ((path, facts), (directory, os.stat(directory))):
        if found.st_uid != os.geteuid():
            raise LockError("belongs to another user.", file=what, fix="It is not used.")
        if found.st_mode & 0o022:
            raise LockError("can be written by others.", file=what, fix="Run `chmod go-w` on it once it is checked.")
    try:
        check_ancestors(directory)
    except OSError as error:
        raise LockError(f"is not safe there: {error}.", file=path, fix="It is not used.") from None
    if facts.st_nlink != 1:
        raise LockError("has a second name (a hard link).", file=path, fix="It is not used.")


def _replace(place: LockPlace, content: bytes) -> None:
    import tempfile

    directory, name = os.path.split(place.path)
    descriptor, temporary = tempfile.mkstemp(dir=directory, prefix=f".{name}.", suffix=".tmp")
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode(place))
        os.replace(temporary, place.path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _mode(place: LockPlace) -> int:
    """That of the file there is; a new one is the user's own, or as readable as the rest of a project."""
    with contextlib.suppress(OSError):
        return stat.S_IMODE(os.lstat(place.path).st_mode)
    return 0o600 if place.private else 0o644


@contextmanager
def _alone(path: str) -> Generator[None]:
    """While no other writer is at work, in this process or another.

    On POSIX the directory itself is locked, so that no further file lies about in a repository.
    """
    on_windows = sys.platform == "win32"
    target = f"{path}.writing" if on_windows else os.path.dirname(path)
    descriptor = os.open(target, os.O_RDWR | os.O_CREAT if on_windows else os.O_RDONLY)
    try:
        until = time.monotonic() + WAIT_SECONDS
        while not _taken(descriptor):
            if time.monotonic() > until:
                raise LockError("is being written by another process.", file=path, fix="Try again.")
            time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)  # which also lets others in


def _taken(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK):
            return False
        raise
    return True
