"""SECURITY: the permission gate: authorizes every call of a tool before it is sent (T21, T22).

The order is: patterns, annotations, flows between servers, then a person. Any error on the way is a refusal. Between
evaluating the rules and recording the call as sent nothing is awaited, so that concurrent calls see each other.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import anyio

from toolbridge.callbacks import callback
from toolbridge.config.config import Config
from toolbridge.config.policy import LABELS, LEVELS, Level, sides_of
from toolbridge.config.server_config import ServerConfig
from toolbridge.trust.permissions import (
    DEFAULT,
    Ruling,
    has_patterns,
    label_warnings,
    labels_of,
    pattern_warnings,
    permission_verdict,
    server_labels,
    unattended_verdict,
)
from toolbridge.trust.sanitise import for_terminal
from toolbridge_codegen.catalog import Catalog, ToolSpec

# SECURITY: flows of one run between servers (T22). Labels come from the configuration alone.

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


@dataclass(slots=True)
class RunFlows:
    """The tools and servers that have tainted a run, with their labels. Grows with the tools, not with the calls."""

    _calls: int = 0
    _sent: dict[tuple[str, str], _Sent] = field(default_factory=dict[tuple[str, str], "_Sent"])

    def add_call(self, tool: ToolSpec, labels: frozenset[str]) -> None:
        """Records a call that is about to be sent."""
        self._add((tool.server, tool.definition.name), tool.qualified_name, labels)

    def add_text(self, server: str, labels: frozenset[str]) -> None:
        """Records text from a server that is no answer to a call."""
        self._add((server, ""), f"an error of server {server!r}", labels)

    def _add(self, key: tuple[str, str], name: str, labels: frozenset[str]) -> None:
        """Counts a call or a text, and adds its labels; the first of a key sets its name and number."""
        self._calls += 1
        entry = self._sent.get(key)
        if entry is None:
            entry = self._sent[key] = _Sent(name, self._calls)
        entry.count += 1
        entry.labels |= labels

    def remove_call(self, tool: ToolSpec) -> None:
        """Removes one call of this tool; its labels go with the last one. Does nothing if there is none."""
        entry = self._sent.get((tool.server, tool.name))
        if entry is not None:
            entry.count -= 1
            if entry.count == 0:
                del self._sent[tool.server, tool.name]

    def verdict(self, flows: Mapping[str, Level], tool: ToolSpec, labels: frozenset[str]) -> Ruling:
        """Returns the strictest verdict of the flow rules on a call of this tool now; records nothing."""
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
    """The number of the run's call that was the first to this tool."""
    count: int = 0
    labels: frozenset[str] = frozenset()


def _verdict(level: Level, rule: str, led: Mapping[str, _Sent], tool: ToolSpec) -> Ruling:
    """Returns the ruling of a flow rule, with the earlier calls (`led`) that led to it."""
    deeds = [f"{_DEEDS[label]} ({sent.name}, call {sent.first})" for label, sent in led.items()]
    target = sides_of(rule)[1]
    outcome = f"may not {_TARGETS[target]}" if level == "deny" else f"has to ask before it may {_TARGETS[target]}"
    reason = f"this run has {' and '.join(deeds)}, so it {outcome} ({tool.qualified_name}): flows.{rule}"
    return Ruling(level, f"flow {rule}", reason, f"set flows.{rule} to 'allow' in the user's configuration")


# Questions to the host about a call, and its answers.

MOST_DETAIL = 200
MOST_NAME = 100
"""A tool's name is text from its server: it must not fill the whole detail."""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call that a person or the host has to decide about."""

    server: str
    tool: str
    """Its original name."""
    arguments: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """The arguments as guest code gave them."""
    detail: str = ""
    """`<tool> <json args>`, safe to print, cut at 200 characters."""
    reason: str = ""
    """Why the gate asks."""
    only_if_asked: bool = False
    """Whether the call is allowed where no person can be asked: the question comes from the tool's annotations."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a call may be sent."""

    allowed: bool
    reason: str = ""
    """The reason of a refusal, for guest code and the model."""
    rule: str = ""
    """The rule that decided: `deny mcp__mail__*`, `default`, `flow private+untrusted->external`."""
    remember: bool = False
    """Whether the host's answer holds for this tool until the run, or session, ends."""


class CanUseToolObject(Protocol):
    """Decides about a call."""

    async def can_use_tool(self, use: ToolUse) -> Decision | bool:
        """Decides whether the call may be sent; the call waits for it."""
        ...


CanUseTool: TypeAlias = CanUseToolObject | Callable[[ToolUse], Decision | bool | Awaitable[Decision | bool]]
"""Decides about a call. An exception counts as a refusal."""


