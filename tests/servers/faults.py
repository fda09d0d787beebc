"""Every mode of fixtures/servers/fault_stdio.py, with what must become of it."""

from __future__ import annotations

import sys
from typing import Any

from servers.connect_faults import HANDSHAKES, LISTINGS
from servers.fault_expectations import (
    ANY_ERROR,
    ECHOES,
    ENDED,
    NOT_CONNECTED,
    NOT_MCP,
    REFUSED,
    TIMED_OUT,
    Either,
    Fails,
    Fault,
    Gives,
    gives_text,
    says,
)
from toolbridge.errors import ServerConnectError, ServerProtocolError, ServerTimeoutError

MESSAGE_BYTES = 4 * 1024 * 1024
"""The cap on one message in these tests."""

SECRET = "s3cr&t/värde+1234"

# A server that is stuck is given up after a while and started anew: before, amid or after the next call.
_STUCK_OR_RESTARTED = Either((ECHOES, TIMED_OUT, ENDED))
_ANSWER_OR_ERROR = Either((ECHOES, ANY_ERROR))


def _structured(result: dict[str, Any]) -> bool:
    return "value" in result["structuredContent"]


def _encodable(result: dict[str, Any]) -> bool:
    return bool(str(result))


ENDINGS = (
    *(Fault(f"hang-at-{moment}", connect=says(TIMED_OUT, r"1\.5 s")) for moment in ("start", "negotiate", "list")),
    Fault("hang-at-call", call=says(TIMED_OUT, "'faulty' within 1 s"), after=_STUCK_OR_RESTARTED),
    *(
        Fault(f"{how}-at-{moment}", connect=says(NOT_CONNECTED, words))
        for how, words in (
            ("exit", "status 0"),
            ("fail", "status 1.*cannot open the database"),
            ("kill", "SIGKILL|signal 9"),
        )
        for moment in ("start", "negotiate", "list")
    ),
    Fault("exit-at-call", call=says(ENDED, "may have taken effect.*status 0")),
    Fault("fail-at-call", call=says(ENDED, "status 1.*cannot open the database")),
    Fault("kill-at-call", call=says(ENDED, "SIGKILL|signal 9")),
    Fault("fine"),
    Fault("slow-start"),
    Fault("silent-at-call", call=TIMED_OUT),
    Fault("exit-amid-pages", connect=says(NOT_CONNECTED, "status 1")),
    Fault("second-page-hangs", connect=TIMED_OUT),
    Fault("answer-then-exit", ends_late=True),
    Fault("answer-then-kill", ends_late=True),
    # It needs a file to write to: see test_kill_storm.py.
    Fault("dies-at-random", call=ENDED),
    Fault("partial-then-exit", call=Fails((*ENDED.kinds, *NOT_MCP.kinds)), ends_late=True),
    Fault("unended-then-exit", ends_late=True),
)

FRAMING = (
    *(
        Fault(mode)
        for mode in (
            "banner",
            "ansi-banner",
            "telemetry",
            "blank-lines",
            "nul-lines",
            "invalid-utf8-line",
            "long-noise",
            "crlf",
            "bom",
            "bom-on-every-line",
            "padded",
            "byte-by-byte",
            "quoted-answer",
        )
    ),
    Fault("partial-then-rest", call=gives_text("Grüße – 你好 – é")),
    Fault("pretty-printed", call=ANY_ERROR),
    Fault("two-on-a-line", call=_ANSWER_OR_ERROR),
    Fault(
        "no-newline-flood-at-start",
        connect=Fails((ServerTimeoutError, ServerConnectError, ServerProtocolError)),
        alone=True,
    ),
    Fault("no-newline-flood-at-call", call=ANY_ERROR, after=Either((ECHOES, ANY_ERROR)), alone=True),
    Fault("huge-answer", call=says(NOT_MCP, r"\d+ bytes"), alone=True),
    Fault("huge-notification", alone=True),
    Fault("sized-answer", text=str(MESSAGE_BYTES), call=Gives(lambda result: len(str(result)) > MESSAGE_BYTES - 200)),
)

ENCODINGS = (
    Fault("line-separators", call=gives_text("a\u2028b\u2029c\u0085d\x7fe")),
    Fault("escaped-nul", call=gives_text("a\0b")),
    Fault("astral", call=gives_text("𝒳 𝒳")),
    Fault("invalid-utf8-answer", call=gives_text("caf\ufffd \ufffd")),
    Fault("encoded-surrogate", call=gives_text("a\ufffd\ufffd\ufffdb")),
    Fault("lone-surrogates", call=gives_text("a\ud800b\udc00c")),
    *(Fault(mode, call=Either((Gives(_encodable), ANY_ERROR))) for mode in ("raw-nul", "raw-control", "bad-escape")),
    *(
        Fault(mode, call=Either((Gives(_structured), ANY_ERROR)))
        for mode in ("nan", "infinity", "huge-exponent", "huge-integer")
    ),
    Fault("deep-answer", call=says(NOT_MCP, "nested|deep")),
    Fault("deep-notification"),
    Fault("huge-integer-notification"),
)

IDENTITIES = (
    *(
        Fault(mode)
        for mode in (
            "wrong-id",
            "earlier-id",
            "null-id",
            "float-id",
            "bool-id",
            "nested-id",
            "odd-string-id",
            "string-id",
            "no-id",
            "duplicate-answer",
            "answers-before-questions",
            "request-with-the-same-id",
        )
    ),
    # A call beside it would be one of those questions.
    Fault("answers-to-the-next-questions", beside=False),
    Fault("only-a-wrong-id", call=TIMED_OUT),
    Fault("whole-float-id", call=_ANSWER_OR_ERROR),
    Fault("batch"),
)

