"""SECURITY: decisions while serving: stored approvals, else elicitation from the client's person (T1, T21, T29).

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
from toolbridge.trust.pins.review import tools_prompt
from toolbridge.trust.sanitise import for_error, for_form, for_terminal

if TYPE_CHECKING:
    from toolbridge.trust.pins.pins import Answer as PinAnswer
    from toolbridge.trust.pins.pins import FirstListing


# Open questions about servers' tools: calls of other clients wait only so long for the answer.


class OpenQuestions:
    """Open questions about servers' tools, and the calls that wait for those servers."""

    def __init__(self) -> None:
        self._asked: dict[str, list[Client]] = {}
        self._waiting: dict[str, list[_Countdown]] = {}

    @contextmanager
    def about(self, server: str, client: Client) -> Generator[None]:
        """Marks a client's person as being asked about a server's tools.

        Calls of other clients count down meanwhile.
        """
        self._asked.setdefault(server, []).append(client)
        self._update_countdowns(server)
        try:
            yield
        finally:
            self._asked[server].remove(client)
            if not self._asked[server]:
                del self._asked[server]
            self._update_countdowns(server)

    @contextmanager
    def patience(self, server: str, client: Client, seconds: float) -> Generator[anyio.CancelScope]:
        """Yields a scope to wait for a server in; cancels it after `seconds` of waiting for other clients' persons."""
        waiting = _Countdown(client, seconds)
        self._waiting.setdefault(server, []).append(waiting)
        self._update_countdowns(server)
        try:
            with waiting.scope:
                yield waiting.scope
        finally:
            self._waiting[server].remove(waiting)
            if not self._waiting[server]:
                del self._waiting[server]

    def _update_countdowns(self, server: str) -> None:
        """Starts or stops the countdown of each call that waits for a server."""
        asked = self._asked.get(server, [])
        for waiting in self._waiting.get(server, []):
            waiting.count(bool(asked) and waiting.client not in asked)


class _Countdown:
    """A waiting call's timeout: runs only while another client's person is asked."""

    def __init__(self, client: Client, seconds: float) -> None:
        self.client = client
        self.scope = anyio.CancelScope()
        self._left = seconds

    def count(self, counts: bool) -> None:
        """Starts the countdown, or stops it and keeps the seconds left."""
        is_counting = self.scope.deadline != inf
        if counts and not is_counting:
            self.scope.deadline = anyio.current_time() + self._left
        elif is_counting and not counts:
            self._left = max(0.0, self.scope.deadline - anyio.current_time())
            self.scope.deadline = inf


# SECURITY: forms of servers, as shown to a person (T4, T20, T29).
# #
# # Titles and descriptions are sanitised. The rest of a form goes back to the server or is compared with the answer:
# answer: names of fields, choices, defaults. Such text is shown unchanged; a form that sanitising would change is
# # refused.


_MOST_WORDS = 1_000
"""Characters of one title or description."""
_MOST_CHARACTERS = 16_000
"""Of all text of a form."""
_MOST_PARTS = 1_000
_DEEPEST = 8
_WORDS = ("title", "description")
_NAMING = ("properties",)
"""Keywords whose keys the server chooses: a field may be named `title`."""

Form: TypeAlias = Mapping[str, Any]


class _UnfitError(Exception):
    """The form can't be shown."""


def shown_form(form: Form, secrets: frozenset[str]) -> dict[str, Any] | None:
    """Copies a form with its titles and descriptions sanitised, for a person to see.

    Returns None if it is too large, or needs sanitising or redaction anywhere else.
    """
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
        """Copies a part of a form; with `names_fields`, its keys are names that the server chose.

        Raises:
            _UnfitError: it is too large or too deep, or holds text that can't be shown as it is.
        """
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
        """Copies the value of a key; sanitises it if it is a title or description."""
        if key in _WORDS and isinstance(value, str) and not is_field:
            return self._counted(for_form(value, self._secrets, limit=_MOST_WORDS))
        return self.clean(value, depth=depth + 1, names_fields=key in _NAMING and not is_field)

    def _exact(self, text: str) -> str:
        """Returns a text as it is.

        Raises:
            _UnfitError: sanitising would change it, or the form has too much text.
        """
        if for_form(text, self._secrets, limit=_MOST_WORDS) != text:
            raise _UnfitError
        return self._counted(text)

    def _counted(self, text: str) -> str:
        """Returns a text after counting its characters.

        Raises:
            _UnfitError: the form has too much text.
        """
        self._characters += len(text)
        if self._characters > _MOST_CHARACTERS:
            raise _UnfitError
        return text


# SECURITY: questions to a person, and answers that count as a yes (T1, T2, T20, T23, T29).
# #
# # A yes needs the right field set to the right value: a client that accepts forms unseen says no. Each question's key
# # identifies its subject.


_WIDTH = 100
_MOST_ARGUMENTS = 4_000
_MOST_MESSAGE = 4_000

