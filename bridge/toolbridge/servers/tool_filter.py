"""Which of a server's tools its `allowTools` and `denyTools` let through, in whichever spelling a tool is named.

A tool is `list_issues`, `mcp__github__list_issues`, `github_list_issues` or `mcp:github_list_issues`, and
`mcp__github__*` is all of them; entries add up. An original name means the tool that has it. Of other spellings, one
under `denyTools` means every tool that it could mean.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from toolbridge_codegen.catalog import ToolDefinition
from toolbridge_codegen.names import assign_identifiers, assign_wire_names

_FORMS = (("mcp__", "__"), ("mcp:", "_"), ("", "_"))
"""What stands before the server and before the tool."""


class ToolNames:
    """The names that the tools of one server go by."""

    def __init__(self, server: str, originals: Sequence[str]) -> None:
        self._originals = frozenset(originals)
        self._all = frozenset(f"{before}{server}{between}*" for before, between in _FORMS if before)
        self._other: dict[str, set[str]] = {}
        for original, identifier in assign_identifiers(originals).items():
            for spelling in {identifier, *_wire_spellings(server, original)}:
                self._other.setdefault(spelling, set()).add(original)

    def meant(self, entry: str) -> frozenset[str]:
        """The original names of the tools that an entry means: none, one, or all of them."""
        if entry in self._originals:
            return frozenset({entry})
        found = self._other.get(entry, set())
        return self._originals if entry in self._all else frozenset(found) if len(found) == 1 else frozenset()

    def possible(self, entry: str) -> frozenset[str]:
        """Every tool that an entry could mean."""
        own = {entry} & self._originals
        return self._originals if entry in self._all else frozenset(own | self._other.get(entry, set()))


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


def _wire_spellings(server: str, original: str) -> set[str]:
    spellings: set[str] = set()
    for before, between in _FORMS:
        spellings.add(f"{before}{server}{between}{original}")
        # As the catalog writes it, where that differs: without the characters that model providers refuse.
        prefix, added = (before, "") if before != "mcp:" else ("", before)
        (wire,) = assign_wire_names([(server, original)], prefix=prefix, separator=between).values()
        spellings.add(added + wire)
    return spellings


def _union(parts: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*parts)
