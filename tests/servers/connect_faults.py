"""The modes of fixtures/servers/fault_stdio.py that concern the handshake and the list of tools."""

from __future__ import annotations

from servers.fault_expectations import (
    NOT_CONNECTED,
    NOT_EXPOSED,
    NOT_MCP,
    Fails,
    Fault,
    Gives,
    gives_text,
    says,
)
from toolbridge.errors import ServerConnectError, ServerProtocolError

_NO_LISTING = says(NOT_MCP, "tools/list|listing|cursor|tools")

LISTINGS = (
    *(
        Fault(mode, problem=f"its tools/list .*{problem}.*cut after")
        for mode, problem in (
            ("cursor-loop", "same cursor twice"),
            ("cursor-cycle", "same cursor twice"),
            ("endless-pages", "pages"),
            ("endless-large-pages", "bytes|pages"),
            ("pages-500", "pages"),
            ("tools-10000", "more than 1000 tools"),
            ("cursor-number", "cursor that is not text"),
            ("cursor-object", "cursor that is not text"),
            ("second-page-refused", "further page"),
        )
    ),
    *(
        Fault(
            mode,
            connect=Gives(lambda listing: listing["tools"] == []),
            call=NOT_EXPOSED,
            after=NOT_EXPOSED,
            beside=False,
            problem="its tools/list .*cut after 0 tools",
        )
        for mode in ("cursor-growing",)
    ),
    Fault("endless-empty-pages", problem="pages; it is cut after 2 tools"),
    Fault("huge-page", connect=says(NOT_MCP, "too long")),
    Fault("pages-5"),
    Fault("huge-cursor"),
    *(Fault(mode, connect=_NO_LISTING) for mode in ("tools-not-a-list", "tools-missing", "tools-null")),
    Fault("list-result-not-an-object", connect=Fails((ServerProtocolError, ServerConnectError))),
    Fault(
        "no-tools",
        connect=Gives(lambda listing: listing["tools"] == []),
        call=says(NOT_EXPOSED, "no tool 'faulty'"),
        after=NOT_EXPOSED,
        beside=False,
    ),
    Fault("cursor-null"),
    Fault("cursor-empty"),
    *(
        Fault(mode, problem=problem)
        for mode, problem in (
            ("tool-not-an-object", "not an object"),
            ("tool-null", "not an object"),
            ("tool-without-a-name", "name"),
            ("tool-with-an-empty-name", "name"),
            ("tool-with-a-number-for-a-name", "name"),
            ("tool-with-a-long-name", "name"),
            ("tool-without-a-schema", "inputSchema"),
            ("tool-with-a-schema-without-a-type", "inputSchema"),
            ("tool-with-a-schema-of-a-wrong-type", "inputSchema"),
            ("tool-with-a-list-for-a-schema", "inputSchema"),
            ("tool-with-true-for-a-schema", "inputSchema"),
            ("tool-with-a-string-for-an-output-schema", "outputSchema"),
            ("tool-with-a-lone-surrogate", ""),
            ("tool-with-control-characters", ""),
            ("tool-with-a-number-for-a-description", ""),
            ("tool-with-a-list-for-annotations", ""),
            ("duplicate-tool", "twice|duplicate|again|another"),
            ("schema-deep", ""),
            ("schema-wide", ""),
            ("schema-recursive", ""),
            ("schema-exponential", ""),
            ("schema-remote", ""),
        )
    ),
    Fault("schema-very-deep", problem="tool 'bomb' is nested too deeply"),
    Fault("schema-endless-number"),
    Fault("list-not-utf8", problem="its tools/list has bytes that are not UTF-8"),
    Fault("list-refused", connect=Fails((ServerConnectError, ServerProtocolError), "the registry is gone")),
    Fault("list-changed-storm", call=gives_text("1")),
    *(
        Fault(mode)
        for mode in ("list-changes", "changed-list-hangs", "changed-list-is-refused", "changed-list-is-spoilt")
    ),
)

HANDSHAKES = (
    *(
        Fault(mode, connect=Fails((ServerConnectError, ServerProtocolError)))
        for mode in (
            "old-version",
            "future-version",
            "version-number",
            "handshake-empty",
            "handshake-list",
            "handshake-odd-capabilities",
        )
    ),
    Fault("handshake-refused", connect=says(NOT_CONNECTED, "no licence key: run `fault login`")),
    Fault("handshake-without-tools"),
    Fault("handshake-with-extras"),
    # It is asked again in the older way after a third of the time.
    Fault("silent-at-discover", connect_seconds=4.5),
    Fault("exit-at-discover"),
    Fault("refused-at-discover"),
    Fault("odd-discover"),
)
