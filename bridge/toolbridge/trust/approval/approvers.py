"""SECURITY: approvers of servers: the store, a person at a terminal, a callback of the host; and their prompt (T1).

Any error on the way to an answer is a refusal.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import anyio
import anyio.to_thread

from toolbridge.callbacks import callback
from toolbridge.config.secret_values import MASK, masked_url
from toolbridge.config.server_config import Origin, ServerConfig
from toolbridge.errors import advised, found_by
from toolbridge.trust.approval.approver import (
    Approval,
    ApprovalRequest,
    Approver,
    ApproverLike,
    DenyAll,
    Terminal,
    references,
)
from toolbridge.trust.approval.store import ApprovalStore, ApprovalStoreError, StoredAnswer
from toolbridge.trust.approval.warnings import approval_warnings
from toolbridge.trust.sanitise import for_error, visible, word, wrapped

# SECURITY: the approval prompt (T2, T20, T24).
#
# Text from a configuration is sanitised by `visible` and `word`: on its own lines, inert, unambiguous. A long prompt is
# shown in full, then shortened, so that the warning and the question stay on the screen, and nothing is left out.

PROCESS_WARNING = "⚠️ This MCP server runs as a full OS process with YOUR permissions. It is NOT sandboxed."
REMOTE_WARNING = "⚠️ This MCP server runs elsewhere: what is sent to it leaves your control."
OBJECT_WARNING = "⚠️ This MCP server is a part of the program that you run, and is NOT sandboxed."

_LABEL = 12
_MOST_LINES = 8
"""Of one row, in the shortened part."""
_ORIGINS: Mapping[str, str] = {
    "user": "your own file",
    "project": "project file",
    "plugin": "plugin",
    "code": "the program that you run",
}
_QUESTIONS = {
    "process": "Start it with YOUR permissions, NOT sandboxed? [y/N] ",
    "remote": "Connect to it? [y/N] ",
}


_Row: TypeAlias = tuple[str, tuple[str, ...]]
"""A label, and its words."""


def warning_line(server: ServerConfig) -> str:
    """Returns the warning for a server's transport, always shown as one line."""
    if server.transport == "stdio":
        return PROCESS_WARNING
    return OBJECT_WARNING if server.transport == "in_process" else REMOTE_WARNING


def approval_prompt(request: ApprovalRequest, answer: StoredAnswer, *, width: int = 80) -> str:
    """Returns the approval prompt, without the question: configuration, digest, history and warnings.

    A long configuration is shown in full, then shortened. Reads no file's content, but looks at the program's place.
    """
    width = max(40, width)
    rows = list(_rows(request))
    room = width - 2 - _LABEL
    full = [(label, wrapped(words, room)) for label, words in rows]
    lines: list[str] = []
    if any(len(each) > _MOST_LINES for _, each in full):
        lines += ["", _rule(f"All of the configuration of {visible(request.server.name)}", width)]
        lines += [line for label, each in full for line in _labelled(label, each)]
    lines += ["", _rule(_title(request.server), width)]
    lines += [line for label, each in full for line in _labelled(label, _shortened(each))]
    lines += [f"  Digest {request.digest}", ""]  # its 71 characters fit behind no wider label
    for sentence in (_history(answer), *approval_warnings(request)):
        first, *rest = wrapped(sentence.split(" "), width - 4)
        lines += [f"  • {first}", *(f"    {line}" for line in rest)]
    lines += ["", _set_in(warning_line(request.server), width), ""]
    return "\n".join(lines)


def question(server: ServerConfig) -> str:
    """The question below the prompt."""
    return _QUESTIONS["process" if server.transport in ("stdio", "in_process") else "remote"]


def _title(server: ServerConfig) -> str:
    verb = "start" if server.transport in ("stdio", "in_process") else "connect to"
    return f"Approve to {verb} the MCP server {visible(server.name)}?"


def _rule(text: str, width: int) -> str:
    return f"── {text} ".ljust(width, "─")


