"""SECURITY: who decides while we serve: what was approved before, else the person behind the client (T1, T21, T29).

No answer, no client that can ask, no caller at all: a refusal, which says what the person can do instead. A client that
can ask, but not now, is no client that can't: what is allowed where nobody can be asked is not allowed there. A model
has no way to answer any of these questions: it never sees them.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import anyio
import anyio.to_thread

from toolbridge import ApprovalRequest, ApprovalStore, StoredApprovals, ToolUse
from toolbridge.approval import Approval, ApprovalStoreError, Decision, ElicitationAnswer, ElicitationRequest
from toolbridge.serve.clients import Caller, Client, FormAnswer, Question, current_caller
from toolbridge.trust.approval.approvers import approval_prompt
from toolbridge.trust.approval.store import StoredAnswer
from toolbridge.trust.pins.prompt import tools_prompt
from toolbridge.trust.text.sanitise import for_error, for_form, for_terminal

if TYPE_CHECKING:
    from toolbridge.trust.pins.pins import Answer as PinAnswer
    from toolbridge.trust.pins.pins import FirstListing


# Who is asked about which server's tools: nobody waits for another client's person longer than they want to.


class OpenQuestions:
    """Questions about servers' tools that are open now, and the calls that wait for those servers."""

    def __init__(self) -> None:
        self._asked: dict[str, list[Client]] = {}
        self._waiting: dict[str, list[_Countdown]] = {}

    @contextmanager
    def about(self, server: str, client: Client) -> Generator[None]:
        """While a client's person is asked about a server's tools."""
        self._asked.setdefault(server, []).append(client)
        self._tell(server)
        try:
            yield
        finally:
            self._asked[server].remove(client)
            if not self._asked[server]:
                del self._asked[server]
            self._tell(server)

    @contextmanager
    def patience(self, server: str, client: Client, seconds: float) -> Generator[anyio.CancelScope]:
        """Wait for a server, of which only so long for persons of other clients. Then the scope is cancelled."""
        waiting = _Countdown(client, seconds)
        self._waiting.setdefault(server, []).append(waiting)
        self._tell(server)
        try:
            with waiting.scope:
                yield waiting.scope
        finally:
            self._waiting[server].remove(waiting)
            if not self._waiting[server]:
                del self._waiting[server]

    def _tell(self, server: str) -> None:
        asked = self._asked.get(server, [])
        for waiting in self._waiting.get(server, []):
            waiting.count(bool(asked) and waiting.client not in asked)


class _Countdown:
    """A call that waits; its time counts only while somebody else's person is asked."""

    def __init__(self, client: Client, seconds: float) -> None:
        self.client = client
        self.scope = anyio.CancelScope()
        self._left = seconds

    def count(self, counts: bool) -> None:
        is_counting = self.scope.deadline != inf
        if counts and not is_counting:
            self.scope.deadline = anyio.current_time() + self._left
        elif is_counting and not counts:
            self._left = max(0.0, self.scope.deadline - anyio.current_time())
            self.scope.deadline = inf


# SECURITY: a form that a server wants a person to fill in, as it may be shown (T4, T20, T29).
#
# Titles and descriptions are cleaned. Everything else in a form goes back to the server or is compared with the
# answer: names of fields, choices, defaults. Such a text is shown as it is; if that would not do, the form is not
# shown at all.


_MOST_WORDS = 1_000
"""Characters of one title or description."""
_MOST_CHARACTERS = 16_000
"""Of all texts of a form."""
_MOST_PARTS = 1_000
_DEEPEST = 8
_WORDS = ("title", "description")
_NAMING = ("properties",)
"""Where the keys are the server's own: a field may be called `title`."""

Form: TypeAlias = Mapping[str, Any]


class _UnfitError(Exception):
    """The form can't be shown."""


def shown_form(form: Form, secrets: frozenset[str]) -> dict[str, Any] | None:
    """The form for a person; None for one that is too large, or has something hidden or secret where it can't go."""
    try:
        return cast("dict[str, Any]", _Cleaning(secrets).clean(dict(form), depth=0))
    except _UnfitError:
        return None


class _Cleaning:
    def __init__(self, secrets: frozenset[str]) -> None:
        self._secrets = secrets
        self._characters = 0
        self._parts = 0

    def clean(self, value: object, *, depth: int, names_fields: bool = False) -> object:
        self._parts += 1
        if depth > _DEEPEST or self._parts > _MOST_PARTS:
            raise _UnfitError
        if isinstance(value, str):
            return self._exact(value)
        if isinstance(value, Mapping):
            items = cast("Mapping[str, object]", value).items()
            return {self._exact(key): self._member(key, each, depth, is_field=names_fields) for key, each in items}
        if isinstance(value, (list, tuple)):
            return [self.clean(each, depth=depth + 1) for each in cast("list[object]", value)]
        return value

    def _member(self, key: str, value: object, depth: int, *, is_field: bool) -> object:
        if key in _WORDS and isinstance(value, str) and not is_field:
            return self._counted(for_form(value, self._secrets, limit=_MOST_WORDS))
        return self.clean(value, depth=depth + 1, names_fields=key in _NAMING and not is_field)

    def _exact(self, text: str) -> str:
        if for_form(text, self._secrets, limit=_MOST_WORDS) != text:
            raise _UnfitError
        return self._counted(text)

    def _counted(self, text: str) -> str:
        self._characters += len(text)
        if self._characters > _MOST_CHARACTERS:
            raise _UnfitError
        return text


