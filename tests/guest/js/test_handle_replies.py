"""Replies with handles: malformed, unusual and large ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guest.handle_host import HandleHost
from toolbridge import Sandbox
from toolbridge.boundary.host_call import Reply
from toolbridge.boundary.wire import HandleFrame, encode_handles


@pytest.fixture
def host() -> HandleHost:
    return HandleHost()


def handle(path: Any, **changes: Any) -> list[Any]:
    return [path, {"id": 1, "mime": "a/b", "size": 3} | changes]


NO_PLACE = "the host's reply names a missing place for a handle"
NOT_UNDERSTOOD = "the host's reply has a malformed handle"


WRONG: list[tuple[Any, Any, str]] = [
    ([handle(["b"])], {"a": None}, NO_PLACE),
    ([handle(["a"])], {"a": 1}, NO_PLACE),
    ([handle(["a"]), handle(["a"])], {"a": None}, NO_PLACE),
    ([handle(["a"]), handle(["a", "name"])], {"a": None}, NO_PLACE),
    ([handle([])], 1, NO_PLACE),
    ([handle(["a", "b"])], {"a": None}, NO_PLACE),
    ([handle(["a", "length"])], {"a": "text"}, NO_PLACE),
    ([handle(["a", 0])], {"a": "text"}, NO_PLACE),
    ([handle([0])], {"0": None}, NO_PLACE),
    ([handle(["0"])], [None], NO_PLACE),
    ([handle([1])], [None], NO_PLACE),
    ([handle([-1])], [None], NO_PLACE),
    ([handle([0.5])], [None], NO_PLACE),
    ([handle(["length"])], [None], NO_PLACE),
    ([handle([None])], {"null": None}, NO_PLACE),
    ([handle([["a"]])], {"a": None}, NO_PLACE),
    ([handle(["toString"])], {}, NO_PLACE),
    ([handle(["__proto__"])], {}, NO_PLACE),
    ([handle("a")], {"a": None}, NO_PLACE),
    ([handle(None)], {"a": None}, NO_PLACE),
    ({"0": handle(["a"])}, {"a": None}, NO_PLACE),
    (None, None, NO_PLACE),
    (7, None, NO_PLACE),
    ([[]], None, NO_PLACE),
    ([[[]]], None, NO_PLACE),
    ([7], None, NO_PLACE),
    ([None], None, NO_PLACE),
    ([[[], None]], None, NO_PLACE),
    ([[[], {}]], None, NO_PLACE),
    ([handle([], id="1")], None, NOT_UNDERSTOOD),
    ([handle([], id=1.5)], None, NOT_UNDERSTOOD),
    ([handle([], id=None)], None, NOT_UNDERSTOOD),
    ([handle([], mime=None)], None, NOT_UNDERSTOOD),
    ([handle([], size="3")], None, NOT_UNDERSTOOD),
    ([handle([], size=-1)], None, NOT_UNDERSTOOD),
    ([handle([], name=7)], None, NOT_UNDERSTOOD),
]


@pytest.mark.parametrize(("handles", "value", "problem"), WRONG)
def test_a_wrong_reply_is_an_error_that_says_so(
    sandbox: Sandbox, host: HandleHost, handles: Any, value: Any, problem: str
) -> None:
    frame = b'{"handles":%b,"ok":%b}' % (json.dumps(handles).encode(), json.dumps(value).encode())
    host.offer("give", lambda: Reply(frame))
    program = """
    Object.prototype[0] = Object.prototype.id = Object.prototype.size = Object.prototype.mime = null;
    const found = [];
    const note = (error) => { found.push(String(error)) };
    try { demo.give() } catch (error) { note(error) }
    try { parallel([[demo.give]], { errors: "collect" }) } catch (error) { note(error) }
    await later.give().catch(note);
    found
    """
    assert host.value(sandbox, program) == [f"InternalError: {problem}"] * 3


def test_a_place_by_a_name_that_objects_have_is_a_place_like_any_other(sandbox: Sandbox, host: HandleHost) -> None:
    names = ["__proto__", "constructor", "toString", "", "0"]
    handles = [HandleFrame((name, 0), 1, "a/b", 3) for name in names]
    host.offer("give", lambda: Reply(encode_handles(handles, json.dumps({name: [None] for name in names}).encode())))
    program = """
    const given = demo.give();
    const own = (key) => Object.getOwnPropertyDescriptor(given, key).value;
    const shown = Object.keys(given).map((key) => [key, own(key)[0] instanceof Handle]);
    [shown, Object.getPrototypeOf(given) === Object.prototype]
    """
    found, is_plain = host.value(sandbox, program)
    assert sorted(found) == sorted([name, True] for name in names)
    assert is_plain


def test_ten_thousand_handles_in_one_reply(sandbox: Sandbox, host: HandleHost) -> None:
    handles = [
        HandleFrame(("rows", index, "file"), index, "image/png", index, f"{index}.png") for index in range(10_000)
    ]
    value = json.dumps({"rows": [{"file": None}] * 10_000}).encode()
    host.offer("give", lambda: Reply(encode_handles(handles, value)))
    program = """
    const { rows } = demo.give();
    demo.echo(rows.map((row) => row.file));
    [rows.length, rows.every((row, i) => row.file instanceof Handle && row.file.size === i), String(rows[9999].file)]
    """
    assert host.value(sandbox, program) == [10_000, True, '<image/png 9.8 KB "9999.png">']
    assert host.passed == [[[{"\0handle": index} for index in range(10_000)]]]
