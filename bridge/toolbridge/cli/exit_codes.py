"""Exit codes, for scripts. `toolbridge run --help` lists them."""

from __future__ import annotations

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
