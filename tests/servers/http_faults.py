"""Every mode of fixtures/servers/fault_http.py, with what must become of it."""

from __future__ import annotations

from dataclasses import replace

from servers.fault_expectations import (
    ECHOES,
    NOT_CONNECTED,
    TIMED_OUT,
    Either,
    Fails,
    Fault,
    Gives,
    Outcome,
    gives_text,
    says,
)
from servers.faults import MESSAGE_BYTES
from toolbridge.errors import (
    ServerConnectError,
    ServerDisconnectedError,
    ServerProtocolError,
    ServerTimeoutError,
    ToolRefusedError,
)

# Which of them it is depends on how far the answer got; what counts is that it is said at once, and what is said.
_FAILS = Fails((ServerDisconnectedError, ServerProtocolError, ToolRefusedError))
_NO_CONNECTION = Fails((ServerConnectError, ServerDisconnectedError, ServerProtocolError))
_TIMES_OUT = TIMED_OUT
_TOO_MUCH = Fails((ServerDisconnectedError, ServerProtocolError, ToolRefusedError), r"\d+ bytes|too (large|long|big)")


def _at_call_and_always(mode: str, call: Outcome, connect: Outcome, *, alone: bool = False) -> tuple[Fault, Fault]:
    return Fault(f"{mode}-at-call", call=call, alone=alone), Fault(f"{mode}-always", connect=connect, alone=alone)


def _fails_with(mode: str, words: str = "", *, alone: bool = False) -> tuple[Fault, Fault]:
    return _at_call_and_always(mode, says(_FAILS, words), says(_NO_CONNECTION, words), alone=alone)


STATUSES = (
    *_at_call_and_always("401", *(Fails((ServerConnectError,), "401.*[Ss]ign"),) * 2),
    *_fails_with("403", r"403|[Ff]orbidden"),
    *_fails_with("404", r"404|[Nn]ot [Ff]ound"),
    *_fails_with("500", r"500"),
    *_fails_with("418", r"418"),
    *_fails_with("999", r"999|HTTP"),
    Fault("503-at-call", call=says(_FAILS, "503")),
    Fault("503-always", connect=Fails((ServerConnectError, ServerTimeoutError, ServerProtocolError), r"503|1\.5 s")),
    Fault("502-at-call", call=says(_FAILS, "502")),
    Fault("404-session", call=Either((ECHOES, Fails((ServerDisconnectedError, ToolRefusedError))))),
    Fault("400-json-error", call=says(_FAILS, "location must be a city|400")),
    Fault("429-seconds-then-fine"),
    Fault("429-date-then-fine"),
    Fault("429-odd-then-fine"),
    Fault("502-twice-then-fine"),
    Fault("503-then-fine"),
    Fault("429-for-ever", connect=Fails((ServerConnectError, ServerTimeoutError, ServerProtocolError), r"429|1\.5 s")),
    Fault("429-an-hour", connect=Fails((ServerConnectError, ServerTimeoutError, ServerProtocolError), r"429|1\.5 s")),
)

BODIES = (
    *(
        fault
        for mode in ("hang", "slow-headers", "slow-body", "dripping-body")
        for fault in _at_call_and_always(mode, _TIMES_OUT, _TIMES_OUT)
    ),
    Fault("slow-but-in-time"),
    *_at_call_and_always("endless-body", _TOO_MUCH, _NO_CONNECTION, alone=True),
    *_at_call_and_always("huge-body", _TOO_MUCH, _NO_CONNECTION, alone=True),
    *_at_call_and_always(
        "huge-length",
        Fails((*_FAILS.kinds, ServerTimeoutError)),
        Fails((*_NO_CONNECTION.kinds, ServerTimeoutError)),
    ),
    *_fails_with("huge-headers", alone=True),
    Fault("sized-answer", text=str(MESSAGE_BYTES), call=Gives(lambda result: len(str(result)) > MESSAGE_BYTES - 200)),
    Fault("compressed-bomb", call=_FAILS, alone=True),
    *_fails_with("html", "text/html|[Cc]ontent"),
    *_fails_with("empty-200"),
    *_fails_with("202-for-a-request"),
    *_fails_with("204-for-a-request"),
    *_fails_with("invalid-json"),
    *_fails_with("invalid-utf8"),
    *_fails_with("invalid-gzip"),
    *_fails_with("deep-json"),
    # A right answer under a label that is wrong or missing may be taken, or not.
    *_at_call_and_always("plain-text", Either((ECHOES, _FAILS)), Either((ECHOES, _NO_CONNECTION))),
    *_at_call_and_always("no-content-type", Either((ECHOES, _FAILS)), Either((ECHOES, _NO_CONNECTION))),
    *(
        Fault(mode, call=Fails((*_FAILS.kinds, ServerTimeoutError)))
        for mode in ("wrong-id", "null-id", "bool-id", "nested-id")
    ),
    Fault("string-id"),
    Fault("batch", call=Either((ECHOES, Fails((*_FAILS.kinds, ServerTimeoutError))))),
    Fault("result-list", call=_FAILS),
    Fault("neither-result-nor-error", call=_FAILS),
    Fault("error-string", call=_FAILS),
    Fault("error-ansi", call=says(_FAILS, "gone")),
    Fault("error-like-a-closed-channel", call=Fails((ToolRefusedError,), "Connection closed")),
    Fault("nan", call=Either((Gives(lambda result: "structuredContent" in result), _FAILS))),
    Fault("lone-surrogates", call=gives_text("a\ud800b")),
    Fault("not-utf8-in-text", call=gives_text("caf\ufffd \ufffd")),
    Fault("line-separators", call=gives_text("a\u2028b\u2029c\u0085d")),
    Fault("odd-notifications-in-json", call=Fails((*_FAILS.kinds, ServerTimeoutError))),
)

