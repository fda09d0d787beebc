"""An observer that makes OpenTelemetry spans: one for each run, with a child for each call.

Only the API is used: unless the application sets up an SDK, spans are no-ops. Attributes follow OpenTelemetry's
semantic conventions for MCP and tools (`mcp.method.name`, `gen_ai.tool.name`, `error.type`); the others are
`toolbridge.*`. Arguments and results are never recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolbridge.events import CallEnded, CallStarted, DecisionMade, Event, RunEnded, RunStarted
from toolbridge.trust.sanitise import for_error

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer, TracerProvider

_MOST_CHARACTERS = 200
# The conventions name a tool's `isError`; other outcomes keep our names.
_ERROR_TYPES = {"failed": "tool_error"}


class Tracing:
    """An observer that makes spans of runs and calls. A run's span is a child of its caller's current span.

    No span is made current: spans of others don't become children of a call. `tracer_provider` replaces the global one.
    """

    wants_progress = False
    """Servers are not asked for progress notifications on its account."""

    def __init__(self, tracer_provider: TracerProvider | None = None) -> None:
        self._tracer = _tracer(tracer_provider)
        self._runs: dict[str, _Run] = {}

    def __call__(self, event: Event) -> None:
        """Start, annotate or end the span of an event; ignored without OpenTelemetry, and for an unknown run."""
        if self._tracer is None:
            return
        if isinstance(event, RunStarted):
            self._runs[event.run] = _Run(self._tracer, event)
        elif isinstance(event, RunEnded):
            if run := self._runs.pop(event.run, None):
                run.end(event)
        elif isinstance(event, CallStarted | DecisionMade | CallEnded) and (run := self._runs.get(event.run)):
            run.record(event)


def _tracer(provider: TracerProvider | None) -> Tracer | None:
    """The provider's tracer, the global one's for None; None if OpenTelemetry is not installed."""
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    from toolbridge import __version__

    return trace.get_tracer("toolbridge", __version__, tracer_provider=provider)


class _Run:
    """The spans of one run."""

    __slots__ = ("_calls", "_context", "_span", "_tracer")

    def __init__(self, tracer: Tracer, event: RunStarted) -> None:
        from opentelemetry.trace import set_span_in_context

        self._tracer = tracer
        self._span = tracer.start_span(
            "toolbridge.run",
            attributes={
                "toolbridge.run": event.run,
                "toolbridge.language": event.language,
                "toolbridge.source_bytes": event.source_bytes,
            },
        )
        if event.session is not None:
            self._span.set_attribute("toolbridge.session", event.session)
        self._context: Context = set_span_in_context(self._span)
        self._calls: dict[int, Span] = {}

    def record(self, event: CallStarted | DecisionMade | CallEnded) -> None:
        """Start, annotate or end the span of a call; ignored if the call is unknown."""
        if isinstance(event, CallStarted):
            self._calls[event.call] = self._start(event)
        elif isinstance(event, DecisionMade):
            if span := self._calls.get(event.call):
                span.set_attribute("toolbridge.allowed", event.allowed)
                span.set_attribute("toolbridge.rule", _plain(event.rule))
        elif span := self._calls.pop(event.call, None):
            span.set_attribute("toolbridge.request_bytes", event.request_bytes)
            span.set_attribute("toolbridge.reply_bytes", event.reply_bytes)
            _end(span, event.outcome)

    def end(self, event: RunEnded) -> None:
        """End the span of the run, with its totals and outcome."""
        self._span.set_attribute("toolbridge.cpu_seconds", event.cpu_seconds)
        self._span.set_attribute("toolbridge.calls", event.calls)
        self._span.set_attribute("toolbridge.servers", list(event.servers))
        _end(self._span, event.outcome)

    def _start(self, event: CallStarted) -> Span:
        """Start the span of a call as a child of the run's."""
        from opentelemetry.trace import SpanKind

        attributes: dict[str, str | int] = {
            "toolbridge.run": event.run,
            "toolbridge.call": event.call,
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": _plain(event.tool),
        }
        if event.server:
            attributes["toolbridge.server"] = event.server
            attributes["mcp.method.name"] = "tools/call"
        kind = SpanKind.CLIENT if event.server else SpanKind.INTERNAL
        return self._tracer.start_span("toolbridge.call", self._context, kind, attributes)


def _end(span: Span, outcome: str) -> None:
    """Set the outcome of a span, an error status unless it is `ok`, and end it."""
    from opentelemetry.trace import StatusCode

    span.set_attribute("toolbridge.outcome", outcome)
    if outcome != "ok":
        span.set_attribute("error.type", _ERROR_TYPES.get(outcome, outcome))
        span.set_status(StatusCode.ERROR)
    span.end()


def _plain(text: str) -> str:
    """Foreign text as an attribute, sanitised: exporters drop whole batches for text that is not UTF-8."""
    return for_error(text, limit=_MOST_CHARACTERS)
