"""T30, boundary abuse: the wire's decoders, fed with random bytes and with valid frames that were changed a little."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from toolbridge.boundary.wire import (
    CallRequest,
    GuestError,
    ImportRequest,
    KnownHeads,
    OutcomeFrame,
    WireError,
    decode_outcome,
    decode_request,
    encode_json,
)

fuzzing = settings(max_examples=300, derandomize=True, deadline=None, database=None)

REQUESTS = (
    b'{"op":"call","module":"host:demo","function":"add","arguments":[1,"two",{"three":null}]}',
    b'{"op":"call","module":"host:demo","function":"add","arguments":[]}',
    b'{"op":"import","module":"host:demo/async"}',
)
OUTCOMES = (
    b'{"wire":1}',
    b'{"wire":1,"value":{"a":[1,2.5,"\\ud83d\\ude00"]}}',
    b'{"wire":1,"failure":{"kind":"raised","error":{"name":"E","message":"m","stack":"s","causes":["c"]}}}',
)
# What matters to a JSON parser, and to text that is taken for one.
PIECES = (
    *(b"\\ud800", b"\\udfff", b"1e999", b"-1e999", b"NaN", b"[" * 400, b"]" * 400, b"9" * 5000, b"\xed\xa0\x80", b"\0"),
    *(b',"arguments":', b'"', b"\\", b"{", b"}", b'"op":"call",', b"\xff", b'"__proto__":1', b" ", b'"wire":1,'),
)

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@st.composite
def changed(draw: st.DrawFn, frames: tuple[bytes, ...]) -> bytes:
    """A valid frame with up to four cuts and insertions."""
    frame = draw(st.sampled_from(frames))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(frame)))
        end = min(len(frame), start + draw(st.sampled_from((0, 0, 1, 2, 10))))
        frame = frame[:start] + draw(st.sampled_from(PIECES) | st.binary(max_size=3)) + frame[end:]
    return frame


def is_json(value: Any) -> bool:
    """Whether the host can use a value as what it is said to be: JSON, and text that can be printed."""
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode("utf-8")
    except (ValueError, UnicodeEncodeError):
        return False
    return True


def request_or_none(data: bytes, heads: KnownHeads | None = None) -> CallRequest | ImportRequest | None:
    try:
        return decode_request(data, heads)
    except WireError:
        return None


@fuzzing
@given(st.binary(max_size=300) | changed(REQUESTS))
@example(b'{"op":"call","module":"a","function":"b","arguments":["\\ud800",1e999]}')
@example(b'{"op":"call","module":"a","function":"b","arguments":[1e999]}')
@example(b'{"op":"call","module":"a","function":"b","arguments":["\\ud800"]}')
def test_request_bytes_are_a_valid_request_or_a_wire_error(data: bytes) -> None:
    request = request_or_none(data)
    if type(request) is CallRequest:
        assert type(request.module) is str
        assert type(request.function) is str
        assert type(request.arguments) is list
        assert is_json(request.arguments)
    elif request is not None:
        assert type(request.module) is str


@fuzzing
@given(st.binary(max_size=300) | changed(OUTCOMES))
@example(b'{"wire":1,"value":["\\ud800",1e999]}')
@example(b'{"wire":1,"value":1e999}')
@example(b'{"wire":1,"value":{"\\udc00":"\\ud800"}}')
def test_outcome_bytes_are_a_valid_outcome_or_a_wire_error(data: bytes) -> None:
    try:
        outcome = decode_outcome(data)
    except WireError:
        return
    assert type(outcome) is OutcomeFrame
    assert is_json(outcome.value)
    assert outcome.error is None or (type(outcome.error) is GuestError and outcome.failure_kind is not None)


@fuzzing
@given(st.lists(changed(REQUESTS) | st.sampled_from(REQUESTS), min_size=2, max_size=6))
def test_what_a_decoder_remembers_changes_nothing(frames: list[bytes]) -> None:
    heads: KnownHeads = {}
    for frame in frames:
        assert request_or_none(frame, heads) == request_or_none(frame)


@fuzzing
@given(st.text(st.characters()), st.text(st.characters()), st.lists(json_values, max_size=3))
def test_a_call_arrives_as_it_was_written(module: str, function: str, arguments: list[Any]) -> None:
    try:
        data = encode_json({"op": "call", "module": module, "function": function, "arguments": arguments})
    except WireError:
        assert not is_json(arguments)  # a NaN or an infinity
        return
    heads: KnownHeads = {}
    for _ in range(2):
        request = request_or_none(data, heads)
        if len(data) < 4000:
            assert request is not None
            assert is_json(request.module)
        if is_json([module, function, arguments]):
            assert request == CallRequest(module, function, arguments)


@fuzzing
@given(json_values)
def test_every_json_value_is_encoded_or_refused(value: Any) -> None:
    try:
        data = encode_json(value)
    except WireError:
        return
    data.decode("utf-8")
    json.loads(data)


def test_what_a_guest_says_of_an_error_is_kept_up_to_a_length() -> None:
    texts = {"name": "n" * 10**6, "message": "m" * 10**6, "stack": "s" * 10**6}
    error = {**texts, "causes": ["c" * 10**6] * 100}
    outcome = decode_outcome(encode_json({"wire": 1, "failure": {"kind": "raised", "error": error}}))
    assert outcome.error is not None
    kept = (outcome.error.name, outcome.error.message, outcome.error.stack, *outcome.error.causes)
    assert len(kept) < 10
    assert all(len(text) < 20_000 for text in kept)