ANSWERS = (
    *(
        Fault(mode, call=NOT_MCP)
        for mode in (
            "result-number",
            "result-string",
            "result-list",
            "result-null",
            "neither-result-nor-error",
            "error-string",
            "error-list",
        )
    ),
    Fault("error-null", call=ANY_ERROR),
    Fault("result-and-error", call=ANY_ERROR),
    Fault("no-jsonrpc", call=Either((gives_text("fine"), ANY_ERROR))),
    *(
        Fault(mode, call=Fails((*REFUSED.kinds, *NOT_MCP.kinds)))
        for mode in ("error-empty", "error-without-message", "error-odd-types", "error-odd-code")
    ),
    Fault("error-plain", call=says(REFUSED, r"location must be a city \(code -32602\)")),
    Fault("error-huge", call=says(REFUSED, r"^.{100,3000}$")),
    Fault("error-ansi", call=says(REFUSED, r"^[ -~…]*fine[ -~]*$")),
    Fault("error-like-a-closed-channel", call=says(REFUSED, "Connection closed")),
    Fault("error-like-a-timeout", call=says(REFUSED, "timed out")),
    Fault("error-like-a-lost-session", call=says(REFUSED, "Session terminated")),
    Fault("error-with-a-secret", call=says(REFUSED, r"login failed with \*\*\*")),
    Fault("exit-with-a-secret", call=says(ENDED, r"status 3.*login failed with \*\*\*")),
    Fault("is-error", call=Gives(lambda result: result["isError"] is True)),
    Fault("empty-content", call=Gives(lambda result: result["content"] == [])),
    Fault("structured-only", call=Gives(lambda result: result["structuredContent"] == {"degrees": 21})),
    Fault("unknown-content", call=Gives(lambda result: result["content"][0]["type"] == "hologram")),
    *(
        Fault(mode, call=Either((Gives(lambda _result: True), NOT_MCP)))
        for mode in ("empty-result", "odd-content", "content-not-a-list")
    ),
)

FLOODS = (
    *(
        Fault(f"{kind}-flood")
        for kind in (
            "progress",
            "log",
            "list-changed",
            "unknown-notification",
            "odd-notification",
            "cancelled",
            "ping",
            "sampling",
            "roots",
            "elicitation",
            "unknown-request",
            "odd-request",
        )
    ),
    *(
        Fault(f"endless-{kind}-flood", call=TIMED_OUT, after=_STUCK_OR_RESTARTED, alone=True)
        for kind in ("log", "list-changed", "ping")
    ),
    Fault("log-flood-at-negotiate"),
    Fault("stderr-flood", alone=True),
    Fault("endless-stderr-flood", alone=True),
)

PROCESSES = (
    Fault("stdout-closed", call=ENDED),
    Fault("stdin-closed", ends_late=True, after=Either((ECHOES, ENDED, TIMED_OUT))),
    Fault("unread-stdin", text="x" * 2_000_000, call=TIMED_OUT, after=_STUCK_OR_RESTARTED),
    *(
        Fault(mode)
        for mode in (
            "ignores-sigterm",
            "ignores-sigterm-and-eof",
            "ignores-eof",
            "busy-at-end",
            "grandchild",
            "grandchild-ignores-sigterm",
            "grandchild-with-setsid",
            "answer-from-a-grandchild",
            "wrapper",
        )
    ),
    Fault("grandchild-keeps-stdout", call=ENDED),
    # Elsewhere, a process that cut every tie before it was seen can't be found.
    Fault("daemon", may_leave=sys.platform != "linux"),
)

QUESTIONS = (
    Fault("ask-sampling", call=Gives(lambda result: '"error"' in result["content"][0]["text"])),
    Fault("ask-roots", call=Gives(lambda result: '"error"' in result["content"][0]["text"])),
    Fault("ask-unknown", call=Gives(lambda result: '"error"' in result["content"][0]["text"])),
    Fault("ask-elicitation", call=Gives(lambda result: '"decline"' in result["content"][0]["text"])),
    Fault("ask-ping", call=Gives(lambda result: '"result": {}' in result["content"][0]["text"])),
    Fault("ask-at-start"),
    Fault("tells-capabilities", call=gives_text("{}")),
    Fault("input-required", modern=True, call=Either((Gives(lambda result: "password" not in str(result)), ANY_ERROR))),
    Fault("input-required-for-ever", modern=True, call=ANY_ERROR),
)

# The newer era, where it matters: the beginning, the subscription to changes, and one of each other kind.
_MODERN = (
    "hang-at-negotiate",
    "hang-at-list",
    "hang-at-call",
    "fail-at-negotiate",
    "fail-at-call",
    "kill-at-call",
    "silent-at-call",
    "banner",
    "telemetry",
    "wrong-id",
    "bool-id",
    "answers-before-questions",
    "log-flood",
    "ping-flood",
    "list-changed-flood",
    "cursor-loop",
    "tool-with-a-schema-without-a-type",
    "list-changes",
    "changed-list-hangs",
    "handshake-refused",
    "error-plain",
)


def _all() -> tuple[Fault, ...]:
    from dataclasses import replace

    faults = (
        *ENDINGS,
        *FRAMING,
        *ENCODINGS,
        *IDENTITIES,
        *ANSWERS,
        *FLOODS,
        *PROCESSES,
        *LISTINGS,
        *HANDSHAKES,
        *QUESTIONS,
    )
    by_mode = {fault.mode: fault for fault in faults}
    assert len(by_mode) == len(faults)
    return (*faults, *(replace(by_mode[mode], modern=True) for mode in _MODERN))


STDIO_FAULTS = _all()
