"""The rules for one server and for all of them together: the same for a file and for code."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from itertools import pairwise
from typing import Any

from toolbridge.config.fields import FIELDS, NEEDED_FIELD
from toolbridge.config.names import check_name, twin_key
from toolbridge.config.server_config import OAuth, Origin, ServerConfig
from toolbridge.config.wording import all_of, kind_of, listed, quoted, shown_path
from toolbridge.errors import ConfigError

# A program, a package with extras or a version (`uvx toolbridge@1.2`), or a module (`python -m toolbridge.cli`).
_OURSELVES = re.compile(r"toolbridge(?i:\.exe|\.cmd)?(?:\[[^\]]*\])?(?:[=<>~!@].*|\.[\w.]+)?")
_LONGEST_COMMAND = 2_000
_FIELD = {each.attribute: each for each in FIELDS}
_DEFAULTS: dict[str, object] = {
    each.name: each.default if each.default_factory is MISSING else each.default_factory()
    for each in fields(ServerConfig)
}


def check_fields(
    given: Mapping[str, object], transport: str, label: Callable[[str], str], problems: list[ConfigError]
) -> dict[str, Any]:
    """The fields of a server as they are kept, by attribute. What is wrong is added to `problems`."""
    if "command" in given and "url" in given:
        fix = f"Remove {label('url')!r} for a process, or {label('command')!r} for a server that is reached by URL."
        both = f"has both {label('command')!r} and {label('url')!r}."
        problems.append(ConfigError(both, fix=fix))
        return {}  # which of the other fields are in place can't be told
    if NEEDED_FIELD[transport] not in given:
        needed = label(NEEDED_FIELD[transport])
        problems.append(ConfigError(f"is missing; transport {transport!r} needs it.", field=needed))
    kept: dict[str, Any] = {}
    for attribute, value in given.items():
        each = _FIELD[attribute]
        if transport not in each.transports:
            problem = f"does not belong to transport {transport!r}, only to {listed(sorted(each.transports))}."
            problems.append(ConfigError(problem, field=label(attribute), fix="Remove it."))
            continue
        try:
            kept[attribute] = each.check(value, label(attribute))
        except ConfigError as problem:
            problems.append(problem)
    twice = set(kept.get("env", ())) & set(kept.get("env_required", ()))
    if twice:
        problem = f"{quoted(min(twice))} is also in {label('env')!r}."
        problems.append(ConfigError(problem, field=label("env_required"), fix="Write it in one of them."))
    return kept


def check_server(server: ServerConfig) -> None:
    """Check a server that is being made: the same rules for one from a file and for one made in code.

    Raises:
        ConfigError: it can't be used as it is.
    """
    problems: list[ConfigError] = []
    try:
        if not isinstance(server.origin, Origin):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError("expected Origin(…).", field="origin")
        check_name(server.name, plugin=server.origin.kind == "plugin")
    except ConfigError as problem:
        problems.append(problem)
    try:
        transport = _transport(server.transport)
        check_fields(_given(server), transport, lambda attribute: attribute, problems)
        if server.oauth is not None and not isinstance(server.oauth, OAuth):  # pyright: ignore[reportUnnecessaryIsInstance]
            problems.append(ConfigError("expected OAuth(…).", field="oauth"))
    except ConfigError as problem:
        problems.append(problem)
    if problems:
        raise all_of(problems, server=server.name if isinstance(server.name, str) else None)  # pyright: ignore[reportUnnecessaryIsInstance]


def _transport(value: object) -> str:
    if isinstance(value, str) and value in NEEDED_FIELD:
        return value
    found = quoted(value) if isinstance(value, str) else kind_of(value)
    raise ConfigError(f"expected {listed(NEEDED_FIELD)}, found {found}.", field="transport")


def _given(server: ServerConfig) -> dict[str, object]:
    given = {each.attribute: getattr(server, each.attribute) for each in FIELDS if each.attribute != "server"}
    given = {attribute: value for attribute, value in given.items() if value != _DEFAULTS[attribute]}
    return given if server.server is None else given | {"server": server.server}


def check_together(servers: Iterable[ServerConfig]) -> None:
    """See that no two servers could be mistaken for each other.

    Raises:
        ConfigError: two have one name, or names that differ only by `-` and `_`; a Python module is both.
    """
    seen: dict[str, ServerConfig] = {}
    for server in servers:
        other = seen.get(twin_key(server.name))
        seen[twin_key(server.name)] = server
        if other is not None:
            file = server.origin.detail if server.origin.kind in ("project", "user") else None
            name = server.display_name or server.name
            raise ConfigError(_collision(other, server), file=file, server=name, fix="Rename one of them.")


def _collision(one: ServerConfig, other: ServerConfig) -> str:
    elsewhere = "" if one.origin == other.origin else f" of {shown_path(str(one.origin))}"
    first = quoted(one.display_name or one.name) + elsewhere
    if one.name != other.name:
        return f"differs from {first} only by '-' and '_'."
    if one.display_name != other.display_name:
        return f"becomes {other.name!r}, as does {first}."
    return f"has the name of another server{elsewhere}."


def starts_toolbridge(command: str, args: Iterable[str]) -> bool:
    """Whether a command is `toolbridge serve`: by its path, or by a runner, interpreter or shell (T22)."""
    words: list[str] = []
    for word in (command, *args):
        try:
            # As in `sh -c "exec toolbridge serve"`.
            words += shlex.split(word) if " " in word and len(word) <= _LONGEST_COMMAND else [word]
        except ValueError:
            words.append(word)
    plain = [re.split(r"[/\\]", each)[-1][:_LONGEST_COMMAND] for each in words if not each.startswith("-")]
    return any(_OURSELVES.fullmatch(one) and other == "serve" for one, other in pairwise(plain))


def check_count(count: int, most: int) -> None:
    """See that there are not too many servers.

    Raises:
        ConfigError: there are.
    """
    if count > most:
        fix = f'Remove some, or raise the limit: "limits": {{"servers": {count}}}.'
        raise ConfigError(f"{count} servers are configured; at most {most} may be.", field="limits.servers", fix=fix)
