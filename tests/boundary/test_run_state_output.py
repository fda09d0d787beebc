"""What a guest prints, kept up to a limit."""

from __future__ import annotations

import tracemalloc

from toolbridge.boundary.run_state import STDERR, STDOUT, Output


def print_to(output: Output, stream: int, text: bytes) -> None:
    """As the `log` import does it."""
    kept = output.room(stream, len(text))
    if kept:
        output.add(stream, text[:kept])


def test_the_streams_are_kept_apart() -> None:
    output = Output(100)
    print_to(output, STDOUT, b"one ")
    print_to(output, STDERR, b"two ")
    print_to(output, STDOUT, b"three")
    assert (output.text(STDOUT), output.text(STDERR), output.dropped) == ("one three", "two ", 0)


def test_a_stream_that_does_not_exist_is_stderr() -> None:
    output = Output(100)
    for stream in (0, 3, 2**32 - 1):
        print_to(output, stream, b"x")
    assert (output.text(STDOUT), output.text(STDERR)) == ("", "xxx")


def test_text_in_very_small_parts_costs_the_host_little_more_than_its_length() -> None:
    tracemalloc.start()
    try:
        output = Output(100_000)
        for _ in range(100_000):
            print_to(output, STDOUT, bytes(bytearray(b"x")))
        assert tracemalloc.get_traced_memory()[0] < 200_000
    finally:
        tracemalloc.stop()


def test_the_limit_holds_for_both_streams_together() -> None:
    output = Output(6)
    print_to(output, STDOUT, b"1234")
    print_to(output, STDERR, b"5678")
    print_to(output, STDOUT, b"90")
    marker = "\n[output limit reached: 2 more bytes were dropped]\n"
    assert (output.text(STDOUT), output.text(STDERR), output.dropped) == ("1234" + marker, "56" + marker, 4)


def test_text_that_fits_exactly_is_whole_and_has_no_marker() -> None:
    output = Output(4)
    print_to(output, STDOUT, b"1234")
    assert (output.text(STDOUT), output.dropped) == ("1234", 0)


def test_the_marker_ends_the_stream_that_was_cut() -> None:
    output = Output(2)
    print_to(output, STDOUT, b"1234")
    assert output.text(STDOUT) == "12\n[output limit reached: 2 more bytes were dropped]\n"


def test_the_marker_is_shown_once() -> None:
    for stream in (STDOUT, STDERR):
        output = Output(2)
        print_to(output, stream, b"1234")
        shown = output.text(STDOUT) + output.text(STDERR)
        assert shown.count("[output limit reached: 2 more bytes were dropped]") == 1


def test_a_character_that_is_cut_in_two_becomes_a_replacement_character() -> None:
    output = Output(4)
    print_to(output, STDOUT, "aé€".encode())
    assert output.text(STDOUT) == "aé\ufffd\n[output limit reached: 2 more bytes were dropped]\n"


def test_bytes_that_are_no_text_do_not_raise() -> None:
    output = Output(10)
    print_to(output, STDOUT, b"\xff\x00a")
    assert output.text(STDOUT) == "\ufffd\x00a"


def test_a_character_that_arrives_in_two_pieces_is_whole() -> None:
    output = Output(10)
    print_to(output, STDOUT, b"\xe2\x82")
    print_to(output, STDOUT, b"\xac")
    assert output.text(STDOUT) == "€"
