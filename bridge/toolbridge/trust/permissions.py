"""SECURITY: permissions: the patterns and labels of a configuration, applied to a tool by `(server, tool)` (T13, T21).

`git_hub_delete` may be `delete` of `git_hub` or `hub_delete` of `git`, and another server's new tool can change a
tool's name in the catalog. So a restricting pattern matches every tool that it could mean, by every name the tool has
or could get, in guest code as well, in upper or lower case; an allowing pattern matches by the catalog's own name only,
and only where it can mean no other server. `-` and `_` are the same in a server's name: no two servers differ by that.
Arguments of a call are not even passed in here. Annotations of a server can only raise the level of its own tool from
allow to ask; one other use is "unattended": "reads", by which an operator relies on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, cast

from toolbridge.config.config import Config
from toolbridge.config.policy import LABELS, LEVELS, Level, Permissions
from toolbridge.config.values import SEPARATOR, with_spelling_of
from toolbridge_codegen.catalog import Catalog, ServerListing, ToolSpec, assign_wire_names, identifier

ALL = "*"
_LEAST_CHARACTERS = len("mcp:s_abcd")
_FORMS = (("mcp__", "__"), ("mcp:", "_"))
"""The text before the server and before the tool in the two forms of a pattern."""


def restricting_match(patterns: Iterable[str], tool: ToolSpec, display_name: str = "") -> str | None:
    """Returns the first pattern of an `ask` or `deny` list that could mean this tool, ignoring case; else None."""
    names = _names_of(tool, display_name)
    return next(
        (pattern for pattern in patterns if _as_the_server(pattern.lower(), tool.server.lower()) in names), None
    )


def near_miss(patterns: Iterable[str], tool: ToolSpec, config: Config, listed: Callable[[], Catalog]) -> str | None:
    """Returns the first pattern that matches no tool and is one letter off this one, a misspelt `deny`; else None."""
    names = _names_of(tool, _display_name(config, tool))
    for pattern in patterns:
        written = _as_the_server(pattern.lower(), tool.server.lower())
        if pattern.endswith(ALL) or set(_servers_meant(pattern.lower(), _known_as(config))) - {tool.server}:
            continue
        if any(_is_one_letter_away(written, name) for name in names) and _problem(pattern, "deny", config, listed()):
            return pattern
    return None


def _is_one_letter_away(written: str, name: str) -> bool:
    """Whether one letter is added, missing or swapped. A replaced letter or a digit is no misspelling (`get`, `v2`)."""
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
    """Returns the first pattern of an `allow` list that means this tool and can mean no other server's; else None."""
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
    """Whether a label's tool name could mean this tool: by any spelling, or by its name alone."""
    names = {*tool.spellings, identifier(tool.name)}
    return written in names or restricting_match([written, f"mcp:{written}"], tool) is not None


def stray_patterns(config: Config) -> tuple[str, ...]:
    """Returns warnings of patterns that name no configured server, nor could name a plugin's.

    For a server's name in the wrong case see `pattern_warnings`.
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
    """Whether it is `mcp__<plugin>__<server>__<tool>`: such a server exists only in tasks that enable it."""
    return SEPARATOR in pattern.removeprefix("mcp__").partition(SEPARATOR)[2]


def pattern_warnings(config: Config, catalog: Catalog) -> tuple[str, ...]:
    """Returns warnings of patterns that match no tool, or allow nothing because they could mean two servers.

    A pattern of a server whose tools are not listed yet may still match: no warning.
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
    """Says why a pattern matches no tool, or allows none since it is ambiguous; empty if it may match."""
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
    """Yields the name and, if there is one, the display name of each server."""
    for server in config.servers.values():
        yield server.name
        if server.display_name:
            yield server.display_name


def _display_name(config: Config, tool: ToolSpec) -> str:
    server = config.servers.get(tool.server)
    return server.display_name if server is not None else ""


