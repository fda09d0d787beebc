"""Host calls: from a request to the reply frame, whatever the function does."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from toolbridge.boundary.host_call import (
    CallFailed,
    HostFunction,
    Reply,
    answer_import,
    failed,
    find_function,
    is_awaitable,
    outcome_of,
    reply_with,
    timed_out,
    too_large,
    unknown_function,
)
from toolbridge.boundary.wire import CallRequest, ErrorFrame, ImportRequest, decode_json

REQUEST = CallRequest("host:demo", "add", [1, 2])


def error_of(reply: bytes) -> Any:
    return decode_json(reply)["error"]


def nothing() -> None:
    """A host function."""


MODULES = {
    "host:demo": {"add": HostFunction(nothing, False), "subtract": HostFunction(nothing, False)},
    "host:mcp-weather": {"get_forecast": HostFunction(nothing, True)},
}


def test_a_value_is_answered_with_ok() -> None:
    assert reply_with(REQUEST, {"sum": 3}, 100).frame == b'{"ok":{"sum":3}}'


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({1}, "Object of type set is not JSON serializable"),
        (b"bytes", "Object of type bytes is not JSON serializable"),
        (float("nan"), "Out of range float values are not JSON compliant"),
        (float("-inf"), "Out of range float values are not JSON compliant"),
        ({(1, 2): 3}, "keys must be str, int, float, bool or None, not tuple"),
    ],
)
def test_a_value_without_a_json_form_is_answered_with_the_reason(value: object, reason: str) -> None:
    error = error_of(reply_with(REQUEST, value, 100).frame)
    assert error["kind"] == "protocol"
    assert error["message"].startswith(f"The result of add has no JSON form: {reason}")


def test_a_circular_value_is_answered_with_the_reason() -> None:
    circular: list[Any] = []
    circular.append(circular)
    assert error_of(reply_with(REQUEST, circular, 100).frame) == {
        "kind": "protocol",
        "message": "The result of add has no JSON form: nested too deeply or circular.",
    }


def test_a_value_over_the_limit_is_answered_with_both_sizes() -> None:
    assert error_of(reply_with(REQUEST, "x" * 100, 50).frame) == {
        "kind": "limit",
        "message": "The result of add is 109 bytes, more than the limit of 50.",
    }


def test_a_value_at_the_limit_is_answered_whole() -> None:
    assert reply_with(REQUEST, "x" * 41, 50).frame == b'{"ok":"' + b"x" * 41 + b'"}'


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("no such city"), "ValueError: no such city"),
        (KeyError("city"), "KeyError: 'city'"),
        (RuntimeError(), "RuntimeError"),
        (UnprintableError(), "UnprintableError"),
        (SystemExit(3), "SystemExit: 3"),
        (ValueError("\ud800"), "ValueError: \ufffd"),
    ],
)
def test_an_exception_is_answered_with_its_type_and_text(error: BaseException, message: str) -> None:
    assert error_of(failed(error)) == {"kind": "failed", "message": message}


def test_a_long_exception_text_is_cut() -> None:
    assert len(error_of(failed(ValueError("x" * 100_000)))["message"]) == 4_000


def test_an_error_that_a_function_chose_is_answered_as_it_is() -> None:
    frame = ErrorFrame("denied", "not today", name="DeniedError", data={"tool": "add"})
    assert error_of(failed(CallFailed(frame))) == {
        "kind": "denied",
        "message": "not today",
        "name": "DeniedError",
        "data": {"tool": "add"},
    }


def test_an_error_says_which_tool_of_which_server_failed() -> None:
    frame = ErrorFrame("timeout", "too late", server="weather", tool="get-forecast")
    assert error_of(failed(CallFailed(frame))) == {
        "kind": "timeout",
        "message": "too late",
        "server": "weather",
        "tool": "get-forecast",
    }


def test_a_reply_that_a_function_made_is_answered_as_it_is() -> None:
    reply = Reply(b'{"ok":{"error":"no"}}', "denied", ("a note",))
    assert reply_with(REQUEST, reply, 100) is reply
    assert error_of(reply_with(REQUEST, reply, 10).frame)["kind"] == "limit"


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (reply_with(REQUEST, 1, 100).frame, "ok"),
        (reply_with(REQUEST, {"error": {"kind": "x"}}, 100).frame, "ok"),
        (reply_with(REQUEST, {1}, 100).frame, "protocol"),
        (failed(ValueError()), "failed"),
        (failed(CallFailed(ErrorFrame("denied", "x"))), "denied"),
        (timed_out(REQUEST, 1.0), "timeout"),
        (too_large("The call", 2, 1), "limit"),
        (unknown_function(REQUEST), "unknown"),
    ],
)
def test_a_record_says_what_the_reply_says(reply: bytes, outcome: str) -> None:
    assert outcome_of(reply) == outcome


def test_a_timeout_says_which_function_and_that_it_may_have_worked() -> None:
    assert error_of(timed_out(REQUEST, 0.25)) == {
        "kind": "timeout",
        "message": "add did not answer within 0.25 s. It may or may not have taken effect.",
    }


def test_a_function_is_found_by_module_and_name_only() -> None:
    assert find_function(MODULES, REQUEST) is MODULES["host:demo"]["add"]
    assert find_function(MODULES, CallRequest("host:demo", "__class__", [])) is None
    assert find_function(MODULES, CallRequest("host:demo/async", "add", [])) is None
    assert find_function(MODULES, CallRequest("toString", "add", [])) is None


def test_an_unknown_function_is_named() -> None:
    assert error_of(unknown_function(CallRequest("host:demo", "ad", []))) == {
        "kind": "unknown",
        "message": 'There is no function "ad" in module "host:demo".',
    }


@pytest.mark.parametrize(("specifier", "is_async"), [("host:demo", False), ("host:demo/async", True)])
def test_an_import_is_answered_with_the_functions_of_the_module(specifier: str, is_async: bool) -> None:
    assert decode_json(answer_import(MODULES, ImportRequest(specifier))) == {
        "ok": {"module": "host:demo", "functions": ["add", "subtract"], "async": is_async}
    }


@pytest.mark.parametrize(
    ("specifier", "message"),
    [
        ("host:dmeo", 'There is no module "host:dmeo". Did you mean "host:demo"?'),
        ("host:dmeo/async", 'There is no module "host:dmeo/async". Did you mean "host:demo/async"?'),
        ("demo", 'There is no module "demo". Did you mean "host:demo"?'),
        ("host:mcp_weather", 'There is no module "host:mcp_weather". Did you mean "host:mcp-weather"?'),
        ("host:xyz", 'There is no module "host:xyz". There is: "host:demo", "host:mcp-weather", "host:bridge".'),
        (
            "fs",
            'There is no module "fs". Only host modules can be imported here: no files, no packages. '
            'There is: "host:demo", "host:mcp-weather", "host:bridge".',
        ),
    ],
)
def test_an_unknown_module_is_answered_with_the_nearest_or_with_all(specifier: str, message: str) -> None:
    error = error_of(answer_import(MODULES, ImportRequest(specifier)))
    assert error == {"kind": "unknown", "message": message, "name": "ModuleError"}


def test_a_long_unknown_module_and_a_long_list_are_cut() -> None:
    many = {f"host:module-{number}": MODULES["host:demo"] for number in range(100)}
    message = error_of(answer_import(many, ImportRequest("?" * 10_000)))["message"]
    assert len(message) < 800
    assert message.endswith('"host:module-19", ….')


def test_what_must_be_awaited_is_told_by_its_type() -> None:
    async def coroutine() -> None: ...

    made = coroutine()
    assert [is_awaitable(value) for value in (made, coroutine, 1, None, functools.partial(coroutine))] == [
        *(True, False, False, False, False)
    ]
    made.close()
