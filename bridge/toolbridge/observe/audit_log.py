"""SECURITY: the audit log, an observer that appends one JSON object per event to a file of this user.

Several processes may share a file: each line is one write at its end. Log rotation is detected at the next line, and a
new file created. Write errors never fail a run: the first is logged, and the next successful line is preceded by one
with the number of lost lines.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import stat
import threading
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any

from toolbridge.errors import ConfigError
from toolbridge.events import Event

_log = logging.getLogger("toolbridge")

# O_NOFOLLOW: a link could redirect the log. O_NONBLOCK: opening some devices would block.
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
_MOST_CHARACTERS = 1_000
_FIX = "Name a regular file of your own, in a directory that exists; links are not followed."


class AuditLog:
    """An observer that appends every event to a file, which is opened or created at once; thread-safe.

    `arguments`: also log the arguments of calls, known secrets redacted, truncated to 200 characters.

    Raises:
        ConfigError: the file can't be made or appended to, or others can write to it.
    """

    wants_progress = False
    """Servers are not asked for progress notifications on its account."""

    def __init__(self, path: str | os.PathLike[str], *, arguments: bool = False) -> None:
        self.wants_arguments = arguments
        self._lock = threading.Lock()
        self._lost = 0
        self._torn = False
        self._closed = False
        try:
            self._path: str = os.path.abspath(path)  # the working directory may change
            self._descriptor = _open(self._path)
            self._remember_identity()
        except (OSError, ValueError) as error:  # ValueError: a null character
            problem = f"The audit log can't be used: {_reason(error)}."
            raise ConfigError(problem, file=os.fspath(path), fix=_FIX) from error

    def __call__(self, event: Event) -> None:
        """Append a line; blocks while it is written. Never raises for an error of the file; ignored after `close`."""
        line = _line(_name(type(event)), self._entries(event))
        with self._lock:
            if self._closed:
                return
            try:
                self._reopen_if_moved()
                if self._lost:
                    self._write(_line("lines_lost", {"lines": self._lost}))
                    self._lost = 0
                self._write(line)
            except OSError as error:
                if not self._lost:
                    _log.warning("The audit log %r loses lines: %s", self._path, _reason(error))
                self._lost += 1

    def close(self) -> None:
        """Close the file; later events are not recorded. Logs if last lines were lost. May be called twice."""
        with self._lock:
            if not self._closed:
                self._closed = True
                if self._lost:
                    _log.warning("The audit log %r lost its last %d lines", self._path, self._lost)
                os.close(self._descriptor)

    def __enter__(self) -> AuditLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _entries(self, event: Event) -> dict[str, Any]:
        """The event's fields to record, truncated; without `arguments` unless they are wanted."""
        entries = {name: _shown(getattr(event, name)) for name in _field_names(type(event))}
        if not self.wants_arguments:
            entries.pop("arguments", None)
        return entries

    def _reopen_if_moved(self) -> None:
        """Open a new file if the path no longer leads to the open one: it was rotated or deleted.

        Raises:
            OSError: the new file is unfit; the old one stays open.
        """
        try:
            facts = os.lstat(self._path)
        except FileNotFoundError:
            moved = True
        else:
            moved = (facts.st_dev, facts.st_ino) != self._identity
        if moved:
            descriptor = _open(self._path)
            os.close(self._descriptor)
            self._descriptor = descriptor
            self._remember_identity()

    def _remember_identity(self) -> None:
        """Note which file is open, and whether its last line is incomplete."""
        facts = os.fstat(self._descriptor)
        self._identity = facts.st_dev, facts.st_ino
        self._torn = False
        if facts.st_size:
            # The last writer may have been killed in the middle of a line.
            os.lseek(self._descriptor, -1, os.SEEK_END)
            self._torn = os.read(self._descriptor, 1) != b"\n"

    def _write(self, line: bytes) -> None:
        """Append a line, after a line break if the last one is incomplete.

        Raises:
            OSError: it could not be written as a whole.
        """
        data = b"\n" + line if self._torn else line
        written = os.write(self._descriptor, data)
        self._torn = written < len(data)
        if self._torn:
            raise OSError(errno.ENOSPC, "only part of a line was written")


def _open(path: str) -> int:
    """Open or create a file for appending that only this user can write to; children don't inherit the descriptor.

    Raises:
        OSError: it is a link, no regular file, another user's, writable by others, or has a second name.
    """
    descriptor = os.open(path, _FLAGS, 0o600)
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        if facts.st_uid != os.geteuid():
            raise OSError(errno.EPERM, "it belongs to another user")
        # The owner may let others read it (a log collector's group), but not write it.
        if facts.st_mode & 0o022:
            raise OSError(errno.EPERM, "others can write to it (`chmod go-w` changes that)")
        if facts.st_nlink > 1:
            raise OSError(errno.EPERM, "it has a second name (a hard link)")
    except BaseException:
        with contextlib.suppress(OSError):
            os.close(descriptor)
        raise
    return descriptor


def _reason(error: Exception) -> str:
    """The reason of an error in words, without the path."""
    if isinstance(error, OSError):
        if error.errno == errno.ELOOP:
            return "it is a symbolic link"
        return error.strerror or type(error).__name__
    return str(error)


def _line(event: str, entries: Mapping[str, Any]) -> bytes:
    """Format one line of JSON, in ASCII, with the current time; text of an event can't end the line."""
    import json
    from datetime import UTC, datetime

    time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    # All but printable ASCII is escaped: no text can end the line, or inject terminal escapes.
    return json.dumps({"time": time, "event": event, **entries}, ensure_ascii=True).encode("ascii") + b"\n"


def _shown(value: Any) -> Any:
    """A value as it is recorded: floats rounded, long text truncated, anything else as it is."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, str) and len(value) > _MOST_CHARACTERS:
        return value[: _MOST_CHARACTERS - 1] + "…"
    return value


@cache
def _field_names(event: type[Event]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(event))


@cache
def _name(event: type[Event]) -> str:
    """The event's name in the log, `CallEnded` → `call_ended`; cached."""
    import re

    return re.sub(r"(?<!^)(?=[A-Z])", "_", event.__name__).lower()