def _rows(request: ApprovalRequest) -> Iterator[_Row]:
    """Yields the rows of the prompt, with values masked; what a server doesn't configure is left out."""
    server = request.server
    yield ("Origin", _origin(server.origin))
    if server.display_name:
        yield ("Called", (word(server.display_name),))
    if server.command is not None:
        yield ("Command", tuple(word(each) for each in (server.command, *server.args)))
    if request.executable is not None:
        link = f"a link to {word(request.target)}" if request.target is not None else ""
        yield ("Program", _words(word(request.executable), link))
    if request.directory is not None:
        yield ("Directory", _words(word(request.directory), "(the current one)" if server.cwd is None else ""))
    if server.url is not None:
        yield ("URL", (word(masked_url(server.url)),))
    if server.transport != "stdio":
        yield ("Transport", (server.transport,))
    if server.env:
        yield ("Variables", tuple(_values(server.env)))
    if server.env_required:
        yield ("Passed on", tuple(f"{word(name)}={MASK}" for name in server.env_required))
    if server.inherit_env:
        yield ("inheritEnv", _words("true:", "ALL variables of your environment are passed on"))
    if server.headers:
        yield ("Headers", tuple(_values(server.headers)))
    if server.oauth is not None:
        scopes = [word(scope) for scope in server.oauth.scopes]
        client = [f"client {word(server.oauth.client_id)}"] if server.oauth.client_id else []
        yield ("Sign-in", ("OAuth", *client, *(("scopes", *scopes) if scopes else ())))


def _origin(origin: Origin) -> tuple[str, ...]:
    return (*_ORIGINS[origin.kind].split(), *((word(origin.detail),) if origin.detail else ()))


def _values(values: Mapping[str, str]) -> Iterator[str]:
    """Yields names with masked values, and the names of the user's variables that go into them."""
    for name, value in values.items():
        sources = " ".join(f"${{{each}}}" for each in references(value))
        yield f"{word(name)}={MASK}" + (f" (from {sources})" if sources else "")


def _history(answer: StoredAnswer) -> str:
    """Says in one sentence what this user decided before about the server."""
    day = answer.when.partition("T")[0]
    if answer.standing == "changed":
        return f"CHANGED since you approved it on {day}: {', '.join(map(visible, answer.changes))}."
    if answer.standing == "revoked":
        return f"You revoked its approval on {day}."
    return f"You approved exactly this on {day}." if answer.standing == "approved" else "It was never approved before."


def _set_in(line: str, width: int) -> str:
    """Indents the warning so that a terminal wraps it between words; its sign may take one column or two."""
    _, _, words = line.partition("\ufe0f")
    for indent in range(2, 16):  # wider than the longest word
        place = width - indent - 2
        if place >= len(words) or words[place] == " ":
            return " " * indent + line
    return line


def _shortened(lines: list[str]) -> list[str]:
    """Cuts lines out of the middle of a row of more than eight, and says how many; the full row is shown above."""
    if len(lines) <= _MOST_LINES:
        return lines
    tail = 2
    head = _MOST_LINES - tail - 1
    left_out = len(lines) - head - tail
    return [*lines[:head], f"[… {left_out:,} lines: see above …]", *lines[-tail:]]


def _labelled(label: str, lines: Iterable[str]) -> list[str]:
    first, *rest = [*lines] or [""]
    return [f"  {label.ljust(_LABEL)}{first}", *(" " * (2 + _LABEL) + line for line in rest)]


def _words(*words: str) -> tuple[str, ...]:
    return tuple(each for each in words if each)


Ask: TypeAlias = Callable[[ApprovalRequest], Approval | bool | Awaitable[Approval | bool]]

_YES = frozenset({"y", "yes"})


class StoredApprovals:
    """Approves servers that the store has an approval for; a refusal names the command that approves.

    An in-process server of the host's own program is approved: the host runs that code anyway.
    """

    def __init__(
        self, store: ApprovalStore | None = None, *, config_file: str | None = None, profiles: Sequence[str] = ()
    ) -> None:
        """Answers from `store` (default: the user's); refusals advise a command with `config_file` and `profiles`."""
        self.store = store or ApprovalStore()
        self._config_file = config_file
        self._profiles = tuple(profiles)

    async def approve(self, request: ApprovalRequest) -> Approval:
        """Answers from the store, read anew; asks nobody. An unusable store is a refusal."""
        if is_own_object(request):
            return Approval(True)
        try:
            answer = await anyio.to_thread.run_sync(self.store.answer, request)
        except ApprovalStoreError as error:
            return Approval(False, str(error).rstrip("."))
        return self.refusal(request, answer) or Approval(True)

    def stamp(self) -> object:
        """The stamp of the store."""
        return self.store.stamp()

    async def still_approves(self, request: ApprovalRequest) -> bool:
        """Whether the store approves this now."""
        return (await StoredApprovals.approve(self, request)).approved

    def refusal(self, request: ApprovalRequest, answer: StoredAnswer) -> Approval | None:
        """Returns the refusal, with its reason and remedy; None if approved, and not disabled."""
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


