"""SECURITY: the second stage of approval: what a server says of its tools, before any of them is pinned and used.

Only a server that runs can tell which tools it has, so this comes after its command was approved. What is shown is
what would be pinned, and what models would be given to read.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolbridge.advice import advised
from toolbridge.config.server_config import ServerConfig
from toolbridge.trust.audit import Finding, counted
from toolbridge.trust.first_listing import FirstListing
from toolbridge.trust.lock_text import PinnedServer
from toolbridge.trust.terminal_question import Terminal
from toolbridge.trust.tool_lines import folded_tool_lines, text_lines, tool_lines
from toolbridge.trust.visible_text import wrapped
from toolbridge_codegen.catalog import ToolDefinition, one_per_name

MOST_LINES = 120
"""Of a listing that is shown as a whole; of a longer one, parameters and results are folded."""
_MOST_FINDINGS = 30


def tools_prompt(first: FirstListing, *, width: int = 80, shows_all: bool = False, how: str = "") -> str:
    """What a server lists, with what the audit finds in it, for a person to read; `how` shows what is folded."""
    server, tools = first.server.name, one_per_name(first.tools)
    lines: list[str] = []
    if first.instructions:
        lines += [f"Server {server!r} tells models about itself:", "", *text_lines(first.instructions, width), ""]
    lines += [f"Server {server!r} offers {_counted(len(tools), 'tool')}:", ""]
    listed, folded = _listed(first, width, shows_all=shows_all)
    if folded:
        note = f"Folded are {_counted(folded, 'line')} about parameters and results: {how or how_to_see_all(server)}."
        listed += ["", *wrapped(note.split(), width)]
    return "\n".join([*lines, *listed, "", *finding_lines(first.findings, width)])


def is_folded(first: FirstListing, *, width: int = 80) -> bool:
    """Whether there is more to see than the prompt shows."""
    return _listed(first, width, shows_all=False)[1] > 0


def how_to_see_all(server: str) -> str:
    """For those who can't be shown more here."""
    return f"{advised(f'lock {server}')} shows all of it at a terminal"


def found_prompt(first: FirstListing, *, width: int = 80) -> str:
    """Of what a server lists, only that in which the audit finds something, and what; empty if it finds nothing."""
    places = {finding.place for finding in first.findings}
    found = {finding.tool for finding in first.findings if finding.place not in first.about}
    if not places:
        return ""
    lines = text_lines(first.instructions, width) if None in found else []
    for place, text in first.about.items():
        lines += [f"{place}:", *text_lines(text, width)] if place in places else []
    for tool in first.tools:
        lines += tool_lines(tool, width) if tool.name in found else []
    return "\n".join([*lines, "", *finding_lines(first.findings, width)])


def pinned_listing(server: ServerConfig, pinned: PinnedServer) -> FirstListing:
    """What a lock pins of a server, as if the server listed it."""
    tools = tuple(
        ToolDefinition(
            name,
            pin.fields["inputSchema"],
            title=pin.fields.get("title", ""),
            description=pin.fields.get("description", ""),
            output_schema=pin.fields.get("outputSchema"),
            annotations=pin.fields.get("annotations", {}),
        )
        for name, pin in pinned.tools.items()
    )
    return FirstListing(server, tools, pinned.instructions)


def _listed(first: FirstListing, width: int, *, shows_all: bool) -> tuple[list[str], int]:
    """The lines of all tools, and how many are folded: none of a tool in which the audit finds something."""
    tools = one_per_name(first.tools)  # those that are pinned
    whole = {tool.name: tool_lines(tool, width, problem=first.unpinnable.get(tool.name, "")) for tool in tools}
    if shows_all or sum(map(len, whole.values())) <= MOST_LINES:
        return [line for lines in whole.values() for line in lines], 0
    found = {finding.tool for finding in first.findings}
    shown: list[str] = []
    folded = 0
    for tool in tools:
        if tool.name in found or tool.name in first.unpinnable:
            shown += whole[tool.name]
            continue
        lines, left_out = folded_tool_lines(tool, width)
        shown += lines
        folded += left_out
    return shown, folded


class TerminalAcceptance:
    """Asks the person at the terminal about the tools of a server that was never used; for `LockPins(accept=…)`."""

    def __init__(self, terminal: Terminal | None = None) -> None:
        self._terminal = terminal or Terminal()

    @property
    def can_ask(self) -> bool:
        """Whether there is anybody."""
        return self._terminal.is_there

    async def __call__(self, first: FirstListing) -> bool | None:
        """Show what is listed and ask. Only a yes accepts it; a terminal that goes away answers nothing."""
        width = self._terminal.columns
        which, them = ("this tool", "it") if len(first.tools) == 1 else ("these tools", "them")
        question = f"Pin {which}, and let programs call {them}?"
        text = tools_prompt(first, width=width, how="answer `a` to see all of it")
        if is_folded(first, width=width):
            line = await self._terminal.ask(text, f"{question} [y/N, a: show all] ")
            if line.strip().lower() not in ("a", "all"):
                return is_agreed(line)
            text = tools_prompt(first, width=width, shows_all=True)
        return is_agreed(await self._terminal.ask(text, f"{question} [y/N] "))


def is_agreed(line: str) -> bool | None:
    """The answer to `[y/N]`: an empty line is a no, the end of input none at all."""
    return line.strip().lower() in ("y", "yes") if line else None


def finding_lines(findings: Sequence[Finding], width: int) -> list[str]:
    """What the audit found, the gravest first."""
    if not findings:
        return ["The audit found nothing that looks like an attack, which proves nothing."]
    lines = [f"The audit found {counted(findings)}:"]
    for finding in findings[:_MOST_FINDINGS]:
        lines.append(f"  {finding.severity.upper().ljust(6)} {finding.place} [{finding.rule}]")
        lines += [f"      {line}" for line in wrapped(f"It {finding.why}: {finding.excerpt}".split(" "), width - 6)]
    if len(findings) > _MOST_FINDINGS:
        lines.append(f"  … and {len(findings) - _MOST_FINDINGS} more: {advised('audit')} lists them")
    return lines


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
