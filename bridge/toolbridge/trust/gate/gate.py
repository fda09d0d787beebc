"""SECURITY: the permission gate: every call of a tool is decided here before it is sent (T21, T22).

The order is: patterns, then annotations, then flows between servers, then a person. Whatever goes wrong on the
way is a refusal. Between the last look at the rules and the note that a call is sent nothing is awaited, so that of
calls under way at once each is decided with those before it in mind.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias, cast, runtime_checkable

import anyio

from toolbridge.callbacks import callback
from toolbridge.config.config import Config
from toolbridge.config.policy import LABELS, LEVELS, Level, Permissions, sides_of
from toolbridge.config.server_config import ServerConfig
from toolbridge.trust.gate.patterns import allowing_match, could_name, near_miss, pattern_warnings, restricting_match
from toolbridge.trust.text.sanitise import for_terminal
from toolbridge_codegen.catalog import Catalog, ServerListing, ToolSpec

# SECURITY: what the configuration says of a tool: allow, ask or deny, by `(server, tool)` alone (T21).
#
# Arguments are not even passed in here. A server's annotations can raise the level of its own tool from allow to ask;
# they are not looked at for anything else, but for "unattended": "reads", by which an operator relies on them.


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


# SECURITY: what a run has touched, and what may therefore not be called any more (T22).
#
# Labels come from the configuration alone; what a server says of itself only makes suggestions for a person to read.


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


# What a host is asked about a call, and what it answers.


MOST_DETAIL = 200
MOST_NAME = 100
"""A tool's name is its server's text: it must not fill all of the detail."""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One call that somebody has to decide about."""

    server: str
    tool: str
    """Its original name."""
    arguments: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """All of them, as guest code gave them."""
    detail: str = ""
    """`<tool> <json args>`, safe to print, cut at 200 characters."""
    reason: str = ""
    """Why it is asked about."""
    only_if_asked: bool = False
    """Whether it would be allowed where nobody can be asked: its server itself says that it may destroy something."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a call may be sent."""

    allowed: bool
    reason: str = ""
    """For a refusal: what guest code and the model are told."""
    rule: str = ""
    """The rule that decided: `deny mcp__mail__*`, `default`, `flow private+untrusted->external`."""
    remember: bool = False
    """Of a host's answer: the same holds for this tool of this server until the run, or session, is over."""


class CanUseToolObject(Protocol):
    """Decides about a call."""

    async def can_use_tool(self, use: ToolUse) -> Decision | bool:
        """Whether it may be sent."""
        ...


CanUseTool: TypeAlias = CanUseToolObject | Callable[[ToolUse], Decision | bool | Awaitable[Decision | bool]]
"""Decides about a call. What it raises counts as a refusal."""


@runtime_checkable
class AsksPeople(Protocol):
    """A `CanUseTool` that does not always have somebody to ask: for "unattended" in the configuration."""

    def can_ask(self) -> bool:
        """Whether there is somebody for the calls of this task."""
        ...


def detail_of(tool: str, arguments: Mapping[str, Any]) -> str:
    """A call on one line that a terminal shows and never obeys."""
    name, given = _one_line(tool[: 2 * MOST_NAME]), _one_line(_json_beginning(arguments))
    return _cut(f"{_cut(name, MOST_NAME)} {given}", MOST_DETAIL)


def _json_beginning(arguments: Mapping[str, Any]) -> str:
    """As much of the JSON as is shown: arguments may have megabytes, and be nested without end."""
    encoder = json.JSONEncoder(ensure_ascii=False, default=_kind)
    text = ""
    try:
        for piece in encoder.iterencode(dict(arguments)):
            text += piece[: MOST_DETAIL + 1]
            if len(text) > MOST_DETAIL:
                break
    except (TypeError, ValueError, RecursionError):
        text += "…"
    return text


def _kind(value: object) -> str:
    return f"<{type(value).__name__}>"


def _one_line(text: str) -> str:
    return for_terminal(" ".join(text.encode("utf-8", "replace").decode().split()))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


_log = logging.getLogger("toolbridge")
MOST_DECISIONS = 10_000
"""Kept of a run's, or session's, decisions: the last."""


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """What was decided about one call."""

    server: str
    tool: str
    """Its original name."""
    decision: Decision
    asked: bool
    """Whether a person, or the host, was asked about this very call."""


class Standing(NamedTuple):
    """What a configuration says of a tool, whatever is called before it."""

    config: Config
    tool: ToolSpec
    permission: Verdict
    labels: frozenset[str]
    unattended: Verdict
    """What holds besides where nobody can be asked."""
    settled: DecisionRecord | None
    """What is decided about every call of it: it is allowed, and no rule for flows could say otherwise."""


def _standing(config: Config, tool: ToolSpec, listed: Callable[[], Catalog] | None) -> Standing:
    permission, labels = permission_verdict(config, tool, listed), labels_of(config, tool)
    unattended = unattended_verdict(config, tool, permission)
    settled: DecisionRecord | None = None
    is_allowed = permission.level == unattended.level == "allow"
    if is_allowed and not any(sides_of(rule)[1] in labels for rule in config.flows):
        settled = DecisionRecord(tool.server, tool.name, Decision(True, rule=permission.rule), asked=False)
    return Standing(config, tool, permission, labels, unattended, settled)


