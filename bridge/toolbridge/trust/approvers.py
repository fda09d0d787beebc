"""SECURITY: who decides whether a server may be started or reached: the store, a person at a terminal, the host.

Whatever goes wrong on the way to an answer is a refusal.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import anyio
import anyio.to_thread

from toolbridge.advice import advised, found_by
from toolbridge.callbacks import callback
from toolbridge.trust.approval_prompt import approval_prompt, question
from toolbridge.trust.approval_store import ApprovalStore, ApprovalStoreError, StoredAnswer
from toolbridge.trust.approver import Approval, ApprovalRequest, Approver, ApproverLike, DenyAll
from toolbridge.trust.sanitise import for_error
from toolbridge.trust.terminal_question import Terminal

Ask: TypeAlias = Callable[[ApprovalRequest], Approval | bool | Awaitable[Approval | bool]]

_YES = frozenset({"y", "yes"})


class StoredApprovals:
    """Approves what the store has an approval for, and says for anything else how to approve it.

    A server that is an object of the host's own program is approved: the host runs that code anyway.
    """

    def __init__(
        self, store: ApprovalStore | None = None, *, config_file: str | None = None, profiles: Sequence[str] = ()
    ) -> None:
        self.store = store or ApprovalStore()
        self._config_file = config_file
        """What `--config` was given, so that the command in a refusal finds the same server."""
        self._profiles = tuple(profiles)
        """What `--profile` was given, likewise."""

    async def approve(self, request: ApprovalRequest) -> Approval:
        """Answer from the store, as it is now."""
        if is_own_object(request):
            return Approval(True)
        try:
            answer = await anyio.to_thread.run_sync(self.store.answer, request)
        except ApprovalStoreError as error:
            return Approval(False, str(error).rstrip("."))
        return self.refusal(request, answer) or Approval(True)

    def stamp(self) -> object:
        """That of the store."""
        return self.store.stamp()

    async def still_approves(self, request: ApprovalRequest) -> bool:
        """What the store says now."""
        return (await self.approve(request)).approved

    def refusal(self, request: ApprovalRequest, answer: StoredAnswer) -> Approval | None:
        """Why not, and what to do; None for what is approved."""
        if answer.disabled:
            name = request.server.name
            return Approval(False, f"you disabled it; {advised(f'enable {name}')} takes that back")
        if answer.standing == "approved":
            return None
        day = answer.when.partition("T")[0]
        changes = ", ".join(for_error(change, limit=60) for change in answer.changes)
        reason = {
            "unknown": "nobody approved it",
            "changed": f"it is not what was approved on {day} ({changes} changed)",
            "revoked": f"its approval was revoked on {day}",
        }[answer.standing]
        return Approval(False, f"{reason}. {how_to_approve(request, self._config_file, self._profiles)}")


class TerminalApprover:
    """Asks the person at the terminal about what the store has no approval for, and remembers a yes.

    Without a terminal it is `StoredApprovals`. A no is not remembered: the question comes again at the next use.
    """

    def __init__(
        self,
        store: ApprovalStore | None = None,
        *,
        config_file: str | None = None,
        profiles: Sequence[str] = (),
        terminal: Terminal | None = None,
    ) -> None:
        self._stored = StoredApprovals(store, config_file=config_file, profiles=profiles)
        self._terminal = terminal or Terminal()
        self._turn: anyio.Lock | None = None

    async def approve(self, request: ApprovalRequest) -> Approval:
        """Answer from the store, or else ask."""
        if is_own_object(request):
            return Approval(True)
        # One question at a time, and each is asked with what the store says by then.
        self._turn = self._turn or anyio.Lock()
        async with self._turn:
            store = self._stored.store
            try:
                answer = await anyio.to_thread.run_sync(store.answer, request)
                refusal = self._stored.refusal(request, answer)
                if refusal is None:
                    return Approval(True)
                if answer.disabled or not self._terminal.is_there:
                    return refusal
                if not await ask_at_terminal(self._terminal, request, answer):
                    return Approval(False, "you said no")
                await anyio.to_thread.run_sync(store.approve, request)
            except ApprovalStoreError as error:
                return Approval(False, str(error).rstrip("."))
        return Approval(True)

    def stamp(self) -> object:
        """That of the store."""
        return self._stored.stamp()

    async def still_approves(self, request: ApprovalRequest) -> bool:
        """What the store says now."""
        return await self._stored.still_approves(request)


class CallbackApprover:
    """Asks a function of the host: for programs with a window, a chat, or a policy of their own.

    The function, plain or async, gives a bool or an `Approval`. With a store, a yes is remembered, and what was
    approved before is not asked again.
    """

    def __init__(self, ask: Ask, *, store: ApprovalStore | None = None) -> None:
        self._ask = callback("ask", ask, "ask", "request")
        self._stored = None if store is None else StoredApprovals(store)

    async def approve(self, request: ApprovalRequest) -> Approval:
        """Answer from the store, if there is one, or else ask."""
        store = None if self._stored is None else self._stored.store
        try:
            if self._stored is not None and store is not None:
                answer = await anyio.to_thread.run_sync(store.answer, request)
                refusal = self._stored.refusal(request, answer)
                if refusal is None:
                    return Approval(True)
                if answer.disabled:
                    return refusal
            approval = _as_approval(await self._ask(request))
            if store is not None and approval.approved is True:
                await anyio.to_thread.run_sync(store.approve, request)
        except ApprovalStoreError as error:
            return Approval(False, str(error).rstrip("."))
        return approval

    def stamp(self) -> object:
        """That of the store, if there is one."""
        return None if self._stored is None else self._stored.stamp()

    async def still_approves(self, request: ApprovalRequest) -> bool:
        """What the store says now; without one, a yes holds until the function is asked again."""
        return self._stored is None or await self._stored.still_approves(request)


def approver_of(given: ApproverLike | None) -> Approver:
    """The approver that a host gave: an object, or a function in its place; without one, nothing is approved.

    Raises:
        MisuseError: it is neither.
    """
    if given is None:
        return DenyAll()
    ask = callback("approver", given, "approve", "request")
    return given if hasattr(given, "approve") else CallbackApprover(ask)  # pyright: ignore[reportReturnType]


def _as_approval(given: object) -> Approval:
    if isinstance(given, bool):
        return Approval(given)
    if isinstance(given, Approval):
        return given
    return Approval(False, f"the host's function answered with a {type(given).__name__}, not a bool or an Approval")


async def ask_at_terminal(terminal: Terminal, request: ApprovalRequest, answer: StoredAnswer) -> bool:
    """Show the prompt and wait for a line. Only `y` and `yes` are a yes."""
    text = approval_prompt(request, answer, width=terminal.columns)
    line = await terminal.ask(text, question(request.server))
    return line.strip().lower() in _YES


def is_own_object(request: ApprovalRequest) -> bool:
    """Whether this is an object that the host made: no file and no plugin can."""
    server = request.server
    return server.transport == "in_process" and server.origin.kind == "code"


def how_to_approve(request: ApprovalRequest, config_file: str | None, profiles: Sequence[str] = ()) -> str:
    """The exact command, or what to write where there is none: it finds servers of files only.

    It asks a person. Models read this: how to approve without one is not for them (see `unattended_command`).
    """
    server = request.server
    if server.origin.kind == "code":
        return f'Its program can approve it: approver=ApproveDigests("{request.digest}")'
    return f"Run `{_command(server.name, config_file, profiles)}` if you trust it"


def unattended_command(request: ApprovalRequest, config_file: str | None, profiles: Sequence[str] = ()) -> str:
    """The command that approves exactly this where nobody can be asked."""
    return f"{_command(request.server.name, config_file, profiles)} --hash {request.digest} --yes"


def _command(name: str, config_file: str | None, profiles: Sequence[str]) -> str:
    return f"toolbridge approve {name}{found_by(config_file, profiles)}"
