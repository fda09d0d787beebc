"""An observer for a person at a terminal: what is being waited for, in one line that is gone in the end.

    weather.get_forecast … 1.2 s, 3 running, 12 done, 1 failed

Being told is cheap: it only counts. A thread draws, ten times a second, so that the seconds go on while the event loop
waits, and so that ten thousand calls don't mean ten thousand lines.
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
from toolbridge.trust.text.sanitise import for_error

# One line on a terminal that is written again and again, and erased in the end.
#
# Only carriage returns and spaces are used: every terminal knows them. The cursor waits at the line's beginning, so
# that whatever else is printed (a log message, the result) writes over it.


class TerminalLine:
    """A line of a terminal. Not safe from several threads."""

    def __init__(self, stream: TextIO) -> None:
        # Past the stream's own buffer: a thread that holds its lock would disturb the end of the process.
        self._descriptor = stream.fileno()
        self._encoding = stream.encoding or "utf-8"
        self._ellipsis = "…" if _has(self._encoding, "…") else "..."
        self._shown = 0

    def show(self, text: str) -> None:
        """Replaces the line's text; what does not fit is cut. The text is one line, and sanitised.

        Raises:
            OSError: the terminal is gone.
        """
        text = text.encode(self._encoding, "backslashreplace").decode(self._encoding)
        # In the last column some terminals would already begin the next line.
        text = fitted(text, self._columns() - 1, self._ellipsis)
        cells = sum(map(cell_width, text))
        self._write(text + " " * (self._shown - cells) + "\r")
        self._shown = cells

    def erase(self) -> None:
        """Leaves nothing of it.

        Raises:
            OSError: the terminal is gone.
        """
        if self._shown:
            # After a narrowing of the window, more spaces than it has columns would make a new line.
            self._write(" " * min(self._shown, self._columns() - 1) + "\r")
            self._shown = 0

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._descriptor).columns or 80
        except OSError:
            return 80

    def _write(self, text: str) -> None:
        data = text.encode(self._encoding)
        while data:
            data = data[os.write(self._descriptor, data) :]


def line_of(stream: TextIO | None) -> TerminalLine | None:
    """A line of the stream's terminal; None if it is none, or one that can't go back to a line's beginning."""
    try:
        if stream is None or not stream.isatty() or os.environ.get("TERM") == "dumb":
            return None
        return TerminalLine(stream)
    except (OSError, ValueError):  # it is closed, or has no descriptor
        return None


def fitted(text: str, cells: int, ellipsis: str = "…") -> str:
    """The text, or its beginning and an ellipsis, in at most so many cells."""
    if sum(map(cell_width, text)) <= cells:
        return text
    room = cells - len(ellipsis)
    if room < 1:
        return ""
    for index, character in enumerate(text):
        room -= cell_width(character)
        if room < 0:
            return text[:index] + ellipsis
    raise AssertionError("a text that is too wide has a character that is too much")


def cell_width(character: str) -> int:
    """How many cells a terminal uses for a character; in doubt, more."""
    if character < "\x7f":
        return 1
    if character == "\ufe0f":  # asks for the wide form of what stands before it
        return 1
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _has(encoding: str, text: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


_SECONDS_BETWEEN = 0.1
_LONGEST_NAME = 100


class Progress:
    """Shows calls under way while programs run. Used as an observer; does nothing if the stream is no terminal.

    `stream`: standard error, if not given.
    """

    wants_progress = False
    """No server is asked on its account how far its calls are."""

    def __init__(self, stream: TextIO | None = None) -> None:
        line = line_of(sys.stderr if stream is None else stream)
        self._drawing = None if line is None else _Drawing(line)

    def __call__(self, event: Event) -> None:
        """Counts; begins to draw with the first run, and erases the line with the end of the last."""
        if self._drawing is not None:
            self._drawing.tell(event)

    @contextlib.contextmanager
    def hidden(self) -> Generator[None]:
        """No line meanwhile: for a question to the person. Safe from any thread."""
        if self._drawing is None:
            yield
            return
        self._drawing.hide()
        try:
            yield
        finally:
            self._drawing.unhide()


class Counts:
    """What is under way. Not safe from several threads."""

    def __init__(self) -> None:
        self._runs: set[str] = set()
        self._calls: dict[tuple[str, int], tuple[CallStarted, float]] = {}
        self._connecting: dict[str, float] = {}
        self._done = self._failed = 0

    @property
    def running(self) -> bool:
        """Whether there is a run."""
        return bool(self._runs)

    def tell(self, event: Event, now: float) -> None:
        """Counts an event."""
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
            if not self._runs:  # the next run's line begins from nothing
                self._calls.clear()
                self._done = self._failed = 0

    def text(self, now: float) -> str:
        """The line: the call, or the server, that has been waited for longest, and how many there are."""
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
    """A thread that draws while there are runs.

    Two locks, always taken in this order: of the terminal, then of the counts. The counts' is never held while
    writing: a terminal that is stopped (Ctrl-S) stops the drawing and not the calls.
    """

    def __init__(self, line: TerminalLine) -> None:
        self._line = line
        self._terminal = threading.Lock()
        self._hidden = 0
        self._counts = Counts()
        self._counting = threading.Lock()
        self._stop: threading.Event | None = None
        """Of the thread that draws now."""

    def tell(self, event: Event) -> None:
        stop = None
        with self._counting:
            self._counts.tell(event, monotonic())
            if self._counts.running and self._stop is None:
                self._stop = threading.Event()
                threading.Thread(target=self._draw, args=(self._stop,), name="toolbridge-progress", daemon=True).start()
            elif not self._counts.running and self._stop is not None:
                stop, self._stop = self._stop, None
        if stop is not None:
            stop.set()
            self._erase()

    def hide(self) -> None:
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
        while not stop.wait(_SECONDS_BETWEEN):
            with self._terminal:
                if stop.is_set() or self._hidden:  # set while we waited for the lock: the line was erased for good
                    continue
                with self._counting:
                    text = self._counts.text(monotonic())
                try:
                    self._line.show(text)
                except OSError:  # the terminal is gone
                    return


def _plain(name: str) -> str:
    return for_error(name, limit=_LONGEST_NAME)
