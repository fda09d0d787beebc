"""What one line says: which request it answers, with what, and what of it can't be trusted."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from toolbridge.json_codec import TooDeepError, is_marked_not_utf8
from toolbridge.servers.discovery import TOO_DEEP, parse_pruned
from toolbridge.servers.failures import BadAnswerError
from toolbridge.servers.inbound import answered_request
from toolbridge.servers.jsonrpc import (
    encode_line,
    outcome_of,
    parse_line,
    request_key,
)


@pytest.mark.parametrize(
    ("wire_id", "key"),
    [(7, 7), ("7", 7), ("listen-1", "listen-1"), (0, 0), (-1, -1), ("", ""), ("07", "07"), ("7_0", "7_0"), ("٧", "٧")],
)
def test_an_id_is_taken_as_it_was_sent_or_as_the_same_integer_in_a_string(wire_id: object, key: object) -> None:
    assert request_key(wire_id) == key


@pytest.mark.parametrize("wire_id", [None, True, False, 1.0, 1.5, [1], {"id": 1}])
def test_what_equals_an_id_in_python_only_is_no_id(wire_id: object) -> None:
    assert request_key(wire_id) is None


def test_an_endless_number_in_a_string_is_no_integer() -> None:
    assert request_key("9" * 100_000) == "9" * 100_000


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":7,"result":{"records":[{"id":8}]}}',
        b' { "jsonrpc" : "2.0" , "id" : 7 , "error" : {"code":1}}',
        b'{"jsonrpc":"2.0","id":"7","result":{}}',
        b'{"result":{"records":[{"jsonrpc":"2.0","id":8}]},"jsonrpc":"2.0","id":7}',
        b'{"error":{"code":1},"jsonrpc":"2.0","id":7}\r',
    ],
)
def test_the_request_of_an_unreadable_answer_is_told_from_its_ends(line: bytes) -> None:
    assert answered_request(line[:60], line[-60:]) == 7


@pytest.mark.parametrize(
    "line",
    [
        b"banner",
        b'{"id":7}',
        b'{"jsonrpc":"2.0","id":7,"method":"ping"}',
        b'{"jsonrpc":"2.0","method":"x","params":{"jsonrpc":"2.0","id":7}',
        b'{"jsonrpc":"2.0","method":"x","params":{},"jsonrpc":"2.0","id":7}',
        b'noise {"jsonrpc":"2.0","id":7,"result":{}}',
        b'{"result":{"a":{"jsonrpc":"2.0","id":7}}}',
        b'{"result":{"text":"\\"jsonrpc\\":\\"2.0\\",\\"id\\":7}"}}',
        b'{"jsonrpc":"2.0","id":null,"result":{}}',
    ],
)
def test_in_doubt_no_request_is_blamed(line: bytes) -> None:
    assert answered_request(line, line) is None


@pytest.mark.parametrize(
    ("answer", "kind", "code", "message"),
    [
        ({"error": {"code": -5, "message": "no"}}, MCPError, -5, "no"),
        ({"result": {"a": 1}, "error": {"code": -5, "message": "no"}}, MCPError, -5, "no"),
        ({"error": {"code": "5", "message": "no"}}, MCPError, INTERNAL_ERROR, "no"),
        ({"error": {"code": True, "message": "no"}}, MCPError, INTERNAL_ERROR, "no"),
        ({"error": {"code": 10**4000, "message": "no"}}, MCPError, INTERNAL_ERROR, "no"),
        ({"error": {}}, MCPError, INTERNAL_ERROR, "The server gave no message"),
        ({"error": {"code": 1, "message": ["no"]}}, MCPError, 1, "The server gave no message"),
        ({"error": {"code": 1, "message": "bad \ud800 text"}}, MCPError, 1, "bad ? text"),
        ({"error": "no"}, BadAnswerError, INTERNAL_ERROR, "The answer's error is not an object"),
        ({"error": False}, BadAnswerError, INTERNAL_ERROR, "The answer's error is not an object"),
        ({"result": None}, BadAnswerError, INTERNAL_ERROR, "The answer's result is not an object"),
        ({"result": [1]}, BadAnswerError, INTERNAL_ERROR, "The answer's result is not an object"),
        ({}, BadAnswerError, INTERNAL_ERROR, "The answer has neither a result nor an error"),
        ({"error": None}, BadAnswerError, INTERNAL_ERROR, "The answer has neither a result nor an error"),
    ],
)
def test_an_answer_without_a_result_is_a_sane_error(
    answer: dict[str, Any], kind: type[MCPError], code: int, message: str
) -> None:
    outcome = outcome_of(answer)
    assert isinstance(outcome, MCPError)
    assert type(outcome) is kind
    assert (outcome.code, outcome.message) == (code, message)


def test_an_answer_with_a_result_and_a_null_error_is_a_result() -> None:
    assert outcome_of({"result": {"a": 1}, "error": None}) == {"a": 1}


@pytest.mark.parametrize("line", [b'{"a":', b"", b"\xff", b'"\0"', b"[" * 100_000])
def test_what_is_not_json_is_one_kind_of_error(line: bytes) -> None:
    with pytest.raises(ValueError):
        parse_line(line)


def test_numbers_that_json_lacks_and_escaped_surrogates_are_kept() -> None:
    value = parse_line(b'[NaN, Infinity, "\\ud800"]')
    assert str(value) == str([float("nan"), float("inf"), "\ud800"])


def test_an_integer_of_too_many_digits_costs_no_message() -> None:
    digits = "1" * 5_000
    assert parse_line(f'{{"a": {digits}, "b": -{digits}, "c": 7, "d": "{digits}"}}'.encode()) == {
        "a": float("inf"),
        "b": float("-inf"),
        "c": 7,
        "d": digits,
    }
    with pytest.raises(ValueError):
        parse_line(f"[{digits}".encode())


def test_a_result_with_bytes_that_are_not_utf8_is_marked() -> None:
    message = parse_line(b'[{"id":1,"result":{"a":"\xff"}},{"id":2,"result":{"_meta":{"k":1}}},{"method":"x"}]')
    assert message[0]["result"]["a"] == "\ufffd"
    assert [is_marked_not_utf8(each["result"]) for each in message[:2]] == [True, True]
    assert message[1]["result"]["_meta"]["k"] == 1
    assert not is_marked_not_utf8(parse_line(b'{"result":{"a":"\xc3\xa9"}}')["result"])


def test_a_pruned_message_keeps_all_but_what_is_too_deep() -> None:
    deep = b'{"a":' * 5_000 + b'"]}"' + b"}" * 5_000
    with pytest.raises(TooDeepError):
        parse_line(deep)
    pruned = parse_pruned(b'{"x":[1,%s,"\\"[{"],"y":%s,"z":{}}' % (deep, deep))
    assert (pruned["x"][0], pruned["x"][2], pruned["z"]) == (1, '"[{', {})
    assert TOO_DEEP in json.dumps(pruned["x"][1])
    assert TOO_DEEP in json.dumps(pruned["y"])
    for broken in (deep[:-5_000], b"[" * 5_000 + b'"'):
        with pytest.raises(ValueError):
            parse_pruned(broken)


def test_a_byte_order_mark_is_no_part_of_a_message() -> None:
    assert parse_line(b"\xef\xbb\xbf{}\r") == {}


def test_a_line_of_ours_is_ascii_without_line_breaks() -> None:
    value = {"text": "a\u2028b\nc\ud800\x85", "nested": MappingProxyType({"ü": (1, None)})}
    line = encode_line(value)
    assert line.isascii()
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert json.loads(line) == {"text": "a\u2028b\nc\ud800\x85", "nested": {"ü": [1, None]}}


def deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}, deep()], ids=lambda _: "value")
def test_what_can_not_be_written_as_json_is_the_callers_error(value: object) -> None:
    with pytest.raises(MCPError) as raised:
        encode_line({"value": value})
    assert raised.value.code == INVALID_PARAMS
