"""Checks of single values and of names, the same for files and for code, and the text of their errors.

No message shows a value: a field may hold a secret in the wrong place.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar, cast

from toolbridge.errors import ConfigError, nearest

# Text of error messages: the kind of a value or a short quotation, never a value that may be a secret.


MOST_PROBLEMS_SHOWN = 20
MOST_PROBLEMS_SOUGHT = 100
"""A file with more is hardly a configuration, and searching the nearest name for each would take minutes."""


def kind_of(value: object) -> str:
    """The JSON type of a value, in words that don't show the value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        ((int, float), "a number"),
        (str, "text" if value else "empty text"),
        (Mapping, "an object"),
        ((list, tuple), "a list"),
    )
    for types, kind in kinds:
        if isinstance(value, types):
            return kind
    return f"a value of type {type(value).__name__}"


def quoted(text: str, most: int = 60) -> str:
    """A name in quotes, truncated to `most` characters, with control characters escaped."""
    return repr(text) if len(text) <= most else f"{text[:most]!r}…"


def shown_path(path: str) -> str:
    """A path, escaped if it has control characters: names of directories are untrusted."""
    return path if path.isprintable() else repr(path)


def listed(names: Iterable[str], word: str = "or") -> str:
    """Join names, of which there is at least one, in quotes: `'a', 'b' or 'c'`."""
    *most, last = [repr(name) for name in names]
    return f"{', '.join(most)} {word} {last}" if most else last


def unknown_keys(
    given: Iterable[str], known: Collection[str], *, within: str = "", advice: Mapping[str, str] | None = None
) -> list[ConfigError]:
    """Return one error for each unknown key, at most 100, with the nearest known one; raises nothing.

    `within` begins the path of the field; `advice` has the fix for keys of other tools.
    """
    advice = advice or {}
    problems: list[ConfigError] = []
    for key in given:
        if key in known or len(problems) >= MOST_PROBLEMS_SOUGHT:
            continue
        meant = key if key in advice else nearest(key, [*known, *advice])
        fix = f"Did you mean {meant!r}?" if meant else f"Known are {listed(known, 'and')}."
        fix = advice.get(meant or "", fix)
        problems.append(ConfigError("unknown key.", field=f"{within}{key[:60]}", fix=fix))
    return problems


def all_of(problems: Sequence[ConfigError], *, file: str | None = None, server: str | None = None) -> ConfigError:
    """Return one error that lists all problems, of which there is at least one; a single problem stays itself.

    Each gets this `file` in place of its own, and `server` if it has none. Its text shows at most 20 of them.
    """
    placed = tuple(
        ConfigError(each.problem, file=file, server=each.server or server, field=each.field, fix=each.fix)
        for each in problems
    )
    if len(placed) == 1:
        return placed[0]
    lines = [
        str(ConfigError(each.problem, server=each.server, field=each.field, fix=each.fix))
        for each in placed[:MOST_PROBLEMS_SHOWN]
    ]
    if len(placed) > len(lines):
        lines.append(f"… and {len(placed) - len(lines)} more")
    return ConfigError("\n  ".join([f"{len(placed)} problems:", *lines]), file=file, problems=placed)


# Names of servers: those of other tools are mapped to valid ones, ambiguous ones are refused.


MOST_CHARACTERS = 64
MOST_WRITTEN_CHARACTERS = 256

