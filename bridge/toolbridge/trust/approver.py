"""SECURITY: the one question before any server is started or reached. Without an approver the answer is no.

`servers` asks here on every path to a process or a connection: first use, `start_all`, respawn, reload.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

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
