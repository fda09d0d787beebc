"""SECURITY: who decides while we serve: what was approved before, else the person behind the client (T1, T21, T29).

No answer, no client that can ask, no caller at all: a refusal, which says what the person can do instead. A client that
can ask, but not now, is no client that can't: what is allowed where nobody can be asked is not allowed there. A model
has no way to answer any of these questions: it never sees them.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import anyio.to_thread

from toolbridge import (
    Approval,
    ApprovalRequest,
    ApprovalStore,
    ApprovalStoreError,
    Decision,
    ElicitationAnswer,
    ElicitationRequest,
    StoredApprovals,
    ToolUse,
)
from toolbridge.serve.caller import Caller, current_caller
from toolbridge.serve.open_questions import OpenQuestions
from toolbridge.serve.questions import (
    approval_question,
    call_question,
    gate_answer,
    is_yes,
    passed_on,
    server_answer,
    tools_question,
)
from toolbridge.trust.tools_prompt import tools_prompt

if TYPE_CHECKING:
    from toolbridge.trust.approval_store import StoredAnswer
    from toolbridge.trust.pins import Answer, FirstListing

_log = logging.getLogger("toolbridge")
_DECLINED = ElicitationAnswer("decline")


class ClientApprover:
    """Approves what the store has an approval for, and asks the caller's person about the rest."""

    def __init__(self, store: ApprovalStore, *, config_file: str | None, asks: bool = True) -> None:
        self._store = store
        self._asks = asks
        self._stored = StoredApprovals(store, config_file=config_file)

    def asker(self) -> object:
        """The client whose person is asked; None where nobody can be."""
        caller = current_caller()
        return caller.client if self._asks and caller is not None and caller.can_ask else None

    async def approve(self, request: ApprovalRequest) -> Approval:
        """Answer for exactly this snapshot: what the person is shown is what is kept and started."""
        known = await self._stored.approve(request)
        caller = current_caller()
        if known.approved or not self._asks or caller is None or not caller.can_ask:
            return known
        try:
            return await self._ask(request, caller, known)
        except ApprovalStoreError as error:
            return Approval(False, str(error).rstrip("."))

    def stamp(self) -> object:
        """That of the store."""
        return self._stored.stamp()

    async def still_approves(self, request: ApprovalRequest) -> bool:
        """What the store says now."""
        return await self._stored.still_approves(request)

    async def _ask(self, request: ApprovalRequest, caller: Caller, known: Approval) -> Approval:
        async with caller.persons_turn():
            return await self._answered(request, caller, known)

    async def _answered(self, request: ApprovalRequest, caller: Caller, known: Approval) -> Approval:
        answer = await anyio.to_thread.run_sync(self._store.answer, request)
        refusal = self._stored.refusal(request, answer)
        if refusal is None:  # approved while we waited for our turn
            return Approval(True)
        if answer.disabled:
            return refusal
        said = await self._said(request, answer, caller)
        if said:
            return Approval(False, f"the person {said}; before that, {known.reason}")
        await anyio.to_thread.run_sync(self._store.approve, request)
        return Approval(True)

    async def _said(self, request: ApprovalRequest, answer: StoredAnswer, caller: Caller) -> str:
        """Empty for a yes. A no holds for as long as the client is known, no answer at all for this call."""
        if request.digest in caller.client.refused:
            return "said no"
        if request.digest in caller.unanswered:
            return "did not answer"
        given = await caller.ask(approval_question(request, answer))
        if is_yes(given):
            return ""
        if given.action == "cancel":
            caller.unanswered.add(request.digest)
            return "did not answer"
        caller.client.refused[request.digest] = request.server.name
        return "said no"


class CallersPerson:
    """Decides about calls that the permissions leave open: asks the person behind the caller's client."""

    def can_ask(self) -> bool:
        """Whether the client has elicitation; one that can't ask now is none that can't."""
        caller = current_caller()
        return caller is not None and caller.has_elicitation

    async def __call__(self, use: ToolUse) -> Decision:
        """Whether a call may be made."""
        caller = current_caller()
        if caller is None or not caller.has_elicitation:
            if use.only_if_asked:
                return Decision(True)
            words = f"nobody can be asked through this client; allow mcp__{use.server}__{use.tool} in the configuration"
            return Decision(False, f"{words}, or use a client that has elicitation")
        async with caller.persons_turn():
            could_ask = caller.can_ask
            answer = gate_answer(await caller.ask(call_question(use))) if could_ask else "no"
        await caller.go_on()
        if not could_ask:
            return Decision(False, "too many questions in one call: the person can't be asked again before the next")
        if answer == "no":
            return Decision(False, "the person said no")
        return Decision(True, remember=answer == "run")


class ToolAcceptance:
    """Puts definitions to a person that they have not accepted, if the audit finds something in them.

    What it finds nothing in is used unseen. Where nobody can be asked, what has grave findings stays hidden, and the
    problems of the server name the command that shows it: `toolbridge approve NAME`.
    """

    def __init__(self, questions: OpenQuestions, *, asks: bool = True) -> None:
        self._questions = questions
        self._asks = asks

    async def __call__(self, first: FirstListing) -> Answer:
        """A person's yes or no, None without either, or "unseen" where nobody is asked."""
        caller = current_caller()
        if not self._asks or caller is None or not caller.has_elicitation:
            return "unseen"
        if not await anyio.to_thread.run_sync(lambda: first.findings):
            return "unseen"
        prompt = await anyio.to_thread.run_sync(partial(tools_prompt, first, width=100))
        question = tools_question(first.server.name, prompt)
        with self._questions.about(first.server.name, caller.client):
            async with caller.persons_turn():
                answer = await caller.ask(question)
                return True if is_yes(answer) else None if answer.action == "cancel" else False


class PassedOn:
    """Puts questions of servers to the one client that has a call under way there; any other is declined."""

    def __init__(
        self,
        callers_of: Callable[[str], Counter[Caller]],
        secrets_of: Callable[[str], frozenset[str]] = lambda _: frozenset(),
    ) -> None:
        self._callers_of = callers_of
        self._secrets_of = secrets_of

    async def elicit(self, request: ElicitationRequest) -> ElicitationAnswer:
        """The person's answer. With calls of two clients under way nobody knows whose question it is."""
        callers = [caller for caller in self._callers_of(request.server) if caller.can_ask]
        if len({caller.client for caller in callers}) != 1:
            _log.warning("A question of server %r was declined: it belongs to no one client.", request.server)
            return _DECLINED
        question = passed_on(request, self._secrets_of(request.server))
        if question is None:
            _log.warning("Server %r wants a page opened, or has a form that can't be passed on.", request.server)
            return _DECLINED
        caller = callers[0]
        async with caller.persons_turn():
            return server_answer(await caller.ask(question))