class TerminalApprover(StoredApprovals):
    """Asks the person at the terminal about servers without an approval in the store, and stores a yes.

    Without a terminal it is `StoredApprovals`. A no is not stored: the question comes again at the next use.
    """

    def __init__(
        self,
        store: ApprovalStore | None = None,
        *,
        config_file: str | None = None,
        profiles: Sequence[str] = (),
        terminal: Terminal | None = None,
    ) -> None:
        """Takes the arguments of `StoredApprovals`; `terminal` replaces the one that this program was started from."""
        super().__init__(store, config_file=config_file, profiles=profiles)
        self._terminal = terminal or Terminal()
        self._turn: anyio.Lock | None = None

    async def approve(self, request: ApprovalRequest) -> Approval:
        """Answers from the store, else asks and waits, one question at a time; stores a yes.

        Doesn't ask about servers that this user disabled. An unusable store is a refusal.
        """
        if is_own_object(request):
            return Approval(True)
        # One question at a time; each reads the store again first.
        self._turn = self._turn or anyio.Lock()
        async with self._turn:
            try:
                answer = await anyio.to_thread.run_sync(self.store.answer, request)
                refusal = self.refusal(request, answer)
                if refusal is None:
                    return Approval(True)
                if answer.disabled or not self._terminal.is_there:
                    return refusal
                if not await ask_at_terminal(self._terminal, request, answer):
                    return Approval(False, "you said no")
                await anyio.to_thread.run_sync(self.store.approve, request)
            except ApprovalStoreError as error:
                return Approval(False, str(error).rstrip("."))
        return Approval(True)


class CallbackApprover:
    """Asks a callback of the host: for programs with a window, a chat, or a policy of their own.

    The callback, plain or async, returns a bool or an `Approval`. With a store, a yes is stored, and the callback is
    not asked about stored approvals.
    """

    def __init__(self, ask: Ask, *, store: ApprovalStore | None = None) -> None:
        """Takes the callback, and the store to use, if any. Raises MisuseError if `ask` can't be called so."""
        self._ask = callback("ask", ask, "ask", "request")
        self._stored = None if store is None else StoredApprovals(store)

    async def approve(self, request: ApprovalRequest) -> Approval:
        """Answers from the store, if there is one, else asks; stores a yes. Raises what the callback raises.

        Doesn't ask about servers that this user disabled. An unusable store is a refusal.
        """
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
        """The stamp of the store; None without one."""
        return None if self._stored is None else self._stored.stamp()

    async def still_approves(self, request: ApprovalRequest) -> bool:
        """Whether the store approves this now; asks nobody. Without a store, a yes holds until the next question."""
        return self._stored is None or await self._stored.still_approves(request)


def approver_of(given: ApproverLike | None) -> Approver:
    """Returns an approver for an object or a callback of the host; None refuses every server.

    Raises:
        MisuseError: it is neither.
    """
    if given is None:
        return DenyAll()
    ask = callback("approver", given, "approve", "request")
    return given if hasattr(given, "approve") else CallbackApprover(ask)  # pyright: ignore[reportReturnType]


def _as_approval(given: object) -> Approval:
    """Returns the callback's answer as an approval; anything but a bool or an `Approval` is a refusal."""
    if isinstance(given, bool):
        return Approval(given)
    if isinstance(given, Approval):
        return given
    return Approval(False, f"the host's function answered with a {type(given).__name__}, not a bool or an Approval")


async def ask_at_terminal(terminal: Terminal, request: ApprovalRequest, answer: StoredAnswer) -> bool:
    """Shows the prompt and waits for a line. Only `y` and `yes` are a yes."""
    text = approval_prompt(request, answer, width=terminal.columns)
    line = await terminal.ask(text, question(request.server))
    return line.strip().lower() in _YES


def is_own_object(request: ApprovalRequest) -> bool:
    """Whether the server is an in-process object of the host: no file and no plugin can configure one."""
    server = request.server
    return server.transport == "in_process" and server.origin.kind == "code"


def how_to_approve(request: ApprovalRequest, config_file: str | None, profiles: Sequence[str] = ()) -> str:
    """Returns the command that asks a person to approve, or the code for a server of a program.

    Models read this, so it doesn't name the command that approves without a person (see `unattended_command`).
    """
    server = request.server
    if server.origin.kind == "code":
        return f'Its program can approve it: approver=ApproveDigests("{request.digest}")'
    return f"Run `{_command(server.name, config_file, profiles)}` if you trust it"


def unattended_command(request: ApprovalRequest, config_file: str | None, profiles: Sequence[str] = ()) -> str:
    """The command that approves exactly this without asking."""
    return f"{_command(request.server.name, config_file, profiles)} --hash {request.digest} --yes"


def _command(name: str, config_file: str | None, profiles: Sequence[str]) -> str:
    return f"toolbridge approve {name}{found_by(config_file, profiles)}"
