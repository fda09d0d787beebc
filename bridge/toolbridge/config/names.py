"""Names of servers: what other tools allow is mapped to a valid name, what could be mistaken is refused."""

from __future__ import annotations

import hashlib
import re
import unicodedata

from toolbridge.config.wording import quoted
from toolbridge.errors import ConfigError

MOST_CHARACTERS = 64
MOST_WRITTEN_CHARACTERS = 256

RESERVED_NAMES = frozenset({"mcp", "gateway", "wink", "bridge", "fs-read", "fs-write", "fetch"})
RESERVED_PREFIXES = ("host:", "ha:")
SEPARATOR = "__"
"""Stands between plugin and server, and between server and tool: a user's name can't contain it."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_UNFIT = re.compile(r"[^a-z0-9_-]+")
_UNDERSCORES = re.compile(r"_{2,}")
_RULE = 'A name is 1 to 64 of a-z, 0-9, "-" and "_", and begins with a letter or digit.'


def check_name(name: object, *, plugin: bool = False) -> str:
    """The name of a server, as it is; a plugin's is `<plugin>__<server>`.

    Raises:
        ConfigError: it is malformed, reserved, or contains `__`.
    """
    if not isinstance(name, str):
        raise ConfigError(f"the name of a server is of type {type(name).__name__}.", fix=_RULE)
    if plugin:
        return _check_plugin_name(name)
    _refuse_reserved(name)
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{quoted(name)} can't be the name of a server.", fix=_rule_and_example(name))
    return name


def name_for(written: str) -> str:
    """A valid name for what another tool's file calls a server; the same one every time.

    `GitHub` gives `github`, `file.system` gives `file_system`. A name that is reserved, contains `__` or has
    invisible characters is not made harmless but refused: it would look like something that it is not.

    Raises:
        ConfigError: there is no safe name for it.
    """
    if not written.strip():
        raise ConfigError("the name of a server is empty.", fix=_RULE)
    if len(written) > MOST_WRITTEN_CHARACTERS:
        raise ConfigError(f"{quoted(written)} is too long for the name of a server.", fix=_RULE)
    if not written.isprintable():
        raise ConfigError(f"{quoted(written)} has characters that can't be seen.", fix=_RULE)
    _refuse_reserved(written)
    name = _mapped(written)
    _refuse_reserved(name, written)
    return name


def twin_key(name: str) -> str:
    """Equal for names that differ only by `-` and `_`: both would be the same module in Python."""
    return name.replace("-", "_")


def with_own_spelling(written: str, before: str, server: str, between: str) -> str:
    """The name of a tool, `<before><server><between><tool>`, with `-` and `_` in its server's as the server has them.

    One that names another server stays as it is: no two servers differ by that alone.
    """
    own = f"{before}{server}{between}"
    begins = written[: len(own)]
    if begins.startswith(before) and begins.endswith(between) and twin_key(begins) == twin_key(own):
        return own + written[len(own) :]
    return written


def _mapped(written: str) -> str:
    if _NAME.fullmatch(written):
        return written
    # Letters lose their accents; what has no ASCII form is left out like any other unfit character.
    ascii_form = unicodedata.normalize("NFKD", written.casefold()).encode("ascii", "ignore").decode().lower()
    fitting = _UNDERSCORES.sub("_", _UNFIT.sub("_", ascii_form)).strip("_-")
    digest = hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    if not fitting:
        return f"server_{digest}"
    if len(fitting) > MOST_CHARACTERS:
        return f"{fitting[: MOST_CHARACTERS - 9].rstrip('_-')}_{digest}"
    return fitting


def _refuse_reserved(name: str, written: str | None = None) -> None:
    shown = quoted(name) if written in (None, name) else f"{quoted(written or '')} (as {name!r})"
    lower = name.lower()
    if lower.startswith(RESERVED_PREFIXES):
        raise ConfigError(f"{shown}: names that begin with 'host:' or 'ha:' are reserved.", fix="Rename it.")
    if twin_key(lower) in {twin_key(reserved) for reserved in RESERVED_NAMES}:
        raise ConfigError(f"{shown} is a reserved name.", fix=f"Rename it, for example to {lower + '-server'!r}.")
    if SEPARATOR in name:
        problem = f"{shown} contains '__', which separates a plugin from its server and a server from its tools."
        raise ConfigError(problem, fix="Write a single '_'.")


def _check_plugin_name(name: str) -> str:
    parts = name.split(SEPARATOR)
    if not _NAME.fullmatch(name) or len(parts) != 2 or not all(_NAME.fullmatch(part) for part in parts):
        raise ConfigError(f"{quoted(name)} can't be the name of a plugin's server.", fix="It is <plugin>__<server>.")
    return name


def _rule_and_example(name: str) -> str:
    try:
        return f"{_RULE} {name_for(name)!r} would do."
    except ConfigError:
        return _RULE
