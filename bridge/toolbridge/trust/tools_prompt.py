"""SECURITY: the second stage of approval: what a server says of its tools, before any of them is pinned and used.

Only a server that runs can tell which tools it has, so this comes after its command was approved. What is shown is
what would be pinned, and what models would be given to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from toolbridge.config.server_config import ServerConfig
from toolbridge.trust.audit import Finding, audit, counted
from toolbridge.trust.terminal_question import Terminal
from toolbridge.trust.visible_text import visible, wrapped
from toolbridge_codegen.catalog import ToolDefinition

_MOST_TOOLS = 200
_MOST_FINDINGS = 30
_LONGEST = 300


def tools_prompt(
    server: str,
    tools: Sequence[ToolDefinition],
    *,
    other_tools: Mapping[str, Iterable[str]] | None = None,
    width: int = 80,
) -> str:
    """The tools of a server with what the audit finds in their texts, for a person to read."""
    findings = audit(server, tools, other_tools=other_tools)
    lines = [f"Server {server!r} offers {_counted(len(tools), 'tool')}:", ""]
    for tool in tools[:_MOST_TOOLS]:
        lines += _tool_lines(tool, width)
    if len(tools) > _MOST_TOOLS:
        lines.append(f"  … and {len(tools) - _MOST_TOOLS} more: `toolbridge info {server}` shows all of them")
    return "\n".join([*lines, "", *_finding_lines(findings, width)])


class TerminalAcceptance:
    """Asks the person at the terminal about the tools of a server that was never used; for `LockPins(accept=…)`."""

    def __init__(self, terminal: Terminal | None = None) -> None:
        self._terminal = terminal or Terminal()

    @property
    def can_ask(self) -> bool:
        """Whether there is anybody."""
        return self._terminal.is_there

    async def __call__(self, server: ServerConfig, tools: tuple[ToolDefinition, ...]) -> bool:
        """Show the tools and ask. Only a yes accepts them."""
        text = tools_prompt(server.name, tools, width=self._terminal.columns)
        which, them = ("this tool", "it") if len(tools) == 1 else ("these tools", "them")
        question = f"Pin {which}, and let programs call {them}? [y/N] "
        return (await self._terminal.ask(text, question)).strip().lower() in ("y", "yes")


def _tool_lines(tool: ToolDefinition, width: int) -> list[str]:
    name = visible(tool.name)[:_LONGEST]
    words = visible(tool.description)
    if len(words) > _LONGEST:
        words = f"{words[:_LONGEST]} … ({len(tool.description):,} characters)"
    return [f"  {name}", *(f"      {line}" for line in wrapped(words.split(" "), width - 6))]


def _finding_lines(findings: Sequence[Finding], width: int) -> list[str]:
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
