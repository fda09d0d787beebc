"""What a child gets of this program's environment unless its configuration says more: enough to run, no secrets."""

from __future__ import annotations

import os
from collections.abc import Mapping

_POSIX = """
HOME LANG LANGUAGE LOGNAME PATH SHELL TERM TMPDIR TZ USER
XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_RUNTIME_DIR XDG_STATE_HOME
"""
_WINDOWS = """
ALLUSERSPROFILE APPDATA COMMONPROGRAMFILES COMSPEC HOMEDRIVE HOMEPATH LOCALAPPDATA NUMBER_OF_PROCESSORS OS PATH PATHEXT
PROCESSOR_ARCHITECTURE PROGRAMDATA PROGRAMFILES PROGRAMFILES(X86) PROGRAMW6432 PUBLIC SYSTEMDRIVE SYSTEMROOT TEMP TMP
USERDOMAIN USERNAME USERPROFILE WINDIR
"""
_NAMES = frozenset((_WINDOWS if os.name == "nt" else _POSIX).split())


def is_base_name(name: str) -> bool:
    """Whether every child gets this variable."""
    return name in _NAMES or name.startswith("LC_") or (os.name == "nt" and name.upper() in _NAMES)


def base_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that every child gets. Exported shell functions look like values and are left out."""
    return {name: value for name, value in environ.items() if is_base_name(name) and not value.startswith("()")}
