"""SECURITY: the one question before any server is started or reached. Without an approver the answer is no.

`servers` asks here on every path to a process or a connection: first use, `start_all`, respawn, reload.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TextIO, TypeAlias, runtime_checkable

from toolbridge.config.secret_values import MASK, masked_arguments, masked_url
from toolbridge.config.server_config import ServerConfig


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What would be started or reached: exactly this snapshot, once approved."""

    server: ServerConfig
    executable: str | None
    """The absolute path that the command resolves to; None for a server that is no process of ours."""
    digest: str
    """`sha256:…` over everything that affects what runs."""
    directory: str | None = None
    """The absolute directory that it is started in, also where its configuration names none; else None."""
    target: str | None = None
    """The file that `executable` leads to by links, where it lies in the project or the server's directory."""


@dataclass(frozen=True, slots=True)
class Approval:
    """An answer, with the reason for a refusal and what to do about it."""

    approved: bool
    reason: str = ""


class Approver(Protocol):
    """Decides whether a server may be started or reached."""

    async def approve(self, request: ApprovalRequest) -> Approval:
        """Answer for this exact request; an exception counts as a refusal."""
        ...


ApproverLike: TypeAlias = Approver | Callable[[ApprovalRequest], Approval | bool | Awaitable[Approval | bool]]


@runtime_checkable
class AsksSomebody(Protocol):
    """An approver that does not ask the same person for everybody who uses a server."""

    def asker(self) -> object:
        """Whom `approve` would ask if this task called it now. Tasks with the same one share one question."""
        ...


@runtime_checkable
class MayTakeBack(Protocol):
    """An approver whose approvals can be taken back elsewhere, while what it approved is connected."""

    def stamp(self) -> object:
        """Something that is another once any decision may be. To be had without delay."""
        ...

    async def still_approves(self, request: ApprovalRequest) -> bool:
        """Whether exactly this, which it approved, is approved now. Asks nobody."""
        ...


class DenyAll:
    """Refuses every server: what holds until a host says otherwise."""

    async def approve(self, request: ApprovalRequest) -> Approval:
        """Refuse."""
        return Approval(False, f"no approver was given, and nobody approved {request.digest}")


class ApproveDigests:
    """Approves exactly these snapshots: for unattended set-ups that know what they start."""

    def __init__(self, *digests: str) -> None:
        self._digests = frozenset(digests)
        self.unused = set(digests)
        """Those that nobody has asked about so far."""

    async def approve(self, request: ApprovalRequest) -> Approval:
        """Approve what is listed."""
        if request.digest in self._digests:
            self.unused.discard(request.digest)
            return Approval(True)
        return Approval(False, f"its digest {request.digest} is not among those approved")


# SECURITY: what of a server is kept and shown besides its digest: references and names, never values (T35).
#
# Kept so that a later difference can be named. It decides nothing: the digest does.


MOST_ARGUMENTS = 60
MOST_CHARACTERS = 300
"""Of one text that is kept: a file of approvals is no place for megabytes."""

_REFERENCE = re.compile(r"(?<!\$)\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")


def references(text: str) -> tuple[str, ...]:
    """The variables that a value refers to, in order."""
    return tuple(dict.fromkeys(_REFERENCE.findall(text)))


def masked_value(text: str) -> str:
    """A value of `env` or `headers`: its references where it is made of nothing else, else nothing of it."""
    names = references(text)
    bare = _REFERENCE.sub("", text) == ""
    return " ".join(f"${{{name}}}" for name in names) if names and bare else MASK


def approved_facts(request: ApprovalRequest) -> dict[str, object]:
    """What was approved, for people. Empty fields are left out."""
    server = request.server
    args = [_cut(argument) for argument in masked_arguments(server.args[:MOST_ARGUMENTS])]
    if len(server.args) > MOST_ARGUMENTS:
        args.append(f"… {len(server.args) - MOST_ARGUMENTS} more")
    facts: dict[str, object] = {
        "transport": server.transport,
        "command": _cut(server.command or ""),
        "program": _cut(request.executable or ""),
        "target": _cut(request.target or ""),
        "args": args,
        "directory": _cut(request.directory or ""),
        "env": _values(server.env),
        "envRequired": sorted(map(_cut, server.env_required))[:MOST_ARGUMENTS],
        "inheritEnv": server.inherit_env,
        "url": _cut(masked_url(server.url)) if server.url else "",
        "headers": _values(server.headers),
        "oauth": _sign_in(server),
    }
    return {name: value for name, value in facts.items() if value}


def differences(before: Mapping[str, object], now: Mapping[str, object]) -> tuple[str, ...]:
    """Which facts differ; a digest may differ where none does, by a value that is not kept."""
    changed = tuple(name for name in {**now, **before} if before.get(name) != now.get(name))
    return changed or ("a value that is not shown",)


def _values(values: Mapping[str, str]) -> dict[str, str]:
    return {_cut(name): _cut(masked_value(values[name])) for name in sorted(values)[:MOST_ARGUMENTS]}


def _sign_in(server: ServerConfig) -> dict[str, object]:
    if server.oauth is None:
        return {}
    scopes = [_cut(scope) for scope in sorted(server.oauth.scopes)[:MOST_ARGUMENTS]]
    return {"clientId": _cut(server.oauth.client_id or ""), "scopes": scopes}


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"


# SECURITY: one question to the person at a terminal. No terminal, no question.
#
# What was typed before the question was shown is thrown away: it was no answer to it.


_MOST_BYTES = 4096
_WIDEST = 100


class Terminal:
    """The terminal that this program was started from: reads from stdin, writes to stderr."""

    @property
    def is_there(self) -> bool:
        """Whether somebody can read a question and answer it."""
        return _is_terminal(sys.stdin) and _is_terminal(sys.stderr)

    @property
    def columns(self) -> int:
        """How wide a prompt may be; not more than is pleasant to read."""
        return min(shutil.get_terminal_size((80, 24)).columns, _WIDEST)

    async def ask(self, text: str, question: str) -> str:
        """Show a text and a question, and give the line that is typed; empty at the end of input."""
        import termios

        import anyio

        _write(f"{text}\n")
        descriptor = sys.stdin.fileno()
        with contextlib.suppress(termios.error):
            termios.tcflush(descriptor, termios.TCIFLUSH)
        _write(question)
        # A terminal gives whole lines; until there is one, this can be cancelled.
        await anyio.wait_readable(descriptor)
        try:
            line = os.read(descriptor, _MOST_BYTES)
        except OSError:  # the terminal is gone
            line = b""
        if not line.endswith(b"\n"):
            _write("\n")
        return line.decode("utf-8", "replace")


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def _write(text: str) -> None:
    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stderr.flush()
