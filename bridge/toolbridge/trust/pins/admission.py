"""SECURITY: admission of listed tools: exactly as pinned, and accepted by this user, or blocked (T11)."""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from toolbridge.config.server_config import ServerConfig
from toolbridge.errors import advised
from toolbridge.trust.pins.decisions import Decisions, instructions_digest
from toolbridge.trust.pins.definition import (
    PinnedTool,
    UnpinnableError,
    canonical_text,
    changed_fields,
    diff_text,
    field_changes,
    pin_of,
    text_diff,
)
from toolbridge.trust.pins.lock_file import PinnedServer, checked_pin, size_problem
from toolbridge.trust.sanitise import for_error
from toolbridge_codegen.catalog import ToolDefinition, one_per_name

if TYPE_CHECKING:
    from toolbridge.trust.audit.detector import Finding


WhyBlocked: TypeAlias = Literal["new", "changed", "unseen", "refused", "unpinnable", "unchecked"]
"""`unseen`: as pinned, but not accepted by this user; `refused`: by this user; `unpinnable`: no exact form in JSON, or
too long; `unchecked`: its pin can't be read."""

_MOST_NAMED = 10
_IN_PROGRAM = "see it and accept it in the program that configures this server, with `accept_tools`"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class ListingLike(Protocol):
    """A server's listing."""

    @property
    def tools(self) -> tuple[ToolDefinition, ...]:
        """Its tools."""
        ...

    @property
    def instructions(self) -> str:
        """Its text for models."""
        ...

    @property
    def about(self) -> Mapping[str, str]:
        """Further text about itself, by place: audited, not pinned, not for models."""
        ...

    @property
    def live(self) -> bool:
        """Whether the server has just sent it; a listing cached on disk is not live."""
        ...


@dataclass(frozen=True)
class BlockedTool:
    """A listed tool that may not be used; its differences are computed on demand."""

    name: str
    why: WhyBlocked
    pinned: PinnedTool | None = None
    listed: PinnedTool | None = None
    problem: str = ""
    """Why it is unpinnable or unchecked."""
    was_refused: bool = False
    """Whether this user refused exactly this definition."""

    @cached_property
    def changed_fields(self) -> str:
        """Names the changed fields, without any text of the server: `description and inputSchema`."""
        return changed_fields(field_changes(self.pinned, self.listed))

    @cached_property
    def diff(self) -> str:
        """The difference for people, as `diff_text` shows it; or why there is none."""
        return self.problem or diff_text(field_changes(self.pinned, self.listed))


@dataclass(frozen=True, slots=True)
class Withheld:
    """A definition with a high finding of the audit, accepted by no person."""

    tool: str | None
    """The tool's name; None for the server's instructions."""
    rules: tuple[str, ...]
    """The rules of its findings."""


