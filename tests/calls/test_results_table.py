"""docs/use-results.md: one test for each row of its table."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from servers.result_tools import INLINE, WRAPPED, content, given, image, text, tool_with
from toolbridge.calls.content import Blob
from toolbridge.calls.results import Unwrapped
from toolbridge.errors import ServerProtocolError

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "use-results.md").read_text(encoding="utf-8")
LARGE = 12345678901234567890
KEY = "sk-live-0123456789"


def values(result: Any, **options: Any) -> tuple[Any, Any]:
    """What JavaScript and Python get, as long as no handle is in it."""
    both = [given(result, exact=exact, **options) for exact in (False, True)]
    assert [(each.blobs, each.error) for each in both] == [((), None), ((), None)]
    assert [json.loads(each.encoded) for each in both] == [each.value for each in both]
    return both[0].value, both[1].value


def same(result: Any, **options: Any) -> Any:
    """What both get."""
    javascript, python = values(result, **options)
    assert javascript == python
    return javascript


def blob(result: Any, **options: Any) -> Blob:
    """The one handle that is all of a result."""
    unwrapped = given(result, **options)
    assert (unwrapped.value, unwrapped.encoded, unwrapped.error) == (None, b"null", None)
    ((path, found),) = unwrapped.blobs
    assert path == ()
    return found


def test_every_row_has_its_test_and_every_test_its_row() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", DOCUMENT, re.MULTILINE)
    tests = [name.removeprefix("test_row_") for name in globals() if name.startswith("test_row_")]
    assert rows == tests


def test_row_failure() -> None:
    assert given({**content(text("no such city"), image("!"), text("try Oslo")), "isError": True}) == Unwrapped(
        None, error="no such city\ntry Oslo"
    )


def test_row_failure_without_text() -> None:
    assert given({"isError": True, "structuredContent": {"code": 7}}).error == '{"code":7}'
    assert given({"isError": True, "content": []}).error == "the tool failed without a message"


def test_row_structured() -> None:
    value = {"days": [{"celsius": 21.5, "name": "Zoë"}], "none": None}
    assert same({"structuredContent": value, **content(text("[1]"))}) == value
    assert same({"structuredContent": {"result": 1}}) == {"result": 1}


def test_row_wrapped() -> None:
    tool = tool_with(output_schema=WRAPPED)
    assert same({"structuredContent": {"result": [1, "b"]}}, tool=tool) == [1, "b"]
    assert same({"structuredContent": {"result": [1], "next": 2}}, tool=tool) == {"result": [1], "next": 2}


def test_row_data_beside_structured() -> None:
    blobs = {"type": "resource", "resource": {"uri": "a:b", "blob": "aGk="}}
    unwrapped = given({"structuredContent": {"a": 1}, **content(image("aGk="), text("x"), image("aGk="), blobs)})
    assert (unwrapped.value, unwrapped.blobs) == ({"a": 1}, ())
    assert unwrapped.notes == ("blocks of data beside the structured content are left out: 2 image, 1 resource",)


def test_row_nothing() -> None:
    results: list[Any] = [{}, {"content": None}, {"content": []}, {"content": [], "structuredContent": None}]
    for result in results:
        assert given(result) == Unwrapped(None)


def test_row_text() -> None:
    assert same(content(text("  21 °C\n"))) == "  21 °C\n"
    assert same(content(text(""))) == ""


def test_row_json_text() -> None:
    assert same(content(text('{"a": [1, 2.5, null]}'))) == {"a": [1, 2.5, None]}
    assert same(content(text('\ufeff\n [ {"a" : "b"} ]\n'))) == [{"a": "b"}]


@pytest.mark.parametrize("scalar", ["5", "true", "null", '"x"', "1e5"])
def test_row_scalar_text(scalar: str) -> None:
    assert same(content(text(scalar))) == scalar


@pytest.mark.parametrize(
    "almost",
    [
        *("[NaN]", '{"a": Infinity}', "[-Infinity]", "[1e999]", '{"a":-1E+400}', "[1", "{a: 1}", "[1] [2]", "[1,]"),
        *("[" + "9" * 400 + ".0]", "[" + "9" * 290 + "e99]", "[" * 100_000 + "]" * 100_000, "[" + "9" * 5000 + "]"),
    ],
    ids=lambda almost: almost[:12],
)
def test_row_nearly_json_text(almost: str) -> None:
    assert same(content(text(almost)), inline=1_000_000) == almost


def test_row_date() -> None:
    assert same({"structuredContent": {"day": "2026-11-16T18:00:00Z"}}) == {"day": "2026-11-16T18:00:00Z"}


def test_row_image() -> None:
    assert blob(content(image("iVBO\r\nRw=="))) == Blob(b"\x89PNG", "image/png")


def test_row_audio() -> None:
    assert blob(content({"type": "audio", "data": "aGk", "mimeType": "Audio/WAV; rate=8"})) == Blob(b"hi", "audio/wav")


def test_row_text_resource() -> None:
    resource = {"uri": "file:///a/b.md", "mimeType": "text/markdown", "text": "# Hi"}
    expected = {"type": "resource", "uri": "file:///a/b.md", "mime": "text/markdown", "text": "# Hi"}
    assert same(content({"type": "resource", "resource": resource})) == expected
    del resource["mimeType"], expected["mime"]
    assert same(content({"type": "resource", "resource": resource})) == expected


def test_row_binary_resource() -> None:
    resource = {"uri": "file:///a/b%20c.pdf?x=/y#z", "mimeType": "application/pdf", "blob": "aGk="}
    assert blob(content({"type": "resource", "resource": resource})) == Blob(b"hi", "application/pdf", "b c.pdf")


def test_row_resource_link() -> None:
    known = {"uri": "file:///a", "name": "a", "title": "A", "description": "An a", "mimeType": "text/plain", "size": 3}
    assert same(content({"type": "resource_link", **known, "annotations": {}, "_meta": {}})) == {
        "type": "resource_link",
        "uri": "file:///a",
        "name": "a",
        "title": "A",
        "description": "An a",
        "mime": "text/plain",
        "size": 3,
    }
    assert same(content({"type": "resource_link", "uri": "x:"})) == {"type": "resource_link", "uri": "x:"}


@pytest.mark.parametrize(
    "block",
    [
        *(
            {"type": "video", "data": "x"},
            {"type": "text"},
            {"type": "text", "text": 5},
            {"type": 3},
            {},
            "text",
            5,
            None,
        ),
        *({"type": "resource"}, {"type": "resource", "resource": {"uri": "x:"}}, {"type": "resource_link", "uri": 7}),
    ],
    ids=str,
)
def test_row_unknown_block(block: Any) -> None:
    assert same(content(block)) == block
    (note,) = given(content(block)).notes
    assert note.startswith("a block of content of an unknown form is given as it came")


def test_row_several_blocks() -> None:
    unwrapped = given(content(text("a"), image("aGk="), text('{"b": 1}')))
    assert unwrapped == Unwrapped(
        ["a", None, {"b": 1}], (((1,), Blob(b"hi", "image/png")),), encoded=b'["a",null,{"b": 1}]'
    )


def test_row_large_value() -> None:
    value = {"rows": ["x" * 100] * 20}
    compact = json.dumps(value, separators=(",", ":"))
    for result in ({"structuredContent": value}, content(text(json.dumps(value, indent=8)))):
        found = blob(result)
        assert (found.data.decode(), found.mime) == (compact, "application/json")
        assert given(result, inline=len(compact)).value == value
        assert given(result, inline=len(compact) - 1).value is None


def test_row_large_text() -> None:
    assert blob(content(text("é" * INLINE))) == Blob("é".encode() * INLINE, "text/plain")
    resource = {"uri": "file:///log.csv", "mimeType": "text/csv", "text": "a,b\n" * INLINE}
    found = blob(content({"type": "resource", "resource": resource}))
    assert found == Blob(b"a,b\n" * INLINE, "text/csv", "log.csv")


def test_row_large_list() -> None:
    texts = ["a" * 400, "b" * 500, '["' + "c" * 300 + '"]']
    whole = blob(content(*map(text, texts)))
    assert json.loads(whole.data) == ["a" * 400, "b" * 500, ["c" * 300]]
    unwrapped = given(content(*map(text, texts), image("aGk=")))
    assert unwrapped.value == ["a" * 400, None, ["c" * 300], None]
    assert dict(unwrapped.blobs) == {(1,): Blob(b"b" * 500, "text/plain"), (3,): Blob(b"hi", "image/png")}
    assert len(unwrapped.encoded) <= INLINE
    one_large = given(content(text("d" * 2000), text("e")))
    assert (one_large.value, [path for path, _ in one_large.blobs]) == ([None, "e"], [(0,)])


@pytest.mark.parametrize("sign", [1, -1])
def test_row_large_integer(sign: int) -> None:
    value = {"id": sign * LARGE, "small": sign * (2**53 - 1), "over": [sign * 2**53], "float": sign * 1e300}
    digits = {**value, "id": str(sign * LARGE), "over": [str(sign * 2**53)]}
    for result in ({"structuredContent": value}, content(text(json.dumps(value)))):
        assert values(result) == (digits, value)
        assert given(result).notes == ("integers beyond ±(2^53-1) are given as strings of digits: 2",)
        assert given(result, exact=True).notes == ()
    assert values({"structuredContent": {"result": LARGE}}, tool=tool_with(output_schema=WRAPPED)) == (
        str(LARGE),
        LARGE,
    )


def test_row_not_a_number() -> None:
    result = {"structuredContent": {"a": float("nan"), "b": [float("inf"), -float("inf"), 1.5]}}
    assert same(result) == {"a": None, "b": [None, None, 1.5]}
    assert given(result).notes == ("numbers that JSON doesn't have (NaN, Infinity) are given as null: 3",)


def test_row_secret() -> None:
    for result, expected in (
        ({"structuredContent": {"env": {f"X_{KEY}": [f"Bearer {KEY}"]}}}, {"env": {"X_***": ["Bearer ***"]}}),
        (content(text(f"key={KEY}")), "key=***"),
        (content(text('["' + KEY.replace("s", "\\u0073") + '"]')), ["***"]),
    ):
        assert same(result, secrets=(KEY,)) == expected
        assert given(result, secrets=(KEY,)).notes == ("the server's own secrets are masked in the result",)
    assert given({"isError": True, **content(text(f"401 for {KEY}"))}, secrets=(KEY,)).error == "401 for ***"


@pytest.mark.parametrize(
    "result",
    [
        *(
            None,
            [],
            "text",
            {"content": "text"},
            {"content": {"type": "text"}},
            content(image(5)),
            content(image(None)),
        ),
        *(content(image("a")), content(image("****")), content(text("a"), image("aGk=aGk=")), content(*[{}] * 10_001)),
        {"structuredContent": {"a": {1, 2}}},
    ],
    ids=lambda result: str(result)[:40],
)
def test_row_no_result(result: Any) -> None:
    with pytest.raises(ServerProtocolError, match=r"^Server 's' gave an unusable result for 'f': "):
        given(result)
