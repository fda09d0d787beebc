"""Guest memory: what lies inside can be read and written, everything else is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbridge.boundary.imports import GuestMemory
from toolbridge.boundary.run_state import OutOfBoundsError
from toolbridge.limits import Limits
from toolbridge.sandbox.engine import shared_engine
from toolbridge.sandbox.instance import Instance


@pytest.fixture(scope="module")
def memory() -> Iterator[GuestMemory]:
    engine = shared_engine()
    instance = Instance(engine.pointer, engine.image("javascript"), Limits().memory_bytes)
    yield instance.memory
    instance.close()


def test_the_size_is_a_whole_number_of_pages(memory: GuestMemory) -> None:
    assert memory.size > 0
    assert memory.size % 65536 == 0


def test_what_is_written_is_read_back(memory: GuestMemory) -> None:
    before = memory.read(memory.size - 16, 16)
    memory.write(memory.size - 12, b"hello")
    assert memory.read(memory.size - 16, 16) == before[:4] + b"hello" + before[9:]


def test_the_whole_memory_can_be_read(memory: GuestMemory) -> None:
    assert len(memory.read(0, memory.size)) == memory.size


def test_nothing_can_be_read_and_written_at_the_very_end(memory: GuestMemory) -> None:
    assert memory.read(memory.size, 0) == b""
    memory.write(memory.size, b"")


@pytest.mark.parametrize(
    ("beyond", "length"),
    [(0, 1), (-1, 2), (1, 0), (2**32, 0), (-4, 2**32 - 1), (-1, 2**64)],
)
def test_a_read_that_reaches_beyond_the_end_is_refused(memory: GuestMemory, beyond: int, length: int) -> None:
    pointer = memory.size + beyond
    with pytest.raises(OutOfBoundsError, match=f"^{length} bytes at {pointer}$"):
        memory.read(pointer, length)


@pytest.mark.parametrize(("pointer", "length"), [(-1, 1), (0, -1), (-1, -1), (-8, 16)])
def test_a_negative_pointer_or_length_is_refused(memory: GuestMemory, pointer: int, length: int) -> None:
    with pytest.raises(OutOfBoundsError, match=f"^{length} bytes at {pointer}$"):
        memory.read(pointer, length)


@pytest.mark.parametrize("beyond", [0, -1, 2**31, 2**32, 2**63])
def test_a_write_that_reaches_beyond_the_end_is_refused_whole(memory: GuestMemory, beyond: int) -> None:
    before = memory.read(memory.size - 8, 8)
    pointer = memory.size + beyond
    with pytest.raises(OutOfBoundsError, match=f"^2 bytes at {pointer}$"):
        memory.write(pointer, b"ab")
    assert memory.read(memory.size - 8, 8) == before


def test_a_write_before_the_start_is_refused(memory: GuestMemory) -> None:
    with pytest.raises(OutOfBoundsError, match=r"^2 bytes at -1$"):
        memory.write(-1, b"ab")


@given(pointer=st.integers(-(2**33), 2**33), length=st.integers(-10, 2**33))
def test_any_pointer_and_length_gives_exactly_those_bytes_or_is_refused(
    memory: GuestMemory, pointer: int, length: int
) -> None:
    inside = pointer >= 0 and length >= 0 and pointer + length <= memory.size
    try:
        data = memory.read(pointer, length)
    except OutOfBoundsError:
        assert not inside
    else:
        assert inside
        assert len(data) == length
