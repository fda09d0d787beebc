"""Making a language's engine ready before a program needs it: the first time on a machine, that takes seconds."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolbridge.observe.terminal_line import TerminalLine
    from toolbridge.sandbox.dialect import SandboxLanguage

_NAMES = {"javascript": "JavaScript", "typescript": "TypeScript", "python": "Python"}
_USUALLY = {"javascript": "a few seconds", "typescript": "a few seconds", "python": "10 to 30 seconds"}
_SECONDS_BETWEEN = 0.2


def make_ready(language: SandboxLanguage) -> None:
    """Compiles the engine if this machine has none yet; a person at a terminal sees how long it has been at it.

    In a thread: the compiler can't be interrupted, but whoever waits for it can.

    Raises:
        ToolbridgeError: the installation is broken.
    """
    work = _Work(language)
    threading.Thread(target=work.do, name="toolbridge-compile", daemon=True).start()
    work.changed.wait()
    if not work.done.is_set():
        _show_while(work)
    if work.problem is not None:
        raise work.problem


class _Work:
    """What the thread does, and how far it is."""

    def __init__(self, language: SandboxLanguage) -> None:
        self.language = language
        self.changed = threading.Event()
        """Set when the compiler begins, and again when all is done."""
        self.done = threading.Event()
        self.problem: BaseException | None = None

    def do(self) -> None:
        try:
            from toolbridge.sandbox.engine import shared_engine

            if self.language == "python":
                shared_engine().python_image(self._compiles)
            else:
                shared_engine().image(self.language, self._compiles)
        except BaseException as error:  # raised again where it is waited for
            self.problem = error
        self.done.set()
        self.changed.set()

    def _compiles(self, _language: str) -> None:
        self.changed.set()


def _show_while(work: _Work) -> None:
    """Says what is being waited for, on a terminal only, and at the end how long it took."""
    if sys.stderr is None or not sys.stderr.isatty():  # pyright: ignore[reportUnnecessaryComparison]
        work.done.wait()
        return
    from toolbridge.observe.terminal_line import line_of

    name, began = _NAMES[work.language], monotonic()
    text = f"Compiling the {name} engine for this machine (once, {_USUALLY[work.language]}) …"
    line = line_of(sys.stderr)
    if line is None:
        print(text, file=sys.stderr)
        work.done.wait()
    else:
        _draw_until_done(work, line, text, began)
    if work.problem is None:
        with suppress(OSError):
            print(f"Compiled the {name} engine for this machine in {monotonic() - began:.0f} s.", file=sys.stderr)


def _draw_until_done(work: _Work, line: TerminalLine, text: str, began: float) -> None:
    try:
        with suppress(OSError):  # the terminal is gone; the work goes on
            while not work.done.wait(_SECONDS_BETWEEN):
                line.show(f"{text} {monotonic() - began:.0f} s")
        work.done.wait()
    finally:
        with suppress(OSError):
            line.erase()
