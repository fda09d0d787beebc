"""SECURITY: what a server without pins lists: all of it that models would read, and what the audit finds in it.

The whole of it is judged, not the tools alone: a model is given the server's instructions as well (T12, T14).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from toolbridge.config.server_config import ServerConfig
from toolbridge.trust.admission import Withheld
from toolbridge.trust.lock_text import checked_pin, size_problem
from toolbridge.trust.pinned_tool import UnpinnableError
from toolbridge_codegen.catalog import ToolDefinition

if TYPE_CHECKING:
    from toolbridge.trust.audit import Finding


@dataclass(frozen=True)
class FirstListing:
    """What a server lists, for whoever decides whether it is pinned."""

    server: ServerConfig
    tools: tuple[ToolDefinition, ...]
    instructions: str = ""
    other_tools: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])
    """The names of the tools of the other servers, by server: a text that speaks of them is found."""
    about: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the server says of itself beside its instructions, by place: audited, never pinned."""

    @property
    def live(self) -> bool:
        """The server has just said so."""
        return True

    @cached_property
    def unpinnable(self) -> Mapping[str, str]:
        """Tools that are not pinned whatever anybody says, by name, with the reason: no model is given them."""
        problems: dict[str, str] = {}
        for tool in self.tools:
            try:
                checked_pin(tool)
            except UnpinnableError as error:
                problems[tool.name] = str(error)
        return problems

    @cached_property
    def readable_instructions(self) -> str:
        """The instructions, unless they are too long to be pinned."""
        return "" if size_problem(self.instructions) else self.instructions

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What the audit finds in what can be pinned, the gravest first.

        The rest is not used, and must not take up the time that its neighbours have to be read in.
        """
        from toolbridge.trust.audit import audit  # its rules are compiled for those who need them

        tools = tuple(tool for tool in self.tools if tool.name not in self.unpinnable)
        return audit(self.server.name, tools, self.readable_instructions, self.other_tools, self.about)

    @cached_property
    def withheld(self) -> tuple[Withheld, ...]:
        """What is not pinned unless somebody sees it: what has a high finding, and what the audit did not read."""
        from toolbridge.trust.audit import INCOMPLETE, at_least

        rules: dict[str | None, list[str]] = {}
        findings = [finding for finding in self.findings if finding.place not in self.about]  # that isn't pinned
        for finding in at_least(findings, "high"):
            found = rules.setdefault(finding.tool, [])
            if finding.rule not in found:
                found.append(finding.rule)
        names = [None, *(tool.name for tool in self.tools)]
        unread = next((each.tool for each in findings if each.rule == INCOMPLETE.id), None)
        if any(each.rule == INCOMPLETE.id for each in findings):
            for name in names[names.index(unread) :]:
                found = rules.setdefault(name, [])
                if INCOMPLETE.id not in found:
                    found.append(INCOMPLETE.id)
        return tuple(Withheld(name, tuple(rules[name])) for name in dict.fromkeys(names) if name in rules)

    def only(self, names: Collection[str | None]) -> FirstListing:
        """These tools, and for None the instructions."""
        return FirstListing(
            self.server,
            tuple(tool for tool in self.tools if tool.name in names),
            self.instructions if None in names else "",
            self.other_tools,
            self.about,
        )

    def without(self, withheld: Collection[Withheld]) -> FirstListing:
        """What is left to be pinned."""
        names = {each.tool for each in withheld}
        return self.only({None, *(tool.name for tool in self.tools)} - names)
