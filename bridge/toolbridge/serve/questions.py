"""SECURITY: what a person is asked through a client, and what counts as a yes (T1, T2, T20, T23, T29).

A yes is an answer with the right field set to the right value: a client that accepts forms unseen, as they are, says
no. Each question's key names exactly what is asked about.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal, TypeAlias

from toolbridge import ApprovalRequest, ElicitationAnswer, ElicitationRequest, ToolUse
from toolbridge.serve.caller import Answer, Question
from toolbridge.serve.server_forms import shown_form
from toolbridge.trust.approval_prompt import approval_prompt
from toolbridge.trust.approval_store import StoredAnswer
from toolbridge.trust.sanitise import for_error, for_form, for_terminal

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


def is_yes(answer: Answer) -> bool:
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
        f"Arguments: {for_terminal(shown)}\nWhy you are asked: {for_error(use.reason)}"
    )
    key = hashlib.sha256(f"{use.server}\0{use.tool}\0{given}".encode("utf-8", "replace")).hexdigest()
    choice = {"type": "string", "title": "Allow this call?", "enum": list(_GATE_CHOICES), "default": "no"}
    return Question(f"call {key}", text, _form({"allow": choice}))


def gate_answer(answer: Answer) -> GateAnswer:
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


def server_answer(answer: Answer) -> ElicitationAnswer:
    """The person's answer for the server that asked."""
    return ElicitationAnswer(answer.action, answer.content if answer.action == "accept" else None)


def _yes_or_no(key: str, text: str, title: str) -> Question:
    return Question(key, text, _form({"agree": {"type": "boolean", "title": title, "default": False}}))


def _form(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}
