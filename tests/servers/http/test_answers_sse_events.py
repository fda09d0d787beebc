"""Server-sent events out of bytes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from toolbridge.servers.http.answers import Event, EventReader, OverlongEvent

CAP = 10_000


def read(*chunks: bytes, cap: int = CAP) -> list[Event | OverlongEvent]:
    reader = EventReader(cap)
    return [event for chunk in chunks for event in reader.feed(chunk)]


def test_events_have_a_name_and_lines_of_data() -> None:
    assert read(b"event: a\ndata: one\ndata: two\n\ndata:three\n\n") == [
        Event("a", b"one\ntwo"),
        Event("message", b"three"),
    ]


def test_comments_unknown_fields_and_blank_lines_are_no_events() -> None:
    assert read(b"\n\n: hello\nfoo: bar\nevent: a\n\n") == []


def test_a_field_without_a_colon_has_no_value() -> None:
    assert read(b"data\n\n") == [Event("message", b"")]


def test_only_the_first_space_belongs_to_the_field() -> None:
    assert read(b"data:  x \n\n") == [Event("message", b" x ")]


def test_the_mark_at_the_beginning_of_a_stream_is_none_of_the_data() -> None:
    assert read(b"\xef\xbb\xbfdata: x\n\n") == [Event("message", b"x")]


def test_an_event_that_is_cut_off_is_none_and_its_id_does_not_count() -> None:
    reader = EventReader(CAP)
    assert reader.feed(b"id: 1\ndata: x\n\nid: 2\ndata: y") == [Event("message", b"x")]
    assert reader.last_id == "1"


def test_an_id_that_could_not_be_sent_back_is_ignored() -> None:
    reader = EventReader(CAP)
    reader.feed(b"id: good\ndata:\n\n")
    for bad in (b"a\0b", b"\xff", b"x" * 5000, b"a\x1bb"):
        reader.feed(b"id: " + bad + b"\ndata:\n\n")
        assert reader.last_id == "good"


def test_a_pause_that_is_no_number_is_ignored() -> None:
    reader = EventReader(CAP)
    for bad in (b"-1", b"1e9", b"9" * 5000, b"soon", b"\xd9\xa1"):
        reader.feed(b"retry: " + bad + b"\n\n")
        assert reader.retry_seconds is None
    reader.feed(b"retry: 1500\n\n")
    assert reader.retry_seconds == 1.5


@given(
    st.lists(st.binary(max_size=30).map(lambda data: data.replace(b"\n", b"").replace(b"\r", b"")), max_size=5),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
    st.lists(st.integers(0, 400), max_size=20),
)
def test_neither_line_endings_nor_where_the_bytes_are_cut_matter(
    texts: list[bytes], ending: bytes, cuts: list[int]
) -> None:
    stream = b"".join(b"data:" + text + ending + ending for text in texts)
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    chunks = [stream[a:b] for a, b in pairwise(places)]
    assert read(*chunks) == [Event("message", text.removeprefix(b" ")) for text in texts]


@given(st.lists(st.binary(max_size=200), max_size=20))
def test_no_bytes_make_the_reader_fail(chunks: list[bytes]) -> None:
    read(*chunks, cap=100)


def test_an_event_past_the_cap_is_dropped_with_both_ends_kept_and_the_next_one_is_read() -> None:
    long = b'{"jsonrpc":"2.0","id":7,' + b"x" * 50_000 + b"the end}"
    for chunks in (
        [b"data: " + long + b"\n\n"],
        [b"data: ", *(long[n : n + 999] for n in range(0, 60_000, 999)), b"\n\n"],
    ):
        overlong, good = read(*chunks, b"data: ok\n\n")
        assert isinstance(overlong, OverlongEvent)
        assert overlong.head.startswith(b'{"jsonrpc":"2.0","id":7,')
        assert overlong.tail.endswith(b"the end}")
        assert len(overlong.head) + len(overlong.tail) < 5000
        assert good == Event("message", b"ok")


def test_many_short_lines_are_a_long_event_too() -> None:
    overlong, good = read(b"data: xxxxxxxxx\n" * 5000 + b"\n" + b"data: ok\n\n")
    assert isinstance(overlong, OverlongEvent)
    assert overlong.size > CAP
    assert good == Event("message", b"ok")


def test_an_endless_event_takes_no_more_memory_than_the_cap() -> None:
    reader = EventReader(CAP)
    for _ in range(2000):
        assert reader.feed(b"data: " + b"x" * 1000 + b"\n") == []
        assert reader.feed(b"y" * 1000) == []
    assert len(reader._data) <= CAP
    assert len(reader._lines._begun) <= 2 * CAP