@runtime_checkable
class AsksPeople(Protocol):
    """A `CanUseTool` that can't always reach a person: see "unattended" in the configuration."""

    def can_ask(self) -> bool:
        """Whether a person can be asked about the calls of this task."""
        ...


def detail_of(tool: str, arguments: Mapping[str, Any]) -> str:
    """Returns a call on one line, sanitised for a terminal and cut after 200 characters."""
    name, given = _one_line(tool[: 2 * MOST_NAME]), _one_line(_json_beginning(arguments))
    return _cut(f"{_cut(name, MOST_NAME)} {given}", MOST_DETAIL)


def _json_beginning(arguments: Mapping[str, Any]) -> str:
    """Encodes only the beginning of the arguments, which may be megabytes long and deeply nested.

    A value that is not JSON is written as `<type>`; an error of the encoder ends the text with `…`.
    """
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
"""The last decisions that a run, or session, keeps."""


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """The decision about one call."""

    server: str
    tool: str
    """Its original name."""
    decision: Decision
    asked: bool
    """Whether a person, or the host, was asked about this call."""


class ToolPolicy(NamedTuple):
    """The configuration applied to a tool, independent of earlier calls."""

    config: Config
    tool: ToolSpec
    permission: Ruling
    labels: frozenset[str]
    unattended: Ruling
    """The further verdict where no person can be asked."""
    settled: DecisionRecord | None
    """The fast path: the decision about every call, if it is allowed and no flow rule could forbid it."""


def _policy(config: Config, tool: ToolSpec, listed: Callable[[], Catalog] | None) -> ToolPolicy:
    """Applies the configuration to a tool; `listed` finds misspelt `deny` patterns (see `permission_verdict`)."""
    permission, labels = permission_verdict(config, tool, listed), labels_of(config, tool)
    unattended = unattended_verdict(config, tool, permission)
    settled: DecisionRecord | None = None
    is_allowed = permission.level == unattended.level == "allow"
    if is_allowed and not any(sides_of(rule)[1] in labels for rule in config.flows):
        settled = DecisionRecord(tool.server, tool.name, Decision(True, rule=permission.rule), asked=False)
    return ToolPolicy(config, tool, permission, labels, unattended, settled)


class PermissionGate:
    """Authorizes calls by the configuration and, where that says so, by asking the host."""

    def __init__(
        self,
        config: Config,
        can_use_tool: CanUseTool | None = None,
        *,
        listed: Callable[[], Catalog] | None = None,
    ) -> None:
        """Creates a gate; `listed` gives the catalog of all tools, exposed or not. See `AsksPeople` for `can_ask`."""
        self.config = config
        """The configuration from the next decision on, in open runs and sessions as well."""
        self.can_use_tool = (
            None if can_use_tool is None else callback("can_use_tool", can_use_tool, "can_use_tool", "use")
        )
        self.can_ask = can_use_tool.can_ask if isinstance(can_use_tool, AsksPeople) else None
        self._listed = listed
        self._warnings: tuple[object, Config, tuple[str, ...]] | None = None
        self._policies: dict[tuple[str, str], ToolPolicy] = {}

    def policy_of(self, tool: ToolSpec) -> ToolPolicy:
        """Returns the policy of a tool, cached until the tool or the configuration changes."""
        kept = self._policies.get((tool.server, tool.definition.name))
        if kept is None or kept.config is not self.config or kept.tool is not tool:
            kept = self._policies[tool.server, tool.name] = _policy(self.config, tool, self._listed)
        return kept

    @property
    def is_attended(self) -> bool:
        """Whether a person can be asked about the calls of this task."""
        return self.can_use_tool is not None and (self.can_ask is None or self.can_ask())

    def open_run(self, asking: Callable[[], AbstractContextManager[None]] = nullcontext) -> RunGate:
        """Opens the gate of one run, or of one session; `asking` is entered while a question is open."""
        return RunGate(self, asking)

    @property
    def has_rules(self) -> bool:
        """Whether the configuration has any patterns or labels of tools to warn of."""
        labels = (label for server in self.config.servers.values() for label in server.labels)
        return has_patterns(self.config) or any(":" in label for label in labels)

    def warnings(self, version: object) -> tuple[str, ...]:
        """Returns warnings of patterns and labels that match no listed tool; none without `listed`.

        They are cached as long as `version` is the same object and the configuration is unchanged.
        """
        if self._listed is None or not self.has_rules:
            return ()
        kept = self._warnings
        if kept is None or kept[0] is not version or kept[1] is not self.config:
            catalog = self._listed()
            found = (*pattern_warnings(self.config, catalog), *label_warnings(self.config, catalog))
            kept = self._warnings = (version, self.config, found)
        return kept[2]