@dataclass(frozen=True, slots=True)
class Admission:
    """The usable and the blocked parts of a listing."""

    tools: tuple[ToolDefinition, ...] = ()
    """The usable tools, in the order of the listing."""
    blocked: tuple[BlockedTool, ...] = ()
    removed: tuple[str, ...] = ()
    """Names of pinned tools that are not listed any more."""
    instructions: str = ""
    """The instructions if usable; else empty."""
    instructions_diff: str = ""
    """The difference in the instructions; empty if none."""
    instructions_problem: str = ""
    """Why the instructions are unpinnable; else empty."""
    is_pinned: bool = True
    """Whether the server has pins; if not, every tool is new."""
    problem: str = ""
    """Why no tool of this server can be admitted; else empty."""
    withheld: tuple[Withheld, ...] = ()
    """New tools, and the instructions, with high findings: not pinned unseen."""
    unseen: tuple[str, ...] = ()
    """Names of usable tools that passed the audit, and that this user has not seen."""
    refused_instructions: bool = False
    """Whether this user refused the instructions."""
    pending: tuple[str | None, ...] = ()
    """Tools, and None for the instructions, that wait only for this user's decision."""
    is_of_program: bool = False
    """Whether a program configured the server: then no command can accept its tools, only the program."""

    @property
    def is_as_pinned(self) -> bool:
        """Whether the listing is exactly as pinned, accepted by this user or not."""
        differs = any(tool.why not in ("unseen", "refused") for tool in self.blocked)
        return self.is_pinned and not (differs or self.removed or self.instructions_diff or self.problem)

    @property
    def needs_person(self) -> bool:
        """Whether this user has not accepted any part of the listing."""
        return bool(self.unseen or self.pending or any(tool.why in ("unseen", "refused") for tool in self.blocked))

    @property
    def different(self) -> set[str | None]:
        """Names of blocked tools, and None for changed instructions."""
        return {*(tool.name for tool in self.blocked), *((None,) if self.instructions_diff else ())}

    @property
    def can_be_accepted(self) -> bool:
        """Whether any difference can be accepted: unpinnable definitions can't."""
        instructions = self.instructions_diff and not self.instructions_problem
        return bool(any(tool.why != "unpinnable" for tool in self.blocked) or self.removed or instructions)

    def find_blocked(self, name: str) -> BlockedTool | None:
        """Returns the blocked tool of this name, or None; if no tool can be admitted, every name is blocked."""
        if self.problem:
            return BlockedTool(name, "unchecked", problem=self.problem)
        return next((tool for tool in self.blocked if tool.name == name), None)

    def problems(self, server: str, exposed: Container[str]) -> tuple[str, ...]:
        """Describes for people what is blocked or left out, one line each; of the server's text only names.

        Tools that are not in `exposed` are left out, except removed ones; `server` is the name for advised commands.
        """
        if self.problem:
            return (self.problem,)
        of_program = self.is_of_program
        accept = what_to_run(server, of_program=of_program)
        shows = _IN_PROGRAM if of_program else f"{how_to_see(server)} shows it, and asks"
        blocked = [tool for tool in self.blocked if tool.name in exposed]
        unpinnable = [tool for tool in blocked if tool.why == "unpinnable"]
        lines = [f"tool {_shown(tool.name)} can't be pinned and is blocked: it {tool.problem}" for tool in unpinnable]
        changed = [tool for tool in blocked if tool.why == "changed"]
        lines += [
            f"tool {_shown(tool.name)} changed since it was pinned ({tool.changed_fields}) and is blocked: "
            f"{what_to_run(server, tool.name, of_program=of_program)}"
            for tool in changed[:_MOST_NAMED]
        ]
        if len(changed) > _MOST_NAMED:
            more = len(changed) - _MOST_NAMED
            lines.append(f"{more} more tools changed and are blocked: {accept}")
        lines += [
            f"tool {_shown(each.tool)} is not accepted and hidden: the audit found {', '.join(each.rules)} in it, and "
            f"nobody has seen it; {shows}"
            for each in self.withheld
            if each.tool is not None and each.tool in exposed
        ]
        kept_back = {each.tool for each in self.withheld}
        undecided = {"refused": "refused by you and hidden", "unseen": "pinned, but not accepted by you, and hidden"}
        for why, words in undecided.items():
            names = [tool.name for tool in blocked if tool.why == why and tool.name not in kept_back]
            lines += [f"{_counted(names)} {words} ({_names(names)}): {shows}"] if names else []
        new = [tool.name for tool in blocked if tool.why == "new" and tool.name not in kept_back]
        if new and not self.is_pinned:
            run = _IN_PROGRAM if of_program else f"run {advised(f'lock {server}')}"
            lines.append(f"its {_counted(new)} not pinned and hidden: {run}")
        elif new:
            lines.append(f"{_counted(new, 'new ')} hidden until accepted ({_names(new)}): {accept}")
        if self.removed:
            lines.append(f"{_counted(self.removed)} pinned and not listed any more ({_names(self.removed)})")
        if self.instructions_problem:
            lines.append(f"its instructions can't be pinned and are left out: the text {self.instructions_problem}")
            return tuple(lines)
        for each in self.withheld:
            if each.tool is None:
                found = f"the audit found {', '.join(each.rules)} in them, and nobody has seen them"
                lines.append(f"its instructions are not accepted and left out: {found}; {shows}")
        waits = None in self.pending and self.is_pinned and None not in kept_back
        if waits or (self.refused_instructions and not self.instructions_diff):
            lines.append(f"its instructions are {'not accepted' if waits else 'refused'} by you and left out: {shows}")
        if self.instructions_diff and self.is_pinned and None not in kept_back:
            lines.append(f"its instructions changed since they were pinned and are left out: {accept}")
        return tuple(lines)


