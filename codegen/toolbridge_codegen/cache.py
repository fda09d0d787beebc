"""The stub cache: generated stubs by a hash of all their inputs, in memory (LRU) and optionally in a directory.

Files on disk are untrusted: an entry is verified by digest and form, and used as text only. An invalid entry is a cache
miss.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard, get_args

from toolbridge_codegen.catalog import InputStyle
from toolbridge_codegen.escaping import is_list, is_object
from toolbridge_codegen.model import Diagnostic

_SUFFIX = ".stubs"
_ENTRY = re.compile(r"[0-9a-f]{64}\.stubs")
_LEFT_BEHIND = re.compile(r"new-.{1,40}\.tmp")
_DIGEST_LENGTH = 64
_STYLES = frozenset(get_args(InputStyle))


@dataclass(frozen=True, slots=True)
class ModuleStubs:
    """The generated stubs of one server."""

    files: Mapping[str, str]
    styles: Mapping[str, InputStyle]
    """How each function takes its input."""
    diagnostics: tuple[Diagnostic, ...]


class StubCache:
    """Caches generated stubs in memory and optionally in a directory, up to so many bytes each; evicts by LRU.

    Thread-safe. I/O errors are cache misses.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        most_memory: int = 32 * 1024 * 1024,
        most_disk: int = 64 * 1024 * 1024,
    ) -> None:
        self._directory = None if directory is None else os.fspath(directory)
        self._most_memory = most_memory
        self._most_disk = most_disk
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, tuple[ModuleStubs, int]] = OrderedDict()
        self._size = 0

    def find(self, key: str) -> ModuleStubs | None:
        """Returns the entry of a key, if present and intact; else None. Counts as a use (LRU).

        Blocks on the file if it is not in memory, and then keeps it there.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
                return entry[0]
        if self._directory is None:
            return None
        content = _read(os.path.join(self._directory, key + _SUFFIX), self._most_disk)
        stubs = None if content is None else _decode(content)
        if stubs is not None and content is not None:
            self._remember(key, stubs, len(content))
        return stubs

    def store(self, key: str, stubs: ModuleStubs) -> None:
        """Stores an entry in memory and in the directory, and evicts the least recently used ones.

        Blocks while it writes. I/O errors are ignored.
        """
        content = _encode(stubs)
        self._remember(key, stubs, len(content))
        if self._directory is not None and len(content) <= self._most_disk:
            with contextlib.suppress(OSError):
                _write(self._directory, key, content)
                _remove_oldest(self._directory, self._most_disk, keep=key + _SUFFIX)

    def _remember(self, key: str, stubs: ModuleStubs, size: int) -> None:
        """Puts an entry into memory, in place of one with its key, and evicts the least recently used ones."""
        with self._lock:
            _, known = self._entries.pop(key, (None, 0))
            self._size += size - known
            self._entries[key] = (stubs, size)
            while self._size > self._most_memory:
                _, (_, oldest) = self._entries.popitem(last=False)
                self._size -= oldest


def _encode(stubs: ModuleStubs) -> bytes:
    """Returns an entry as bytes: a digest, then JSON."""
    rows = [[item.server, item.tool, item.path, item.message] for item in stubs.diagnostics]
    document = {"files": dict(stubs.files), "styles": dict(stubs.styles), "diagnostics": rows}
    content = json.dumps(document, separators=(",", ":")).encode("ascii")
    return hashlib.sha256(content).hexdigest().encode("ascii") + content


def _decode(content: bytes) -> ModuleStubs | None:
    """Returns the entry in bytes made by `_encode`; None if the digest or the form is wrong."""
    digest, document = content[:_DIGEST_LENGTH], content[_DIGEST_LENGTH:]
    if hashlib.sha256(document).hexdigest().encode("ascii") != digest:
        return None
    try:
        value: Any = json.loads(document)
    except (ValueError, RecursionError):
        return None
    if not is_object(value):
        return None
    files, styles, rows = value.get("files"), value.get("styles"), value.get("diagnostics")
    if not _is_text_map(files) or not _is_style_map(styles):
        return None
    if not is_list(rows) or not all(_is_row(row) for row in rows):
        return None
    return ModuleStubs(files, styles, tuple(Diagnostic(*row) for row in rows))


def _is_text_map(value: Any) -> TypeGuard[dict[str, str]]:
    return is_object(value) and all(isinstance(text, str) for text in value.values())


def _is_style_map(value: Any) -> TypeGuard[dict[str, InputStyle]]:
    return is_object(value) and all(isinstance(style, str) and style in _STYLES for style in value.values())


def _is_row(value: Any) -> bool:
    return is_list(value) and len(value) == 4 and all(isinstance(text, str) for text in value)


# ---- files


def _read(path: str, most: int) -> bytes | None:
    """Reads a regular file that this user owns and no other can write, and marks it as used (mtime).

    None if it is anything else, larger than `most` bytes, or unreadable.
    """
    # O_NONBLOCK: opening a named pipe would block.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
        try:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > most:
                return None
            if facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
                return None
            with contextlib.suppress(OSError):  # a read-only cache
                os.utime(path)  # mark as used
            with open(descriptor, "rb", closefd=False) as file:
                return file.read()
        finally:
            os.close(descriptor)
    except OSError:
        return None


def _make_directories(directory: str) -> None:
    """Creates a directory and its missing parents with mode 0700; leaves existing ones as they are.

    Raises:
        OSError: one can't be created.
    """
    missing: list[str] = []
    while directory and not os.path.isdir(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    for each in reversed(missing):
        with contextlib.suppress(FileExistsError):
            os.mkdir(each, mode=0o700)


def _write(directory: str, key: str, content: bytes) -> None:
    """Writes an entry atomically, with mode 0600. Creates the directory.

    Raises:
        OSError: the directory can't be written, or isn't private to this user.
    """
    import tempfile

    _make_directories(directory)
    facts = os.lstat(directory)
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & 0o077:
        raise OSError("the cache directory isn't this user's alone")
    descriptor, temporary = tempfile.mkstemp(dir=directory, prefix="new-", suffix=".tmp")  # mode 0600
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, os.path.join(directory, key + _SUFFIX))
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _remove_oldest(directory: str, most: int, keep: str) -> None:
    """Evicts the oldest entries and temporary files beyond `most` bytes; never the file `keep`, which must exist.

    Raises:
        OSError: the directory or `keep` can't be read.
    """
    entries: list[tuple[float, int, str]] = []
    for entry in os.scandir(directory):
        if entry.name != keep and (_ENTRY.fullmatch(entry.name) or _LEFT_BEHIND.fullmatch(entry.name)):
            with contextlib.suppress(OSError):
                facts = entry.stat(follow_symlinks=False)
                entries.append((facts.st_mtime, facts.st_size, entry.path))
    left = most - os.stat(os.path.join(directory, keep)).st_size
    for _, size, path in sorted(entries, reverse=True):
        left -= size
        if left < 0:
            with contextlib.suppress(OSError):
                os.unlink(path)
