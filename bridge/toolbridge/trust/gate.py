"""SECURITY: the permission gate: every call of a tool is decided here before it is sent (T21, T22).

The order is: patterns, then annotations, then flows between servers, then a person. Whatever goes wrong on the
way is a refusal. Between the last look at the rules and the note that a call is sent nothing is awaited, so that of
calls under way at once each is decided with those before it in mind.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import anyio

from toolbridge.callbacks import callback
from toolbridge.config.config import Config
from toolbridge.config.flow_rules import sides_of
from toolbridge.config.server_config import ServerConfig
from toolbridge.trust.flow_labels import Touched, label_warnings, labels_of, server_labels
from toolbridge.trust.gate_patterns import has_patterns, pattern_warnings
from toolbridge.trust.gate_rules import DEFAULT, Verdict, permission_verdict, unattended_verdict
from toolbridge.trust.tool_use import AsksPeople, CanUseTool, Decision, ToolUse, detail_of
from toolbridge_codegen.catalog import Catalog, ToolSpec

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
