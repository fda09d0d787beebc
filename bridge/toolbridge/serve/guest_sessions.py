"""SECURITY: state that programs leave for the next, one client's only, within limits (T33).

A session's id is random and its owner is compared: a guessed, expired or foreign id are all the same, unknown.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from toolbridge import Limits, Runtime, RuntimeSession
from toolbridge.serve.arguments import ArgumentError
from toolbridge.serve.caller import Client, ClientKey

if TYPE_CHECKING:
    from toolbridge.runtime import Language

NEW = "new"


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """How much state is kept."""

    total: int = 16
    """Sessions of all clients together. 0 for none at all."""
    of_client: int = 4
    """Of one peer address over HTTP, through however many HTTP sessions. More if there are more than 16 in all."""
    idle_seconds: float = 900.0
    memory_bytes: int = 64 * 2**20
    """Of each session's guest."""

    @property
    def share(self) -> int:
        """Of one client: a quarter, if that is more."""
        return max(self.of_client, self.total // 4)


class GuestSession:
    """One guest that is kept."""

    def __init__(self, name: str, owner: Client, language: Language, session: RuntimeSession) -> None:
        self.id = name
        self.owner = owner.key
        self.peer = owner.peer
        self.language: Language = language
        self.session = session
        self.is_busy = False
        self.used = monotonic()


class GuestSessions:
    """All sessions of all clients."""

    def __init__(self, runtime: Runtime, limits: SessionLimits, run_limits: Limits) -> None:
        self._runtime = runtime
        self._limits = limits
        self._run_limits = run_limits
        self._sessions: dict[str, GuestSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, wanted: str, owner: Client, language: Language) -> GuestSession:
        """The session to run in, taken: give it back with `release`.

        Raises:
            ArgumentError: there is none like this, it is busy, or there are too many.
        """
        if wanted == NEW:
            session = self._open(owner, language)
        else:
            found = self._sessions.get(wanted)
            if found is None or found.owner != owner.key:
                raise ArgumentError(
                    f'There is no session {wanted[:64]!r}: it has ended, and its state is gone. Use "new".'
                )
            if found.is_busy:
                raise ArgumentError(f"Session {wanted!r} is busy with another program. Wait for that, or use another.")
            if found.language != language:
                raise ArgumentError(f"Session {wanted!r} is for {found.language}.")
            session = found
        session.is_busy = True
        return session

    def release(self, session: GuestSession) -> None:
        """The program is over."""
        session.is_busy = False
        session.used = monotonic()

    def close_idle(self) -> None:
        """Forget those that nobody used for too long."""
        now = monotonic()
        for session in list(self._sessions.values()):
            if not session.is_busy and now - session.used > self._limits.idle_seconds:
                self._close(session)

    def close_of(self, owner: ClientKey) -> None:
        """A client is gone."""
        for session in list(self._sessions.values()):
            if session.owner == owner:
                self._close(session)

    def close(self) -> None:
        """All of them."""
        for session in list(self._sessions.values()):
            self._close(session)

    def _open(self, owner: Client, language: Language) -> GuestSession:
        self.close_idle()
        own = [each for each in self._sessions.values() if each.peer == owner.peer]
        if len(own) >= self._limits.share:
            self._make_room(owner, own)
        elif len(self._sessions) >= self._limits.total:
            raise self._too_many(owner, own)
        kept = self._run_limits.with_(memory_bytes=self._limits.memory_bytes)
        name = secrets.token_hex(16)
        session = GuestSession(name, owner, language, self._runtime.session(language, limits=kept))
        self._sessions[name] = session
        return session

    def _make_room(self, owner: Client, own: list[GuestSession]) -> None:
        """Of one address, who has none evicts the least recently used idle session; who has one is told to use it."""
        idle = [each for each in own if not each.is_busy]
        if not idle or any(each.owner == owner.key for each in own):
            raise self._too_many(owner, own)
        self._close(min(idle, key=lambda each: each.used))

    def _too_many(self, owner: Client, own: list[GuestSession]) -> ArgumentError:
        yours = f"{len(own)} of {'your address' if owner.peer else 'yours'}"
        return ArgumentError(
            f"There are too many sessions ({yours}, {len(self._sessions)} in all): use an earlier one, or none. "
            f"One that is not used for {self._limits.idle_seconds:.0f} seconds ends."
        )

    def _close(self, session: GuestSession) -> None:
        self._sessions.pop(session.id, None)
        session.session.close()
