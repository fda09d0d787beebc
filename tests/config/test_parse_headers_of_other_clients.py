"""Headers that other clients let people write: what loads can be sent."""

from __future__ import annotations

import pytest

from config.loader import Loader
from toolbridge.servers.http.ssrf import HttpRuleError, check_headers

URL = "https://h.example/mcp"


def test_what_the_transport_sends_anyway_is_left_out_with_a_warning(load: Loader) -> None:
    headers = {"Accept": "application/json", "content-type": "application/json", "Authorization": "Bearer x"}
    config = load({"mcpServers": {"one": {"url": URL, "headers": headers}}})
    assert set(config.servers["one"].headers) == {"Authorization"}
    (warning,) = config.warnings
    assert "'Accept' and 'content-type'" in warning
    assert str(load.path) in warning


@pytest.mark.parametrize(
    "name",
    [
        *("Host", "Content-Length", "Transfer-Encoding", "Content-Encoding", "Expect", "Last-Event-ID", "MCP-Method"),
        *("Proxy-Authorization", "Mcp-Session-Id", "Mcp-Param-X", "HTTP2-Settings"),
    ],
)
def test_what_would_be_refused_at_the_connection_is_refused_at_load(load: Loader, name: str) -> None:
    problem = load.problem({"url": URL, "headers": {name: "x"}})
    assert problem.field == f"headers.{name}"
    with pytest.raises(HttpRuleError):
        check_headers({name: "x"})
