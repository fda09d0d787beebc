"""SECURITY: what a run has touched, and what may therefore not be called any more (T22).

Labels come from the configuration alone; what a server says of itself only makes suggestions for a person to read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolbridge.config.config import Config
from toolbridge.config.flow_rules import LABELS, sides_of
from toolbridge.config.permissions import LEVELS, Level
from toolbridge.trust.gate_patterns import could_name
from toolbridge.trust.gate_rules import DEFAULT, Verdict, annotations_of
from toolbridge_codegen.catalog import Catalog, ServerListing, ToolSpec

_DEEDS: Mapping[str, str] = {
    "private": "read private data",
    "untrusted": "read untrusted content",
    "external": "reached an external place",
}
_TARGETS: Mapping[str, str] = {
    "private": "read private data",
    "untrusted": "reach an untrusted place",
    "external": "send anything to an external place",
}


def labels_of(config: Config, tool: ToolSpec) -> frozenset[str]:
    """The labels of a tool: its server's, and its own."""
    server = config.servers.get(tool.server)
    if server is None:
        return frozenset()
    pairs = [entry.partition(":") for entry in server.labels]
    return frozenset(label for label, colon, name in pairs if not colon or could_name(name, tool))


def server_labels(config: Config, server: str) -> frozenset[str]:
    """All labels that a server or any tool of it has: of its other words nobody knows where they are from."""
    configured = config.servers.get(server)
    return frozenset() if configured is None else frozenset(entry.partition(":")[0] for entry in configured.labels)


@dataclass(slots=True)
class Touched:
    """The calls that a run has sent so far, by label. It grows with the tools that there are, not with the calls."""

    _calls: int = 0
    _sent: dict[tuple[str, str], _Sent] = field(default_factory=dict[tuple[str, str], "_Sent"])

    def sent(self, tool: ToolSpec, labels: frozenset[str]) -> None:
        """Note a call that is about to be sent."""
        self._note((tool.server, tool.definition.name), tool.qualified_name, labels)

    def heard(self, server: str, labels: frozenset[str]) -> None:
        """Note words of a server that are no answer to a call."""
        self._note((server, ""), f"an error of server {server!r}", labels)

    def _note(self, key: tuple[str, str], name: str, labels: frozenset[str]) -> None:
        self._calls += 1
        entry = self._sent.get(key)
        if entry is None:
            entry = self._sent[key] = _Sent(name, self._calls)
        entry.count += 1
        entry.labels |= labels

    def not_sent(self, tool: ToolSpec) -> None:
        """Take one call of this tool back."""
        entry = self._sent.get((tool.server, tool.name))
        if entry is not None:
            entry.count -= 1
            if entry.count == 0:
                del self._sent[tool.server, tool.name]

    def verdict(self, flows: Mapping[str, Level], tool: ToolSpec, labels: frozenset[str]) -> Verdict:
        """What the rules say of a call of this tool now: the strictest, if there are several."""
        strictest = DEFAULT
        for rule, level in flows.items():
            sources, target = sides_of(rule)
            if target not in labels or LEVELS.index(level) <= LEVELS.index(strictest.level):
                continue
            led = {label: self._first_with(label) for label in LABELS if label in sources}
            found = {label: sent for label, sent in led.items() if sent is not None}
            if len(found) == len(sources):
                strictest = _verdict(level, rule, found, tool)
        return strictest

    def _first_with(self, label: str) -> _Sent | None:
        entries = (entry for entry in self._sent.values() if label in entry.labels)
        return min(entries, key=lambda entry: entry.first, default=None)


@dataclass(slots=True)
class _Sent:
    name: str
    first: int
    """Which of the run's calls of tools was the first of this one."""
    count: int = 0
    labels: frozenset[str] = frozenset()


def _verdict(level: Level, rule: str, led: Mapping[str, _Sent], tool: ToolSpec) -> Verdict:
    deeds = [f"{_DEEDS[label]} ({sent.name}, call {sent.first})" for label, sent in led.items()]
    target = sides_of(rule)[1]
    outcome = f"may not {_TARGETS[target]}" if level == "deny" else f"has to ask before it may {_TARGETS[target]}"
    reason = f"this run has {' and '.join(deeds)}, so it {outcome} ({tool.qualified_name}): flows.{rule}"
    return Verdict(level, f"flow {rule}", reason, f"set flows.{rule} to 'allow' in the user's configuration")


def label_warnings(config: Config, catalog: Catalog) -> tuple[str, ...]:
    """Labels of single tools that a server, whose tools are known, does not have: a misspelt one protects nothing."""
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
    """A label that a server's own annotations speak for."""

    label: str
    tools: tuple[str, ...]
    """The tools that speak for it, by their original names."""


def suggested_labels(listing: ServerListing) -> tuple[SuggestedLabel, ...]:
    """For people to read, never applied: a server that means harm says what suits it."""
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
