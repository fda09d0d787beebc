"""What may be sent over HTTP, and where to."""

from __future__ import annotations

import contextlib

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbridge.servers.http.ssrf import (
    HttpRuleError,
    check_authorization_url,
    check_headers,
    check_url,
    origin,
    redirected,
    same_origin,
)

SECRET = "s3cret-value-of-a-token"


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/mcp",
        "https://example.com:8443/mcp?x=1",
        "http://localhost:8000/mcp",
        "http://127.0.0.1:8000/mcp",
        "http://[::1]:8000/mcp",
        "https://nas.local/mcp",
        "https://192.168.1.10/mcp",
        "https://müller.example/mcp",
    ],
)
def test_urls_that_secrets_may_go_to(url: str) -> None:
    check_url(url, secrets=True)


@pytest.mark.parametrize("url", ["http://example.com/mcp", "http://nas.local/mcp", "http://192.168.1.10/mcp"])
def test_unencrypted_urls_get_no_secrets(url: str) -> None:
    check_url(url, secrets=False)
    with pytest.raises(HttpRuleError, match="use https"):
        check_url(url, secrets=True)


@pytest.mark.parametrize("name", ["api_key", "token", "access_token", "X-Secret", "sig"])
def test_a_secret_in_the_query_of_an_unencrypted_url_is_one(name: str) -> None:
    with pytest.raises(HttpRuleError, match="use https") as raised:
        check_url(f"http://example.com/mcp?{name}={SECRET}", secrets=False)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://example.com/", "Only http and https"),
        ("file:///etc/passwd", "Only http and https"),
        ("unix:///run/x.sock", "Only http and https"),
        ("javascript:alert(1)", "Only http and https"),
        ("//example.com/", "Only http and https"),
        ("", "Only http and https"),
        ("https://", "host"),
        ("https:///path", "host"),
        (f"https://user:{SECRET}@example.com/", "user or password"),
        ("https://user@example.com/", "user or password"),
        ("https://good.example\\@evil.example/", "user or password"),
        ("https://good.example\\.evil.example/", "backslash"),
        ("https://exa mple.com/", "space"),
        ("https://example.com/a b", "space"),
        ("https://example.com/\x7f", "control character|can't be understood"),
        ("https://%31%32%37.0.0.1/", "host"),
        ("https://example.com:0/", "port"),
        ("https://example.com:99999/", "port|can't be understood"),
        ("https://[::1/", "can't be understood"),
        ("https://[fe80::1%25eth0]/", "link-local"),
        ("https://169.254.169.254/latest", "never reached"),
        ("https://2852039166/latest", "never reached"),
        ("https://0xa9fea9fe/latest", "never reached"),
        ("https://[::ffff:169.254.169.254]/", "never reached"),
        ("https://metadata.google.internal/", "never reached"),
    ],
)
def test_urls_that_are_refused(url: str, problem: str) -> None:
    with pytest.raises(HttpRuleError, match=problem) as raised:
        check_url(url, secrets=False)
    assert SECRET not in str(raised.value)


@given(st.text(max_size=200))
def test_no_text_makes_the_rule_for_urls_fail_otherwise(text: str) -> None:
    for candidate in (text, f"https://{text}", f"https://{text}/mcp"):
        with contextlib.suppress(HttpRuleError):
            check_url(candidate, secrets=True)


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r", "\0", "\r\nX-Evil: 1", "é", "\x1b[31m", "\x7f", " "])
def test_a_header_value_that_could_be_more_than_one_is_refused_and_not_shown(end: str) -> None:
    with pytest.raises(HttpRuleError, match="X-Key") as raised:
        check_headers({"X-Key": f"{SECRET}{end}"})
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("name", ["X Key", "X-Key\r\nX-Evil", "X-Key:", "", "é", "X\0", "x" * 300])
def test_a_header_name_that_is_none_is_refused_and_not_shown(name: str) -> None:
    with pytest.raises(HttpRuleError, match="A header's name"):
        check_headers({name: SECRET})


@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "content-length",
        "Transfer-Encoding",
        "Mcp-Session-Id",
        "MCP-Protocol-Version",
        "Mcp-Method",
        "Mcp-Name",
        "Mcp-Param-City",
        "Accept",
        "Content-Type",
        "Connection",
        "TE",
        "Upgrade",
        "Expect",
        "Proxy-Authorization",
    ],
)
def test_headers_of_the_transport_are_refused(name: str) -> None:
    with pytest.raises(HttpRuleError, match="set by the transport"):
        check_headers({name: "x"})


def test_two_headers_that_differ_by_capital_letters_are_one_too_many() -> None:
    with pytest.raises(HttpRuleError, match="twice"):
        check_headers({"X-Key": "a", "x-key": "b"})


@pytest.mark.parametrize(
    ("headers", "secret"),
    [({}, False), ({"User-Agent": "x"}, False), ({"X-Tenant": "x"}, True), ({"Authorization": "Bearer x"}, True)],
)
def test_any_header_may_be_a_secret_but_for_those_that_are_none(headers: dict[str, str], secret: bool) -> None:
    assert check_headers(headers) is secret


def answer(status: int, location: str, method: str = "POST", url: str = "https://a.example/mcp") -> httpx2.URL | None:
    request = httpx2.Request(method, url)
    return redirected(request, httpx2.Response(status, headers={"location": location}))


@pytest.mark.parametrize("location", ["/mcp/", "https://a.example/mcp/", "https://A.example:443/mcp/", "mcp/"])
def test_a_redirect_within_the_origin_is_followed(location: str) -> None:
    target = answer(307, location)
    assert target is not None
    assert origin(target) == "https://a.example"


@pytest.mark.parametrize(
    "location",
    [
        "https://b.example/mcp",
        "http://a.example/mcp",
        "https://a.example:8443/mcp",
        "//b.example/mcp",
        "https://a.example.b.example/mcp",
        "https://user@a.example/mcp",
        "https://a.example@b.example/",
        "https:\\\\b.example/",
        "file:///etc/passwd",
        "https://169.254.169.254/",
        "https://[/",
        "\x00",
    ],
)
def test_a_redirect_elsewhere_is_refused(location: str) -> None:
    with pytest.raises(HttpRuleError):
        answer(307, location)


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_redirect_that_would_lose_the_message_is_refused(status: int) -> None:
    with pytest.raises(HttpRuleError, match="turn a POST into a GET"):
        answer(status, "/elsewhere")
    assert answer(status, "/elsewhere", method="GET") is not None


def test_what_is_no_redirect_leads_nowhere() -> None:
    assert redirected(httpx2.Request("POST", "https://a.example"), httpx2.Response(200)) is None
    assert redirected(httpx2.Request("POST", "https://a.example"), httpx2.Response(304)) is None


def test_an_upgrade_to_https_stays_with_the_same_host() -> None:
    url = httpx2.URL
    assert same_origin(url("http://a.example/"), url("https://a.example/"))
    assert not same_origin(url("http://a.example:8000/"), url("https://a.example/"))
    assert not same_origin(url("https://a.example/"), url("http://a.example/"))


@pytest.mark.parametrize("url", ["http://auth.example.com/authorize", "javascript:alert(1)", "https://a@b.example/"])
def test_a_person_is_not_sent_to_just_any_page(url: str) -> None:
    with pytest.raises(HttpRuleError):
        check_authorization_url(url)