GateAnswer: TypeAlias = Literal["once", "run", "no"]
_GATE_CHOICES = ("no", "once", "for this run")


def approval_question(request: ApprovalRequest, answer: StoredAnswer) -> Question:
    """Makes the question whether to start or connect a server, with all that the terminal prompt shows."""
    server = request.server
    verb = "Start it with YOUR permissions, NOT sandboxed" if server.transport == "stdio" else "Connect to it"
    text = approval_prompt(request, answer, width=_WIDTH).strip("\n")
    return _yes_or_no(f"approve {request.digest}", text, f"{verb}: {server.name}")


def change_question(action: str, server: str, words: str) -> Question:
    """Makes the question whether to change a setting, as the model requested."""
    return _yes_or_no(f"{action} {server}", words, f"{action.capitalize()} {server}")


def tools_question(server: str, prompt: str) -> Question:
    """Makes the question whether programs may call a new server's tools, in whose text the audit has findings."""
    key = hashlib.sha256(prompt.encode("utf-8", "replace")).hexdigest()
    return _yes_or_no(f"tools {server} {key}", prompt, f"Let programs call the tools of {server}")


def is_yes(answer: FormAnswer) -> bool:
    """Returns whether a person agreed explicitly; submitting the form unchanged is no."""
    return answer.action == "accept" and answer.content.get("agree") is True


def call_question(use: ToolUse) -> Question:
    """Makes the question whether to allow a call: shows server, tool, arguments (truncated) and reason."""
    given = json.dumps(
        dict(use.arguments), ensure_ascii=False, indent=2, default=lambda each: f"<{type(each).__name__}>"
    )
    shown = given if len(given) <= _MOST_ARGUMENTS else f"{given[:_MOST_ARGUMENTS]}… ({len(given):,} characters)"
    text = (
        f"A program wants to call a tool.\nServer: {use.server}\nTool: {for_error(use.tool, limit=200)}\n"
        f"Arguments: {for_terminal(shown)}\nWhy you are asked: {for_error(use.reason)}"
    )
    key = hashlib.sha256(f"{use.server}\0{use.tool}\0{given}".encode("utf-8", "replace")).hexdigest()
    choice = {"type": "string", "title": "Allow this call?", "enum": list(_GATE_CHOICES), "default": "no"}
    return Question(f"call {key}", text, _form({"allow": choice}))


def gate_answer(answer: FormAnswer) -> GateAnswer:
    """Returns the decision in a person's answer about a call; anything but an explicit permission is "no"."""
    said = answer.content.get("allow") if answer.action == "accept" else "no"
    return "once" if said == "once" else "run" if said == "for this run" else "no"


def passed_on(request: ElicitationRequest, secrets: frozenset[str] = frozenset()) -> Question | None:
    """Makes a question of a server's own, under its name; None if it has no form, or one that can't be shown."""
    form = None if request.schema is None else shown_form(request.schema, secrets)
    if form is None:
        return None
    shown = for_form(request.message, secrets, limit=_MOST_MESSAGE)
    head = f"The MCP server {request.server!r} asks (these are its words, not toolbridge's; never enter a password):"
    key = hashlib.sha256(f"{request.server}\0{request.message}".encode("utf-8", "replace")).hexdigest()
    return Question(f"server {key}", f"{head}\n{shown}", form)


def server_answer(answer: FormAnswer) -> ElicitationAnswer:
    """Converts a person's answer for the server that asked; content is passed on only if accepted."""
    return ElicitationAnswer(answer.action, answer.content if answer.action == "accept" else None)


def _yes_or_no(key: str, text: str, title: str) -> Question:
    return Question(key, text, _form({"agree": {"type": "boolean", "title": title, "default": False}}))


