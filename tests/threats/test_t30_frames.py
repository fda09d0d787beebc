"""T30, boundary abuse: frames that the wire does not allow, from a guest that writes them byte by byte."""

from __future__ import annotations

import json

from cases import each
from threats.demo_functions import echo
from threats.malicious_guest import FINE, MaliciousGuest, call_with, outcome

CALL = b'{"op":"call","module":"host:demo","function":"double","arguments":[21]}'

DEEP = b'{"op":"call","module":"host:demo","function":"double","arguments":' + b"[" * 15_000 + b"]" * 15_000 + b"}"


@each(
    "request_frame",
    [
        *(b"", b"\0", b"{", b"null", b"[]", b'"call"', b"{}", b'{"op":"call"}', b'{"op":"eval"}', b'{"op":null}'),
        *(b"\xff\xfe", CALL[:-1] + b"\xff}", CALL[:-3] + b"\xed\xa0\x80]}", CALL + b" ", CALL + CALL, CALL[:-1]),
        *(CALL.replace(b"21", b"NaN"), CALL.replace(b"21", b"-Infinity"), CALL.replace(b"21", b"9" * 5000)),
        CALL.replace(b"21", b"1e999"),
        CALL.replace(b"21", b'"\\ud800",1e999'),
        CALL[:-1] + b',"extra":1}',
        CALL.replace(b'"host:demo"', b"5"),
        CALL.replace(b'"double"', b'["double"]'),
        CALL.replace(b"[21]", b'{"0":21}'),
        CALL.replace(b"[21]", b"null"),
        b'{"op":"import"}',
        b'{"op":"import","module":7}',
        b'{"op":"import","module":"host:demo","extra":1}',
        DEEP,
        DEEP.replace(b"[]", b'["\\ud800"]'),
    ],
)
def test_a_frame_that_the_wire_does_not_allow_is_answered_with_an_error_frame(request_frame: bytes) -> None:
    calls: list[object] = []
    guest = call_with(request_frame)
    seen = guest.look({"double": calls.append})
    assert (seen.trapped, seen.ending) == (False, None)
    assert json.loads(seen.reply())["error"]["kind"] == "protocol"
    assert calls == []


@each("depth", [*range(900, 1010, 3)])
def test_a_frame_about_as_deep_as_the_host_can_read_is_read_or_refused(depth: int) -> None:
    """Between what can be parsed and what can be repaired and written again there must be no gap."""
    request = (
        b'{"op":"call","module":"host:demo","function":"same","arguments":' + b"[" * depth + b'"\\ud800"' + b"]" * depth
    )
    seen = call_with(request + b"}").look({"same": echo})
    assert (seen.trapped, seen.ending) == (False, None)
    reply = seen.reply()
    assert b'"kind":"protocol"' in reply or reply.count(b"[") == depth - 1


@each(
    "frame",
    [
        *(b"", b"\0", b"[]", b"1", b"{}", b"\xff", b'{"wire":1', b'{"wire":2,"value":1}', b'{"value":1}', FINE + b" "),
        *(b'{"wire":"1","value":1}', b'{"wire":true,"value":1}', b'{"wire":1.0,"value":1}'),
        *(b'{"wire":1,"value":NaN}', b'{"wire":1,"value":1e999}', b'{"wire":1,"value":["\\ud800",-1e999]}'),
        b'{"wire":1,"value":' + b"9" * 5000 + b"}",
        b'{"wire":1,"value":' + b"[" * 4000 + b"]" * 4000 + b"}",
        b'{"wire":1,"value":' + b"[" * 4000 + b'"\\udfff"' + b"]" * 4000 + b"}",
        b'{"wire":1,"value":1,"extra":1}',
        b'{"wire":1,"value":1,"failure":{}}',
        b'{"wire":1,"failure":null}',
        b'{"wire":1,"failure":{"kind":"timeout","error":{"name":"","message":"","stack":""}}}',
        b'{"wire":1,"failure":{"kind":["raised"],"error":{"name":"","message":"","stack":""}}}',
        b'{"wire":1,"failure":{"kind":"raised","error":{"name":"","message":""}}}',
        b'{"wire":1,"failure":{"kind":"raised","error":{"name":1,"message":"","stack":""}}}',
        b'{"wire":1,"failure":{"kind":"raised","error":{"name":"","message":"","stack":"","causes":[1]}}}',
        b'{"wire":1,"failure":{"kind":"raised","error":{"name":"","message":"","stack":"","causes":"x"}}}',
        b'{"wire":1,"failure":{"kind":"raised","error":{"name":"","message":"","stack":"","line":1}}}',
    ],
)
def test_an_outcome_that_the_wire_does_not_allow_is_a_failure(frame: bytes) -> None:
    result = MaliciousGuest(outcome(frame), frame=frame).run()
    assert result.failure is not None
    assert result.failure.kind == ("limit" if b"[[[[" in frame else "protocol")


@each("depth", [*range(900, 1010, 3)])
def test_an_outcome_about_as_deep_as_the_host_can_read_is_read_or_refused(depth: int) -> None:
    frame = b'{"wire":1,"value":' + b"[" * depth + b'"\\ud800"' + b"]" * depth + b"}"
    result = MaliciousGuest(outcome(frame), frame=frame).run()
    assert result.failure is None or result.failure.kind == "limit"
