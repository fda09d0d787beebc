"""Where configuration is looked for, and which of the places is used."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from toolbridge.errors import ConfigError

PROJECT_FILES = ("toolbridge.json", ".agents/mcp.json", ".vscode/mcp.json", ".mcp.json")
USER_FILE = "config.json"
CONFIG_VARIABLE = "TOOLBRIDGE_CONFIG_DIR"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place where configuration is looked for."""

    path: str
    """Absolute. Links in its directory are followed; whether the file itself is one doesn't matter."""
    origin: Literal["project", "user"]
    exists: bool
    used: bool
    """Of the project's files the first that exists is used; the user's file always; with a given file, only that."""
    base: str
    """The directory that a relative `cwd` in it starts from."""
    given: bool = False
    """Whether the caller named it."""


def locate(
    file: str | os.PathLike[str] | None, *, directory: str | os.PathLike[str], environ: Mapping[str, str]
) -> tuple[Candidate, ...]:
    """Every place, in the order of precedence; a given file comes first, whether it exists or not.

    Raises:
        ConfigError: the given file's name can't be one, or `TOOLBRIDGE_CONFIG_DIR` is not absolute.
    """
    users = user_directory(environ)
    candidates: list[Candidate] = []
    if file is not None:
        if "\0" in os.fspath(file) or not os.fspath(file):
            raise ConfigError(f"{os.fspath(file)!r} is not the path of a file.", fix="Give the path of a JSON file.")
        path = _physical(os.path.join(directory, file))
        origin = "user" if users is not None and _is_within(path, users) else "project"
        candidates.append(Candidate(path, origin, os.path.exists(path), True, _base(path), given=True))
    is_open = file is None
    for name in PROJECT_FILES:
        path = _physical(os.path.join(directory, *name.split("/")))
        exists = os.path.lexists(path)
        candidates.append(Candidate(path, "project", exists, exists and is_open, _base(path)))
        is_open = is_open and not exists
    if users is not None:
        path = _physical(os.path.join(users, USER_FILE))
        exists = os.path.lexists(path)
        candidates.append(Candidate(path, "user", exists, exists and file is None, _base(path)))
    return tuple(candidates)


def user_directory(environ: Mapping[str, str]) -> str | None:
    """Where this user's configuration is kept, if there is a home. `TOOLBRIDGE_CONFIG_DIR` moves it.

    Always absolute: a relative one would be found in whichever repository is the current directory.

    Raises:
        ConfigError: `TOOLBRIDGE_CONFIG_DIR` is not absolute.
    """
    chosen = environ.get(CONFIG_VARIABLE, "")
    if chosen:
        if not os.path.isabs(chosen):
            raise ConfigError(f"{CONFIG_VARIABLE} is not an absolute path.", fix="Write the path in full.")
        return chosen
    home = home_directory(environ) or ""
    if sys.platform == "win32":
        base = environ.get("APPDATA") or os.path.join(home, "AppData", "Roaming")
    elif sys.platform == "darwin":
        base = os.path.join(home, "Library", "Application Support")
    else:
        base = environ.get("XDG_CONFIG_HOME", "")
        base = base if os.path.isabs(base) else os.path.join(home, ".config")
    return os.path.join(base, "toolbridge") if os.path.isabs(base) else None


def home_directory(environ: Mapping[str, str]) -> str | None:
    """The user's home, if there is one."""
    home = environ.get("USERPROFILE" if sys.platform == "win32" else "HOME") or os.path.expanduser("~")
    return home if os.path.isabs(home) else None


def _physical(path: str) -> str:
    """One path for one file, however its directory was reached: approvals are bound to it."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def _is_within(path: str, directory: str) -> bool:
    """Whether a file is in a directory that is the user's own; a link there is the user's own doing."""
    folder, root = os.path.dirname(path), os.path.realpath(directory)
    return folder == root or folder.startswith(root.rstrip(os.sep) + os.sep)


def _base(path: str) -> str:
    """The directory of a file, or the one above for a tool's folder such as `.vscode`."""
    folder, name = os.path.split(os.path.dirname(path))
    return folder if name in (".vscode", ".agents") else os.path.join(folder, name)
