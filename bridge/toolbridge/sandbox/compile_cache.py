"""SECURITY: cache of compiled images on disk. They are native code, so only our own entries are ever loaded.

An entry is named by a hash of its sources (image, Wasmtime, settings, platform) and the SHA-256 of its content. It is
loaded only from a directory and a file that belong to this user and that no other user can write; other entries are
ignored, and the image is compiled anew.
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

# One process compiles an image while others wait for it: compiling takes all cores.


# Longer than any compilation: after that, a waiting process compiles for itself.
_MOST_SECONDS = 120.0
_LOOK_SECONDS = 0.05


@contextlib.contextmanager
def compile_turn(path: str, seconds: float = _MOST_SECONDS) -> Generator[None]:
    """Holds a lock file between processes, and removes it at the end; blocks for `seconds` at most.

    Proceeds without the lock after that time, or where file locks are not supported.
    """
    descriptor = _taken(path, time.monotonic() + seconds)
    try:
        yield
    finally:
        if descriptor is not None:
            with contextlib.suppress(OSError):
                os.unlink(path)
            os.close(descriptor)  # releases the lock


def _taken(path: str, until: float) -> int | None:
    """Locks the file, waiting for other processes; None if locks are not supported, or at `until` (monotonic clock)."""
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
        os.close(descriptor)  # held by another process, or removed by one that just ended
    return None


SUFFIX = ".cwasm"
_ENTRY = re.compile(r"[0-9a-f]{32}-[0-9a-f]{64}\.cwasm")
_UNUSED_FOR = 30 * 24 * 3600.0
_MOST_BYTES = 1024 * 1024 * 1024
# Open files by descriptor, on Linux.
_OPEN_FILES = "/proc/self/fd"


def entry_key(*facts: str) -> str:
    """Hashes the sources of an entry to the key in its name."""
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Entry:
    """A verified entry, held open."""

    path: str
    loadable: str
    """Path to load from: on Linux the verified open file itself (no TOCTOU), elsewhere its name, protected by the
    permissions of its directory."""


class CompileCache:
    """Compiled images in one directory."""

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        self._directory = None if directory is None else os.fspath(directory)

    @contextlib.contextmanager
    def find(self, key: str) -> Generator[Entry | None]:
        """Holds a verified entry open in the context, or None; removes damaged or foreign entries where possible."""
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
        """Opens a verified entry and marks it as used; removes those that can't be trusted. None if there is none."""
        with contextlib.suppress(OSError):  # store() reports why, if it matters
            for path in _entries(self._trusted_directory(create=False), key):
                descriptor = _open_trustworthy(path)
                if descriptor is not None:
                    with contextlib.suppress(OSError):  # a read-only cache works as well
                        os.utime(path)  # marks it as used
                    return path, descriptor
                self.discard(path)
        return None

    def store(self, key: str, code: bytes) -> str | None:
        """Stores compiled code and removes old entries; returns its path, or None and logs a warning if it can't."""
        try:
            directory = self._trusted_directory(create=True)
            path = os.path.join(directory, f"{key}-{_digest(key, code)}{SUFFIX}")
            write_private_file(path, code)  # atomic: a mapped file is never written to
            _remove_unused(directory, keep=path)
        except OSError as error:
            import logging

            message = "Compiled code is not cached, so every start compiles it again: %s"
            logging.getLogger("toolbridge").warning(message, error)
            return None
        return path

    def turn(self, key: str) -> contextlib.AbstractContextManager[None]:
        """Locks out other processes while an image is compiled, so that they find it in the cache.

        Blocks for two minutes at most; does nothing without a private directory.
        """
        try:
            # The name makes clean-up remove it.
            path = os.path.join(self._trusted_directory(create=True), f"{key}.turn.tmp")
        except OSError:
            return contextlib.nullcontext()
        return compile_turn(path)

    def discard(self, path: str) -> None:
        """Removes an unusable entry; ignores errors."""
        with contextlib.suppress(OSError):
            os.unlink(path)

    def _trusted_directory(self, *, create: bool) -> str:
        """Returns the cache's directory, made on `create`; raises OSError if there is none that is private."""
        directory = self._directory if self._directory is not None else cache_directory()
        if not os.path.isabs(directory) and self._directory is None:
            raise UnsafePathError("there is no home directory")
        return private_directory(directory, create=create)


def _entries(directory: str, key: str) -> Iterator[str]:
    """Yields the paths of a key's entries in a directory."""
    for name in os.listdir(directory):
        if name.startswith(key + "-") and _ENTRY.fullmatch(name):
            yield os.path.join(directory, name)


def _open_trustworthy(path: str) -> int | None:
    """Opens a private file whose content matches the hash in its name; else None."""
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
    """Hashes code and key: an entry renamed to another key doesn't match."""
    digest = hashlib.sha256(key.encode())
    digest.update(code)
    return digest.hexdigest()


def _remove_unused(directory: str, keep: str, now: Callable[[], float] = time.time) -> None:
    """Removes entries and leftovers of interrupted writers that were not used for a month."""
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        if path == keep or not (_ENTRY.fullmatch(name) or name.endswith(".tmp")):
            continue
        with contextlib.suppress(OSError):
            if now() - os.stat(path).st_mtime > _UNUSED_FOR:
                os.unlink(path)
