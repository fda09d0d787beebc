"""SECURITY: compiled code on disk. It is native code, so only what we ourselves wrote is ever loaded.

An entry is named by everything it was made from (image, Wasmtime, settings, platform) and by the
SHA-256 of its own content. It is loaded only from a directory, and a file, that belong to this user
and that nobody else can write; anything else is treated as absent and compiled anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

from toolbridge.files import UnsafePathError, cache_directory, open_private_file, private_directory, write_private_file

# One process compiles an image, and others that want it at the same time wait for that: it takes all their cores.


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


SUFFIX = ".cwasm"
_ENTRY = re.compile(r"[0-9a-f]{32}-[0-9a-f]{64}\.cwasm")
_UNUSED_FOR = 30 * 24 * 3600.0
_MOST_BYTES = 1024 * 1024 * 1024
# Opened files by number, where the system shows them as files.
_OPEN_FILES = "/proc/self/fd"


def entry_key(*facts: str) -> str:
    """What an entry's name says of its origin."""
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry that was verified, and is held open."""

    path: str
    loadable: str
    """Where to load it from: what was verified itself, whatever has become of its name. Elsewhere than on Linux, the
    name again; then what protects it is that nobody else can write in its directory."""


class CompileCache:
    """The compiled images in one directory."""

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        self._directory = None if directory is None else os.fspath(directory)

    @contextlib.contextmanager
    def find(self, key: str) -> Generator[Entry | None]:
        """A verified entry, or None. A damaged or foreign one is removed where possible."""
        found = self._open(key)
        if found is None:
            yield None
            return
        path, descriptor = found
        try:
            held = f"{_OPEN_FILES}/{descriptor}"
            yield Entry(path, held if os.path.exists(held) else path)
        finally:
            os.close(descriptor)

    def _open(self, key: str) -> tuple[str, int] | None:
        with contextlib.suppress(OSError):  # store() will say why, if that matters
            for path in _entries(self._trusted_directory(create=False), key):
                descriptor = _open_trustworthy(path)
                if descriptor is not None:
                    with contextlib.suppress(OSError):  # a cache that can only be read is as good
                        os.utime(path)  # it is in use
                    return path, descriptor
                self.discard(path)
        return None

    def store(self, key: str, code: bytes) -> str | None:
        """Keeps compiled code; None when there is no safe place for it."""
        try:
            directory = self._trusted_directory(create=True)
            path = os.path.join(directory, f"{key}-{_digest(key, code)}{SUFFIX}")
            write_private_file(path, code)  # all or nothing: a mapped file is never written to
            _remove_unused(directory, keep=path)
        except OSError as error:
            import logging

            message = "Compiled code is not cached, so every start compiles it again: %s"
            logging.getLogger("toolbridge").warning(message, error)
            return None
        return path

    def turn(self, key: str) -> contextlib.AbstractContextManager[None]:
        """Held while an image is compiled, so that other processes wait for it and then find it here."""
        try:
            # Named so that it is removed with other leftovers.
            path = os.path.join(self._trusted_directory(create=True), f"{key}.turn.tmp")
        except OSError:
            return contextlib.nullcontext()
        return compile_turn(path)

    def discard(self, path: str) -> None:
        """Removes an entry that turned out not to be usable."""
        with contextlib.suppress(OSError):
            os.unlink(path)

    def _trusted_directory(self, *, create: bool) -> str:
        directory = self._directory if self._directory is not None else cache_directory()
        if not os.path.isabs(directory) and self._directory is None:
            raise UnsafePathError("there is no home directory")
        return private_directory(directory, create=create)


def _entries(directory: str, key: str) -> Iterator[str]:
    for name in os.listdir(directory):
        if name.startswith(key + "-") and _ENTRY.fullmatch(name):
            yield os.path.join(directory, name)


def _open_trustworthy(path: str) -> int | None:
    """A file of ours that nobody else can use, whose content is what its name says, opened; else None."""
    try:
        descriptor = open_private_file(path, limit=_MOST_BYTES)
    except OSError:
        return None
    try:
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read()
        if _is_named_by(os.path.basename(path), content):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _is_named_by(name: str, content: bytes) -> bool:
    return name == f"{name[:32]}-{_digest(name[:32], content)}{SUFFIX}"


def _digest(key: str, code: bytes) -> str:
    """Of the code and of what it was made from: an entry renamed to another key doesn't match."""
    digest = hashlib.sha256(key.encode())
    digest.update(code)
    return digest.hexdigest()


def _remove_unused(directory: str, keep: str, now: Callable[[], float] = time.time) -> None:
    """Entries of other versions, and what an interrupted writer left, after a month."""
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        if path == keep or not (_ENTRY.fullmatch(name) or name.endswith(".tmp")):
            continue
        with contextlib.suppress(OSError):
            if now() - os.stat(path).st_mtime > _UNUSED_FOR:
                os.unlink(path)