# SECURITY: what a person is asked through a client, and what counts as a yes (T1, T2, T20, T23, T29).
#
# A yes is an answer with the right field set to the right value: a client that accepts forms unseen, as they are,
# says no. Each question's key names exactly what is asked about.


_WIDTH = 100
_MOST_ARGUMENTS = 4_000
_MOST_MESSAGE = 4_000

GateAnswer: TypeAlias = Literal["once", "run", "no"]
_GATE_CHOICES = ("no", "once", "for this run")


def approval_question(request: ApprovalRequest, answer: StoredAnswer) -> Question:
    """May this server be started or reached? With all that the prompt at a terminal has, digest included."""
    server = request.server
    verb = "Start it with YOUR permissions, NOT sandboxed" if server.transport == "stdio" else "Connect to it"
    text = approval_prompt(request, answer, width=_WIDTH).strip("\n")
    return _yes_or_no(f"approve {request.digest}", text, f"{verb}: {server.name}")


def change_question(action: str, server: str, words: str) -> Question:
    """May this setting of the user's be changed? The model asks, the person decides."""
    return _yes_or_no(f"{action} {server}", words, f"{action.capitalize()} {server}")


def tools_question(server: str, prompt: str) -> Question:
    """May the tools of a new server, in whose texts the audit found something, be used?"""
    key = hashlib.sha256(prompt.encode("utf-8", "replace")).hexdigest()
    return _yes_or_no(f"tools {server} {key}", prompt, f"Let programs call the tools of {server}")


def is_yes(answer: FormAnswer) -> bool:
    """Whether a person agreed, and did not just send the form off."""
    return answer.action == "accept" and answer.content.get("agree") is True


def call_question(use: ToolUse) -> Question:
    """May this call be made? Shows the server, the tool, the arguments and why it is asked."""
    given = json.dumps(
        dict(use.arguments), ensure_ascii=False, indent=2, default=lambda each: f"<{type(each).__name__}>"
    )
    shown = given if len(given) <= _MOST_ARGUMENTS else f"{given[:_MOST_ARGUMENTS]}… ({len(given):,} characters)"
    text = (
        f"A program wants to call a tool.\nServer: {use.server}\nTool: {for_error(use.tool, limit=200)}\n"
        f"ArgumentReader: {for_terminal(shown)}\nWhy you are asked: {for_error(use.reason)}"
    )
    key = hashlib.sha256(f"{use.server}\0{use.tool}\0{given}".encode("utf-8", "replace")).hexdigest()
    choice = {"type": "string", "title": "Allow this call?", "enum": list(_GATE_CHOICES), "default": "no"}
    return Question(f"call {key}", text, _form({"allow": choice}))


def gate_answer(answer: FormAnswer) -> GateAnswer:
    """What the person said about a call."""
    said = answer.content.get("allow") if answer.action == "accept" else "no"
    return "once" if said == "once" else "run" if said == "for this run" else "no"


def passed_on(request: ElicitationRequest, secrets: frozenset[str] = frozenset()) -> Question | None:
    """A server's own question, under its name; None for one that is no form, or none that can be shown as it is."""
    form = None if request.schema is None else shown_form(request.schema, secrets)
    if form is None:
        return None
    shown = for_form(request.message, secrets, limit=_MOST_MESSAGE)
    head = f"The MCP server {request.server!r} asks (these are its words, not toolbridge's; never enter a password):"
    key = hashlib.sha256(f"{request.server}\0{request.message}".encode("utf-8", "replace")).hexdigest()
    return Question(f"server {key}", f"{head}\n{shown}", form)


def server_answer(answer: FormAnswer) -> ElicitationAnswer:
    """The person's answer for the server that asked."""
    return ElicitationAnswer(answer.action, answer.content if answer.action == "accept" else None)


def _yes_or_no(key: str, text: str, title: str) -> Question:
    return Question(key, text, _form({"agree": {"type": "boolean", "title": title, "default": False}}))


def _form(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


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
        """FormAnswer for exactly this snapshot: what the person is shown is what is kept and started."""
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
        return self._store.stamp()

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

    async def __call__(self, first: FirstListing) -> PinAnswer:
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
