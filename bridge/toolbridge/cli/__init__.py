"""The command line. Each command lives in a file of its own and is imported only when it is used."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from contextlib import suppress

# Exit codes, for scripts. `toolbridge run --help` lists them.


OK = 0
PROGRAM_FAILED = 1
"""The program has an error of its own: syntax, or an exception it didn't catch."""
USAGE = 2
"""The command was called wrongly: an unknown option, a file that can't be read."""
STOPPED = 3
"""The program was stopped at a limit: time, memory, calls, size."""
FAILED = 4
"""toolbridge itself could not do its work: a broken installation."""
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
    """Runs a command and exits with its code. No traceback is ever shown for what a user can do."""
    # Until everything is imported, Ctrl-C ends the process as the system does it: an import that is
    # interrupted would show a traceback, or swallow the interruption.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_run())


def _run() -> int:
    import click

    from toolbridge.cli.commands import toolbridge
    from toolbridge.errors import ConfigError, ToolbridgeError, ToolNotFoundError, UnknownServerError

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code = toolbridge.main(prog_name="toolbridge", standalone_mode=False)
        if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison]  # it is, when the parent closed it
            sys.stdout.flush()
    except click.ClickException as error:
        if isinstance(error, click.UsageError) and not _wants_json():
            error.show()
        else:
            _tell("usage", error.format_message())  # it may quote a file's name
        return USAGE
    except ToolbridgeError as error:
        _tell(re.sub("(?<=[a-z])(?=[A-Z])", "_", type(error).__name__.removesuffix("Error")).lower(), str(error))
        return USAGE if isinstance(error, ConfigError | UnknownServerError | ToolNotFoundError) else FAILED
    except (KeyboardInterrupt, click.Abort):
        _tell("interrupted", "Interrupted.", before="")
        return INTERRUPTED
    except (OSError, SystemExit) as error:
        # Whoever read our output has gone (click turns that into an exit), or the system refused something.
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            with suppress(OSError):
                _tell("system", f"{_words_of(error)}.")
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # nothing is left to flush at the end
        is_done = isinstance(error, SystemExit) and error.code == 0  # a shell asked for completions
        return 0 if is_done else FAILED
    if code == TERMINATED and _wants_json():
        _tell("terminated", "Terminated.")
    return code if isinstance(code, int) else 0


def _wants_json() -> bool:
    """Whether the command was asked for JSON; from the words themselves, which may be what is wrong."""
    words = sys.argv[1:]
    words = words[: words.index("--")] if "--" in words else words
    return any(word == "--json" or word.startswith("--json=") for word in words)


def _tell(kind: str, message: str, before: str = "Error: ") -> None:
    """Why the command failed: to a person on stderr, to a program as one JSON object on stdout."""
    from toolbridge.cli.terminal import write, write_error_object

    if _wants_json():
        write_error_object(kind, message)
    else:
        write(sys.stderr, f"{before}{message}\n")


def _words_of(error: OSError) -> str:
    """What the system refused: an error that names no file is one of writing to what was open already."""
    try:
        os.getcwd()
    except OSError:
        return "The directory that this was started in is gone: go to another one"
    words = error.strerror or str(error)
    return f"The output can't be written: {words}" if error.filename is None else f"{error.filename}: {words}"
