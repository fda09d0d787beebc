"""What a run gives back: results and failures as data and as text."""

from __future__ import annotations

import pytest

from growth import patience
from toolbridge import CallRecord, Failure, RunResult, Sandbox, Usage


def test_a_result_without_a_failure_is_ok() -> None:
    assert RunResult(value=1).ok
    assert not RunResult(failure=Failure("raised", "Error: no")).ok


def test_the_defaults_of_a_result_are_empty() -> None:
    result = RunResult()
    assert (result.value, result.stdout, result.stderr, result.calls, result.failure) == (None, "", "", (), None)
    assert result.usage == Usage(0.0, 0.0, 0, 0)


def test_the_text_of_a_failure_is_its_message_when_there_is_no_more() -> None:
    assert str(Failure("timeout", "The run took longer than 1 s.")) == "The run took longer than 1 s."


def test_the_text_of_a_failure_has_place_excerpt_and_notes() -> None:
    failure = Failure("syntax", "SyntaxError: no", line=2, column=3, excerpt="> 2 | a\n    |   ^", notes=("Hint: b",))
    assert str(failure) == "SyntaxError: no\n  at line 2, column 3\n> 2 | a\n    |   ^\nHint: b"


def test_the_text_of_a_failure_has_its_trace_in_place_of_the_line() -> None:
    failure = Failure("raised", "Error: no", line=2, column=3, trace=("f (line 2, column 3)", "line 5, column 1"))
    assert str(failure) == "Error: no\n  at f (line 2, column 3)\n  at line 5, column 1"


def test_results_and_failures_are_frozen() -> None:
    with pytest.raises(AttributeError):
        RunResult().value = 1  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(AttributeError):
        Failure("raised", "").message = ""  # pyright: ignore[reportAttributeAccessIssue]


def test_a_call_record_says_what_was_called_and_how_it_went() -> None:
    record = CallRecord("host:demo", "add", "ok", 0.5, 10, 20)
    assert record._asdict() == {
        "module": "host:demo",
        "function": "add",
        "outcome": "ok",
        "seconds": 0.5,
        "request_bytes": 10,
        "reply_bytes": 20,
        "server": "",
        "tool": "",
        "started": 0.0,
        "notes": (),
        "sent": True,
    }


def test_the_usage_of_a_run_is_measured(sandbox: Sandbox) -> None:
    program = "const start = performance.now(); while (performance.now() - start < 100); new Uint8Array(2 ** 23).length"
    usage = sandbox.run_sync(program).usage
    assert 0.1 <= usage.wall_seconds < patience(2)
    assert 0.02 <= usage.cpu_seconds <= usage.wall_seconds + 0.01
    assert 2**23 < usage.memory_bytes < 2**25
    assert usage.output_bytes_dropped == 0


@pytest.mark.parametrize("program", ["1", "throw 1", "let = 1"])
def test_the_memory_of_a_run_is_reported_also_when_it_failed(sandbox: Sandbox, program: str) -> None:
    assert sandbox.run_sync(program).usage.memory_bytes > 0


def test_a_failure_can_be_printed_anywhere() -> None:
    failure = Failure("raised", "no \ud800", excerpt="> 1 | '\udfff'", trace=("\ud800",), notes=("é \udc80",))
    assert str(failure) == "no \\ud800\n  at \\ud800\n> 1 | '\\udfff'\né \\udc80"
    assert failure == Failure(
        "raised", "no \\ud800", excerpt="> 1 | '\\udfff'", trace=("\\ud800",), notes=("é \\udc80",)
    )