def _form(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


_log = logging.getLogger("toolbridge")
_DECLINED = ElicitationAnswer("decline")


class ClientApprover:
    """Approves by the store, else asks the caller's person."""

    def __init__(self, store: ApprovalStore, *, config_file: str | None, asks: bool = True) -> None:
        self._store = store
        self._asks = asks
        self._stored = StoredApprovals(store, config_file=config_file)

    def asker(self) -> object:
        """Returns the client whose person can be asked now; None without one."""
        caller = current_caller()
        return caller.client if self._asks and caller is not None and caller.can_ask else None

    async def approve(self, request: ApprovalRequest) -> Approval:
        """Decides about exactly this snapshot, by the store, else by asking the caller's person and storing a yes.

        Waits for the person. A store that can't be written is a refusal.
        """
        known = await self._stored.approve(request)
        caller = current_caller()
        if known.approved or not self._asks or caller is None or not caller.can_ask:
            return known
        try:
            return await self._ask(request, caller, known)
        except ApprovalStoreError as error:
            return Approval(False, str(error).rstrip("."))

    def stamp(self) -> object:
        """Returns a value that changes when the store's file does."""
        return self._store.stamp()

    async def still_approves(self, request: ApprovalRequest) -> bool:
        """Returns whether the store still has the approval; asks nobody."""
        return await self._stored.still_approves(request)

    async def _ask(self, request: ApprovalRequest, caller: Caller, known: Approval) -> Approval:
        """Asks the caller's person, who is asked one question at a time."""
        async with caller.question_lock():
            return await self._answered(request, caller, known)

    async def _answered(self, request: ApprovalRequest, caller: Caller, known: Approval) -> Approval:
        """Reads the store again, asks unless it decides, and stores a yes.

        Raises:
            ApprovalStoreError: the approval can't be stored.
        """
        answer = await anyio.to_thread.run_sync(self._store.answer, request)
        refusal = self._stored.refusal(request, answer)
        if refusal is None:  # approved while this call waited for the question lock
            return Approval(True)
        if answer.disabled:
            return refusal
        said = await self._ask_once(request, answer, caller)
        if said:
            return Approval(False, f"the person {said}; before that, {known.reason}")
        await anyio.to_thread.run_sync(self._store.approve, request)
        return Approval(True)

    async def _ask_once(self, request: ApprovalRequest, answer: StoredAnswer, caller: Caller) -> str:
        """Asks, unless the person has refused or ignored it before; returns "" for a yes, else what the person did.

        A no holds while the client is known; no answer holds for this call.
        """
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
    """Decides calls that the permissions leave open: asks the person of the caller's client."""

    def can_ask(self) -> bool:
        """Returns whether the caller's client has elicitation, even if it can't ask now."""
        caller = current_caller()
        return caller is not None and caller.has_elicitation

    async def __call__(self, use: ToolUse) -> Decision:
        """Asks the caller's person whether to allow a call; waits for the answer, then for the run permit.

        Without elicitation a call is denied, unless `use.only_if_asked`: that one is allowed where nobody can be asked.
        """
        caller = current_caller()
        if caller is None or not caller.has_elicitation:
            if use.only_if_asked:
                return Decision(True)
            words = f"nobody can be asked through this client; allow mcp__{use.server}__{use.tool} in the configuration"
            return Decision(False, f"{words}, or use a client that has elicitation")
        async with caller.question_lock():
            could_ask = caller.can_ask
            answer = gate_answer(await caller.ask(call_question(use))) if could_ask else "no"
        await caller.resume()
        if not could_ask:
            return Decision(False, "too many questions in one call: the person can't be asked again before the next")
        if answer == "no":
            return Decision(False, "the person said no")
        return Decision(True, remember=answer == "run")


class ToolAcceptance:
    """Asks a person to accept tool definitions with audit findings; the others are used unseen.

    Definitions without findings are used unseen. Without a person to ask, high findings stay hidden, and the server's
    problems name the command that shows them: `toolbridge approve NAME`.
    """

    def __init__(self, questions: OpenQuestions, *, asks: bool = True) -> None:
        self._questions = questions
        self._asks = asks

    async def __call__(self, first: FirstListing) -> PinAnswer:
        """Asks the caller's person about findings: True or False by the answer, None without one.

        Returns "unseen" if there is nothing to ask about, or no person to ask.
        """
        caller = current_caller()
        if not self._asks or caller is None or not caller.has_elicitation:
            return "unseen"
        if not await anyio.to_thread.run_sync(lambda: first.findings):
            return "unseen"
        prompt = await anyio.to_thread.run_sync(partial(tools_prompt, first, width=100))
        question = tools_question(first.server.name, prompt)
        with self._questions.about(first.server.name, caller.client):
            async with caller.question_lock():
                answer = await caller.ask(question)
                return True if is_yes(answer) else None if answer.action == "cancel" else False


class PassedOn:
    """Passes a server's elicitation to the one client with calls in progress there; declines any other."""

    def __init__(
        self,
        callers_of: Callable[[str], Counter[Caller]],
        secrets_of: Callable[[str], frozenset[str]] = lambda _: frozenset(),
    ) -> None:
        self._callers_of = callers_of
        self._secrets_of = secrets_of

    async def elicit(self, request: ElicitationRequest) -> ElicitationAnswer:
        """Asks the person of the one client with calls at the server, and returns the answer.

        Declines, and logs why, if there is no such client or several, or if the form can't be shown.
        """
        callers = [caller for caller in self._callers_of(request.server) if caller.can_ask]
        if len({caller.client for caller in callers}) != 1:
            _log.warning("A question of server %r was declined: it belongs to no one client.", request.server)
            return _DECLINED
        question = passed_on(request, self._secrets_of(request.server))
        if question is None:
            _log.warning("Server %r wants a page opened, or has a form that can't be passed on.", request.server)
            return _DECLINED
        caller = callers[0]
        async with caller.question_lock():
            return server_answer(await caller.ask(question))