STREAMS = (
    *(
        Fault(mode)
        for mode in (
            "fine",
            "sse",
            "sse-flood-then-answer",
            "sse-odd-events",
            "sse-multiline",
            "sse-two-answers",
            "sse-asks",
            "get-hangs",
            "get-ends-at-once",
            "get-500",
            "get-line-without-end",
        )
    ),
    Fault("get-flood", alone=True),
    # The stream is the server's, and so are the answers on it: whether it forges them there or in the right place is
    # the same. They must not be taken for answers to nothing, though.
    Fault("get-forges-answers"),
    Fault("sse-truncated", call=_FAILS),
    Fault("sse-unended", call=Either((ECHOES, _FAILS))),
    Fault("sse-empty", call=_FAILS),
    Fault("sse-resumable", call=Fails((*_FAILS.kinds, ServerTimeoutError))),
    Fault("sse-silent", call=TIMED_OUT),
    Fault("sse-endless", call=TIMED_OUT),
    Fault("sse-log-flood", call=TIMED_OUT, alone=True),
    Fault("sse-line-without-end", call=Fails((*_FAILS.kinds, ServerTimeoutError)), alone=True),
    Fault("sse-event-without-end", call=Fails((*_FAILS.kinds, ServerTimeoutError)), alone=True),
)

_NOT_FOLLOWED = "[Rr]edirect|307"

CONNECTIONS = (
    *_fails_with("closed"),
    *_fails_with("reset"),
    *_fails_with("closed-in-the-middle"),
    *_fails_with("reset-in-the-middle"),
    *_fails_with("not-http"),
    Fault("keep-alive-closed"),
    Fault("bad-chunks", call=_FAILS),
    Fault("two-lengths", call=Either((ECHOES, _FAILS))),
    Fault("chunked"),
    Fault("redirect-307-same-origin"),
    Fault("redirect-308-same-origin"),
    *(
        fault
        for target in ("cross-origin", "loop", "file", "metadata", "odd-scheme", "no-host", "bad-url")
        for fault in _fails_with(f"redirect-{target}", _NOT_FOLLOWED)
    ),
    *_at_call_and_always("redirect-credentials", Either((ECHOES, _FAILS)), Either((ECHOES, _NO_CONNECTION))),
    *_at_call_and_always("redirect-control-characters", Either((ECHOES, _FAILS)), Either((ECHOES, _NO_CONNECTION))),
    *_fails_with("redirect-303"),
    *_fails_with("redirect-nowhere"),
    *(
        Fault(mode, connect=Either((ECHOES, _NO_CONNECTION)))
        for mode in (
            "session-with-control-characters",
            "session-with-a-folded-line",
            "session-not-ascii",
            "session-huge",
        )
    ),
    Fault("session-with-another-header"),
    Fault("session-empty"),
    Fault("delete-hangs"),
    Fault("delete-500"),
    Fault("delete-endless", alone=True),
    Fault("202-never", connect=Either((ECHOES, TIMED_OUT))),
    Fault("notification-500", connect=Either((ECHOES, NOT_CONNECTED))),
)

_MODERN = ("fine", "sse", "401-at-call", "500-always", "hang-at-call", "sse-truncated", "closed-at-call", "wrong-id")

_LEGACY = (*STATUSES, *BODIES, *STREAMS, *CONNECTIONS)
HTTP_FAULTS = (*_LEGACY, *(replace(fault, modern=True) for fault in _LEGACY if fault.mode in _MODERN))