RESERVED_NAMES = frozenset({"mcp", "gateway", "wink", "bridge", "fs-read", "fs-write", "fetch"})
RESERVED_PREFIXES = ("host:", "ha:")
SEPARATOR = "__"
"""Separates plugin from server and server from tool: no configured name may contain it."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_UNFIT = re.compile(r"[^a-z0-9_-]+")
_UNDERSCORES = re.compile(r"_{2,}")
_RULE = 'A name is 1 to 64 of a-z, 0-9, "-" and "_", and begins with a letter or digit.'


def check_name(name: object, *, plugin: bool = False) -> str:
    """Check the name of a server and return it; a plugin's is `<plugin>__<server>`.

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
    """Map the name of a server in another tool's file to a valid one, deterministically.

    `GitHub` gives `github`, `file.system` gives `file_system`. A name that is reserved, contains `__` or has
    invisible characters is refused, not repaired: it could pass for another server.

    Raises:
        ConfigError: no valid name is safe for it.
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
    """A key that is equal for names which differ only by `-` and `_`: both are the same module in Python."""
    return name.replace("-", "_")


def with_spelling_of(written: str, before: str, server: str, between: str) -> str:
    """Spell the server in `written`, the name `<before><server><between><tool>` of a tool, as it is configured.

    Models mix up `-` and `_`. The name of another server's tool is returned unchanged.
    """
    own = f"{before}{server}{between}"
    begins = written[: len(own)]
    if begins.startswith(before) and begins.endswith(between) and twin_key(begins) == twin_key(own):
        return own + written[len(own) :]
    return written


def _mapped(written: str) -> str:
    """Map a name to lower-case ASCII without accents, `_` for the rest; with a digest if too long, or nothing is left.

    It may still be reserved.
    """
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
    """Raise ConfigError for a name that is reserved or contains `__`; `written` is the name that it was mapped from."""
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
    """Return a name of the form `<plugin>__<server>`, or raise ConfigError."""
    parts = name.split(SEPARATOR)
    if not _NAME.fullmatch(name) or len(parts) != 2 or not all(_NAME.fullmatch(part) for part in parts):
        raise ConfigError(f"{quoted(name)} can't be the name of a plugin's server.", fix="It is <plugin>__<server>.")
    return name


def _rule_and_example(name: str) -> str:
    """The rule for names, as the fix of an error, with a valid name close to this one if there is any."""
    try:
        return f"{_RULE} {name_for(name)!r} would do."
    except ConfigError:
        return _RULE


# Checks of values. Each takes a value and the path of its field, and returns the value to keep.
#
# Each raises a ConfigError that names the field and what was expected.


Check: TypeAlias = Callable[[object, str], Any]
_Word = TypeVar("_Word", bound=str)

MOST_SECONDS = 3600.0
LEAST_SECONDS = 0.001
_ALL_TOOLS = re.compile(r"mcp__[\w.-]+__\*|mcp:[\w.-]+_\*")
_WILDCARDS = frozenset("*?[]{}()|^$+\\,")
"""Of globs, regular expressions and lists. Tools are matched by name, and no MCP name contains any of these."""


def wrong(value: object, field: str, expected: str, fix: str = "") -> ConfigError:
    """Return, not raise, the error for a value of the wrong type; it shows the JSON type only."""
    return ConfigError(f"expected {expected}, found {kind_of(value)}.", field=field, fix=fix)


def any_text(value: object, field: str) -> str:
    """Check a text, which may be empty; ConfigError if it is none, or has a NUL character or half a surrogate pair."""
    if not isinstance(value, str):
        is_scalar = isinstance(value, (bool, int, float))
        raise wrong(value, field, "text", "Write it in quotes." if is_scalar else "")
    if "\0" in value:
        raise ConfigError("contains a NUL character.", field=field, fix="Remove it.")
    try:
        value.encode()
    except UnicodeEncodeError:
        fault = "contains half a surrogate pair, which is no character."
    else:
        return value
    raise ConfigError(fault, field=field, fix="Remove it.")  # outside: the first error's context holds the value


def some_text(value: object, field: str) -> str:
    """Check a text that is not blank; returned with its white space, or ConfigError."""
    text = any_text(value, field)
    if not text.strip():
        raise ConfigError("is empty.", field=field, fix="Write a value, or leave the field out.")
    return text


def flag(value: object, field: str) -> bool:
    """Check a boolean; ConfigError for anything else, `0` and `1` included."""
    if not isinstance(value, bool):
        raise wrong(value, field, "true or false", "Write it without quotes." if isinstance(value, str) else "")
    return value


def texts(value: object, field: str) -> tuple[str, ...]:
    """Check a list or tuple of texts, which may be empty; ConfigError names the item."""
    return tuple(any_text(item, f"{field}[{index}]") for index, item in enumerate(_items(value, field)))


def names(value: object, field: str) -> tuple[str, ...]:
    """Check a list or tuple of texts that are not blank; ConfigError names the item."""
    return tuple(some_text(item, f"{field}[{index}]") for index, item in enumerate(_items(value, field)))


def denied_names(value: object, field: str) -> tuple[str, ...]:
    """Check a list of denied tools; ConfigError for a wildcard, since the rule would match no tool.

    Allowed are names and `mcp__<server>__*`, all tools of a server.
    """
    found = names(value, field)
    for index, name in enumerate(found):
        if not _ALL_TOOLS.fullmatch(name):
            check_wildcards(name, f"{field}[{index}]", fix="Write the tool's name, or mcp__<server>__* for all tools.")
    return found


def check_wildcards(denied: str, field: str, *, fix: str) -> None:
    """Raise ConfigError, with this `fix`, for a denied name with a wildcard: it would match no tool. Else return."""
    wildcard = next((each for each in denied if each in _WILDCARDS), None)
    if wildcard is not None:
        problem = f"{quoted(denied)} denies nothing: {wildcard!r} is no wildcard here, and in no tool's name."
        raise ConfigError(problem, field=field, fix=fix)


def _items(value: object, field: str) -> tuple[object, ...]:
    """The items of a list or tuple; ConfigError for anything else."""
    if not isinstance(value, (list, tuple)):
        raise wrong(value, field, 'a list such as ["one", "two"]')
    return tuple(cast("list[object] | tuple[object, ...]", value))


def pairs(value: object, field: str) -> dict[str, object]:
    """Copy an object into a dict; ConfigError if it is none, or a key is no text."""
    if not isinstance(value, Mapping):
        raise wrong(value, field, 'an object such as {"name": "value"}')
    found = cast("Mapping[object, object]", value)
    for key in found:
        if not isinstance(key, str):
            raise wrong(key, field, "names that are text")
    return dict(cast("Mapping[str, object]", value))


def checked_members(
    value: object, field: str, checks: Mapping[str, Check], *, advice: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Check each member of an object by the function for its key; members that are missing stay so.

    `advice` has the fix for keys of other tools.

    Raises:
        ConfigError: it is no object, has unknown keys, or values that their checks refuse; lists all of them.
    """
    given = pairs(value, field)
    problems = unknown_keys(given, checks, within=f"{field}.", advice=advice)
    kept: dict[str, Any] = {}
    for key in (key for key in given if key in checks):
        try:
            kept[key] = checks[key](given[key], f"{field}.{key}")
        except ConfigError as problem:
            problems += problem.problems
    if problems:
        raise all_of(problems)
    return kept


