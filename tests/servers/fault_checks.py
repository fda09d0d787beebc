"""What must hold of every run of a server with a fault, whatever the fault."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from servers.fault_expectations import ANY_ERROR, ECHOES, Either, Fails, Fault, Gives, Outcome, may_time_out, text_of
from servers.fault_run import AFTER, BESIDE, Run, Step, lateness
from servers.faults import SECRET
from toolbridge.errors import ServerDisconnectedError, ServerError

LONGEST_MESSAGE = 5_000


def check_run(run: Run, server: str) -> None:
    """The one place that says what "survived" means."""
    fault = run.fault
    _check_step("connect", run, _with_tools(fault.connect), server)
    if isinstance(run.steps["connect"].outcome, dict):
        _check_step("call", run, _with_text(fault.call, fault.text), server)
        if fault.beside:
            _check_step("beside", run, _with_text(_beside(fault), BESIDE), server)
        _check_step("after", run, _with_text(fault.after, AFTER), server)
    close = run.steps["close"]
    assert close.outcome == {}, f"closing it gave {close.outcome!r}"
    _check_healthy(run)
    assert lateness(run) == ""
    assert run.left == {} or fault.may_leave, f"left behind: {run.left}"
    if fault.problem:
        assert any(re.search(fault.problem, problem) for problem in run.problems), run.problems


def _check_step(name: str, run: Run, expected: Outcome, server: str) -> None:
    step = run.steps[name]
    assert step.outcome is not None, f"{name}: it hung"
    if isinstance(step.outcome, ServerError):
        _check_error(step.outcome, server)
    elif isinstance(step.outcome, dict):
        assert "FORGED" not in str(step.outcome), f"{name}: a forged answer was taken: {step.outcome!r}"
    outcomes = expected.outcomes if isinstance(expected, Either) else (expected,)
    assert any(_is_met(outcome, step) for outcome in outcomes), f"{name}: expected {expected}, got {step.outcome!r}"


def _is_met(expected: Gives | Fails, step: Step) -> bool:
    if isinstance(expected, Fails):
        return isinstance(step.outcome, expected.kinds) and re.search(expected.says, str(step.outcome)) is not None
    return isinstance(step.outcome, dict) and expected.holds is not None and expected.holds(step.outcome)


def _check_error(error: ServerError, server: str) -> None:
    message = str(error)
    assert error.server == server
    assert repr(server) in message
    assert len(message) <= LONGEST_MESSAGE
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", message), repr(message)
    assert "Traceback" not in message
    assert SECRET not in message


def _beside(fault: Fault) -> Outcome:
    """A call at the same time is answered too, unless the fault ends or stops the server."""
    outcomes = fault.call.outcomes if isinstance(fault.call, Either) else (fault.call,)
    stops = may_time_out(fault.call) or any(
        isinstance(outcome, Fails) and ServerDisconnectedError in outcome.kinds for outcome in outcomes
    )
    return Either((ECHOES, ANY_ERROR)) if stops or fault.ends_late else ECHOES


def _with_tools(expected: Outcome) -> Outcome:
    """Where nothing else is asked for, being connected means that both tools are there."""
    return _with(expected, lambda listing: {"echo", "faulty"} <= set(listing["tools"]))


def _with_text(expected: Outcome, text: str) -> Outcome:
    return _with(expected, lambda result: text_of(result) == text)


def _with(expected: Outcome, holds: Callable[[dict[str, Any]], bool]) -> Outcome:
    if isinstance(expected, Either):
        return Either(tuple(Gives(holds) if outcome == ECHOES else outcome for outcome in expected.outcomes))
    return Gives(holds) if expected == ECHOES else expected


def _check_healthy(run: Run) -> None:
    assert run.healthy, "the healthy server was never called"
    for step in run.healthy:
        assert isinstance(step.outcome, dict), f"the healthy server failed: {step.outcome!r}"