class RunGate:
    """The gate of one run, or of one session: its flows, its answers and its decisions."""

    def __init__(self, gate: PermissionGate, asking: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        """Creates the gate of a run without earlier calls; `asking` is entered while a question is open."""
        self._gate = gate
        self._asking = asking
        self._flows = RunFlows()
        self._answers: dict[tuple[str, str], _Answers] = {}
        self._records: deque[DecisionRecord] = deque(maxlen=MOST_DECISIONS)

    @property
    def decisions(self) -> list[DecisionRecord]:
        """The decisions in order, at most the last 10,000."""
        return list(self._records)

    async def authorize(self, tool: ToolSpec, arguments: Mapping[str, Any]) -> Decision:
        """Authorizes one call and records the decision, asking the host if necessary; waits for its answer.

        An allowed call counts as sent: see `retract`. An error of the host is a refusal. Questions about one tool wait
        for each other, since an answer may cover them all.
        """
        decision = self.authorize_at_once(tool)
        if decision is not None:
            return decision
        answers = self._answers_about(tool)
        covered: frozenset[str] = frozenset()
        # One question at a time: its answer may cover the calls that wait for it.
        async with answers.lock:
            while True:
                # Again after every wait: a call sent meanwhile, or a new configuration, may settle it.
                outcome = self._evaluate(tool, answers.granted | covered)
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

    def authorize_at_once(self, tool: ToolSpec) -> Decision | None:
        """Authorizes one call without asking and records it; None if a question is necessary: then records nothing.

        An allowed call counts as sent: see `retract`.
        """
        policy = self._gate.policy_of(tool)
        if policy.settled is not None:
            self._flows.add_call(tool, policy.labels)
            self._records.append(policy.settled)
            return policy.settled.decision
        if policy.unattended.level != "allow" and self._gate.can_ask is not None:
            return None  # only the run's own task knows the person to ask
        outcome = self._evaluate(tool, self._answers_about(tool).granted)
        return self._recorded(tool, outcome) if isinstance(outcome, Decision) else None

    def retract(self, tool: ToolSpec) -> None:
        """Removes an allowed call that was certainly not sent, since its server could not be reached."""
        self._flows.remove_call(tool)

    def forget_answers(self) -> None:
        """Forgets all answers, so that the gate asks again. The run stays tainted."""
        self._answers.clear()

    def taint(self, server: str) -> None:
        """Marks the run as tainted by a server whose text it got without a call: a failure to start, for instance."""
        self._flows.add_text(server, server_labels(self._gate.config, server))

    def _answers_about(self, tool: ToolSpec) -> _Answers:
        """Returns the answers about a tool; starts anew after a change of its server's configuration."""
        server = self._gate.config.servers.get(tool.server)
        answers = self._answers.get((tool.server, tool.name))
        if answers is None or (answers.server is not server and answers.server != server):
            answers = self._answers[tool.server, tool.name] = _Answers(server)
        return answers

    def _evaluate(self, tool: ToolSpec, covered: frozenset[str]) -> Decision | _Question:
        """Returns the decision, or the question to ask; `covered` are the rules that a person has agreed to.

        Records an allowed call as sent, without an await in between.
        """
        permission, labels, unattended = self._gate.policy_of(tool)[2:5]
        flow = self._flows.verdict(self._gate.config.flows, tool, labels)
        if unattended.level != "allow" and self._gate.is_attended:
            unattended = DEFAULT
        if permission.level == flow.level == unattended.level == "allow":
            self._flows.add_call(tool, labels)
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
        self._flows.add_call(tool, labels)
        return Decision(True, rule=next((each.rule for each in verdicts if each.level == "ask"), verdicts[0].rule))

    async def _ask(self, tool: ToolSpec, arguments: Mapping[str, Any], question: _Question) -> Decision:
        """Asks the host and waits for it. Anything but a clear yes is a refusal; so is an error, which is logged."""
        rule = ", ".join(sorted(question.rules))
        given = MappingProxyType(dict(arguments))
        detail = detail_of(tool.name, given)
        use = ToolUse(tool.server, tool.name, given, detail, question.reason, question.only_if_asked)
        try:
            with self._asking():
                answer = await question.ask(use)
        except Exception as error:
            # Only the type: the text of the host's error is for its own log, not for guest code.
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
    """The answers about one tool of one server, for the rest of the run or session."""

    server: ServerConfig | None
    """The server's configuration: a yes to one server is none to another that takes its name."""
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    granted: frozenset[str] = frozenset()
    """The rules in the question: a yes to a pattern is none to a flow that comes up later."""
    refusal: Decision | None = None

    def keep(self, answer: Decision, question: _Question) -> None:
        """Remembers an answer: a yes grants the question's rules, a no refuses every later question about this tool."""
        if answer.allowed:
            self.granted |= question.rules
        else:
            self.refusal = answer


def _sentences(*parts: str) -> str:
    return " ".join(f"{part if part.startswith('mcp__') else part[0].upper() + part[1:]}." for part in parts)
