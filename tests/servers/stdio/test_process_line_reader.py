"""Bytes into lines: the same lines however they are cut, and never more memory than the cap."""

from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from toolbridge.servers.stdio.process import END_BYTES, LineReader, OverlongLine


def feed(reader: LineReader, *chunks: bytes) -> list[bytes | OverlongLine]:
    lines = [line for chunk in chunks for line in reader.feed(chunk)]
    return [line if isinstance(line, OverlongLine) else bytes(line) for line in lines]


@given(st.lists(st.binary(max_size=40)), st.integers(1, 60))
def test_lines_are_the_same_however_the_bytes_are_cut(chunks: list[bytes], most: int) -> None:
    reader = LineReader(most)
    lines = [*feed(reader, *chunks), reader.rest()]
    expected = b"".join(chunks).split(b"\n")
    assert len(lines) == len(expected)
    for line, whole in zip(lines, expected, strict=True):
        if isinstance(line, OverlongLine):
            assert len(whole) > most
            assert line.size == len(whole)
            assert whole.startswith(line.head)
            assert whole.endswith(line.tail)
        else:
            assert line == whole
            assert len(whole) <= most


def test_only_a_newline_ends_a_line() -> None:
    text = "a\u2028b\u2029c\x85d\x0ce\rf".encode()
    assert feed(LineReader(100), text + b"\n") == [text]


def test_a_line_of_exactly_the_cap_is_whole_and_one_byte_more_is_not() -> None:
    reader = LineReader(5)
    assert feed(reader, b"12345\n", b"123456\n", b"1\n") == [b"12345", OverlongLine(b"123456", b"123456", 6), b"1"]


def test_an_overlong_line_keeps_its_two_ends() -> None:
    reader = LineReader(10_000)
    middle = [b"x" * 5_000] * 10
    (line,) = feed(reader, b"head", *middle, b"ta", b"il", b"\n")
    assert isinstance(line, OverlongLine)
    assert line.size == 50_008
    assert line.head == b"head" + b"x" * (END_BYTES - 4)
    assert line.tail == b"x" * (END_BYTES - 4) + b"tail"


def test_the_lines_around_an_overlong_one_are_read() -> None:
    reader = LineReader(4)
    lines = feed(reader, b"one\ntoo long", b" by far", b"\ntwo\n")
    assert [line for line in lines if isinstance(line, bytes)] == [b"one", b"two"]


def test_memory_is_bounded_while_an_endless_line_comes_in() -> None:
    reader = LineReader(256 * 1024)
    chunk = b"x" * 65_536
    tracemalloc.start()
    try:
        for _ in range(2_000):
            assert reader.feed(chunk) == []
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * 1024 * 1024


def test_a_line_that_comes_byte_by_byte_costs_little_more_than_its_bytes() -> None:
    reader = LineReader(1024 * 1024)
    tracemalloc.start()
    try:
        for _ in range(100_000):
            reader.feed(b"x")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 200_000
    assert feed(reader, b"\n") == [b"x" * 100_000]