def environment(value: object, field: str) -> dict[str, str]:
    """Check environment variables by name, ConfigError at the first mistake; values may hold references."""
    return {
        variable(name, f"{field}.{_key(name)}"): any_text(text, f"{field}.{_key(name)}")
        for name, text in pairs(value, field).items()
    }


def variables(value: object, field: str) -> tuple[str, ...]:
    """Check a list of names of environment variables; ConfigError names the item."""
    return tuple(variable(name, f"{field}[{index}]") for index, name in enumerate(names(value, field)))


def variable(name: str, field: str) -> str:
    """Check the name of an environment variable: ConfigError if empty, or with `=`, a space or a control character."""
    any_text(name, field)
    if not name or "=" in name or not name.isprintable() or " " in name:
        fix = "Write the name alone: no '=', space or control character."
        raise ConfigError("is not the name of a variable.", field=field, fix=fix)
    return name


def _key(name: str) -> str:
    """A name in the path of a field, truncated: it may be a value in the wrong place."""
    return name if len(name) <= 60 else f"{name[:12]}…"


def seconds(value: object, field: str) -> float:
    """Check a duration, 0.001 to 3600 seconds, and return it as a float; ConfigError otherwise."""
    fix = "Times are in seconds."
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise wrong(value, field, f"a number from {LEAST_SECONDS:g} to {MOST_SECONDS:g}", fix)
    if not LEAST_SECONDS <= value <= MOST_SECONDS:
        raise ConfigError(f"expected {LEAST_SECONDS:g} to {MOST_SECONDS:g}.", field=field, fix=fix)
    return float(value)


def unset_env(value: object, field: str) -> Literal["error", "empty"]:
    """How a reference to an unset variable is resolved."""
    return one_of(("error", "empty"), value, field)


def reading(value: object, field: str) -> Literal["intended", "literal"]:
    """How the server's schemas are read."""
    return one_of(("intended", "literal"), value, field)


def one_of(known: tuple[_Word, ...], value: object, field: str) -> _Word:
    """Return the value if it is one of these words; ConfigError lists them otherwise."""
    for word in known:
        if isinstance(value, str) and value == word:
            return word
    found = quoted(value) if isinstance(value, str) else kind_of(value)
    raise ConfigError(f"expected {listed(known)}, found {found}.", field=field)


def absolute_directory(path: str, base: str, home: str | None) -> str:
    """Make a path of a configuration file absolute by `base`, and normalise it; raises nothing.

    `~` is expanded if `home` is known, `~user` is not. A path with a NUL character is returned as it is.
    """
    if home is not None and (path == "~" or path.startswith(("~/", f"~{os.sep}"))):
        path = home + path[1:]
    return os.path.normpath(os.path.join(base, path)) if "\0" not in path else path


def working_directory(value: object, field: str) -> str:
    """Check an absolute path, which need not exist: a relative one would depend on where the host was started.

    Raises:
        ConfigError: it is no text, blank, or relative.
    """
    path = some_text(value, field)
    if not os.path.isabs(path):
        raise ConfigError("is not an absolute path.", field=field, fix="Write the path in full.")
    return path
