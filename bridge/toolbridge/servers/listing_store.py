"""Listings kept on disk, so that stubs exist without starting a server.

An entry is named by a hash of the server's configuration: another command, another listing. What is kept is a
server's own text and no secret; it is read back with the same checks as a fresh answer.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
from pathlib import Path
from typing import Any, cast

from toolbridge.private_files import UnsafePathError, read_private_file, write_private_file
from toolbridge.servers.listing import Listing, listing_from_json, listing_to_json
from toolbridge.trust.sanitise import for_error

MOST_ENTRIES = 500
MOST_BYTES = 256 * 1024 * 1024
_MOST_ERROR_BYTES = 8_000
_ENTRY = re.compile(r"[0-9a-f]{64}\.(?:json|error)")

_log = logging.getLogger("toolbridge")


class ListingStore:
    """The listings in one private directory; with no directory, nothing is kept."""

    def __init__(self, directory: str | os.PathLike[str] | None, *, limit: int) -> None:
        self._directory = None if directory is None else Path(directory)
        self._limit = limit

    def load(self, server: str, key: str) -> Listing | None:
        """The listing kept under this key. A missing, damaged or foreign entry is no listing."""
        if self._directory is None:
            return None
        try:
            content = read_private_file(self._path(key), limit=self._limit)
            kept: object = json.loads(content)
        except (UnsafePathError, OSError, ValueError, RecursionError):
            return None
        if not isinstance(kept, dict) or cast("dict[str, Any]", kept).get("server") != server:
            return None
        with contextlib.suppress(OSError):
            os.utime(self._path(key))  # it is used: others are removed first
        return listing_from_json(server, cast("dict[str, Any]", kept))

    def save(self, key: str, listing: Listing) -> None:
        """Keep a listing; a failure costs only the next start."""
        if self._directory is None:
            return
        try:
            content = json.dumps(listing_to_json(listing), separators=(",", ":"))
            write_private_file(self._path(key), content.encode())
            self._remove_oldest(self._directory)
        except (UnsafePathError, OSError, ValueError, RecursionError) as error:
            _log.warning("The listing of server %r is not kept: %s", listing.server, error)

    def load_error(self, key: str) -> str:
        """Why the server could not be used the last time; empty if it could."""
        if self._directory is None:
            return ""
        try:
            return for_error(read_private_file(self._error_path(key), limit=_MOST_ERROR_BYTES).decode(errors="replace"))
        except OSError:
            return ""

    def save_error(self, key: str, error: str) -> None:
        """Keep a server's last error, without secrets already; an empty one is forgotten."""
        if self._directory is None:
            return
        with contextlib.suppress(OSError):
            if error:
                write_private_file(self._error_path(key), error.encode("utf-8", "replace")[:_MOST_ERROR_BYTES])
                self._remove_oldest(self._directory)
            else:
                self._error_path(key).unlink(missing_ok=True)

    def _error_path(self, key: str) -> Path:
        return self._path(key).with_suffix(".error")

    def _remove_oldest(self, directory: Path) -> None:
        """Every other configuration leaves an entry; those that were not used for longest go."""
        entries: list[tuple[float, int, Path]] = []
        with os.scandir(directory) as found:
            for entry in found:
                if _ENTRY.fullmatch(entry.name):
                    facts = entry.stat(follow_symlinks=False)
                    entries.append((facts.st_mtime, facts.st_size, directory / entry.name))
        size = 0
        for count, (_, each, path) in enumerate(sorted(entries, reverse=True)):
            size += each
            if count and (count >= MOST_ENTRIES or size > MOST_BYTES):
                path.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        assert self._directory is not None
        return self._directory / f"{key.removeprefix('sha256:')}.json"
