"""How what was found is put into a message: its kind, or a short quotation; never a value that may be secret."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence

from toolbridge.errors import ConfigError

MOST_PROBLEMS_SHOWN = 20
MOST_PROBLEMS_SOUGHT = 100
"""A file with more is hardly a configuration, and finding the nearest name for each would take minutes."""


def kind_of(value: object) -> str:
    """What a value is, without showing it."""
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
    """A name in quotes, cut, with everything that a terminal would obey made visible."""
    return repr(text) if len(text) <= most else f"{text[:most]!r}…"


def shown_path(path: str) -> str:
    """A path as it is, unless a terminal would obey something in it: a directory's name is not ours."""
    return path if path.isprintable() else repr(path)


def listed(names: Iterable[str], word: str = "or") -> str:
    """`'a', 'b' or 'c'`."""
    *most, last = [repr(name) for name in names]
    return f"{', '.join(most)} {word} {last}" if most else last


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant."""
    plain = {_plain(candidate): candidate for candidate in known}
    found = difflib.get_close_matches(_plain(name[:64]), plain, n=1, cutoff=0.7)
    return plain[found[0]] if found else None


def unknown_keys(
    given: Iterable[str], known: Collection[str], *, within: str = "", advice: Mapping[str, str] | None = None
) -> list[ConfigError]:
    """The problems with keys that nothing here knows; `advice` has what to say of those that others know."""
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


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def all_of(problems: Sequence[ConfigError], *, file: str | None = None, server: str | None = None) -> ConfigError:
    """One error for them all: a person who mends a file wants to see every mistake at once."""
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
