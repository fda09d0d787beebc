"""The guest's side of the wire: the bytes of a real run against the golden frames in fixtures/wire."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolbridge import Sandbox
from toolbridge.boundary.host_call import CallFailed, Reply
from toolbridge.boundary.imports import MAILBOX_BYTES, GuestMemory
from toolbridge.boundary.wire import ErrorFrame, HandleFrame, encode_handles, encode_json
from toolbridge.sandbox.instance import Instance, Steps

WIRE = Path(__file__).resolve().parent.parent.parent / "fixtures" / "wire"


def golden(name: str) -> tuple[bytes, Any]:
    content = json.loads((WIRE / f"{name}.json").read_text(encoding="utf-8"))
    return content["frame"].encode(), content["meaning"]


class Crossings:
    """Every frame that crossed the boundary, in order, by direction."""

    def __init__(self) -> None:
        self.from_guest: list[bytes] = []
        self.to_guest: list[bytes] = []


@pytest.fixture
def crossings(monkeypatch: pytest.MonkeyPatch) -> Crossings:
    found = Crossings()
    read, write = GuestMemory.read, GuestMemory.write

    def watched_read(memory: GuestMemory, pointer: int, length: int) -> bytes:
        data = read(memory, pointer, length)
        # What is no frame: a mailbox that a tick finds empty; a whole memory, when it is compared with a fresh one.
        if length < memory.size and not (length == MAILBOX_BYTES and data.startswith(b"\0")):
            found.from_guest.append(data)
        return data

    def watched_write(memory: GuestMemory, pointer: int, data: bytes) -> None:
        write(memory, pointer, data)
        found.to_guest.append(data)

    monkeypatch.setattr(GuestMemory, "read", watched_read)
    monkeypatch.setattr(GuestMemory, "write", watched_write)
    return found


def echo(*values: Any) -> list[Any]:
    return list(values)


def add(a: int, b: int) -> int:
    return a + b


@pytest.mark.parametrize("name", ["outcome_value", "outcome_nothing", "outcome_failure", "outcome_syntax"])
def test_the_guest_ends_a_run_with_the_golden_bytes(sandbox: Sandbox, crossings: Crossings, name: str) -> None:
    frame, meaning = golden(name)
    sandbox.run_sync(meaning["program"])
    assert crossings.from_guest == [frame]


def test_the_guest_is_given_the_golden_run_frame(crossings: Crossings) -> None:
    frame, meaning = golden("run")
    with Sandbox({"host:demo": {"add": add}}) as sandbox:
        result = sandbox.run_sync(meaning["source"], seed=bytes.fromhex(meaning["seed"]))
    assert result.value == 3
    assert crossings.to_guest[0] == frame


def test_the_guest_imports_and_is_answered_with_the_golden_bytes(crossings: Crossings) -> None:
    request, meaning = golden("import")
    module, _ = golden("module")
    with Sandbox({"host:demo": {"add": add, "echo": echo}}) as sandbox:
        result = sandbox.run_sync(f'import * as module from "{meaning["module"]}"; Object.keys(module)')
    assert result.value == ["add", "echo"]
    assert crossings.from_guest[0] == request
    assert crossings.to_guest[1] == module


def test_the_guest_calls_with_the_golden_bytes_and_reads_the_same_value_back(crossings: Crossings) -> None:
    request, meaning = golden("call")
    with Sandbox({"host:demo": {"echo": echo}}) as sandbox:
        source = 'import { echo } from "host:demo"; echo(1.5, "é€😀\\n\\"", null, { deep: [true, []] })'
        result = sandbox.run_sync(source)
    assert result.value == meaning["arguments"]
    assert crossings.from_guest[1] == request


def test_the_guest_understands_the_golden_value(crossings: Crossings) -> None:
    reply, meaning = golden("reply_ok")
    with Sandbox({"host:demo": {"weather": lambda: meaning["value"]}}) as sandbox:
        result = sandbox.run_sync('require("host:demo").weather()')
    assert result.value == meaning["value"]
    assert crossings.to_guest[2] == reply


def test_the_guest_understands_the_golden_error(crossings: Crossings) -> None:
    reply, meaning = golden("reply_error")

    def refuse() -> None:
        raise CallFailed(ErrorFrame(**meaning))

    with Sandbox({"host:demo": {"refuse": refuse}}) as sandbox:
        result = sandbox.run_sync(
            'import { refuse } from "host:demo"; import { ToolError } from "host:bridge"\n'
            "try { refuse() } catch (error) { ({ is: error instanceof ToolError, text: `${error}`, ...error }) }"
        )
    assert result.value == {
        "is": True,
        "text": "DeniedError: delete_city is not allowed.",
        "module": "host:demo",
        "function": "refuse",
        "kind": "denied",
        "data": {"tool": "delete_city"},
    }
    assert crossings.to_guest[2] == reply


def test_the_guest_understands_the_golden_error_of_a_tool(crossings: Crossings) -> None:
    reply, meaning = golden("reply_tool_error")

    def refuse() -> None:
        raise CallFailed(ErrorFrame(**meaning))

    with Sandbox({"host:demo": {"refuse": refuse}}) as sandbox:
        result = sandbox.run_sync(
            'import { refuse } from "host:demo"; import { ToolDisconnectedError } from "host:bridge"\n'
            "try { refuse() } catch (error) { [error instanceof ToolDisconnectedError, error.message, { ...error }] }"
        )
    own = {"kind": "disconnected", "server": "weather", "tool": "get-forecast"}
    assert result.value == [True, "weather went away.", own]
    assert crossings.to_guest[2] == reply


def test_the_guest_reports_an_uncaught_tool_error_with_the_golden_bytes(crossings: Crossings) -> None:
    frame, _ = golden("outcome_tool_failure")

    def refuse() -> None:
        raise ValueError("no")

    with Sandbox({"host:demo": {"refuse": refuse}}) as sandbox:
        sandbox.run_sync('import { refuse } from "host:demo";\nrefuse()')
    assert crossings.from_guest[-1] == frame


def handles_reply(meaning: Any) -> Reply:
    frames = [HandleFrame(tuple(path), *facts) for path, *facts in (each.values() for each in meaning["handles"])]
    return Reply(encode_handles(frames, encode_json(meaning["value"])))


def test_the_guest_understands_the_golden_handles_and_passes_them_on_with_the_golden_bytes(
    crossings: Crossings,
) -> None:
    reply, meaning = golden("reply_handles")
    request, _ = golden("call_handles")
    with Sandbox({"host:demo": {"give": lambda: handles_reply(meaning), "echo": lambda *_values: None}}) as sandbox:
        result = sandbox.run_sync(
            'import { give, echo } from "host:demo"\n'
            "const given = give(); echo({ file: given.images[1] }, [given.log]); given"
        )
    assert result.value == {"images": ["none", '<image/png 34 KB "chart.png">'], "log": "<text/plain 3.1 MB>"}
    assert crossings.to_guest[2] == reply
    assert crossings.from_guest[2] == request


def test_the_guest_understands_a_golden_settled_frame_with_a_handle(crossings: Crossings) -> None:
    frame, meaning = golden("settled_handles")
    with Sandbox({"host:demo": {"give": lambda: handles_reply(meaning)}}) as sandbox:
        result = sandbox.run_sync('import { give } from "host:demo/async"; give()')
    assert result.value == "<application/json 3.1 MB>"
    settled = crossings.to_guest[2]
    assert settled == frame.replace(b'"id":%d' % meaning["id"], b'"id":%d' % json.loads(settled)["id"], 1)


async def pair() -> list[int]:
    return [1, 2]


async def no_city() -> None:
    raise ValueError("no such city")


@pytest.mark.parametrize(
    ("name", "function", "value"),
    [("settled_ok", pair, [1, 2]), ("settled_error", no_city, "ToolFailedError: ValueError: no such city")],
)
def test_the_guest_understands_the_golden_settled_frame(
    crossings: Crossings, name: str, function: Any, value: object
) -> None:
    frame, meaning = golden(name)
    with Sandbox({"host:demo": {"go": function}}) as sandbox:
        result = sandbox.run_sync('import { go } from "host:demo/async"; await go().catch(String)')
    assert result.value == value
    settled = crossings.to_guest[2]
    number = json.loads(settled)["id"]
    assert settled == frame.replace(b'"id":%d' % meaning["id"], b'"id":%d' % number)


def test_a_reply_too_large_for_the_guests_buffer_is_taken_in_a_second_crossing(crossings: Crossings) -> None:
    text = "é" * 100_000
    with Sandbox({"host:demo": {"echo": echo}}) as sandbox:
        result = sandbox.run_sync(f'require("host:demo").echo("{text}")[0] === "{text}"')
    assert result.value is True
    assert crossings.to_guest[2] == b'{"ok":["' + text.encode() + b'"]}'


@pytest.mark.parametrize("size", [16_375, 16_376, 16_377, 16_378, 16_384])
def test_replies_around_the_size_of_the_guests_buffer_arrive_whole(size: int) -> None:
    with Sandbox({"host:demo": {"text": lambda: "x" * size}}) as sandbox:
        assert sandbox.run_sync('require("host:demo").text().length').value == size


def test_an_outcome_of_another_wire_version_is_a_protocol_failure(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Instance.run

    def run_and_change_the_version(instance: Instance, state: Any, frame: bytes, here: bool) -> Steps:
        pointer, length = yield from run(instance, state, frame, here)
        outcome = instance.memory.read(pointer, length)
        instance.memory.write(pointer, outcome.replace(b'"wire":1', b'"wire":9'))
        return pointer, length

    monkeypatch.setattr(Instance, "run", run_and_change_the_version)
    failure = sandbox.run_sync("1").failure
    assert failure is not None
    assert (failure.kind, failure.message) == (
        "protocol",
        "The guest's outcome was not understood: an outcome says wire 1.",
    )
