"""SECURITY: what a guest asks of its host when it may not call it: it writes that down, and is put aside.

guest/WIRE.md is the specification. Every number here is the guest's word; where it means an address or a length, the
run's state checks it as it does for an import.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from toolbridge.boundary.memory import GuestMemory
from toolbridge.boundary.run_state import RunEnded, RunState

CALL, START, WAIT, TAKE, LOG, NOW = 1, 2, 3, 4, 5, 6
"""Operations: the imports of the same names."""

_QUESTION = Struct("<I12xq4I")
_ANSWER = Struct("<IIq")
MAILBOX_BYTES = _QUESTION.size
_SIGN = 1 << 63


class Asked(NamedTuple):
    """One request: which import the guest would call, and with what."""

    operation: int
    number: int
    """Of `wait` only: its microseconds."""
    first: int
    second: int
    third: int
    fourth: int


class Mailbox:
    """The mailbox of one guest: in front of its inbox."""

    __slots__ = ("_place",)

    def __init__(self, memory: GuestMemory, inbox: int) -> None:
        self._place = memory.place(inbox - MAILBOX_BYTES, MAILBOX_BYTES)

    def read(self) -> Asked | None:
        """What the guest asks for; None if it was put aside for another reason."""
        content = _QUESTION.unpack(self._place)
        return Asked._make(content) if content[0] else None

    def answer(self, number: int) -> None:
        """The guest gets this when it goes on."""
        number &= 2 * _SIGN - 1
        _ANSWER.pack_into(self._place, 0, 0, 0, number - 2 * _SIGN if number >= _SIGN else number)


def answer(state: RunState, asked: Asked) -> int:
    """Does what the guest asked for, on this thread, however long it takes.

    Raises:
        RunEnded: the run is over; why is in its state.
    """
    try:
        return _answer(state, asked)
    except Exception as error:
        state.end_for(error)
        raise RunEnded from None


def _answer(state: RunState, asked: Asked) -> int:
    operation, number, first, second, third, fourth = asked
    if operation == CALL:
        return state.call(first, second, third, fourth)
    if operation == START:
        return state.start(first, second)
    if operation == WAIT:
        return state.wait(number, first, second)
    if operation == TAKE:
        return state.take(first, second)
    if operation == LOG:
        state.log(first, second, third)
        return 0
    if operation == NOW:
        return state.now(first)
    state.end("protocol", f"The guest asked for operation {operation}, which doesn't exist.")
    raise RunEnded
