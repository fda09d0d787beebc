"""Where this user's files are kept. Found by hand: a library would cost a command a tenth of its start-up."""

from __future__ import annotations

import os
import sys

_CACHE_VARIABLE = "TOOLBRIDGE_CACHE_DIR"
_STATE_VARIABLE = "TOOLBRIDGE_STATE_DIR"


def cache_directory() -> str:
    """What can be made again: compiled images, kept listings. `TOOLBRIDGE_CACHE_DIR` moves it."""
    chosen = os.environ.get(_CACHE_VARIABLE)
    if chosen:
        return chosen
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        return os.path.join(
            os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local"), "toolbridge", "Cache"
        )
    if sys.platform == "darwin":
        base = os.path.join(home, "Library", "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        base = base if os.path.isabs(base) else os.path.join(home, ".cache")
    return os.path.join(base, "toolbridge")


def state_directory() -> str | None:
    """What must not be lost and belongs to this machine: approvals. `TOOLBRIDGE_STATE_DIR` moves it.

    None where there is no absolute path: a relative one would be found in whichever repository one is in.
    """
    chosen = os.environ.get(_STATE_VARIABLE)
    if chosen:
        return chosen if os.path.isabs(chosen) else None
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    elif sys.platform == "darwin":
        base = os.path.join(home, "Library", "Application Support")
    else:
        base = os.environ.get("XDG_STATE_HOME", "")
        base = base if os.path.isabs(base) else os.path.join(home, ".local", "state")
    return os.path.join(base, "toolbridge") if os.path.isabs(base) else None
