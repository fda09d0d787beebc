"""SECURITY: what may be sent over HTTP, and where to (T27). Pure rules, checked before connecting and on every hop.

No message here shows a header's value, or more of a URL than its scheme and host: both may hold secrets.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

import httpx2

from toolbridge.config.remote_values import is_transports
from toolbridge.servers.http_addresses import AddressRefusedError, check_host_name, is_this_machine
from toolbridge.trust.sanitise import for_error

_BAD_URL_CHARACTER = re.compile(r"[\x00-\x20\x7f-\x9f\\]")
_HOST_NAME = re.compile(r"[A-Za-z0-9_.-]{1,253}")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]{0,16384}")
_SECRET_PARAMETER = re.compile(r"key|token|secret|auth|passw|credential|signature|\bsig\b", re.IGNORECASE)

# Everybody may see these. Any other header may be somebody's key, whatever it is called.
_HARMLESS_HEADERS = frozenset({"accept-language", "user-agent"})


class HttpRuleError(Exception):
    """Something that is refused before it is sent."""


@functools.lru_cache(maxsize=256)  # the same few are checked before every request
def check_url(text: str, *, secrets: bool) -> httpx2.URL:
    """A URL that requests may go to.

    Args:
        text: the URL.
        secrets: whether requests to it carry secrets.

    Raises:
        HttpRuleError: they may not go there.
    """
    try:
        url = httpx2.URL(text)
    except (httpx2.InvalidURL, UnicodeError, ValueError):
        raise HttpRuleError("The URL can't be understood") from None
    host = url.raw_host.decode("ascii", "replace")
    if url.scheme not in ("http", "https"):
        raise HttpRuleError(f"Only http and https URLs are reached, not {for_error(url.scheme, limit=20)!r}")
    if url.userinfo:
        raise HttpRuleError("The URL has a user or password in it: put them into a header instead")
    if _BAD_URL_CHARACTER.search(text):
        raise HttpRuleError("The URL has a space, backslash or control character in it")
    if not host or not (_HOST_NAME.fullmatch(host) or ":" in host):
        raise HttpRuleError("The URL's host is no host name and no address")
    if url.port is not None and not 0 < url.port < 65536:
        raise HttpRuleError("The URL's port is not from 1 to 65535")
    try:
        check_host_name(host)
    except AddressRefusedError as error:
        raise HttpRuleError(str(error)) from None
    if url.scheme == "http" and not is_this_machine(host) and (secrets or _has_secret_parameter(url)):
        raise HttpRuleError(f"Secrets are not sent to {origin(url)} unencrypted: use https")
    return url.copy_with(fragment=None)


def check_headers(headers: Mapping[str, str]) -> bool:
    """Headers that may be sent with every request; whether they may hold a secret.

    Raises:
        HttpRuleError: names the header, never its value.
    """
    seen: set[str] = set()
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            # What is no name may well be a value in the wrong place.
            raise HttpRuleError("A header's name has a character that it can't have")
        if is_transports(name):
            raise HttpRuleError(f"The header {name} is set by the transport: remove it")
        if name.lower() in seen:
            raise HttpRuleError(f"The header {name} is there twice")
        seen.add(name.lower())
        check_header_value(name, value)
    return not seen <= _HARMLESS_HEADERS


def check_header(name: str, value: str) -> None:
    """Refuses a header that can't be sent, or would be sent as more than one.

    Raises:
        HttpRuleError: names the header, never its value.
    """
    if not _HEADER_NAME.fullmatch(name):
        raise HttpRuleError(
            f"The header {for_error(name, limit=80)!r} is too long, or has a character that a name can't have"
        )
    check_header_value(name, value)


def check_header_value(name: str, value: str) -> None:
    """Refuse a value that can't be sent, or would be sent as more than one header.

    Raises:
        HttpRuleError: names the header, never its value.
    """
    if "\r" in value or "\n" in value or "\0" in value:
        raise HttpRuleError(f"The value of the header {name} has a line break or NUL in it")
    if not _HEADER_VALUE.fullmatch(value):
        raise HttpRuleError(f"The value of the header {name} is too long or has characters beyond printable ASCII")
    if value != value.strip():
        raise HttpRuleError(f"The value of the header {name} begins or ends with a space")


def origin(url: httpx2.URL) -> str:
    """Scheme, host and port: all of a URL that is ever shown or compared."""
    host = url.raw_host.decode("ascii", "replace")
    host = f"[{host}]" if ":" in host else host
    return f"{url.scheme}://{host}" + (f":{url.port}" if url.port is not None else "")


def same_origin(meant: httpx2.URL, other: httpx2.URL) -> bool:
    """Whether what was meant for one URL may be sent to the other: the same origin, or the same host by https."""
    if meant.raw_host != other.raw_host:
        return False
    if (meant.scheme, meant.port) == (other.scheme, other.port):
        return True
    return (meant.scheme, meant.port, other.scheme, other.port) == ("http", None, "https", None)


def redirected(sent: httpx2.Request, response: httpx2.Response) -> httpx2.URL | None:
    """Where to send a request again that was answered with a redirect; None if it was not.

    Raises:
        HttpRuleError: it leads to another origin, or would not be the same request any more.
    """
    if not response.has_redirect_location:
        return None
    try:
        target = sent.url.join(response.headers["location"])
        shown = for_error(origin(target), limit=300)
    except (httpx2.InvalidURL, UnicodeError, ValueError):
        raise HttpRuleError(f"It answered {response.status_code} with a redirect that can't be understood") from None
    if not same_origin(sent.url, target) or target.userinfo:
        raise HttpRuleError(
            f"It answered {response.status_code} with a redirect to {shown}, which is not followed: "
            "if that is the server that is meant, put its URL into the configuration"
        )
    if sent.method != "GET" and response.status_code not in (307, 308):
        raise HttpRuleError(
            f"It answered {response.status_code}, which would turn a {sent.method} into a GET: "
            "the URL is probably not the one of its MCP endpoint"
        )
    return check_url(str(target), secrets=False)


def check_authorization_url(text: str) -> httpx2.URL:
    """A page that a person may be sent to in order to sign in.

    Raises:
        HttpRuleError: it is not https, nor this machine.
    """
    return check_url(text, secrets=True)


def _has_secret_parameter(url: httpx2.URL) -> bool:
    return any(_SECRET_PARAMETER.search(name) for name in url.params)
