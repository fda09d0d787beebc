"""Handles among arguments: the tool gets what it asks for, a guest gets nothing that isn't its own."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from servers.result_tools import tool_with
from toolbridge.calls.content import Blob
from toolbridge.calls.handle_arguments import HandleArgumentError, handles_in, with_handles

BLOBS = {
    1: Blob(b"\x89PNG", "image/png", "a.png"),
    2: Blob("a,ü".encode(), "text/csv"),
    3: Blob(b' {"a": [1]} ', "application/json"),
    4: Blob(b"<a/>", "application/atom+xml"),
    5: Blob(b"\xff\xfe", "text/plain"),
    6: Blob(b"{", "application/json"),
    7: Blob(b"[" * 100_000, "application/json"),
}
STRING, OBJECT = {"type": "string"}, {"type": "object"}


def encoded(number: int) -> str:
    return base64.b64encode(BLOBS[number].data).decode()


def handle(number: Any) -> dict[str, Any]:
    return {"\0handle": number}


def put_in(arguments: Any, properties: dict[str, Any] | None = None, **more: Any) -> Any:
    return with_handles(
        arguments, tool_with({"type": "object", "properties": properties or {}, **more}), BLOBS.__getitem__
    )


@pytest.mark.parametrize(
    ("number", "schema", "expected"),
    [
        (1, STRING, encoded(1)),
        (1, OBJECT, encoded(1)),
        (1, {}, encoded(1)),
        (2, STRING, "a,ü"),
        (2, {"type": "string", "contentEncoding": "base64"}, encoded(2)),
        (2, {"type": "string", "format": "byte"}, encoded(2)),
        (2, {"anyOf": [{"type": "string", "format": "binary"}, {"type": "null"}]}, encoded(2)),
        (2, {"type": "string", "format": "date"}, "a,ü"),
        (3, STRING, ' {"a": [1]} '),
        (3, {}, ' {"a": [1]} '),
        (3, OBJECT, {"a": [1]}),
        (3, {"type": ["object", "null"]}, {"a": [1]}),
        (3, {"type": ["object", "string"]}, ' {"a": [1]} '),
        (3, {"anyOf": [OBJECT, {"type": "array"}]}, {"a": [1]}),
        (3, {"anyOf": [OBJECT, STRING]}, ' {"a": [1]} '),
        (3, {"$ref": "#/$defs/Thing"}, {"a": [1]}),
        (3, {"properties": {"a": {}}}, {"a": [1]}),
        (3, {"$ref": "#/nowhere"}, ' {"a": [1]} '),
        (3, {"$ref": "#/$defs/Loop"}, ' {"a": [1]} '),
        (4, STRING, "<a/>"),
    ],
    ids=str,
)
def test_the_form_depends_on_the_data_and_on_what_the_tool_takes(number: int, schema: Any, expected: Any) -> None:
    definitions = {"Thing": OBJECT, "Loop": {"anyOf": [{"$ref": "#/$defs/Loop"}]}}
    assert put_in({"v": handle(number), "w": 1}, {"v": schema}, **{"$defs": definitions}) == {"v": expected, "w": 1}


@pytest.mark.parametrize(
    ("arguments", "properties", "expected"),
    [
        ({"l": [handle(3), {"x": handle(3)}]}, {"l": {"items": OBJECT}}, {"l": [{"a": [1]}, {"x": ' {"a": [1]} '}]}),
        ({"l": [handle(2), handle(3)]}, {"l": {"prefixItems": [STRING, OBJECT]}}, {"l": ["a,ü", {"a": [1]}]}),
        ({"m": {"k": handle(3)}}, {"m": {"additionalProperties": OBJECT}}, {"m": {"k": {"a": [1]}}}),
        (
            {"m": {"d": handle(2)}},
            {"m": {"allOf": [{"properties": {"d": {"format": "byte"}}}]}},
            {"m": {"d": encoded(2)}},
        ),
    ],
)
def test_a_handle_may_stand_anywhere(arguments: Any, properties: dict[str, Any], expected: Any) -> None:
    before = repr(arguments)
    assert put_in(arguments, properties) == expected
    assert repr(arguments) == before


def test_arguments_without_handles_are_not_copied() -> None:
    arguments = {"a": [1, {"b": "\0handle"}], "c": {"\0handle": 1, "d": 2}}
    assert put_in(arguments) is arguments


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"a": [handle(99)]}, "a[0]: this handle is not known here; handles are good only in the run that made them"),
        ({"a": handle(-1)}, "a: this handle is not known here; handles are good only in the run that made them"),
        ({"a": handle("1")}, "a: this is not a handle"),
        ({"a": handle(True)}, "a: this is not a handle"),
        ({"a": handle(handle(1))}, "a: this is not a handle"),
        (
            {"a": handle(5)},
            "a: the handle says that it is text/plain, but it is not UTF-8; pass its text() or its bytes()",
        ),
        ({"o": handle(6)}, "o: the handle's JSON can't be used: it is no JSON"),
        ({"o": handle(7)}, "o: the handle's JSON can't be used: it is nested too deeply"),
        ({"a\x1b\u202e": handle(99)}, '["a\\u001b"]: this handle is not known here'),
        (handle(99), "this handle is not known here"),
    ],
    ids=str,
)
def test_what_is_no_handle_of_this_run_is_refused_with_its_place(arguments: Any, problem: str) -> None:
    with pytest.raises(HandleArgumentError) as raised:
        put_in(arguments, {"o": OBJECT})
    assert str(raised.value).startswith(problem)


def test_one_handle_a_million_times_is_refused_before_it_fills_the_memory() -> None:
    blob = Blob(b"x" * 1_000_000, "text/plain")
    found: list[int] = []

    def find(number: int) -> Blob:
        found.append(number)
        return blob

    with pytest.raises(HandleArgumentError, match="larger together than the 5,000,000 bytes allowed"):
        with_handles({"a": [handle(1)] * 1_000_000}, tool_with(), find, most_bytes=5_000_000)
    assert len(found) == 6


def test_arguments_that_are_too_deep_are_refused() -> None:
    arguments: Any = handle(1)
    for _ in range(100_000):
        arguments = [arguments]
    with pytest.raises(HandleArgumentError, match="nested too deeply"):
        put_in({"a": arguments})
    while isinstance(arguments, list):
        arguments = arguments[0]  # pyright: ignore[reportUnknownVariableType]


def test_handles_can_be_counted_beforehand() -> None:
    assert sorted(handles_in({"a": [handle(1), {"b": handle(2)}, handle("x")], "c": handle(1)})) == [1, 1, 2]
