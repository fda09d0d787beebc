"""The wire, held against the golden frames in fixtures/wire: the host's side, then the guest's own."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from toolbridge.boundary.wire import (
    CallRequest,
    ErrorFrame,
    GuestError,
    HandleFrame,
    ImportRequest,
    OutcomeFrame,
    RunFrame,
    WireError,
    decode_json,
    decode_outcome,
    decode_request,
    encode_error,
    encode_handles,
    encode_json,
    encode_module,
    encode_run,
    encode_settled,
    encode_value,
)

WIRE = Path(__file__).resolve().parent.parent.parent / "fixtures" / "wire"
KINDS = sorted(path.stem for path in WIRE.glob("*.json"))
REFUSED = sorted(path.stem for path in (WIRE / "refused").glob("*.json"))
DECODERS: dict[str, Callable[[bytes], object]] = {"request": decode_request, "outcome": decode_outcome}


def golden(name: str) -> tuple[bytes, Any]:
    """A golden frame's bytes and what it means."""
    content = json.loads((WIRE / f"{name}.json").read_text(encoding="utf-8"))
    return content["frame"].encode(), content["meaning"]


def test_there_is_a_golden_frame_of_every_kind() -> None:
    assert KINDS == [
        "call",
        "call_handles",
        "import",
        "module",
        "outcome_failure",
        "outcome_nothing",
        "outcome_syntax",
        "outcome_tool_failure",
        "outcome_value",
        "reply_error",
        "reply_handles",
        "reply_ok",
        "reply_tool_error",
        "run",
        "settled_error",
        "settled_handles",
        "settled_ok",
    ]


@pytest.mark.parametrize("name", KINDS)
def test_a_golden_file_has_frame_direction_and_meaning(name: str) -> None:
    content = json.loads((WIRE / f"{name}.json").read_text(encoding="utf-8"))
    assert content.keys() == {"direction", "frame", "meaning"}
    assert content["direction"] in ("host to guest", "guest to host")


# ---- host → guest


def test_a_run_frame_is_encoded_to_the_golden_bytes() -> None:
    frame, meaning = golden("run")
    assert encode_run(RunFrame(**meaning)) == frame


def test_a_module_description_is_encoded_to_the_golden_bytes() -> None:
    frame, meaning = golden("module")
    assert encode_module(meaning["module"], meaning["functions"], is_async=meaning["is_async"]) == frame


def test_a_value_is_encoded_to_the_golden_bytes() -> None:
    frame, meaning = golden("reply_ok")
    assert encode_value(meaning["value"]) == frame


@pytest.mark.parametrize("name", ["reply_error", "reply_tool_error"])
def test_an_error_is_encoded_to_the_golden_bytes(name: str) -> None:
    frame, meaning = golden(name)
    assert encode_error(ErrorFrame(**meaning)) == frame


def handles_reply(meaning: Any) -> bytes:
    frames = [HandleFrame(tuple(path), *facts) for path, *facts in (each.values() for each in meaning["handles"])]
    return encode_handles(frames, encode_json(meaning["value"]))


def test_a_value_with_handles_is_encoded_to_the_golden_bytes() -> None:
    frame, meaning = golden("reply_handles")
    assert handles_reply(meaning) == frame


def test_a_settled_value_with_handles_is_encoded_to_the_golden_bytes() -> None:
    frame, meaning = golden("settled_handles")
    assert encode_settled(meaning["id"], handles_reply(meaning)) == frame


def test_a_settled_value_is_encoded_to_the_golden_bytes() -> None:
    frame, meaning = golden("settled_ok")
    assert encode_settled(meaning["id"], encode_value(meaning["value"])) == frame


def test_a_settled_error_is_encoded_to_the_golden_bytes() -> None:
    frame, meaning = golden("settled_error")
    reply = encode_error(ErrorFrame(meaning["kind"], meaning["message"]))
    assert encode_settled(meaning["id"], reply) == frame


# ---- guest → host


