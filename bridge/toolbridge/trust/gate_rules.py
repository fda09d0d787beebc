"""SECURITY: what the configuration says of a tool: allow, ask or deny, by `(server, tool)` alone (T21).

Arguments are not even passed in here. A server's annotations can raise the level of its own tool from allow to ask;
they are not looked at for anything else, but for "unattended": "reads", by which an operator relies on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from toolbridge.config.config import Config
from toolbridge.config.permissions import LEVELS, Level, Permissions
from toolbridge.trust.gate_patterns import allowing_match, near_miss, restricting_match
from toolbridge_codegen.catalog import Catalog, ToolSpec


@dataclass(frozen=True, slots=True)
class Verdict:
    """A level, and what to say about it."""

    level: Level
    rule: str = "default"
    reason: str = ""
    way_out: str = ""
    """What would allow the call."""
    only_if_asked: bool = False
    """An `ask` that stands for allow where nobody can be asked."""


DEFAULT = Verdict("allow")


def permission_verdict(config: Config, tool: ToolSpec, listed: Callable[[], Catalog] | None = None) -> Verdict:
    """The strictest of what the user's file, the project's file and the tool's annotations say.

    With `listed`, all that servers list, a misspelt `deny` of this tool counts as well.
    """
    own = _judged(config.permissions, tool, config, "", listed)
    project = _judged(config.project_permissions, tool, config, " of the project's file", listed)
    verdicts = [DEFAULT if own is None else own]
    if project is not None:
        verdicts.append(project)
    if own is None or own.level != "allow":  # a person's own `allow` has an answer to what a server says of its tool
        verdicts.append(_annotated(tool))
    return max(verdicts, key=lambda verdict: LEVELS.index(verdict.level))  # of equals, the first


def _judged(
    permissions: Permissions, tool: ToolSpec, config: Config, of_whom: str, listed: Callable[[], Catalog] | None
) -> Verdict | None:
    """What one file says; None if nothing."""
    name = tool.qualified_name
    server = config.servers.get(tool.server)
    display_name = server.display_name if server is not None else ""
    restricting: tuple[tuple[Level, tuple[str, ...]], ...] = (("deny", permissions.deny), ("ask", permissions.ask))
    for level, patterns in restricting:
        pattern = restricting_match(patterns, tool, display_name)
        if pattern is not None:
            where = f"the pattern {pattern!r} under permissions.{level}{of_whom}"
            verb = "is denied by" if level == "deny" else "has to be asked about:"
            return Verdict(level, f"{level} {pattern}", f"{name} {verb} {where}", f"remove {where}")
    missed = None if listed is None else near_miss(permissions.deny, tool, config, listed)
    if missed is not None:
        where = f"the pattern {missed!r} under permissions.deny{of_whom}"
        reason = f"{name} is denied: {where} matches no tool, and is one letter away from this one"
        return Verdict("deny", f"deny {missed}", reason, f"write {name!r} there if it is meant, else remove it")
    if tool.server not in permissions.allow_except:
        pattern = allowing_match(permissions.allow, tool, config.servers)
        if pattern is not None:
            return Verdict("allow", f"allow {pattern}")
    if permissions.default == "allow":
        return None
    where = f"permissions.default{of_whom}, which is {permissions.default!r}"
    verb = "is denied by" if permissions.default == "deny" else "has to be asked about:"
    way_out = f"add {name!r} to permissions.allow{of_whom}"
    return Verdict(permissions.default, f"default {permissions.default}", f"{name} {verb} {where}", way_out)


def _annotated(tool: ToolSpec) -> Verdict:
    """Hints count only where they say yes in so many words, and only for more caution."""
    hints = annotations_of(tool.definition.annotations)
    name = tool.qualified_name
    if hints.get("destructiveHint") is True:
        return Verdict("ask", "destructive", f"{name} may destroy something, its server says", only_if_asked=True)
    if hints.get("openWorldHint") is True and hints.get("readOnlyHint") is not True:
        reason = f"{name} may change something in the open world, its server says"
        return Verdict("ask", "open world", reason, only_if_asked=True)
    return DEFAULT


def unattended_verdict(config: Config, tool: ToolSpec, permission: Verdict) -> Verdict:
    """What holds besides where nobody can be asked. Only the user's own `allow`, or a pinned hint, gets a call through.

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
    return Verdict("deny", f"unattended {config.unattended}", reason)


def annotations_of(annotations: object) -> Mapping[str, Any]:
    """A tool's annotations, whatever its server sent in their place."""
    return cast("Mapping[str, Any]", annotations) if isinstance(annotations, Mapping) else {}
