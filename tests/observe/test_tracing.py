"""Spans, as an application with the OpenTelemetry SDK gets them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

import anyio
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from observe.examples import CALL_ENDED, CALL_STARTED, ONE_RUN, RUN
from toolbridge.events import CallEnded, CallStarted, DecisionMade, Event, RunEnded, RunStarted
from toolbridge.observe.tracing import Tracing


class Traced:
    """A tracing observer, and what it exported."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.observer = Tracing(self.provider)

    def tell(self, *events: Event) -> None:
        for event in events:
            self.observer(event)

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())


@pytest.fixture
def traced() -> Traced:
    return Traced()


def attributes(span: ReadableSpan) -> Mapping[str, object]:
    return dict(span.attributes or {})


def identity(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.span_id


def test_a_run_is_a_span_and_its_calls_are_children(traced: Traced) -> None:
    traced.tell(*ONE_RUN)
    call, run = traced.spans
    assert (run.name, run.kind, run.parent, run.status.status_code) == (
        "toolbridge.run",
        SpanKind.INTERNAL,
        None,
        StatusCode.UNSET,
    )
    assert attributes(run) == {
        "toolbridge.run": RUN,
        "toolbridge.language": "javascript",
        "toolbridge.source_bytes": 112,
        "toolbridge.outcome": "ok",
        "toolbridge.cpu_seconds": 0.004,
        "toolbridge.calls": 1,
        "toolbridge.servers": ("weather",),
    }
    assert (call.name, call.kind, call.status.status_code) == ("toolbridge.call", SpanKind.CLIENT, StatusCode.UNSET)
    assert call.parent is not None
    assert call.parent.span_id == identity(run)
    assert attributes(call) == {
        "toolbridge.run": RUN,
        "toolbridge.call": 1,
        "toolbridge.server": "weather",
        "toolbridge.outcome": "ok",
        "toolbridge.request_bytes": 31,
        "toolbridge.reply_bytes": 187,
        "toolbridge.allowed": True,
        "toolbridge.rule": "default",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_forecast",
        "mcp.method.name": "tools/call",
    }


def test_a_run_is_a_child_of_its_callers_span_also_when_its_calls_happen_elsewhere(traced: Traced) -> None:
    tracer = traced.provider.get_tracer("application")

    async def main() -> None:
        async with anyio.create_task_group() as elsewhere:
            # This task began outside of the caller's span, as the runtime's own tasks do.
            send, receive = anyio.create_memory_object_stream[Event](10)
            elsewhere.start_soon(relay, receive)
            with tracer.start_as_current_span("caller"):
                traced.tell(RunStarted(RUN, "javascript", 1, session="s1"))
                await send.send(CALL_STARTED)
                await send.send(CALL_ENDED)
            send.close()
        traced.tell(RunEnded(RUN, "ok", 0.1, 0.0, 1))

    async def relay(receive: anyio.abc.ObjectReceiveStream[Event]) -> None:
        async with receive:
            async for event in receive:
                traced.tell(event)

    anyio.run(main)
    spans = {span.name: span for span in traced.spans}
    run, call = spans["toolbridge.run"], spans["toolbridge.call"]
    assert run.parent is not None
    assert run.parent.span_id == identity(spans["caller"])
    assert call.parent is not None
    assert call.parent.span_id == identity(run)
    assert attributes(run)["toolbridge.session"] == "s1"


@pytest.mark.parametrize(
    ("outcome", "error"), [("timeout", "timeout"), ("denied", "denied"), ("failed", "tool_error"), ("other", "other")]
)
def test_a_call_that_fails_is_an_error(traced: Traced, outcome: str, error: str) -> None:
    traced.tell(ONE_RUN[0], CALL_STARTED, CallEnded(RUN, 1, "weather", "get_forecast", outcome, 1.0, 1, 1))
    (call,) = traced.spans
    assert call.status.status_code is StatusCode.ERROR
    assert call.status.description is None
    assert attributes(call)["error.type"] == error
    assert attributes(call)["toolbridge.outcome"] == outcome


def test_a_run_that_fails_is_an_error(traced: Traced) -> None:
    traced.tell(ONE_RUN[0], RunEnded(RUN, "cancelled", 1.0, 0.0, 0))
    (run,) = traced.spans
    assert run.status.status_code is StatusCode.ERROR
    assert attributes(run)["error.type"] == "cancelled"


def test_a_host_function_is_no_mcp_request(traced: Traced) -> None:
    traced.tell(ONE_RUN[0], CallStarted(RUN, 1, "", "now"), CallEnded(RUN, 1, "", "now", "ok", 0.0, 1, 1))
    (call,) = traced.spans
    assert call.kind is SpanKind.INTERNAL
    assert "mcp.method.name" not in attributes(call)
    assert "toolbridge.server" not in attributes(call)


def test_overlapping_calls_and_runs_are_not_mixed_up(traced: Traced) -> None:
    runs = ("a", "b")
    traced.tell(*(RunStarted(run, "javascript", 1) for run in runs))
    traced.tell(*(CallStarted(run, call, "weather", f"{run}{call}") for call in range(3) for run in runs))
    traced.tell(*(CallEnded(run, call, "weather", f"{run}{call}", "ok", 0, 1, 1) for run in runs for call in (2, 0, 1)))
    traced.tell(*(RunEnded(run, "ok", 0, 0, 3) for run in runs))
    parents = {identity(span): attributes(span)["toolbridge.run"] for span in traced.spans if span.parent is None}
    calls = [span for span in traced.spans if span.parent is not None]
    assert len(calls) == 6
    for span in calls:
        name = attributes(span)["gen_ai.tool.name"]
        assert span.parent is not None
        assert name == f"{parents[span.parent.span_id]}{attributes(span)['toolbridge.call']}"


def test_nothing_is_kept_of_a_run_that_ended(traced: Traced) -> None:
    traced.tell(*ONE_RUN)
    assert traced.observer._runs == {}


def test_events_of_an_unknown_run_are_no_spans(traced: Traced) -> None:
    traced.tell(*ONE_RUN[1:])
    assert traced.spans == []


def test_a_foreign_name_is_an_attribute_that_any_exporter_can_encode(traced: Traced) -> None:
    hostile = "\ud800\x1b[2J" + "x" * 10_000
    traced.tell(ONE_RUN[0], CallStarted(RUN, 1, "weather", hostile))
    traced.tell(DecisionMade(RUN, 1, "weather", hostile, allowed=False, rule=hostile))
    traced.tell(CallEnded(RUN, 1, "weather", hostile, "denied", 0, 1, 1))
    (call,) = traced.spans
    for key in ("gen_ai.tool.name", "toolbridge.rule"):
        value = attributes(call)[key]
        assert isinstance(value, str)
        assert len(value.encode()) <= 210
        assert value.isprintable()


def test_arguments_are_in_no_span(traced: Traced) -> None:
    traced.tell(ONE_RUN[0], CallStarted(RUN, 1, "weather", "get_forecast", '{"q":"private"}'), CALL_ENDED)
    assert "private" not in traced.spans[0].to_json()


def test_nothing_is_made_current(traced: Traced) -> None:
    traced.tell(ONE_RUN[0], CALL_STARTED)
    assert not trace.get_current_span().get_span_context().is_valid


@pytest.mark.parametrize("installed", [True, False])
def test_without_an_sdk_or_without_the_api_it_does_nothing(installed: bool) -> None:
    """In a fresh process: here, an SDK is loaded."""
    program = f"""
import sys
sys.path[:0] = {sys.path!r}
import toolbridge.observe.tracing
assert not any(name.startswith("opentelemetry") for name in sys.modules), "imported before it is used"
if not {installed}:
    sys.modules["opentelemetry"] = None
from observe.examples import ONE_RUN
tracing = toolbridge.observe.tracing.Tracing()
for event in ONE_RUN:
    tracing(event)
assert ("opentelemetry.trace" in sys.modules) is {installed}
assert "opentelemetry.sdk" not in sys.modules
assert tracing._runs == {{}}
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
