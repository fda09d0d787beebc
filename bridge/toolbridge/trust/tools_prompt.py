"""SECURITY: the second stage of approval: what a server says of its tools, before any of them is pinned and used.

Only a server that runs can tell which tools it has, so this comes after its command was approved. What is shown is
what would be pinned, and what models would be given to read.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolbridge.trust.audit import Finding, counted
from toolbridge.trust.first_listing import FirstListing
from toolbridge.trust.terminal_question import Terminal
from toolbridge.trust.visible_text import visible, wrapped
from toolbridge_codegen.catalog import ToolDefinition
from toolbridge_codegen.sanitise import characters_read

_MOST_FINDINGS = 30
_LONGEST_NAME = 300


def tools_prompt(first: FirstListing, *, width: int = 80) -> str:
    """What a server lists, with what the audit finds in it, for a person to read."""
    server, tools = first.server.name, first.tools
    lines: list[str] = []
    if first.instructions:
        lines += [f"Server {server!r} tells models about itself:", "", *_words(first.instructions, width), ""]
    lines += [f"Server {server!r} offers {_counted(len(tools), 'tool')}:", ""]
    for tool in tools:
        lines += _tool_lines(tool, width)
    return "\n".join([*lines, "", *finding_lines(first.findings, width)])


def found_prompt(first: FirstListing, *, width: int = 80) -> str:
    """Of what a server lists, only that in which the audit finds something, and what; empty if it finds nothing."""
    found = {finding.tool for finding in first.findings}
    if not found:
        return ""
    lines = _words(first.instructions, width) if None in found else []
    for tool in first.tools:
        lines += _tool_lines(tool, width) if tool.name in found else []
    return "\n".join([*lines, "", *finding_lines(first.findings, width)])


class TerminalAcceptance:
    """Asks the person at the terminal about the tools of a server that was never used; for `LockPins(accept=…)`."""

    def __init__(self, terminal: Terminal | None = None) -> None:
        self._terminal = terminal or Terminal()

    @property
    def can_ask(self) -> bool:
        """Whether there is anybody."""
        return self._terminal.is_there

    async def __call__(self, first: FirstListing) -> bool:
        """Show what is listed and ask. Only a yes accepts it."""
        text = tools_prompt(first, width=self._terminal.columns)
        which, them = ("this tool", "it") if len(first.tools) == 1 else ("these tools", "them")
        question = f"Pin {which}, and let programs call {them}? [y/N] "
        return (await self._terminal.ask(text, question)).strip().lower() in ("y", "yes")


def _tool_lines(tool: ToolDefinition, width: int) -> list[str]:
    return [f"  {visible(tool.name)[:_LONGEST_NAME]}", *_words(tool.description, width)]


def _words(text: str, width: int) -> list[str]:
    """All of a text that models may be given to read: what is accepted is what is seen (T14)."""
    most = characters_read()
    words = visible(text[:most]).split()  # models are given one space where there are many
    lines = [f"      {line}" for line in wrapped(words, width - 6)]
    more = len(text) - most
    return [*lines, f"      … and {more:,} more characters, which no model is given"] if more > 0 else lines


def finding_lines(findings: Sequence[Finding], width: int) -> list[str]:
    """What the audit found, the gravest first."""
    if not findings:
        return ["The audit found nothing that looks like an attack, which proves nothing."]
    lines = [f"The audit found {counted(findings)}:"]
    for finding in findings[:_MOST_FINDINGS]:
        lines.append(f"  {finding.severity.upper().ljust(6)} {finding.place} [{finding.rule}]")
        lines += [f"      {line}" for line in wrapped(f"It {finding.why}: {finding.excerpt}".split(" "), width - 6)]
    if len(findings) > _MOST_FINDINGS:
        lines.append(f"  … and {len(findings) - _MOST_FINDINGS} more: `toolbridge audit` lists them")
    return lines


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
