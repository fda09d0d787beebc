"""Checks of what only a server that is reached by URL has: the URL, headers, OAuth."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from toolbridge.config.server_config import OAuth
from toolbridge.config.values import any_text, names, pairs, some_text, wrong
from toolbridge.config.wording import quoted, unknown_keys
from toolbridge.errors import ConfigError

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_BAD_URL_CHARACTER = re.compile(r"[\x00-\x20\x7f\\]")
SENT_ANYWAY = frozenset({"accept", "accept-encoding", "content-type"})
"""Headers that the transport sets, and that other clients let people write."""
_TRANSPORT_HEADERS = SENT_ANYWAY | frozenset(
    {
        *("connection", "content-encoding", "content-length", "expect", "host", "http2-settings", "keep-alive"),
        *("last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id", "proxy-authenticate"),
        *("proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
    }
)
OAUTH_KEYS: Mapping[str, str] = {
    "clientId": "client_id",
    "clientSecret": "client_secret",
    "scopes": "scopes",
    "redirectPort": "redirect_port",
}
_OAUTH_ADVICE: Mapping[str, str] = {"callbackPort": 'Write "redirectPort".', "scope": 'Write "scopes", a list.'}


def url(value: object, field: str) -> str:
    """An http or https URL without a user or password."""
    text = some_text(value, field)
    example = "Write it as https://host/path."
    if _BAD_URL_CHARACTER.search(text):
        raise ConfigError("has a space, backslash or control character.", field=field, fix=example)
    try:
        parts = urlsplit(text)
        host, has_user, _ = parts.hostname, "@" in parts.netloc, parts.port
    except ValueError:
        parts, host, has_user = None, None, False
    if parts is None or parts.scheme.lower() not in ("http", "https") or not host:
        raise ConfigError("is no http or https URL.", field=field, fix=example)
    if has_user:
        fix = 'Put them into "headers", such as {"Authorization": "Bearer ${TOKEN}"}.'
        raise ConfigError("has a user or password in it.", field=field, fix=fix)
    if "#" in text:
        raise ConfigError("has a '#', which is never sent.", field=field, fix=example)
    return text


def headers(value: object, field: str) -> dict[str, str]:
    """Headers and their values, which may have references."""
    found: dict[str, str] = {}
    seen: set[str] = set()
    for name, text in pairs(value, field).items():
        where = f"{field}.{name[:60]}"
        if not _HEADER_NAME.fullmatch(name):
            raise ConfigError(f"{quoted(name, 12)} is not the name of a header.", field=field)
        if is_transports(name):
            raise ConfigError("is set by the transport.", field=where, fix="Remove it.")
        if name.lower() in seen:
            problem = "is there twice: headers that differ only by capital letters are the same."
            raise ConfigError(problem, field=where, fix="Remove one.")
        seen.add(name.lower())
        found[name] = any_text(text, where)
        fault = header_fault(found[name])
        if fault:
            raise ConfigError(fault, field=where, fix="Remove it.")
    return found


def is_transports(name: str) -> bool:
    """Whether a header is set by the transport itself, about one connection only, or able to make one request two."""
    return name.lower() in _TRANSPORT_HEADERS or name.lower().startswith("mcp-param-")


def header_fault(value: str) -> str:
    """What keeps a text from being sent as the value of a header, without showing it; empty if nothing does."""
    if "\r" in value or "\n" in value:
        return "has a line break, which would begin another header."
    if not _HEADER_VALUE.fullmatch(value):
        return "has a character that a header can't hold: only printable ASCII can be sent."
    return ""


def oauth(value: object, field: str) -> OAuth:
    """How to sign in."""
    if isinstance(value, OAuth):
        given = {key: getattr(value, attribute) for key, attribute in OAUTH_KEYS.items()}
        found = {key: each for key, each in given.items() if each is not None}
    else:
        found = pairs(value, field)
    for unknown in unknown_keys(found, OAUTH_KEYS, within=f"{field}.", advice=_OAUTH_ADVICE):
        raise unknown
    return OAuth(
        client_id=some_text(found["clientId"], f"{field}.clientId") if "clientId" in found else None,
        client_secret=some_text(found["clientSecret"], f"{field}.clientSecret") if "clientSecret" in found else None,
        scopes=names(found.get("scopes", ()), f"{field}.scopes"),
        redirect_port=_port(found["redirectPort"], f"{field}.redirectPort") if "redirectPort" in found else None,
    )


def _port(value: object, field: str) -> int:
    # 8080.0 is the same number in JSON.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value // 1:
        raise wrong(value, field, "a whole number from 1 to 65535")
    if not 1 <= value <= 65535:
        raise ConfigError("expected 1 to 65535.", field=field)
    return int(value)
