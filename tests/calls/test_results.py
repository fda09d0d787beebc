"""Results of servers that mean harm, or don't know better."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies

from growth import is_at_most, linear
from servers.result_tools import PLAIN, content, given, image, text
from toolbridge.calls.content import Blob
from toolbridge.calls.results import unwrap
from toolbridge.errors import ServerProtocolError
from toolbridge.json_codec import NOT_UTF8, has_long_integer, strict_json

KEY = "sk-live/0123+456789"

ANY_JSON = strategies.recursive(
    strategies.none()
    | strategies.booleans()
    | strategies.integers()
    | strategies.floats()
    | strategies.text(strategies.characters())
    | strategies.sampled_from(["text", "image", "resource", "aGk=", "[1]", '{"a":1e999}', "\ud800", KEY]),
    lambda inner: (
        strategies.lists(inner, max_size=4)
        | strategies.dictionaries(
            strategies.sampled_from(
                [
                    "type",
                    "text",
                    "data",
                    "mimeType",
                    "resource",
                    "uri",
                    "blob",
                    "name",
                    "size",
                    "title",
                    "__proto__",
                    KEY,
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@for_all(
    strategies.dictionaries(strategies.sampled_from(["content", "structuredContent", "isError", "x"]), ANY_JSON),
    strategies.integers(0, 60),
    strategies.booleans(),
)
def test_whatever_comes_is_a_value_that_can_be_sent_or_a_typed_error(
    result: dict[str, Any], inline: int, exact: bool
) -> None:
    try:
        unwrapped = unwrap(result, PLAIN, inline_bytes=inline, secrets=(KEY,), exact_integers=exact)
    except ServerProtocolError:
        return
    assert json.loads(unwrapped.encoded) == json.loads(json.dumps(unwrapped.value))
    assert not unwrapped.blobs or unwrapped.error is None
    if unwrapped.encoded != b"null" and not unwrapped.blobs:
        assert len(json.dumps(unwrapped.value, separators=(",", ":"), ensure_ascii=False)) <= max(inline, 4)
    assert KEY not in json.dumps(unwrapped.value) + str(unwrapped.error) + "".join(unwrapped.notes)
    for path, blob in unwrapped.blobs:
        place = unwrapped.value
        for step in path:
            place = place[step]
        assert place is None
        if blob.mime == "application/json":
            json.loads(blob.data)


FINITE = strategies.floats(allow_nan=False, allow_infinity=False)
FINITE_JSON = strategies.recursive(
    strategies.integers(-(10**20), 10**20) | FINITE | strategies.text(),
    lambda inner: strategies.lists(inner) | strategies.dictionaries(strategies.text(), inner),
)


@for_all(FINITE_JSON)
def test_no_integer_that_javascript_would_round_gets_through(value: Any) -> None:
    sent = given({"structuredContent": {"v": value}}, inline=10**6)

    def integers(each: Any) -> list[int]:
        if isinstance(each, dict):
            return [number for member in each.values() for number in integers(member)]  # pyright: ignore
        if isinstance(each, list):
            return [number for member in each for number in integers(member)]  # pyright: ignore
        return [each] if type(each) is int else []

    assert all(abs(number) < 2**53 for number in integers(json.loads(sent.encoded)))


@pytest.mark.parametrize(
    ("document", "is_there"),
    [
        *(("[1234567890123456]", True), ("[-1234567890123456]", True), ("1234567890123456", True)),
        *(('{"a" :\n1234567890123456}', True), ('["1234567890123456"]', False), ("[0.1234567890123456]", False)),
        *(("[123456789012345]", False), ('{"1234567890123456":1}', False), ('["a1234567890123456"]', False)),
    ],
)
def test_long_integers_are_found_outside_of_strings(document: str, is_there: bool) -> None:
    assert has_long_integer(document.encode()) is is_there


@pytest.mark.parametrize(
    "hostile",
    [
        ('["', "1234567890123456a", '"]'),
        ('["', "1e+999 ", '"]'),
        ('["', ":1e999", '"]'),
        ("[0.", "1", "]"),
        ("[", "1.1e999,", ""),
        ("[", "1", ""),
        ("", "[", ""),
        ("", '{"a":', ""),
        ("[", " ", ""),
        ('["', "\\ud800", '"]'),
        ('["', "\x7f\u202e", '"]'),
    ],
    ids=ascii,
)
def test_a_megabyte_of_anything_takes_time_in_proportion(hostile: tuple[str, str, str]) -> None:
    begin, piece, end = hostile

    def unwrap(hostile: str) -> None:
        given(content(text(hostile)), inline=20_000_000, secrets=(KEY, "another-secret"))
        given({"structuredContent": {hostile: hostile}}, inline=40_000_000, secrets=(KEY,))

    linear(unwrap, lambda size: begin + piece * (size // len(piece)) + end, 100_000)


def test_a_number_of_a_million_digits_is_still_read_right() -> None:
    assert strict_json("[0." + "1" * 1_000_000 + "]") == [1 / 9]


def test_a_structured_value_too_deep_for_the_host_is_a_typed_error() -> None:
    deep: Any = []
    for _ in range(200_000):
        deep = [deep]
    with pytest.raises(ServerProtocolError, match="nested too deeply"):
        given({"structuredContent": {"deep": deep}})
    with pytest.raises(ServerProtocolError, match="nested too deeply"):
        given(content({"type": "unknown", "deep": deep}))
    while deep:  # taken apart from outside: to free it whole would take a stack of its depth
        deep = deep[0]


def test_a_circular_value_of_an_in_process_server_is_a_typed_error() -> None:
    circle: dict[str, Any] = {}
    circle["self"] = circle
    with pytest.raises(ServerProtocolError, match="nested too deeply"):
        given({"structuredContent": circle})


@pytest.mark.parametrize(
    ("mime", "clean"),
    [
        *(("image/svg+xml", "image/svg+xml"), (" Text/HTML ; charset=x", "text/html"), ("application/x.y-z", None)),
        *(("image", ""), ("image/", ""), ("/png", ""), ("a/b/c", ""), ("a/b\n", None), ("a/b\x1b[0m", ""), (5, "")),
        *((None, ""), ("a/" + "b" * 65, ""), ("<b>/x", ""), ("image/png, text/html", ""), ("ímage/png", "")),
    ],
)
def test_a_type_is_a_plain_word_or_none(mime: Any, clean: str | None) -> None:
    ((_, blob),) = given(content(image("aGk=", mime))).blobs
    assert blob.mime == (mime.strip() if clean is None else clean or "application/octet-stream")


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        *(("file:///a/b.txt", "b.txt"), ("b.txt", "b.txt"), ("x://host/", "host"), ("x:", ""), ("", ""), (7, "")),
        *(("f:///a%2F..%2Fetc%2Fpasswd", "passwd"), ("f:///a/..", ""), ("f:///c%5C..%5Cd.txt", "d.txt")),
        *(
            ("f:///a%1B[31mb", "a\\x1b[31mb"),
            ("f:///" + "n" * 500, "n" * 99 + "…"),
            ("f:///" + KEY.replace("/", "_"), None),
        ),
    ],
    ids=str,
)
def test_the_name_of_a_resource_is_one_harmless_part_of_a_path(uri: Any, name: str | None) -> None:
    resource = {"uri": uri, "blob": "aGk="}
    secret = KEY.replace("/", "_")
    ((_, blob),) = given(content({"type": "resource", "resource": resource}), secrets=(secret,)).blobs
    assert blob.name == ("***" if name is None else name)


@pytest.mark.parametrize(
    ("data", "decoded"),
    [("", b""), ("aGk=", b"hi"), ("aGk", b"hi"), (" aG\r\n\tk= ", b"hi"), ("data:image/png;base64,aGk=", b"hi")],
)
def test_base64_is_read_as_servers_write_it(data: str, decoded: bytes) -> None:
    assert given(content(image(data))).blobs[0][1].data == decoded


@pytest.mark.parametrize("data", ["a", "aG=k", "aGk=x", "aGk==", "a-_k", "aGké", "\ud800", "{}", "data:image/png,aGk="])
def test_base64_that_is_none_is_an_error_that_names_the_block(data: str) -> None:
    with pytest.raises(ServerProtocolError, match=r"block 2 of its content \(image\) has data that is not base64"):
        given(content(text("a"), image(data)))


@pytest.mark.parametrize(
    ("mime", "raw", "expected"),
    [
        ("text/csv", f"a {KEY} b".encode() + b"\xff", b"a *** b\xff"),
        ("image/png", f"a {KEY} b".encode(), b"a *** b"),
        (None, f"a {KEY} b".encode(), b"a *** b"),
        ("image/png", b"\xff" + KEY.encode() + b"\0", b"\xff" + b"*" * len(KEY.encode()) + b"\0"),
        ("image/png", b"\x89PNG\r\n\x1a\n\0", b"\x89PNG\r\n\x1a\n\0"),
    ],
)
def test_secrets_are_masked_behind_a_handle_whatever_the_server_calls_it(
    mime: str | None, raw: bytes, expected: bytes
) -> None:
    resource = {"uri": "x:a", "blob": base64.b64encode(raw).decode(), "mimeType": mime}
    found = given(content({"type": "resource", "resource": resource}), secrets=(KEY,))
    assert found.blobs[0][1].data == expected


def test_secrets_are_masked_in_large_values_behind_a_handle() -> None:
    large = given({"structuredContent": {"k": KEY, "x": "y" * 2000}}, secrets=(KEY,)).blobs[0][1].data
    assert json.loads(large)["k"] == "***"
    assert given(content(text(KEY + "x" * 2000)), secrets=(KEY,)).blobs[0][1].data == b"***" + b"x" * 2000


@pytest.mark.parametrize(
    "written", [json.dumps(KEY), json.dumps(KEY).replace("/", "\\/"), json.dumps(KEY.encode().hex())]
)
def test_secrets_are_masked_however_they_are_escaped(written: str) -> None:
    assert given(content(text('{"a":' + written + "}")), secrets=(KEY,)).value == {"a": "***"}


def test_the_bytes_of_a_secret_are_masked_as_a_whole() -> None:
    buffer = {"type": "Buffer", "data": [1, 2, *KEY.encode(), 3], "other": [1, 2, 3], "x": [[*KEY.encode()], "y"]}
    found = given({"structuredContent": buffer}, secrets=(KEY,))
    assert found.value == {"type": "Buffer", "data": "[1,2,***,3]", "other": [1, 2, 3], "x": ["[***]", "y"]}
    assert found.notes == ("the server's own secrets are masked in the result",)


def test_bytes_that_are_not_utf8_are_noted_in_results_and_errors() -> None:
    marked = {**content(text("caf\ufffd")), "_meta": {NOT_UTF8: True}}
    for result in (marked, {**marked, "isError": True}):
        assert given(result).notes == ("bytes that are not UTF-8 are given as U+FFFD",)


def test_a_secret_number_is_masked_as_a_number() -> None:
    assert given({"structuredContent": {"pin": 73914628, "n": 7}}, secrets=("73914628",)).value == {
        "pin": "***",
        "n": 7,
    }


def test_what_is_behind_a_handle_keeps_every_digit() -> None:
    ((_, blob),) = given({"structuredContent": {"id": 2**60, "x": "y" * 2000}}).blobs
    assert json.loads(blob.data)["id"] == 2**60


def test_lone_surrogates_reach_the_guest_and_a_handle_has_none() -> None:
    assert json.loads(given(content(text("a\ud800b"))).encoded) == "a\ud800b"
    assert json.loads(given(content(text('["a\ud800b"]'))).encoded) == ["a\ud800b"]
    assert given(content(text("\ud800" * 2000))).blobs[0][1] == Blob("\ufffd".encode() * 2000, "text/plain")


def test_an_error_says_nothing_of_the_host_and_hides_nothing() -> None:
    error = given({"isError": True, **content(text("Traceback\x1b[31m\u202eat \U000e0041"))}).error
    assert error is not None
    assert not {"\x1b", "\u202e", "\U000e0041"} & set(error)


@pytest.mark.parametrize(
    ("flag", "is_error"),
    [(True, True), ("true", True), (1, True), (False, False), (None, False), ("no", False), ({}, False)],
)
def test_what_counts_as_a_failure(flag: Any, is_error: bool) -> None:
    assert (given({"isError": flag, **content(text("x"))}).error is not None) is is_error


def test_fields_that_no_version_of_the_protocol_has_are_noted() -> None:
    assert given({"toolResult": 5, "\x1bx": 1}).notes == (
        "the result has no content; other fields are left out: toolResult, \\x1bx",
    )


def test_a_thousand_handles_are_enough() -> None:
    assert len(given(content(*[image("aGk=")] * 1000), inline=10**6).blobs) == 1000
    with pytest.raises(ServerProtocolError, match="more than 1,000 blocks of data"):
        given(content(*[image("aGk=")] * 1001), inline=10**6)
    with pytest.raises(ServerProtocolError, match="more than 1,000 blocks of data"):
        given(content(*[text("x" * 100)] * 2000, image("aGk=")))


def test_notes_are_few_and_short() -> None:
    unwrapped = given(
        content(
            *[{"type": f"{'x' * 5000}{index}"} for index in range(500)], *[{"type": str(index)} for index in range(500)]
        ),
        inline=10**8,
    )
    assert len(unwrapped.notes) <= 20
    assert max(map(len, unwrapped.notes)) < 250


def test_a_large_result_costs_little_more_than_to_read_it_once() -> None:
    chance = random.Random(1)
    rows = [{"id": n, "price": n * 1.37, "ok": True, "hash": f"{chance.getrandbits(128):032x}"} for n in range(12_000)]
    document = json.dumps(rows, separators=(",", ":"))

    # 1.3 times on a quiet machine
    assert is_at_most(3, lambda: given(content(text(document)), inline=2**21), lambda: json.loads(document))
