"""What holds for every call of a runtime."""

from __future__ import annotations

from typing import NamedTuple

from toolbridge.config.policy import Errors


class CallRules(NamedTuple):
    """Of the configuration, of the guest's language, and of the observers."""

    errors: Errors
    strict_results: bool
    exact_integers: bool
    """Whether the guest's language has integers of any size."""
    shows_arguments: bool
    """Whether an observer asked for arguments."""
    shows_progress: bool
    """Whether an observer wants to know how far calls are."""
