"""Events of one run, as the documents show them."""

from __future__ import annotations

from toolbridge.events import (
    CallEnded,
    CallProgressed,
    CallStarted,
    DecisionMade,
    Event,
    RunEnded,
    RunStarted,
    ServerCollided,
    ServerIgnored,
    ServerRegistered,
    StateChanged,
    ToolsChanged,
)

RUN = "5f0c9a1b72de"
CALL_STARTED = CallStarted(RUN, 1, "weather", "get_forecast")
CALL_ENDED = CallEnded(RUN, 1, "weather", "get_forecast", "ok", 0.0412345678, 31, 187)

ONE_RUN: tuple[Event, ...] = (
    RunStarted(RUN, "javascript", 112),
    ServerRegistered("weather", "plugin (acme)", "the task mentions 'forecast'"),
    ServerCollided("notes", "code", "user (/home/me/.config/toolbridge/config.json)"),
    ServerIgnored("broken", "plugin (broken)", "it raised ValueError"),
    StateChanged("weather", "connecting"),
    ToolsChanged("weather"),
    StateChanged("weather", "connected"),
    CALL_STARTED,
    DecisionMade(RUN, 1, "weather", "get_forecast", allowed=True, rule="default"),
    CallProgressed(RUN, 1, "weather", "get_forecast", 1.0, 2.0, "one day"),
    CALL_ENDED,
    RunEnded(RUN, "ok", 0.0631, 0.004, 1, ("weather",)),
)
