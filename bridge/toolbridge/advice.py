"""Commands that errors and notes advise, with the `--config` and `--profile` that this process was started with."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextvars import ContextVar

_options: ContextVar[str] = ContextVar("options", default="")


def advised(words: str) -> str:
    """A command that finds the same servers, between backticks."""
    return f"`toolbridge {words}{_options.get()}`"


def found_by(config_file: str | None, profiles: Sequence[str] = ()) -> str:
    """The options by which a command finds the servers that this one has found."""
    file = f" --config {shlex.quote(config_file)}" if config_file else ""
    return file + "".join(f" --profile {shlex.quote(each)}" for each in profiles)


def advise_with(config_file: str | None, profiles: Sequence[str] = ()) -> None:
    """From now on, in this context, advice has these options."""
    _options.set(found_by(config_file, profiles))
