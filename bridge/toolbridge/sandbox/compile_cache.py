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
import stat
import sys
import time
from collections.abc import Callable, Iterator

SUFFIX = ".cwasm"
_ENTRY = re.compile(r"[0-9a-f]{32}-[0-9a-f]{64}\.cwasm")
_UNUSED_FOR = 30 * 24 * 3600.0

# Other users can't be told apart by mode bits on Windows; the profile directory is the protection there.
_POSIX = os.name == "posix"
_CACHE_VARIABLE = "TOOLBRIDGE_CACHE_DIR"


class UnsafeCacheError(Exception):
    """The cache directory can't be trusted. Never leaves this module."""


def default_directory() -> str:
    """Where this user's compiled images are kept."""
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


def entry_key(*facts: str) -> str:
    """What an entry's name says of its origin."""
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:32]


class CompileCache:
    """The compiled images in one directory."""

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        self._directory = None if directory is None else os.fspath(directory)

    def find(self, key: str) -> str | None:
        """The path of a verified entry, or None. A damaged or foreign one is removed where possible."""
        try:
            directory = self._trusted_directory(create=False)
            for path in _entries(directory, key):
                if _is_trustworthy(path):
                    os.utime(path)  # it is in use
                    return path
                self.discard(path)
        except (UnsafeCacheError, OSError):
            pass  # store() will say why, if that matters
        return None

    def store(self, key: str, code: bytes) -> str | None:
        """Keeps compiled code; None when there is no safe place for it."""
        try:
            directory = self._trusted_directory(create=True)
            path = os.path.join(directory, f"{key}-{_digest(key, code)}{SUFFIX}")
            _write_beside_and_replace(path, code)
            _remove_unused(directory, keep=path)
        except (UnsafeCacheError, OSError) as error:
            import logging

            message = "Compiled code is not cached, so every start compiles it again: %s"
            logging.getLogger("toolbridge").warning(message, error)
            return None
        return path

    def discard(self, path: str) -> None:
        """Removes an entry that turned out not to be usable."""
        with contextlib.suppress(OSError):
            os.unlink(path)

    def _trusted_directory(self, *, create: bool) -> str:
        directory = self._directory if self._directory is not None else default_directory()
        if not os.path.isabs(directory) and self._directory is None:
            raise UnsafeCacheError("there is no home directory")
        if create:
            os.makedirs(os.path.dirname(directory) or ".", exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.mkdir(directory, mode=0o700)
        facts = os.lstat(directory)
        if not stat.S_ISDIR(facts.st_mode):
            raise UnsafeCacheError(f"{directory} is not a directory (a symbolic link isn't followed)")
        if _POSIX and facts.st_uid != os.geteuid():
            raise UnsafeCacheError(f"{directory} belongs to another user")
        if _POSIX and facts.st_mode & 0o077:
            raise UnsafeCacheError(f"{directory} is accessible to others; run `chmod 700` on it")
        return directory


def _entries(directory: str, key: str) -> Iterator[str]:
    for name in os.listdir(directory):
        if name.startswith(key + "-") and _ENTRY.fullmatch(name):
            yield os.path.join(directory, name)


def _is_trustworthy(path: str) -> bool:
    """A regular file of ours that nobody else can write, whose content is what its name says."""
    # Without O_NONBLOCK, opening a named pipe would wait for a writer.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except OSError:
        return False
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        os.close(descriptor)
        return False
    with open(descriptor, "rb") as file:
        if _POSIX and (facts.st_uid != os.geteuid() or facts.st_mode & 0o022 or facts.st_nlink != 1):
            return False
        content = file.read()
    name = os.path.basename(path)
    return name == f"{name[:32]}-{_digest(name[:32], content)}{SUFFIX}"


def _digest(key: str, code: bytes) -> str:
    """Of the code and of what it was made from: an entry renamed to another key doesn't match."""
    digest = hashlib.sha256(key.encode())
    digest.update(code)
    return digest.hexdigest()


def _write_beside_and_replace(path: str, content: bytes) -> None:
    """All or nothing: a mapped file is never written to, and two writers don't collide."""
    import tempfile

    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix="new-", suffix=".tmp")
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _remove_unused(directory: str, keep: str, now: Callable[[], float] = time.time) -> None:
    """Entries of other versions, and what an interrupted writer left, after a month."""
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        if path == keep or not (_ENTRY.fullmatch(name) or name.endswith(".tmp")):
            continue
        with contextlib.suppress(OSError):
            if now() - os.stat(path).st_mtime > _UNUSED_FOR:
                os.unlink(path)