class PermissionGate:
    """Decides by the configuration, and by whom it can ask."""

    def __init__(
        self,
        config: Config,
        can_use_tool: CanUseTool | None = None,
        *,
        listed: Callable[[], Catalog] | None = None,
    ) -> None:
        """A `can_use_tool` with a method `can_ask` is asked by it whether there is anybody: see `AsksPeople`."""
        self.config = config
        """What holds from the next decision on, in runs and sessions that are open as well."""
        self.can_use_tool = (
            None if can_use_tool is None else callback("can_use_tool", can_use_tool, "can_use_tool", "use")
        )
        self.can_ask = can_use_tool.can_ask if isinstance(can_use_tool, AsksPeople) else None
        self._listed = listed
        """All that servers list, exposed or not."""
        self._warnings: tuple[object, Config, tuple[str, ...]] | None = None
        self._standings: dict[tuple[str, str], Standing] = {}

    def standing(self, tool: ToolSpec) -> Standing:
        """What the configuration says of a tool: worked out once for as long as neither of them changes."""
        kept = self._standings.get((tool.server, tool.definition.name))
        if kept is None or kept.config is not self.config or kept.tool is not tool:
            kept = self._standings[tool.server, tool.name] = _standing(self.config, tool, self._listed)
        return kept

    @property
    def is_attended(self) -> bool:
        """Whether somebody can be asked about what this task calls."""
        return self.can_use_tool is not None and (self.can_ask is None or self.can_ask())

    def open_run(self, asking: Callable[[], AbstractContextManager[None]] = nullcontext) -> RunGate:
        """The gate of one run, or of one session: what it has touched, and what was granted, ends with it.

        `asking` is entered while somebody is asked.
        """
        return RunGate(self, asking)

    @property
    def has_rules(self) -> bool:
        """Whether there are any patterns or labels of tools: if not, there is nothing to warn of."""
        labels = (label for server in self.config.servers.values() for label in server.labels)
        return has_patterns(self.config) or any(":" in label for label in labels)

    def warnings(self, version: object) -> tuple[str, ...]:
        """Patterns and labels that match no tool of all that servers list; found anew with each version of that."""
        if self._listed is None or not self.has_rules:
            return ()
        kept = self._warnings
        if kept is None or kept[0] is not version or kept[1] is not self.config:
            catalog = self._listed()
            found = (*pattern_warnings(self.config, catalog), *label_warnings(self.config, catalog))
            kept = self._warnings = (version, self.config, found)
        return kept[2]


