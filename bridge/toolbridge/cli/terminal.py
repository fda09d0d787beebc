"""Writing to people: foreign text never reaches a terminal as it is, progress only ever a terminal."""

from __future__ import annotations

import sys
from typing import TextIO

from toolbridge.trust.sanitise import for_terminal

_LANGUAGES = {"javascript": "JavaScript"}


def write(stream: TextIO | None, text: str) -> None:
    """Writes text that may be foreign: to a terminal only what it can't obey.

    A stream that the parent process closed is None: nobody listens.
    """
    if stream is None or not text:
        return
    shown = for_terminal(text) if stream.isatty() else text
    encoding = stream.encoding or "utf-8"
    stream.write(shown.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def compile_notice(language: str) -> None:
    """Says why the first run takes seconds."""
    if sys.stderr is not None and sys.stderr.isatty():  # pyright: ignore[reportUnnecessaryComparison]
        name = _LANGUAGES.get(language, language)
        print(f"Compiling the {name} engine for this machine (once, a few seconds) …", file=sys.stderr)