def _servers_meant(pattern: str, servers: Iterable[str]) -> Iterator[str]:
    """Yields the servers whose tools a pattern can mean; a pattern in lower case means those in upper case too."""
    for server in servers:
        if pattern.islower() and not server.islower():
            yield from (server for _ in _servers_meant(pattern, [server.lower()]))
            continue
        if _as_the_server(pattern, server).startswith(
            tuple(f"{before}{server}{between}" for before, between in _FORMS)
        ):
            yield server


def _as_the_server(pattern: str, server: str) -> str:
    """Returns the pattern with the server's own spelling of `-` and `_`."""
    before, between = _FORMS[0] if pattern.startswith(_FORMS[0][0]) else _FORMS[1]
    return with_spelling_of(pattern, before, server, between)


def _names_of(tool: ToolSpec, display_name: str) -> frozenset[str]:
    has = tool.qualified_name, tool.short_name, tool.identifier
    return _every_name(tool.server, tool.name, has, display_name)


@lru_cache(maxsize=4096)
def _every_name(server: str, tool: str, has: tuple[str, str, str], display_name: str) -> frozenset[str]:
    """Returns each pattern, in lower case, that could mean a tool: by names it has, would have alone, or beside a twin.

    A tool that is listed later may rename this one for guest code, and must not change its permissions.
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


def has_patterns(config: Config) -> bool:
    """Whether a configuration has any patterns."""
    return any(getattr(each, level) for each in (config.permissions, config.project_permissions) for level in LEVELS)


@dataclass(frozen=True, slots=True)
class Ruling:
    """A level with its rule and its reason."""

    level: Level
    rule: str = "default"
    reason: str = ""
    way_out: str = ""
    """The change that would allow the call."""
    only_if_asked: bool = False
    """Whether an `ask` means allow where no person can be asked."""


DEFAULT = Ruling("allow")


def permission_verdict(config: Config, tool: ToolSpec, listed: Callable[[], Catalog] | None = None) -> Ruling:
    """Returns the strictest verdict of the user's file, the project's file and the tool's annotations.

    With `listed`, the catalog of all tools, a misspelt `deny` of this tool counts as well.
    """
    own = _file_verdict(config.permissions, tool, config, "", listed)
    project = _file_verdict(config.project_permissions, tool, config, " of the project's file", listed)
    verdicts = [DEFAULT if own is None else own]
    if project is not None:
        verdicts.append(project)
    if own is None or own.level != "allow":  # a user's own `allow` outranks annotations
        verdicts.append(_annotated(tool))
    return max(verdicts, key=lambda verdict: LEVELS.index(verdict.level))  # of equals, the first


def _file_verdict(
    permissions: Permissions, tool: ToolSpec, config: Config, whose: str, listed: Callable[[], Catalog] | None
) -> Ruling | None:
    """Returns the verdict of one file (`whose`); None if no pattern matches and its default is "allow"."""
    name = tool.qualified_name
    server = config.servers.get(tool.server)
    display_name = server.display_name if server is not None else ""
    restricting: tuple[tuple[Level, tuple[str, ...]], ...] = (("deny", permissions.deny), ("ask", permissions.ask))
    for level, patterns in restricting:
        pattern = restricting_match(patterns, tool, display_name)
        if pattern is not None:
            where = f"the pattern {pattern!r} under permissions.{level}{whose}"
            verb = "is denied by" if level == "deny" else "has to be asked about:"
            return Ruling(level, f"{level} {pattern}", f"{name} {verb} {where}", f"remove {where}")
    missed = None if listed is None else near_miss(permissions.deny, tool, config, listed)
    if missed is not None:
        where = f"the pattern {missed!r} under permissions.deny{whose}"
        reason = f"{name} is denied: {where} matches no tool, and is one letter away from this one"
        return Ruling("deny", f"deny {missed}", reason, f"write {name!r} there if it is meant, else remove it")
    if tool.server not in permissions.allow_except:
        pattern = allowing_match(permissions.allow, tool, config.servers)
        if pattern is not None:
            return Ruling("allow", f"allow {pattern}")
    if permissions.default == "allow":
        return None
    where = f"permissions.default{whose}, which is {permissions.default!r}"
    verb = "is denied by" if permissions.default == "deny" else "has to be asked about:"
    way_out = f"add {name!r} to permissions.allow{whose}"
    return Ruling(permissions.default, f"default {permissions.default}", f"{name} {verb} {where}", way_out)


def _annotated(tool: ToolSpec) -> Ruling:
    """Returns the verdict of the tool's hints, which only ever ask for more caution."""
    hints = annotations_of(tool.definition.annotations)
    name = tool.qualified_name
    if hints.get("destructiveHint") is True:
        return Ruling("ask", "destructive", f"{name} may destroy something, its server says", only_if_asked=True)
    if hints.get("openWorldHint") is True and hints.get("readOnlyHint") is not True:
        reason = f"{name} may change something in the open world, its server says"
        return Ruling("ask", "open world", reason, only_if_asked=True)
    return DEFAULT


