"""SECURITY: approval of a server before it is started or reached (T1). Without an approver the answer is no.

Every path to a process or a connection asks: first use, `start_all`, respawn, reload.
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
    """The snapshot of a server to approve: exactly this is started or reached (no TOCTOU race)."""

    server: ServerConfig
    executable: str | None
    """The absolute path that the command resolves to; None for a server that is no process of ours."""
    digest: str
    """`sha256:…` over every setting that affects the program or the connection."""
    directory: str | None = None
    """The absolute working directory, configured or current; None for a server that is no process of ours."""
    target: str | None = None
    """The file behind the links of `executable`, if that is in the project or the server's directory."""


@dataclass(frozen=True, slots=True)
class Approval:
    """An answer, with the reason for a refusal and what to do about it."""

    approved: bool
    reason: str = ""


class Approver(Protocol):
    """Decides whether a server may be started or reached."""

    async def approve(self, request: ApprovalRequest) -> Approval:
        """Answers for this exact request; may wait for a person. An exception counts as a refusal."""
        ...


ApproverLike: TypeAlias = Approver | Callable[[ApprovalRequest], Approval | bool | Awaitable[Approval | bool]]


@runtime_checkable
class AsksSomebody(Protocol):
    """An approver that asks different persons for different users of a server."""

    def asker(self) -> object:
        """Returns whom `approve` would ask for the current task. Tasks with the same asker share one question."""
        ...


@runtime_checkable
class MayTakeBack(Protocol):
    """An approver whose approvals can be revoked elsewhere while their servers are connected."""

    def stamp(self) -> object:
        """Returns a value that changes with any decision; cheap to read."""
        ...

    async def still_approves(self, request: ApprovalRequest) -> bool:
        """Whether exactly this request is still approved. Doesn't ask."""
        ...


class DenyAll:
    """Refuses every server: the default."""

    async def approve(self, request: ApprovalRequest) -> Approval:
        """Refuses; the reason names the digest."""
        return Approval(False, f"no approver was given, and nobody approved {request.digest}")


class ApproveDigests:
    """Approves exactly these snapshots, by digest: for unattended set-ups."""

    def __init__(self, *digests: str) -> None:
        """Takes the digests (`sha256:…`) of the requests to approve; their form is not checked."""
        self._digests = frozenset(digests)
        self.unused = set(digests)
        """Digests that were in no request so far."""

    async def approve(self, request: ApprovalRequest) -> Approval:
        """Approves a listed digest, which then is no longer among `unused`; refuses others."""
        if request.digest in self._digests:
            self.unused.discard(request.digest)
            return Approval(True)
        return Approval(False, f"its digest {request.digest} is not among those approved")


# SECURITY: the facts stored beside a digest, to name a later difference: references and names, never values (T35).

MOST_ARGUMENTS = 60
MOST_CHARACTERS = 300
"""Of one stored text."""

_REFERENCE = re.compile(r"(?<!\$)\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")


def references(text: str) -> tuple[str, ...]:
    """The variables that a value references, in order."""
    return tuple(dict.fromkeys(_REFERENCE.findall(text)))


def masked_value(text: str) -> str:
    """Returns a value of `env` or `headers` without secrets: its references if it has nothing else, else `***`."""
    names = references(text)
    bare = _REFERENCE.sub("", text) == ""
    return " ".join(f"${{{name}}}" for name in names) if names and bare else MASK


def approved_facts(request: ApprovalRequest) -> dict[str, object]:
    """Returns the facts of an approved request, for people: masked, cut, and without empty fields."""
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
    """Names the facts that differ; if none does, says that it is a value that is not stored."""
    changed = tuple(name for name in {**now, **before} if before.get(name) != now.get(name))
    return changed or ("a value that is not shown",)


def _values(values: Mapping[str, str]) -> dict[str, str]:
    return {_cut(name): _cut(masked_value(values[name])) for name in sorted(values)[:MOST_ARGUMENTS]}


def _sign_in(server: ServerConfig) -> dict[str, object]:
    """Returns the OAuth client and scopes of a server; empty without OAuth."""
    if server.oauth is None:
        return {}
    scopes = [_cut(scope) for scope in sorted(server.oauth.scopes)[:MOST_ARGUMENTS]]
    return {"clientId": _cut(server.oauth.client_id or ""), "scopes": scopes}


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"


# SECURITY: questions at a terminal. Input typed before the question is discarded: it is no answer to it.

_MOST_BYTES = 4096
_WIDEST = 100


class Terminal:
    """The terminal that this program was started from: reads from stdin, writes to stderr."""

    @property
    def is_there(self) -> bool:
        """Whether both streams are a terminal."""
        return _is_terminal(sys.stdin) and _is_terminal(sys.stderr)

    @property
    def columns(self) -> int:
        """The width of a prompt, at most `_WIDEST`."""
        return min(shutil.get_terminal_size((80, 24)).columns, _WIDEST)

    async def ask(self, text: str, question: str) -> str:
        """Shows a text, discards input typed before, asks, and waits for a line; empty at the end of input."""
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
    """Whether a stream is a terminal; a missing or closed one is none."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def _write(text: str) -> None:
    """Writes to stderr at once; characters that its encoding lacks are escaped."""
    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stderr.flush()
