"""How a server stands with the approvals that are kept, for the commands that show it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from toolbridge.advice import advised
from toolbridge.trust.sanitise import for_error

if TYPE_CHECKING:
    from toolbridge import ServerConfig

_IN_A_WORD: Mapping[str, str] = {"unknown": "needed", "unclear": "?"}


@dataclass(frozen=True, slots=True)
class ApprovalState:
    """What the store says of a server as it is configured now."""

    standing: Literal["approved", "unknown", "changed", "revoked", "unclear"]
    """`unclear` where it can't be told: `problem` says why."""
    digest: str | None = None
    when: str = ""
    changes: tuple[str, ...] = ()
    problem: str = ""

    @property
    def in_a_word(self) -> str:
        """For a table."""
        return _IN_A_WORD.get(self.standing, self.standing)


def approval_state(server: ServerConfig) -> ApprovalState:
    """How a server stands. Nothing is started or reached."""
    from toolbridge import ToolbridgeError
    from toolbridge.servers.start import prepare
    from toolbridge.trust.approval_store import ApprovalStore

    digest = None
    try:
        request, _ = prepare(server, os.environ)
        digest = request.digest
        answer = ApprovalStore().answer(request)
    except ToolbridgeError as error:
        return ApprovalState("unclear", digest, problem=str(error))
    return ApprovalState(answer.standing, digest, answer.when, answer.changes)


def approval_words(facts: Mapping[str, Any]) -> list[str]:
    """The lines of `toolbridge info` about it."""
    approval: dict[str, str | None] = facts["approval"]
    day = (approval["when"] or "").partition("T")[0]
    words = {
        "approved": f"approved on {day}",
        "unknown": f"needed: {advised('approve ' + facts['name'])}",
        "changed": f"needed again: {', '.join(facts['changes'])} changed since {day}",
        "revoked": f"revoked on {day}",
        "unclear": f"can't be told: {facts['approvalProblem']}",
    }
    lines = [f"approval   {for_error(words[approval['standing'] or 'unclear'])}"]
    return [*lines, f"digest     {approval['digest']}"] if approval["digest"] else lines
