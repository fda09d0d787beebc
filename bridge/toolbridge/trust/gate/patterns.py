"""SECURITY: from the patterns of a configuration to tools, by `(server, tool)` and never by guessing (T13, T21).

`git_hub_delete` may be `delete` of `git_hub` or `hub_delete` of `git`, and another server's new tool can change a
tool's name in the catalog. So a pattern that restricts matches every tool that it could mean, by every name the tool
has or could get, in guest code as well, in upper or lower case; one that allows matches by the catalog's own name
only, and only where no other server could be meant. In a server's name `-` and `_` are the same to both: no two servers
differ by that alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial

from toolbridge.config.config import Config
from toolbridge.config.policy import LEVELS
from toolbridge.config.values import SEPARATOR, with_own_spelling
from toolbridge_codegen.catalog import Catalog, ToolSpec, assign_wire_names, identifier

ALL = "*"
_LEAST_CHARACTERS = len("mcp:s_abcd")
_FORMS = (("mcp__", "__"), ("mcp:", "_"))
"""What stands before the server and before the tool in the two forms of a pattern."""


def restricting_match(patterns: Iterable[str], tool: ToolSpec, display_name: str = "") -> str | None:
    """The first pattern of an `ask` or `deny` list that could mean this tool. Upper and lower case are the same."""
    names = _names_of(tool, display_name)
    return next(
        (pattern for pattern in patterns if _as_the_server(pattern.lower(), tool.server.lower()) in names), None
    )


def near_miss(patterns: Iterable[str], tool: ToolSpec, config: Config, listed: Callable[[], Catalog]) -> str | None:
    """The first pattern that matches no tool of its server, and is one letter away from this one.

    Its author believes in a rule that does nothing: the tool that they most likely mean is not let through by that.
    """
    names = _names_of(tool, _display_name(config, tool))
    for pattern in patterns:
        written = _as_the_server(pattern.lower(), tool.server.lower())
        if pattern.endswith(ALL) or set(_servers_meant(pattern.lower(), _known_as(config))) - {tool.server}:
            continue
        if any(_is_one_letter_away(written, name) for name in names) and _problem(pattern, "deny", config, listed()):
            return pattern
    return None


def _is_one_letter_away(written: str, name: str) -> bool:
    """One letter too many or too few, or two changed over; not another one, for `get` is no misspelt `set`.

    Digits count versions, and are no misspelling either.
    """
    if abs(len(written) - len(name)) > 1 or len(written) < _LEAST_CHARACTERS:
        return False
    at = next((i for i, (one, other) in enumerate(zip(written, name, strict=False)) if one != other), -1)
    at = min(len(written), len(name)) if at < 0 else at
    if len(written) == len(name):
        swapped = written[:at] + written[at : at + 2][::-1] + written[at + 2 :]
        return swapped == name and not written[at : at + 2].isdigit()
    longer, shorter = sorted((written, name), key=len, reverse=True)
    return longer[:at] + longer[at + 1 :] == shorter and not longer[at].isdigit()


def allowing_match(patterns: Iterable[str], tool: ToolSpec, servers: Iterable[str]) -> str | None:
    """The first pattern of an `allow` list that means this tool and can mean no other server's."""
    own = {tool.qualified_name, f"mcp:{tool.server}_{tool.name}"}
    own.add(_as_the_server(f"mcp:{tool.short_name}", tool.server))
    of_server = {ALL, *(f"{before}{tool.server}{between}{ALL}" for before, between in _FORMS)}
    for pattern in patterns:
        written = _as_the_server(pattern, tool.server)
        if written in of_server:
            return pattern
        if written in own and not set(_servers_meant(pattern, servers)) - {tool.server}:
            return pattern
    return None


def could_name(written: str, tool: ToolSpec) -> bool:
    """Whether a text that stands for one tool of a server could mean this one: by any spelling, or its name alone."""
    names = {*tool.spellings, identifier(tool.name)}
    return written in names or restricting_match([written, f"mcp:{written}"], tool) is not None


def stray_patterns(config: Config) -> tuple[str, ...]:
    """What to tell of patterns that name no server of a whole configuration, nor could be a plugin's.

    One that has a server's name in another case holds, or is told by `pattern_warnings`.
    """
    known = (*_known_as(config), *config.optional)
    return tuple(
        f"permissions.{level}: {pattern!r} names no server that is configured."
        for permissions in (config.permissions, config.project_permissions)
        for level in LEVELS
        for pattern in getattr(permissions, level)
        if pattern != ALL and not _may_be_of_a_plugin(pattern) and not any(_servers_meant(pattern.lower(), known))
    )


