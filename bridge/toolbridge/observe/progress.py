"""An observer that shows calls under way in one line of a terminal, erased at the end.

    weather.get_forecast … 1.2 s, 3 running, 12 done, 1 failed

An event only updates counters. A thread redraws the line ten times a second: the seconds advance while the event loop
waits, and ten thousand calls don't mean ten thousand redraws.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import unicodedata
from collections.abc import Generator
from time import monotonic
from typing import TextIO

from toolbridge.events import CallEnded, CallStarted, Event, RunEnded, RunStarted, StateChanged
from toolbridge.trust.sanitise import for_error

# One line of a terminal that is redrawn and erased at the end.
#
# Only carriage returns and spaces are used, which every terminal supports. The cursor rests at the line's beginning,
# so that other output (a log message, the result) overwrites it.


class TerminalLine:
    """A line of a terminal. Not thread-safe."""

    def __init__(self, stream: TextIO) -> None:
        # Bypasses the stream's buffer: a thread that holds its lock could block the exit of the process.
        self._descriptor = stream.fileno()
        self._encoding = stream.encoding or "utf-8"
        self._ellipsis = "…" if _has(self._encoding, "…") else "..."
        self._shown = 0

    def show(self, text: str) -> None:
        """Replace the line by a text, truncated to the terminal's width; blocks while the terminal is stopped (Ctrl-S).

        The caller sanitises foreign text.

        Raises:
            OSError: the terminal is gone.
        """
        text = text.encode(self._encoding, "backslashreplace").decode(self._encoding)
        # A character in the last column makes some terminals begin the next line.
        text = fitted(text, self._columns() - 1, self._ellipsis)
        cells = sum(map(cell_width, text))
        self._write(text + " " * (self._shown - cells) + "\r")
        self._shown = cells

    def erase(self) -> None:
        """Erase the line if one is shown; blocks while the terminal is stopped (Ctrl-S).

        Raises:
            OSError: the terminal is gone.
        """
        if self._shown:
            # In a window that was narrowed, more spaces than columns would begin a new line.
            self._write(" " * min(self._shown, self._columns() - 1) + "\r")
            self._shown = 0

    def _columns(self) -> int:
        """The width of the terminal; 80 if it is unknown."""
        try:
            return os.get_terminal_size(self._descriptor).columns or 80
        except OSError:
            return 80

    def _write(self, text: str) -> None:
        """Write all of the text, unbuffered; may raise OSError."""
        data = text.encode(self._encoding)
        while data:
            data = data[os.write(self._descriptor, data) :]


def line_of(stream: TextIO | None) -> TerminalLine | None:
    """A line of the stream's terminal; None if the stream is no terminal, or a dumb one."""
    try:
        if stream is None or not stream.isatty() or os.environ.get("TERM") == "dumb":
            return None
        return TerminalLine(stream)
    except (OSError, ValueError):  # it is closed, or has no descriptor
        return None


def fitted(text: str, cells: int, ellipsis: str = "…") -> str:
    """The text, truncated with an ellipsis to at most `cells` cells; empty if there is no room for any."""
    if sum(map(cell_width, text)) <= cells:
        return text
    room = cells - len(ellipsis)
    if room < 1:
        return ""
    for index, character in enumerate(text):
        room -= cell_width(character)
        if room < 0:
            return text[:index] + ellipsis
    raise AssertionError("a text that is too wide has a character that exceeds the width")