def admit(
    pinned: PinnedServer | None, listing: ListingLike, decisions: Decisions, *, trusted: bool = False
) -> Admission:
    """Compares a listing with the pins of its server and with this user's decisions; reads and writes no file.

    A tool is admitted if it is as pinned, and was accepted or passed the audit; pins alone accept no tool unless they
    are `trusted`. Without pins the decisions are enough. The time grows with the listing, which may have megabytes.
    """
    known = pinned or PinnedServer({})
    is_pinned = pinned is not None
    trusted = trusted and is_pinned
    tools: list[ToolDefinition] = []
    blocked: list[BlockedTool] = []
    unseen: list[str] = []
    pending: list[str | None] = []
    listed_names: set[str] = set()
    for tool in one_per_name(listing.tools):
        listed_names.add(canonical_text(tool.name))
        try:
            listed = pin_of(tool)
        except UnpinnableError as error:
            blocked.append(BlockedTool(tool.name, "unpinnable", problem=str(error)))
            continue
        pin = known.tools.get(listed.name)
        problem = "" if pin is not None and pin.digest == listed.digest else size_problem(dict(listed.fields))
        decision = decisions.of(listed.digest)
        refused = decision == "refused"
        if problem:
            blocked.append(BlockedTool(tool.name, "unpinnable", problem=problem))
        elif pin is None and is_pinned:
            blocked.append(BlockedTool(tool.name, "new", None, listed, was_refused=refused))
        elif pin is not None and pin.digest != listed.digest:
            blocked.append(BlockedTool(tool.name, "changed", pin, listed, was_refused=refused))
        elif refused:
            blocked.append(BlockedTool(tool.name, "refused", None, listed, was_refused=True))
        elif decision is None and not trusted:
            blocked.append(BlockedTool(tool.name, "unseen" if is_pinned else "new", None, listed))
            pending.append(tool.name)
        else:
            tools.append(tool)
            unseen += [] if decision == "accepted" or trusted else [tool.name]
    instructions = canonical_text(listing.instructions)
    is_same = instructions == known.instructions or not is_pinned
    problem = "" if is_pinned and is_same else size_problem(instructions)
    decision = decisions.of(instructions_digest(instructions)) if instructions else "accepted"
    if is_same and decision is None and not trusted and not problem:
        pending.append(None)
    is_read = is_same and not problem and (decision in ("accepted", "audited") or (trusted and decision != "refused"))
    is_different = problem or (instructions and not is_read and not is_pinned) or not is_same
    return Admission(
        tools=tuple(tools),
        blocked=tuple(blocked),
        removed=tuple(sorted(name for name in known.tools if name not in listed_names)),
        instructions=listing.instructions if is_read else "",
        instructions_diff=(problem or text_diff("instructions", known.instructions, instructions))
        if is_different
        else "",
        instructions_problem=problem,
        is_pinned=is_pinned,
        unseen=tuple(unseen),
        refused_instructions=decision == "refused",
        pending=tuple(pending),
    )


def how_to_see(server: str) -> str:
    """Returns the command that shows a person a server's listing, and asks about it."""
    return advised(f"approve {server}")


def what_to_run(server: str, tool: str = "", *, of_program: bool = False) -> str:
    """Returns the commands, or the method, to see and accept a change; odd names of tools are left out of commands."""
    if of_program:
        return _IN_PROGRAM
    named = f" {tool}" if _PLAIN_NAME.fullmatch(tool) else ""
    return f"see {advised(f'lock --check {server}')}, accept with {advised(f'lock --update {server}{named}')}"


def _counted(names: list[str] | tuple[str, ...], kind: str = "") -> str:
    return f"{kind}tool is" if len(names) == 1 else f"{len(names)} {kind}tools are"


def _names(names: list[str] | tuple[str, ...]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(_shown(name) for name in names[:_MOST_NAMED]) + more


def _shown(name: str) -> str:
    return repr(for_error(name, limit=100))


# SECURITY: a listing with its findings, tools and instructions alike, since models read both (T12, T14).


@dataclass(frozen=True)
class FirstListing:
    """A listing with its findings, for the decision whether to pin it."""

    server: ServerConfig
    tools: tuple[ToolDefinition, ...]
    instructions: str = ""
    other_tools: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])
    """Names of the tools of other servers, by server: text that mentions them is a finding."""
    about: Mapping[str, str] = field(default_factory=dict[str, str])
    """Further text about the server, by place: audited, never pinned."""

    @property
    def live(self) -> bool:
        """True: the server has just sent it."""
        return True

    @cached_property
    def unpinnable(self) -> Mapping[str, str]:
        """Unpinnable tools by name, with the reason."""
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
        """The findings of the audit in pinnable definitions, the gravest first; the first access runs the audit."""
        from toolbridge.trust.audit.detector import audit  # its rules are compiled for those who need them

        tools = tuple(tool for tool in self.tools if tool.name not in self.unpinnable)
        return audit(self.server.name, tools, self.readable_instructions, self.other_tools, self.about)

    @cached_property
    def withheld(self) -> tuple[Withheld, ...]:
        """The definitions not to be pinned unseen: with a high finding, or not read by the audit; may run the audit."""
        from toolbridge.trust.audit.detector import at_least
        from toolbridge.trust.audit.rules import INCOMPLETE

        rules: dict[str | None, list[str]] = {}
        findings = [finding for finding in self.findings if finding.place not in self.about]
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
        """Returns a copy with these tools, and for None the instructions; names that are not listed are ignored."""
        return FirstListing(
            self.server,
            tuple(tool for tool in self.tools if tool.name in names),
            self.instructions if None in names else "",
            self.other_tools,
            self.about,
        )

    def without(self, withheld: Collection[Withheld]) -> FirstListing:
        """Returns a copy without the withheld definitions."""
        names = {each.tool for each in withheld}
        return self.only({None, *(tool.name for tool in self.tools)} - names)
