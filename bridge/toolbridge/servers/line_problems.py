"""What a server did wrong on its channel, counted: for error messages, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from toolbridge.trust.sanitise import masked

_EXCERPT = 1000


@dataclass(slots=True)
class LineProblems:
    """None of these ends a session."""

    lines: int = 0
    """Lines that are not MCP: banners, telemetry, broken or overlong messages."""
    stray_answers: int = 0
    """Answers to nothing: unknown, repeated and late ones."""
    dropped_notifications: int = 0
    refused_requests: int = 0
    unsent_messages: int = 0
    """Answers and notifications of ours that a server which does not read has no room for."""
    _recent: bytearray = field(default_factory=bytearray)

    @property
    def recent(self) -> str:
        """The beginnings of the last few lines that are not MCP. Not sanitised."""
        return self._recent[-3 * _EXCERPT :].decode("utf-8", "replace")

    def add_line(self, line: bytes | bytearray) -> None:
        """One more that is not MCP."""
        self.lines += 1
        self._recent += b"\n"
        self._recent += line[:_EXCERPT].strip()
        if len(self._recent) > 100 * _EXCERPT:  # seldom: a server may send little else
            del self._recent[: -3 * _EXCERPT]

    def summary(self, secrets: frozenset[str] = frozenset()) -> str:
        """Words for an error message; empty when there is nothing to say.

        Not sanitised, but for secrets: one that was written over several lines is not known by its last.
        """
        if not self.lines:
            return ""
        last = masked(self.recent, secrets).rpartition("\n")[2]
        many = f"{self.lines} lines that are not MCP messages, the last" if self.lines > 1 else "a line that is not MCP"
        return f"its stdout had {many}: {last}"
