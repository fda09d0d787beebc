"""An observer that makes OpenTelemetry spans: one for a run, below it one for each call.

Only the API is used: without an SDK that the application has set up, every span is a no-op. Names of attributes follow
OpenTelemetry's conventions for MCP and for tools where there is one (`mcp.method.name`, `gen_ai.tool.name`,
`error.type`); the rest is `toolbridge.*`. Arguments and results are in none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolbridge.events import CallEnded, CallStarted, DecisionMade, Event, RunEnded, RunStarted
from toolbridge.trust.text.sanitise import for_error

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer, TracerProvider

_MOST_CHARACTERS = 200
# What a tool reports by `isError` has a name in the conventions; all other outcomes keep ours.
_ERROR_TYPES = {"failed": "tool_error"}


class Tracing:
    """Makes spans of runs and calls. A run's span is a child of the span that is current where the run was started.

    Nothing is made current by it: spans of others don't become children of a call.
    `tracer_provider`: other than the application's global one.
    """

    wants_progress = False
    """No server is asked on its account how far its calls are."""

    def __init__(self, tracer_provider: TracerProvider | None = None) -> None:
        self._tracer = _tracer(tracer_provider)
        self._runs: dict[str, _Run] = {}

    def __call__(self, event: Event) -> None:
        """Starts or ends the span that an event is about."""
        if self._tracer is None:
            return
        if isinstance(event, RunStarted):
            self._runs[event.run] = _Run(self._tracer, event)
        elif isinstance(event, RunEnded):
            if run := self._runs.pop(event.run, None):
                run.end(event)
        elif isinstance(event, CallStarted | DecisionMade | CallEnded) and (run := self._runs.get(event.run)):
            run.tell(event)


def _tracer(provider: TracerProvider | None) -> Tracer | None:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    from toolbridge.version import __version__

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

    def tell(self, event: CallStarted | DecisionMade | CallEnded) -> None:
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
        self._span.set_attribute("toolbridge.cpu_seconds", event.cpu_seconds)
        self._span.set_attribute("toolbridge.calls", event.calls)
        self._span.set_attribute("toolbridge.servers", list(event.servers))
        _end(self._span, event.outcome)

    def _start(self, event: CallStarted) -> Span:
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
    from opentelemetry.trace import StatusCode

    span.set_attribute("toolbridge.outcome", outcome)
    if outcome != "ok":
        span.set_attribute("error.type", _ERROR_TYPES.get(outcome, outcome))
        span.set_status(StatusCode.ERROR)
    span.end()


def _plain(text: str) -> str:
    """A foreign text as an attribute. Exporters fail on what is no UTF-8, and lose the spans of others with it."""
    return for_error(text, limit=_MOST_CHARACTERS)