class RunGate:
    """The gate of one run, or of one session."""

    def __init__(self, gate: PermissionGate, asking: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self._gate = gate
        self._asking = asking
        self._touched = Touched()
        self._answers: dict[tuple[str, str], _Answers] = {}
        self._records: deque[DecisionRecord] = deque(maxlen=MOST_DECISIONS)

    @property
    def decisions(self) -> list[DecisionRecord]:
        """Every decision in order, at most the last 10,000."""
        return list(self._records)

    async def decide(self, tool: ToolSpec, arguments: Mapping[str, Any]) -> Decision:
        """Decide about one call. An allowed one counts as sent from here on: see `not_sent`."""
        decision = self.decide_at_once(tool)
        if decision is not None:
            return decision
        answers = self._answers_about(tool)
        covered: frozenset[str] = frozenset()
        # One question at a time: those who wait may find that the answer was meant for them too.
        async with answers.lock:
            while True:
                # Again after every wait: what was sent meanwhile, or a new configuration, may settle it.
                outcome = self._look(tool, answers.granted | covered)
                if isinstance(outcome, Decision):
                    return self._recorded(tool, outcome, asked=bool(covered))
                if answers.refusal is not None:
                    return self._recorded(tool, answers.refusal)
                answer = await self._ask(tool, arguments, outcome)
                if answers is not self._answers_about(tool):
                    changed = f"{tool.qualified_name} is refused: the configuration of its server changed meanwhile."
                    return self._recorded(tool, Decision(False, changed, answer.rule), asked=True)
                if answer.remember:
                    answers.keep(answer, outcome)
                if not answer.allowed:
                    return self._recorded(tool, answer, asked=True)
                covered |= outcome.rules

    def decide_at_once(self, tool: ToolSpec) -> Decision | None:
        """The same if nobody has to be asked; None if somebody has, and then nothing is decided or noted."""
        standing = self._gate.standing(tool)
        if standing.settled is not None:
            self._touched.sent(tool, standing.labels)
            self._records.append(standing.settled)
            return standing.settled.decision
        if standing.unattended.level != "allow" and self._gate.can_ask is not None:
            return None  # who could be asked is known in the run's own task
        outcome = self._look(tool, self._answers_about(tool).granted)
        return self._recorded(tool, outcome) if isinstance(outcome, Decision) else None

    def not_sent(self, tool: ToolSpec) -> None:
        """Take back an allowed call that never left: its server could not be reached. Not for one that may have."""
        self._touched.not_sent(tool)

    def forget_answers(self) -> None:
        """Ask again about what was answered so far. What was touched stays touched."""
        self._answers.clear()

    def heard(self, server: str) -> None:
        """A program was given words of a server, though no call was sent to it: its failure to start, for instance."""
        self._touched.heard(server, server_labels(self._gate.config, server))

    def _answers_about(self, tool: ToolSpec) -> _Answers:
        """What was answered about a tool, as long as its server is configured as it was then."""
        server = self._gate.config.servers.get(tool.server)
        answers = self._answers.get((tool.server, tool.name))
        if answers is None or (answers.server is not server and answers.server != server):
            answers = self._answers[tool.server, tool.name] = _Answers(server)
        return answers

    def _look(self, tool: ToolSpec, covered: frozenset[str]) -> Decision | _Question:
        """The decision, or what has to be asked; `covered` are the rules that somebody said yes to.

        A call that is allowed is noted as sent here, in the same breath.
        """
        standing = self._gate.standing(tool)
        permission, labels = standing.permission, standing.labels
        flow = self._touched.verdict(self._gate.config.flows, tool, labels)
        unattended = standing.unattended
        if unattended.level != "allow" and self._gate.is_attended:
            unattended = DEFAULT
        if permission.level == flow.level == unattended.level == "allow":
            self._touched.sent(tool, labels)
            return Decision(True, rule=permission.rule)
        verdicts = (permission, flow, unattended)
        for verdict in verdicts:
            if verdict.level == "deny":
                return Decision(False, _sentences(verdict.reason), verdict.rule)
        asks = [verdict for verdict in verdicts if verdict.level == "ask" and verdict.rule not in covered]
        ask = self._gate.can_use_tool
        if asks and ask is not None:
            reason = "; ".join(verdict.reason for verdict in asks)
            rules = frozenset(verdict.rule for verdict in asks)
            return _Question(ask, reason, rules, only_if_asked=all(verdict.only_if_asked for verdict in asks))
        for verdict in asks:
            if not verdict.only_if_asked:
                nobody = f"Nobody can be asked: give can_use_tool to the runtime, or {verdict.way_out}"
                return Decision(False, _sentences(verdict.reason, nobody), verdict.rule)
        self._touched.sent(tool, labels)
        return Decision(True, rule=next((each.rule for each in verdicts if each.level == "ask"), verdicts[0].rule))

    async def _ask(self, tool: ToolSpec, arguments: Mapping[str, Any], question: _Question) -> Decision:
        """The host's answer. Anything but a clear yes is a no."""
        rule = ", ".join(sorted(question.rules))
        given = MappingProxyType(dict(arguments))
        detail = detail_of(tool.name, given)
        use = ToolUse(tool.server, tool.name, given, detail, question.reason, question.only_if_asked)
        try:
            with self._asking():
                answer = await question.ask(use)
        except Exception as error:
            # The type only: the text of an error of the host is for its own log, and nothing for guest code.
            _log.warning("can_use_tool failed for %s", tool.qualified_name, exc_info=error)
            refusal = f"{tool.qualified_name} is refused: can_use_tool failed with {type(error).__name__}."
            return Decision(False, refusal, rule)
        if isinstance(answer, bool):
            answer = Decision(answer)
        if not isinstance(answer, Decision):  # pyright: ignore[reportUnnecessaryIsInstance]  # the host may not check types
            refusal = f"{tool.qualified_name} is refused: can_use_tool answered with {type(answer).__name__}."
            return Decision(False, refusal, rule)
        if answer.allowed is True:
            return Decision(True, str(answer.reason), rule, remember=answer.remember is True)
        reason = str(answer.reason) or f"{tool.qualified_name} is refused: the answer was no."
        return Decision(False, reason, rule, remember=answer.remember is True)

    def _recorded(self, tool: ToolSpec, decision: Decision, *, asked: bool = False) -> Decision:
        self._records.append(DecisionRecord(tool.server, tool.name, decision, asked))
        return decision


@dataclass(frozen=True, slots=True)
class _Question:
    ask: Callable[[ToolUse], Awaitable[Any]]
    reason: str
    rules: frozenset[str]
    only_if_asked: bool


@dataclass(slots=True)
class _Answers:
    """What was answered about one tool of one server, for the rest of the run or session."""

    server: ServerConfig | None
    """Its configuration: a yes to one server is none to another that takes its name."""
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    granted: frozenset[str] = frozenset()
    """Rules that were asked about: a yes to a pattern is none to a flow that comes up later."""
    refusal: Decision | None = None

    def keep(self, answer: Decision, question: _Question) -> None:
        if answer.allowed:
            self.granted |= question.rules
        else:
            self.refusal = answer


def _sentences(*parts: str) -> str:
    return " ".join(f"{part if part.startswith('mcp__') else part[0].upper() + part[1:]}." for part in parts)


def has_patterns(config: Config) -> bool:
    """Whether there are any: without, there is nothing to tell of them."""
    return any(getattr(each, level) for each in (config.permissions, config.project_permissions) for level in LEVELS)
