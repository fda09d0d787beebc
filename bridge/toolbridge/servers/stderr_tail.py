"""The end of what a server wrote to its stderr, for error messages: bounded, however much it writes."""

from __future__ import annotations

import re

from toolbridge.trust.sanitise import masked

_TAIL_BYTES = 4096
# Somewhat more is kept: a secret of which the beginning is not there any more would not be known.
_KEPT_BYTES = 2 * _TAIL_BYTES

# What tells most in a crash: in a trace of Node the last lines are frames and its version, in npm's the name of a log.
_TELLING = re.compile(r"error|exception|err!|fatal|panic|cannot|not (?:be )?found|no matching|denied", re.IGNORECASE)
_NOT_TELLING = re.compile(r"^\s+at |complete log of this run")
# npm says so on every line, whatever that line is about.
_NPM = re.compile(r"^npm (?:error|ERR!)")


class StderrTail:
    """Keeps the last few kilobytes."""

    def __init__(self) -> None:
        self._tail = bytearray()

    def add(self, chunk: bytes) -> None:
        """More of it."""
        self._tail += chunk
        del self._tail[:-_KEPT_BYTES]

    def last_words(self, secrets: frozenset[str] = frozenset()) -> str:
        """The line that says most about the end: the last that speaks of an error, or just the last.

        Not sanitised, but for secrets: one that was written over several lines is not known by its last.
        """
        text = masked(self._tail.decode("utf-8", "replace"), secrets)[-_TAIL_BYTES:]
        lines = [line for line in text.splitlines() if line.strip()]
        telling = [line for line in lines if _TELLING.search(_NPM.sub("", line)) and not _NOT_TELLING.search(line)]
        return (telling or lines or [""])[-1].strip()
