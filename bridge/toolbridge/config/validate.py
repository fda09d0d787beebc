"""The rules for one server and for all of them together: the same for a file and for code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from toolbridge.config.fields import FIELDS, NEEDED_FIELD
from toolbridge.config.names import check_name, twin_key
from toolbridge.config.server_config import OAuth, ServerConfig
from toolbridge.config.wording import all_of, kind_of, listed, quoted, shown_path
from toolbridge.errors import ConfigError

_FIELD = {each.attribute: each for each in FIELDS}
_PLAIN = ServerConfig("plain", "stdio")


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


def validate_server(server: ServerConfig) -> ServerConfig:
    """A server that was made in code, checked like one from a file.

    Raises:
        ConfigError: it can't be used as it is.
    """
    problems: list[ConfigError] = []
    try:
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
    return server


def _transport(value: object) -> str:
    if isinstance(value, str) and value in NEEDED_FIELD:
        return value
    found = quoted(value) if isinstance(value, str) else kind_of(value)
    raise ConfigError(f"expected {listed(NEEDED_FIELD)}, found {found}.", field="transport")


def _given(server: ServerConfig) -> dict[str, object]:
    given = {each.attribute: getattr(server, each.attribute) for each in FIELDS if each.attribute != "server"}
    given = {attribute: value for attribute, value in given.items() if value != getattr(_PLAIN, attribute)}
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


def check_count(count: int, most: int) -> None:
    """See that there are not too many servers.

    Raises:
        ConfigError: there are.
    """
    if count > most:
        fix = f'Remove some, or raise the limit: "limits": {{"servers": {count}}}.'
        raise ConfigError(f"{count} servers are configured; at most {most} may be.", field="limits.servers", fix=fix)
