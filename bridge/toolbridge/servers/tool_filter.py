"""Which of a server's tools its `allowTools` and `denyTools` let through, in whichever spelling a tool is named.

A tool is `list_issues`, `mcp__github__list_issues`, `github_list_issues` or `mcp:github_list_issues`, and
`mcp__github__*` is all of them; entries add up. Where guest code calls a tool by another name (`del_it` for `del-it`),
that will do in its place; so will `-` for `_`, and the reverse, in the server's name. An original name means the tool
that has it. Of other spellings, one under `denyTools` means every tool that it could mean, whatever else is listed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from toolbridge.config.names import with_own_spelling
from toolbridge_codegen.catalog import ToolDefinition
from toolbridge_codegen.names import assign_identifiers, assign_wire_names, identifier

_FORMS = (("mcp__", "__"), ("mcp:", "_"), ("", "_"))
"""What stands before the server and before the tool."""
_Value = TypeVar("_Value")


class ToolNames:
    """The names that the tools of one server go by."""

    def __init__(self, server: str, originals: Sequence[str]) -> None:
        self._server = server
        self._originals = frozenset(originals)
        self._all = frozenset(f"{before}{server}{between}*" for before, between in _FORMS if before)
        self._other: dict[str, set[str]] = {}
        self._alone: dict[str, set[str]] = {}
        """By what a tool would be called in guest code if no other were listed: a new one must not take a deny away."""
        short = _short_names(server, originals)
        for original, assigned in assign_identifiers(originals).items():
            wire = {*_wire_spellings(server, original), *_with_prefix(short[original])}
            for spelling in {*_own_spellings(server, assigned), *wire}:
                self._other.setdefault(spelling, set()).add(original)
            alone = _with_prefix(_short_names(server, [original])[original])
            for spelling in {*_own_spellings(server, identifier(original)), *alone}:
                self._alone.setdefault(spelling, set()).add(original)

    def meant(self, entry: str) -> frozenset[str]:
        """The original names of the tools that an entry means: none, one, or all of them."""
        if entry in self._originals:
            return frozenset({entry})
        written = self._spellings(entry)
        if not written.isdisjoint(self._all):
            return self._originals
        found = _union(frozenset(self._other.get(each, ())) for each in written)
        return found if len(found) == 1 else frozenset()

    def possible(self, entry: str) -> frozenset[str]:
        """Every tool that an entry could mean; in another case of its letters only where it means none otherwise."""
        written = self._spellings(entry)
        lower = {each.lower() for each in written}
        if not lower.isdisjoint(self._all):
            return self._originals
        named = (frozenset(names.get(each, ())) for names in (self._other, self._alone) for each in written)
        found = _union(named) | ({entry} & self._originals)
        of_other_case = (
            tools for names in (self._other, self._alone) for each, tools in names.items() if each.lower() in lower
        )
        return found or _union(frozenset(tools) for tools in of_other_case)

    def _spellings(self, entry: str) -> frozenset[str]:
        """An entry as it is, and with its server's name as the server has it."""
        return frozenset({entry, *(with_own_spelling(entry, each[0], self._server, each[1]) for each in _FORMS)})


def exposed_tools(
    server: str, tools: tuple[ToolDefinition, ...], allow: tuple[str, ...] | None, deny: tuple[str, ...]
) -> tuple[ToolDefinition, ...]:
    """The tools that a configuration lets through: allow, minus deny."""
    if allow is None and not deny:
        return tools
    names = ToolNames(server, [tool.name for tool in tools])
    allowed = _union(names.meant(entry) for entry in allow or ())
    denied = _union(names.possible(entry) for entry in deny)
    return tuple(tool for tool in tools if (allow is None or tool.name in allowed) and tool.name not in denied)


def unmatched_names(
    server: str, tools: tuple[ToolDefinition, ...], allow: tuple[str, ...] | None, deny: tuple[str, ...]
) -> tuple[str, ...]:
    """Entries of allowTools and denyTools that name no tool: most often a misspelling."""
    if not allow and not deny:
        return ()
    names = ToolNames(server, [tool.name for tool in tools])
    missing = [entry for entry in allow or () if not names.meant(entry)]
    return tuple(dict.fromkeys([*missing, *(entry for entry in deny if not names.possible(entry))]))


def original_names(server: str, originals: Sequence[str], written: Collection[str]) -> set[str]:
    """The original names for names in any spelling; one that means no tool stays as it is."""
    names = ToolNames(server, originals)
    return set[str]().union(*(names.meant(each) or {each} for each in written))


def by_original_name(
    server: str, tools: tuple[ToolDefinition, ...], written: Mapping[str, _Value]
) -> Mapping[str, _Value]:
    """Values by tools in any spelling, by their original names; one that means no tool stays as it is.

    What is said of a tool by its original name holds over what is said of it by another.
    """
    if not written:
        return written
    names = ToolNames(server, [tool.name for tool in tools])
    found: dict[str, _Value] = {}
    for entry, value in sorted(written.items(), key=lambda item: item[0] in names.meant(item[0])):
        meant = names.meant(entry)
        found[entry if entry.endswith("*") or not meant else min(meant)] = value
    return found


def _own_spellings(server: str, name: str) -> set[str]:
    return {name, *(f"{before}{server}{between}{name}" for before, between in _FORMS)}


def _wire_spellings(server: str, original: str) -> set[str]:
    spellings: set[str] = set()
    for before, between in _FORMS:
        spellings.add(f"{before}{server}{between}{original}")
        # As the catalog writes it, where that differs: without the characters that model providers refuse.
        prefix, added = (before, "") if before != "mcp:" else ("", before)
        (wire,) = assign_wire_names([(server, original)], prefix=prefix, separator=between).values()
        spellings.add(added + wire)
    return spellings


def _short_names(server: str, originals: Sequence[str]) -> dict[str, str]:
    """As the catalog has them."""
    identities = [(server, original) for original in originals]
    short = assign_wire_names(identities, prefix="", separator="_", hyphens=False)
    return {original: name for (_, original), name in short.items()}


def _with_prefix(short: str) -> tuple[str, str]:
    return short, f"mcp:{short}"


def _union(parts: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*parts)
