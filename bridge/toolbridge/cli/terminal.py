"""Writing to people: foreign text never reaches a terminal as it is."""

from __future__ import annotations

import json
import sys
from typing import TextIO

from toolbridge.trust.sanitise import for_terminal


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


def write_error_object(kind: str, message: str) -> None:
    """Why a command failed, for a program: one JSON object on stdout, as every command with --json answers."""
    write(sys.stdout, json.dumps({"error": {"kind": kind, "message": message}}) + "\n")
