"""What `toolbridge lock` has found out of one server, for people and for programs."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from toolbridge.advice import advised
from toolbridge.describe.summaries import count_of_tools
from toolbridge.trust.sanitise import for_error

if TYPE_CHECKING:
    from toolbridge.trust.admission import Admission, BlockedTool
    from toolbridge.trust.audit import Finding
    from toolbridge.trust.terminal_question import Terminal

LockMode: TypeAlias = Literal["lock", "check", "update"]
_WIDEST = 100


@dataclass(frozen=True, slots=True)
class LockOutcome:
    """How one server compares with its pins."""

    server: str
    lock: str
    """The file with its pins."""
    admission: Admission | None = None
    """Before anything was accepted; None if it is not known what the server lists."""
    pinned: bool = False
    """Whether pins were written now."""
    error: str = ""
    """Why it is not known, or could not be pinned."""
    findings: tuple[Finding, ...] = ()
    """Of the audit, in what is not as pinned."""
    was_shown: bool = False
    """Whether a person has seen it already, and was asked."""

    @property
    def differs(self) -> bool:
        """Whether something is left that somebody has to look at."""
        return self.admission is not None and not self.pinned and not self.admission.is_as_pinned

    @property
    def is_pinned(self) -> bool:
        """Whether it has any pins that were there before."""
        return self.admission is not None and self.admission.is_pinned

    def with_findings(self, findings: Sequence[Finding]) -> LockOutcome:
        """With those of the findings that are in what is not as pinned: the others somebody has accepted."""
        if self.admission is None:
            return self
        different = self.admission.different
        return replace(self, findings=tuple(each for each in findings if each.tool in different))


async def accepted_at(terminal: Terminal, outcome: LockOutcome) -> bool | None:
    """Whether the person at the terminal accepts what differs, all of which is shown; None without an answer."""
    from toolbridge.trust.tools_prompt import is_agreed

    return is_agreed(await terminal.ask(for_people(outcome), "Accept all of this, and let programs call it? [y/N] "))


def for_people(outcome: LockOutcome) -> str:
    """A server and what is different about it, hidden characters and all."""
    from toolbridge.trust.audit import counted
    from toolbridge.trust.tools_prompt import finding_lines

    admission = outcome.admission
    if admission is None:
        return f"{outcome.server}: not known: {outcome.error}\n"
    if admission.is_as_pinned and not outcome.error:
        waiting = sum(tool.why in ("unseen", "refused") for tool in admission.blocked)
        count = count_of_tools(len(admission.tools) + waiting)
        asks = f"; {count_of_tools(waiting)} not accepted by you: {advised(f'approve {outcome.server}')}"
        note, verb = ("", "accepted, ") if outcome.pinned else (asks if waiting else "", "")
        return f"{outcome.server}: {verb}as pinned ({count}{note})\n"
    if outcome.pinned and not admission.is_pinned:
        unfit = [tool for tool in admission.blocked if tool.why == "unpinnable"]
        listed = len(admission.tools) + len(admission.blocked) - len(unfit)
        found = finding_lines(outcome.findings, _width() - 2) if outcome.findings and not outcome.was_shown else []
        head = f"{outcome.server}: pinned {count_of_tools(listed)} in {outcome.lock}\n"
        return head + "".join(_tool_text(tool) for tool in unfit) + "".join(f"  {line}\n" for line in found)
    head = _summary(admission)
    if outcome.error:
        return f"{outcome.server}: {head}; not pinned: {outcome.error}\n"
    if not outcome.pinned and not admission.is_pinned:
        grave = f"the audit finds {counted(outcome.findings)} in what it lists; " if outcome.findings else ""
        return f"{outcome.server}: has no pins; {grave}write them with {advised(f'lock {outcome.server}')}\n"
    verdict = "accepted: " if outcome.pinned else "not accepted: " if outcome.was_shown else ""
    return f"{outcome.server}: {verdict}{head}\n{'' if outcome.was_shown else _body(outcome, admission)}"


def _body(outcome: LockOutcome, admission: Admission) -> str:
    from toolbridge.trust.tools_prompt import finding_lines

    body = "".join(_tool_text(tool) for tool in admission.blocked)
    body += "".join(f"  removed {_name(name)}\n" for name in admission.removed)
    if admission.instructions_diff:
        body += f"  changed instructions\n{_indented(admission.instructions_diff)}"
    if outcome.findings:
        body += "".join(f"  {line}\n" for line in finding_lines(outcome.findings, _width() - 2))
    if outcome.pinned or not admission.can_be_accepted:
        return body
    return f"{body}  Accept all of this with {advised(f'lock --update {outcome.server}')}.\n"


def _width() -> int:
    return min(shutil.get_terminal_size((_WIDEST, 24)).columns, _WIDEST)


def _summary(admission: Admission) -> str:
    counts = {why: sum(tool.why == why for tool in admission.blocked) for why in ("changed", "new", "unpinnable")}
    parts = [f"{number} {why}" for why, number in {**counts, "removed": len(admission.removed)}.items() if number]
    parts += ["instructions changed"] if admission.instructions_diff else []
    return "; ".join([*([", ".join(parts)] if parts else []), f"{count_of_tools(len(admission.tools))} as pinned"])


def _tool_text(tool: BlockedTool) -> str:
    return f"  {tool.why} {_name(tool.name)}\n{_indented(tool.diff)}"


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.split("\n"))


def _name(name: str) -> str:
    return for_error(name, limit=200)


def as_json(outcome: LockOutcome) -> dict[str, Any]:
    """One member of what --json prints."""
    from toolbridge.trust.audit_report import finding_as_json

    admission = outcome.admission
    if admission is None:
        return {"name": outcome.server, "lock": outcome.lock, "state": "unknown", "error": outcome.error}
    state = "pinned" if outcome.pinned else "as_pinned" if admission.is_as_pinned else "differs"
    return {
        "name": outcome.server,
        "lock": outcome.lock,
        "state": state if admission.is_pinned or outcome.pinned else "no_pins",
        "error": outcome.error,
        "asPinned": len(admission.tools),
        "tools": [_tool_as_json(tool) for tool in admission.blocked],
        "removed": list(admission.removed),
        "instructionsDiff": admission.instructions_diff,
        "findings": [finding_as_json(finding) for finding in outcome.findings],
    }


def _tool_as_json(tool: BlockedTool) -> dict[str, Any]:
    from toolbridge.trust.pin_diff import field_changes

    changes = field_changes(tool.pinned, tool.listed)
    return {
        "name": tool.name,
        "why": tool.why,
        "problem": tool.problem,
        "changes": [{"field": each.field, "pinned": each.pinned, "listed": each.listed} for each in changes],
        "diff": tool.diff,
    }
