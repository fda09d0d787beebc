"""What observers are told, and what they can't do."""

from __future__ import annotations

import dataclasses
import logging
import typing

import pytest

from observe.examples import CALL_ENDED, CALL_STARTED, ONE_RUN, RUN
from observe.recorder import Recorder
from toolbridge.calls.run import new_run
from toolbridge.events import DecisionMade, Event, RunEnded, RunStarted, wants_arguments
from toolbridge.servers.registry import notify

EVENT_TYPES: tuple[type[Event], ...] = typing.get_args(Event)


@pytest.mark.parametrize("event", EVENT_TYPES, ids=lambda event: event.__name__)
def test_an_observer_cannot_change_what_the_next_one_is_told(event: type[Event]) -> None:
    parameters = typing.cast("typing.Any", event).__dataclass_params__
    assert parameters.frozen
    assert "__slots__" in vars(event)


def test_the_examples_have_an_event_of_every_type() -> None:
    assert {type(event) for event in ONE_RUN} == set(EVENT_TYPES)


def test_an_observer_that_raises_is_logged_and_nobody_else_notices(caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: Event) -> None:
        raise RuntimeError("out of ink")

    recorder = Recorder()
    with caplog.at_level(logging.ERROR, logger="toolbridge"):
        for event in ONE_RUN:
            notify((broken, recorder), event)
    assert recorder.events == list(ONE_RUN)
    assert len(caplog.records) == len(ONE_RUN)


def test_runs_have_names_of_their_own() -> None:
    assert len({new_run() for _ in range(10_000)}) == 10_000


def test_arguments_are_made_only_if_somebody_asks() -> None:
    class Odd:
        wants_arguments = "certainly"

        def __call__(self, event: Event) -> None: ...

    assert not wants_arguments(())
    assert not wants_arguments((print, Recorder(), Odd()))
    assert wants_arguments((print, Recorder(wants_arguments=True)))


def test_the_recorder_is_content_with_a_whole_run() -> None:
    recorder = Recorder()
    for event in ONE_RUN:
        recorder(event)
    assert recorder.broken_promises() == []
    assert recorder.of(RunStarted) == [ONE_RUN[0]]


ENDED = RunEnded(RUN, "ok", 0.1, 0.0, 1)
STARTED = RunStarted(RUN, "javascript", 1)


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([STARTED], f"run {RUN} never ended"),
        ([STARTED, STARTED, CALL_STARTED, CALL_ENDED, ENDED], f"run {RUN} started twice"),
        ([STARTED, CALL_STARTED, ENDED], f"run {RUN} ended before its calls [1]"),
        ([STARTED, CALL_STARTED, CALL_ENDED, CALL_ENDED, ENDED], f"of no open call: {CALL_ENDED}"),
        ([STARTED, CALL_STARTED, CALL_ENDED, CALL_STARTED, CALL_ENDED], f"call ({RUN!r}, 1) started twice"),
        ([STARTED, ENDED], f"run {RUN} says 1 calls, told of 0"),
        ([STARTED, CALL_STARTED, CALL_ENDED, ENDED, CALL_ENDED], f"outside of its run: {CALL_ENDED}"),
        (
            [STARTED, CALL_STARTED, DecisionMade(RUN, 1, "weather", "other", allowed=True)],
            f"call ({RUN!r}, 1) changed its tool: {DecisionMade(RUN, 1, 'weather', 'other', allowed=True)}",
        ),
        (
            [STARTED, dataclasses.replace(CALL_STARTED, arguments="{}"), CALL_ENDED, ENDED],
            f"call ({RUN!r}, 1) shows its arguments",
        ),
    ],
)
def test_the_recorder_notices_a_broken_promise(events: list[Event], problem: str) -> None:
    recorder = Recorder()
    for event in events:
        recorder(event)
    assert problem in recorder.broken_promises()
