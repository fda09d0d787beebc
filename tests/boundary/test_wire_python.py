"""The Python guest's side of the wire: what crosses in real runs against the golden frames in fixtures/wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from boundary.test_wire_javascript import Crossings, golden
from toolbridge import Sandbox
from toolbridge.boundary.component_imports import ComponentExchange
from toolbridge.boundary.host_call import BRIDGE, CallFailed, HostFunction, HostSide, Reply
from toolbridge.boundary.wire import ErrorFrame


@pytest.fixture
def crossings(monkeypatch: pytest.MonkeyPatch) -> Crossings:
    found = Crossings()
    read, write = ComponentExchange.read, ComponentExchange.write

    def watched_read(exchange: ComponentExchange, pointer: int, length: int) -> bytes:
        data = read(exchange, pointer, length)
        found.from_guest.append(data)
        return data

    def watched_write(exchange: ComponentExchange, pointer: int, data: bytes) -> None:
        write(exchange, pointer, data)
        found.to_guest.append(data)

    monkeypatch.setattr(ComponentExchange, "read", watched_read)
    monkeypatch.setattr(ComponentExchange, "write", watched_write)
    return found


def run(sandbox: Sandbox, source: str, **functions: Callable[..., Any]) -> Any:
    offered = {name: HostFunction(function, is_async=False) for name, function in functions.items()}
    with sandbox.session(language="python", host=HostSide({"host:demo": offered, BRIDGE: {}})) as session:
        result = session.run_sync(source)
    assert result.failure is None, str(result.failure)
    return result.value


def test_a_call_is_written_as_the_golden_frame(crossings: Crossings, sandbox: Sandbox) -> None:
    frame, meaning = golden("call")
    source = f"from host.demo import echo\necho(*{meaning['arguments']!r})"
    assert run(sandbox, source, echo=lambda *values: list(values)) == meaning["arguments"]
    assert frame in crossings.from_guest


def test_an_import_is_written_as_the_golden_frame(crossings: Crossings, sandbox: Sandbox) -> None:
    run(sandbox, "import importlib\nimportlib.import_module('host:demo').add\n1", add=lambda: 0, echo=lambda: 0)
    assert golden("import")[0].replace(b"/async", b"") in crossings.from_guest
    assert golden("module")[0].replace(b'"async":true', b'"async":false') in crossings.to_guest


def test_a_value_is_written_as_the_golden_frame(crossings: Crossings, sandbox: Sandbox) -> None:
    frame, meaning = golden("outcome_value")
    assert run(sandbox, repr(meaning["value"])) == meaning["value"]
    assert crossings.from_guest == [frame]


def test_no_value_is_written_as_the_golden_frame(crossings: Crossings, sandbox: Sandbox) -> None:
    run(sandbox, "nothing = None")
    assert crossings.from_guest == [golden("outcome_nothing")[0]]


def test_a_golden_reply_is_understood(sandbox: Sandbox) -> None:
    frame, meaning = golden("reply_ok")
    assert run(sandbox, "from host.demo import give\ngive()", give=lambda: Reply(frame)) == meaning["value"]


def test_a_golden_reply_with_handles_is_understood_and_written_back(crossings: Crossings, sandbox: Sandbox) -> None:
    frame, _ = golden("reply_handles")
    source = """
from host.demo import echo, give
found = give()
image, log = found["images"][1], found["log"]
echo({"file": image}, [log])
[image.mime, image.size, image.name, log.mime, log.size, log.name, found["images"][0]]
"""
    value = run(sandbox, source, give=lambda: Reply(frame), echo=lambda *values: list(values))
    assert value == ["image/png", 34567, "chart.png", "text/plain", 3_250_000, None, "none"]
    assert golden("call_handles")[0] in crossings.from_guest


@pytest.mark.parametrize("name", ["reply_error", "reply_tool_error"])
def test_a_golden_error_is_understood(name: str, sandbox: Sandbox) -> None:
    frame, meaning = golden(name)
    source = """
from host.bridge import ToolError
from host.demo import give
try: give()
except ToolError as error: found = [error.kind, error.message, error.server, error.tool, error.data]
found
"""
    assert run(sandbox, source, give=lambda: Reply(frame)) == [
        *(meaning["kind"], meaning["message"], meaning.get("server", ""), meaning.get("tool", "give")),
        meaning.get("data"),
    ]


def test_a_failed_call_says_which(crossings: Crossings, sandbox: Sandbox) -> None:
    def refuse() -> None:
        raise CallFailed(ErrorFrame("failed", "ValueError: no"))

    offered = {"refuse": HostFunction(refuse, is_async=False)}
    with sandbox.session(language="python", host=HostSide({"host:demo": offered})) as session:
        assert session.run_sync("from host.demo import refuse\nrefuse()").failure is not None
    assert crossings.from_guest[-1] == (
        b'{"wire":1,"failure":{"kind":"raised","error":{"name":"ToolFailedError","message":"ValueError: no",'
        b'"stack":"at <module> (main.py:2:1)","module":"host:demo","function":"refuse","kind":"failed"}}}'
    )