@pytest.mark.parametrize("name", ["call", "call_handles"])
def test_a_call_is_decoded_to_the_golden_meaning(name: str) -> None:
    frame, meaning = golden(name)
    assert decode_request(frame) == CallRequest(**meaning)


def test_an_import_is_decoded_to_the_golden_meaning() -> None:
    frame, meaning = golden("import")
    assert decode_request(frame) == ImportRequest(**meaning)


@pytest.mark.parametrize("name", ["outcome_value", "outcome_nothing"])
def test_an_outcome_with_a_value_is_decoded_to_the_golden_meaning(name: str) -> None:
    frame, meaning = golden(name)
    assert decode_outcome(frame) == OutcomeFrame(value=meaning["value"])


@pytest.mark.parametrize("name", ["outcome_failure", "outcome_syntax", "outcome_tool_failure"])
def test_an_outcome_with_a_failure_is_decoded_to_the_golden_meaning(name: str) -> None:
    frame, meaning = golden(name)
    meaning["error"]["causes"] = tuple(meaning["error"]["causes"])
    error = GuestError(**meaning["error"])
    assert decode_outcome(frame) == OutcomeFrame(failure_kind=meaning["failure_kind"], error=error)


@each("name", REFUSED)
def test_a_frame_that_the_wire_does_not_allow_is_refused_with_the_reason(name: str) -> None:
    content = json.loads((WIRE / "refused" / f"{name}.json").read_text(encoding="utf-8"))
    with pytest.raises(WireError) as caught:
        DECODERS[content["decoder"]](content["frame"].encode())
    assert str(caught.value) == content["reason"]


@pytest.mark.parametrize("decode", DECODERS.values(), ids=DECODERS.keys())
def test_bytes_that_are_no_utf8_are_refused(decode: Callable[[bytes], object]) -> None:
    with pytest.raises(WireError, match=r"^not UTF-8$"):
        decode(b'{"op":"import","module":"\xff"}')


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_a_frame_that_is_too_deep_is_refused(opening: bytes) -> None:
    with pytest.raises(WireError, match=r"^nested too deeply$"):
        decode_json(opening * 200_000)


def test_a_number_with_very_many_digits_is_refused_or_read_quickly() -> None:
    frame = b'{"op":"call","module":"m","function":"f","arguments":[%s]}' % (b"9" * 1_000_000)
    with pytest.raises(WireError, match=r"^not JSON: ValueError$"):
        decode_request(frame)


def test_half_a_surrogate_pair_becomes_a_replacement_character() -> None:
    frame = (
        b'{"op":"call","module":"m","function":"f","arguments":["a\\ud800b","\\udc00","\\ud83d\\ude00",{"\\uDBFF":1}]}'
    )
    assert decode_request(frame) == CallRequest("m", "f", ["a\ufffdb", "\ufffd", "😀", {"\ufffd": 1}])


def test_the_texts_of_an_error_are_cut() -> None:
    error = {"name": "n" * 20_000, "message": "m" * 20_000, "stack": "s" * 20_000, "causes": ["c" * 20_000] * 9}
    outcome = decode_outcome(encode_json({"wire": 1, "failure": {"kind": "raised", "error": error}}))
    assert outcome.error == GuestError("n" * 16_000, "m" * 16_000, "s" * 16_000, causes=("c" * 16_000,) * 5)


# ---- any value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


@given(value=JSON)
def test_any_json_value_survives_the_wire(value: Any) -> None:
    assert decode_json(encode_json(value)) == value


@given(data=st.binary(max_size=200))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    for decode in DECODERS.values():
        with contextlib.suppress(WireError):
            decode(data)


@pytest.mark.parametrize("text", ["\ud800", "a\udc00b", "é\udfff"])
def test_half_a_surrogate_pair_is_escaped_for_the_guest(text: str) -> None:
    encoded = encode_json(text)
    encoded.decode("ascii")
    assert json.loads(encoded) == text