def _may_be_of_a_plugin(pattern: str) -> bool:
    """`mcp__<plugin>__<server>__<tool>`: such a server is there only for a task that wants it."""
    return SEPARATOR in pattern.removeprefix("mcp__").partition(SEPARATOR)[2]


def pattern_warnings(config: Config, catalog: Catalog) -> tuple[str, ...]:
    """What to tell of patterns that match no tool, or allow nothing because they could mean two servers.

    A pattern of a server whose tools have not been listed yet, or that is not among those in use, may still match:
    nothing is said of it.
    """
    warnings: list[str] = []
    for permissions in (config.permissions, config.project_permissions):
        for level in LEVELS:
            for pattern in getattr(permissions, level):
                problem = _problem(pattern, level, config, catalog)
                if problem:
                    warnings.append(f"permissions.{level}: {pattern!r} {problem}")
    return tuple(warnings)


def _problem(pattern: str, level: str, config: Config, catalog: Catalog) -> str:
    if pattern == ALL:
        return ""
    written = pattern if level == "allow" else pattern.lower()
    meant = sorted(set(_servers_meant(written, _known_as(config))))
    if not meant:
        near = sorted(set(_servers_meant(pattern.lower(), _known_as(config))))
        return f"matches nothing: the server is {near[0]!r}, in lower case." if near else ""
    servers = [server.name for server in config.servers.values() if {server.name, server.display_name} & set(meant)]
    if level == "allow" and not pattern.endswith(ALL) and len(servers) > 1:
        write = "mcp__<server>__* for all tools of one" if pattern.startswith("mcp__") else "mcp__<server>__<tool>"
        return f"could mean a tool of {' or of '.join(servers)}, so it allows neither. Write {write}."
    listed = {module.server: module for module in catalog.modules}
    if pattern.endswith(ALL) or any(server not in listed for server in servers):
        return ""
    tools = [tool for server in servers for tool in listed[server].tools]
    if level == "allow":
        matched = any(allowing_match([pattern], tool, config.servers) for tool in tools)
    else:
        matched = any(restricting_match([pattern], tool, _display_name(config, tool)) for tool in tools)
    return "" if matched else "matches no tool."


def _known_as(config: Config) -> Iterator[str]:
    for server in config.servers.values():
        yield server.name
        if server.display_name:
            yield server.display_name


def _display_name(config: Config, tool: ToolSpec) -> str:
    server = config.servers.get(tool.server)
    return server.display_name if server is not None else ""


def _servers_meant(pattern: str, servers: Iterable[str]) -> Iterator[str]:
    """The servers whose tools a pattern can be read as; in lower case, also those whose names are not."""
    for server in servers:
        if pattern.islower() and not server.islower():
            yield from (server for _ in _servers_meant(pattern, [server.lower()]))
            continue
        if _as_the_server(pattern, server).startswith(
            tuple(f"{before}{server}{between}" for before, between in _FORMS)
        ):
            yield server


def _as_the_server(pattern: str, server: str) -> str:
    """A pattern with the server's name as it is, if it has that with `-` for `_` or the reverse."""
    before, between = _FORMS[0] if pattern.startswith(_FORMS[0][0]) else _FORMS[1]
    return with_own_spelling(pattern, before, server, between)


def _names_of(tool: ToolSpec, display_name: str) -> frozenset[str]:
    has = tool.qualified_name, tool.short_name, tool.identifier
    return _every_name(tool.server, tool.name, has, display_name)


@lru_cache(maxsize=4096)
def _every_name(server: str, tool: str, has: tuple[str, str, str], display_name: str) -> frozenset[str]:
    """Each pattern, in lower case, that could mean a tool: by names it has, would have alone, or beside a twin.

    A tool that is listed later may change what guest code calls this one, and must not change what holds for it.
    """
    qualified_name, short_name, called = has
    names = {ALL, qualified_name, f"mcp:{short_name}"}
    for before, between in _FORMS:
        # In the catalog, the short form has no prefix.
        prefix, added = (before, "") if before == "mcp__" else ("", before)
        for hyphens in (True, False):
            called_by = partial(assign_wire_names, [(server, tool)], prefix=prefix, separator=between, hyphens=hyphens)
            (alone,) = called_by().values()
            (beside,) = called_by(taken=[alone]).values()
            names |= {added + alone, added + beside}
        for name in (server, display_name):
            if name:
                names |= {f"{before}{name}{between}{each}" for each in (tool, called, identifier(tool), ALL)}
    return frozenset(_as_the_server(name.lower(), server.lower()) for name in names)