def unattended_verdict(config: Config, tool: ToolSpec, permission: Ruling) -> Ruling:
    """Returns the verdict where no person can be asked: only the user's `allow`, or a pinned hint, lets a call pass.

    A hint lifts nothing but this restriction: with "reads" a server gets no call that "allow" would not have made.
    """
    if config.unattended == "allow" or permission.rule.startswith("allow "):
        return DEFAULT
    hints = annotations_of(tool.definition.annotations)
    only_reads = hints.get("readOnlyHint") is True and hints.get("destructiveHint") is not True
    if config.unattended == "reads" and only_reads:
        return DEFAULT
    name, why = tool.qualified_name, f"nobody can be asked about it, and 'unattended' is {config.unattended!r}"
    detail = "; its server does not say that it only reads" if config.unattended == "reads" else ""
    reason = f"{name} is refused: {why}{detail}. Add {name!r} to permissions.allow of the user's file to allow it"
    return Ruling("deny", f"unattended {config.unattended}", reason)


def annotations_of(annotations: object) -> Mapping[str, Any]:
    """A tool's annotations; empty if they are no object."""
    return cast("Mapping[str, Any]", annotations) if isinstance(annotations, Mapping) else {}


def labels_of(config: Config, tool: ToolSpec) -> frozenset[str]:
    """Returns the labels of a tool: its server's and its own; none for an unknown server. For flow rules (T22)."""
    server = config.servers.get(tool.server)
    if server is None:
        return frozenset()
    pairs = [entry.partition(":") for entry in server.labels]
    return frozenset(label for label, colon, name in pairs if not colon or could_name(name, tool))


def server_labels(config: Config, server: str) -> frozenset[str]:
    """Returns all labels of a server and its tools: those of text that came with no call."""
    configured = config.servers.get(server)
    return frozenset() if configured is None else frozenset(entry.partition(":")[0] for entry in configured.labels)


def label_warnings(config: Config, catalog: Catalog) -> tuple[str, ...]:
    """Returns warnings of labels for tools that their server doesn't list: a misspelt label protects nothing."""
    listed = {module.server: module.tools for module in catalog.modules}
    return tuple(
        f"server {server.name!r}: the label {entry!r} is of a tool that it does not have."
        for server in config.servers.values()
        if server.name in listed
        for entry in server.labels
        if ":" in entry and not any(could_name(entry.partition(":")[2], tool) for tool in listed[server.name])
    )


@dataclass(frozen=True, slots=True)
class SuggestedLabel:
    """A label that annotations of a server's tools suggest."""

    label: str
    tools: tuple[str, ...]
    """Original names of the tools that suggest it."""


def suggested_labels(listing: ServerListing) -> tuple[SuggestedLabel, ...]:
    """Suggests labels for a person to consider, never applied: a hostile server's annotations may be false."""
    speaking: dict[str, list[str]] = {label: [] for label in LABELS}
    for tool in listing.tools:
        hints = annotations_of(tool.annotations)
        if hints.get("openWorldHint") is False:
            speaking["private"].append(tool.name)
        if hints.get("openWorldHint") is True:
            speaking["untrusted"].append(tool.name)
            if hints.get("readOnlyHint") is not True:
                speaking["external"].append(tool.name)
    return tuple(SuggestedLabel(label, tuple(tools)) for label, tools in speaking.items() if tools)