def cell_width(character: str) -> int:
    """The number of cells of a character in a terminal, 0 to 2; in doubt, more."""
    if character < "\x7f":
        return 1
    if character == "\ufe0f":  # the variation selector that widens the character before it
        return 1
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _has(encoding: str, text: str) -> bool:
    """Whether an encoding has all characters of a text."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


_SECONDS_BETWEEN = 0.1
_LONGEST_NAME = 100


class Progress:
    """An observer that shows calls under way on a stream (by default, standard error) if it is a terminal."""

    wants_progress = False
    """Servers are not asked for progress notifications on its account."""

    def __init__(self, stream: TextIO | None = None) -> None:
        line = line_of(sys.stderr if stream is None else stream)
        self._drawing = None if line is None else _Drawing(line)

    def __call__(self, event: Event) -> None:
        """Count the event; the first run starts the drawing thread, the end of the last one erases the line.

        Does nothing without a terminal. Thread-safe.
        """
        if self._drawing is not None:
            self._drawing.count(event)

    @contextlib.contextmanager
    def hidden(self) -> Generator[None]:
        """Hide the line within a `with` block, to ask the person a question. Thread-safe, and can be nested."""
        if self._drawing is None:
            yield
            return
        self._drawing.hide()
        try:
            yield
        finally:
            self._drawing.unhide()


class Counts:
    """Counters of runs, calls and connections under way. Not thread-safe."""

    def __init__(self) -> None:
        self._runs: set[str] = set()
        self._calls: dict[tuple[str, int], tuple[CallStarted, float]] = {}
        self._connecting: dict[str, float] = {}
        self._done = self._failed = 0

    @property
    def running(self) -> bool:
        """Whether any run is under way."""
        return bool(self._runs)

    def count(self, event: Event, now: float) -> None:
        """Count an event; the end of the last run resets the counters. Other events are ignored."""
        if isinstance(event, CallStarted):
            self._calls[event.run, event.call] = event, now
        elif isinstance(event, CallEnded):
            self._calls.pop((event.run, event.call), None)
            self._done += 1
            self._failed += event.outcome != "ok"
        elif isinstance(event, StateChanged):
            if event.state == "connecting":
                self._connecting.setdefault(event.server, now)
            else:
                self._connecting.pop(event.server, None)
        elif isinstance(event, RunStarted):
            self._runs.add(event.run)
        elif isinstance(event, RunEnded):
            self._runs.discard(event.run)
            if not self._runs:  # the next run starts from zero
                self._calls.clear()
                self._done = self._failed = 0

    def text(self, now: float) -> str:
        """The line: the longest-running call, or the longest connecting server, and counts; empty without any."""
        parts: list[str] = []
        if self._calls:
            call, since = next(iter(self._calls.values()))
            name = f"{call.server}.{call.tool}" if call.server else call.tool
            state = " (connecting)" if call.server in self._connecting else ""
            parts.append(f"{_plain(name)} … {now - since:.1f} s{state}")
        elif self._connecting:
            server, since = next(iter(self._connecting.items()))
            parts.append(f"connecting to {_plain(server)} … {now - since:.1f} s")
        if len(self._calls) > 1:
            parts.append(f"{len(self._calls)} running")
        if self._done:
            parts.append(f"{self._done} done")
        if self._failed:
            parts.append(f"{self._failed} failed")
        return ", ".join(parts)


class _Drawing:
    """The drawing thread, alive while there are runs.

    Two locks, acquired in this order: of the terminal, then of the counters. The latter is never held while writing,
    so that a stopped terminal (Ctrl-S) stops the drawing and not the calls.
    """

    def __init__(self, line: TerminalLine) -> None:
        self._line = line
        self._terminal = threading.Lock()
        self._hidden = 0
        self._counts = Counts()
        self._counting = threading.Lock()
        self._stop: threading.Event | None = None
        """Stops the current drawing thread."""

    def count(self, event: Event) -> None:
        """Count an event, and start the drawing thread or stop it and erase the line, as runs begin and end."""
        stop = None
        with self._counting:
            self._counts.count(event, monotonic())
            if self._counts.running and self._stop is None:
                self._stop = threading.Event()
                threading.Thread(target=self._draw, args=(self._stop,), name="toolbridge-progress", daemon=True).start()
            elif not self._counts.running and self._stop is not None:
                stop, self._stop = self._stop, None
        if stop is not None:
            stop.set()
            self._erase()

    def hide(self) -> None:
        """Erase the line and draw none until as many calls of `unhide`."""
        with self._terminal:
            self._hidden += 1
        self._erase()

    def unhide(self) -> None:
        with self._terminal:
            self._hidden -= 1

    def _erase(self) -> None:
        with self._terminal, contextlib.suppress(OSError):
            self._line.erase()

    def _draw(self, stop: threading.Event) -> None:
        """Redraw the line until `stop` is set, or the terminal is gone; the body of the thread."""
        while not stop.wait(_SECONDS_BETWEEN):
            with self._terminal:
                if stop.is_set() or self._hidden:  # stopped while waiting for the lock: the line was erased
                    continue
                with self._counting:
                    text = self._counts.text(monotonic())
                try:
                    self._line.show(text)
                except OSError:  # the terminal is gone
                    return


def _plain(name: str) -> str:
    return for_error(name, limit=_LONGEST_NAME)
