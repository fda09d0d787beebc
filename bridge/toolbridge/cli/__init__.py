"""The command line: entry point and exit codes. Commands are imported on first use."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from contextlib import suppress

# Exit codes, for scripts; `toolbridge run --help` lists them.


OK = 0
PROGRAM_FAILED = 1
"""The program failed: syntax, types, or an uncaught exception."""
USAGE = 2
"""Wrong usage: an unknown option, an unreadable file."""
STOPPED = 3
"""The program was stopped at a limit: time, memory, calls, size."""
FAILED = 4
"""toolbridge failed: a broken installation."""
INTERRUPTED = 130
"""Ctrl-C."""
TERMINATED = 143
"""SIGTERM."""

OF_FAILURE = {
    "syntax": PROGRAM_FAILED,
    "type": PROGRAM_FAILED,
    "check_timeout": STOPPED,
    "raised": PROGRAM_FAILED,
    "denied": PROGRAM_FAILED,
    "timeout": STOPPED,
    "out_of_memory": STOPPED,
    "limit": STOPPED,
    "protocol": FAILED,
    "crashed": FAILED,
    "cancelled": INTERRUPTED,
}


def main() -> None:
    """Run a command and exit with its code. Errors that a user can cause show no traceback."""
    # Ctrl-C keeps its default action until all is imported: an interrupted import would show a traceback,
    # # or swallow the interrupt.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_run())


def _run() -> int:
    """Run the command, report its errors on stderr or as JSON, and return the exit code."""
    import click

    from toolbridge.cli.commands import toolbridge
    from toolbridge.errors import ConfigError, ToolbridgeError, ToolNotFoundError, UnknownServerError

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code = toolbridge.main(prog_name="toolbridge", standalone_mode=False)
        if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison]  # closed by the parent process
            sys.stdout.flush()
    except click.ClickException as error:
        if isinstance(error, click.UsageError) and not _wants_json():
            error.show()
        else:
            _tell("usage", error.format_message())  # may quote a file's name
        return USAGE
    except ToolbridgeError as error:
        _tell(re.sub("(?<=[a-z])(?=[A-Z])", "_", type(error).__name__.removesuffix("Error")).lower(), str(error))
        return USAGE if isinstance(error, ConfigError | UnknownServerError | ToolNotFoundError) else FAILED
    except (KeyboardInterrupt, click.Abort):
        _tell("interrupted", "Interrupted.", before="")
        return INTERRUPTED
    except (OSError, SystemExit) as error:
        # The reader of our output is gone (click exits then), or the system refused an operation.
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            with suppress(OSError):
                _tell("system", f"{_words_of(error)}.")
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # nothing is left to flush at exit
        is_done = isinstance(error, SystemExit) and error.code == 0  # shell completion
        return 0 if is_done else FAILED
    if code == TERMINATED and _wants_json():
        _tell("terminated", "Terminated.")
    return code if isinstance(code, int) else 0


def _wants_json() -> bool:
    """Whether --json was given; parsed from argv, as the arguments may be invalid."""
    words = sys.argv[1:]
    words = words[: words.index("--")] if "--" in words else words
    return any(word == "--json" or word.startswith("--json=") for word in words)


def _tell(kind: str, message: str, before: str = "Error: ") -> None:
    """Report an error: text on stderr, or one JSON object on stdout."""
    from toolbridge.cli.terminal import write, write_error_object

    if _wants_json():
        write_error_object(kind, message)
    else:
        write(sys.stderr, f"{before}{message}\n")


def _words_of(error: OSError) -> str:
    """A system error in words: a deleted current directory first, output that can't be written if it names no file."""
    try:
        os.getcwd()
    except OSError:
        return "The directory that this was started in is gone: go to another one"
    words = error.strerror or str(error)
    return f"The output can't be written: {words}" if error.filename is None else f"{error.filename}: {words}"
