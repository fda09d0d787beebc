"""SECURITY: shares of a limited resource: a dynamic threshold in two levels, addresses and their clients (T27)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from toolbridge.serve.caller import ClientKey

LOOPBACK = "loopback"
"""The peer of every client on this machine: each of its programs has all of 127.0.0.0/8 to connect from."""


class Holder(NamedTuple):
    """One client of an address."""

    peer: str
    key: ClientKey


class Shares:
    """What is free is shared: an address holds at most as much as is free (alone: half).

    A client of it holds at most as much as its address may still take (alone: a quarter of all). However many are
    greedy, each leaves room for one more. Loopback is the whole machine: there, each client has an address's threshold.
    """

    def __init__(self, total: int) -> None:
        self.free = total
        self._of: Counter[Holder] = Counter()
        self._of_peer: Counter[str] = Counter()

    def may_take(self, holder: Holder) -> bool:
        """Whether it may have one more."""
        room = self.free if holder.peer == LOOPBACK else (self.free - self._of_peer[holder.peer] + 1) // 2
        return self._of[holder] < room

    def held_by(self, peer: str) -> int:
        """How much an address holds."""
        return self._of_peer[peer]

    def greediest(self) -> str:
        """The address that holds the most."""
        return max(self._of_peer, key=self._of_peer.__getitem__, default="")

    def take(self, holder: Holder) -> None:
        """It has one more."""
        self.free -= 1
        self._of[holder] += 1
        self._of_peer[holder.peer] += 1

    def give_back(self, holder: Holder) -> None:
        """It has one less."""
        self.free += 1
        self._of[holder] -= 1
        self._of_peer[holder.peer] -= 1
        if not self._of[holder]:
            del self._of[holder]
        if not self._of_peer[holder.peer]:
            del self._of_peer[holder.peer]
