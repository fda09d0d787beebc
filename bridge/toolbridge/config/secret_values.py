"""SECURITY: which values of a server's configuration are treated as secrets, to be masked wherever they turn up."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from urllib.parse import parse_qsl

LEAST_CHARACTERS = 4
"""A shorter value would mask parts of ordinary words."""

_SECRET_NAME = re.compile(
    r"token|secret|passw|passphrase|pwd|credential|auth|cookie|session|bearer|jwt|signature|private|dsn|key"
    r"|(?<![a-z])pat(?![a-z])",
    re.IGNORECASE,
)
_PASSWORD_IN_URL = re.compile(r"://[^/?#@\s:]{0,256}:([^/@\s]{1,256})@")
_SCHEME_AND_REST = re.compile(r"([A-Za-z][A-Za-z-]{1,20})[ \t]+(\S.*)", re.DOTALL)
# What the tokens of well-known services look like: whatever a variable is called, this is none of anybody's business.
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:gh[oprsu]_[A-Za-z0-9]{20,255}|github_pat_\w{20,255}|glpat-[\w-]{16,255}|sk-[\w-]{16,255}"
    r"|xox[a-z]-[\w-]{10,255}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,60}|eyJ[\w-]{10,4000}\.[\w-]{2,4000}(?:\.[\w-]{0,4000})?)"
)
_HARMLESS_HEADERS = frozenset(
    {"accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "connection", "content-type"}
    | {"host", "origin", "pragma", "referer", "user-agent"}
)
_LEAST_IN_HEADER = 8
"""Of one whose name says nothing: a shorter value is a version or a word."""
_PLAIN_WORDS = frozenset({"true", "false", "null", "none", "bearer", "basic", "digest", "token", "apikey"})


def looks_secret(name: str) -> bool:
    """Whether a variable, header or parameter of this name probably holds a secret."""
    return _SECRET_NAME.search(name) is not None


def maskable(values: Iterator[str]) -> frozenset[str]:
    """Those values that can be masked without masking ordinary words."""
    found = (value.strip() for value in values)
    return frozenset(each for each in found if len(each) >= LEAST_CHARACTERS and each.lower() not in _PLAIN_WORDS)


def parts_of(value: str) -> Iterator[str]:
    """A secret, and what in it is one by itself: a server may repeat just the token of `Bearer <token>`."""
    yield value
    yield from secrets_in(value)
    scheme = _SCHEME_AND_REST.fullmatch(value.strip())
    if scheme is None:
        return
    yield scheme[2]
    if scheme[1].lower() == "basic":
        try:
            pair = base64.b64decode(scheme[2], validate=True).decode()
        except (binascii.Error, ValueError):
            return
        yield pair
        yield pair.partition(":")[2]


def secrets_in(value: str) -> Iterator[str]:
    """What is a secret whatever its name: passwords of URLs, and tokens that can be told by their shape."""
    yield from passwords_in(value)
    for match in _TOKEN.finditer(value):
        yield match[0]


def secrets_of_header(name: str, value: str) -> Iterator[str]:
    """What in a header is to be masked: all of it, unless everybody sends such a header."""
    is_harmless = name.lower() in _HARMLESS_HEADERS or len(value) < _LEAST_IN_HEADER
    yield from secrets_in(value) if is_harmless and not looks_secret(name) else parts_of(value)


def passwords_in(value: str) -> Iterator[str]:
    """The passwords of URLs such as `postgres://user:password@host/`."""
    for match in _PASSWORD_IN_URL.finditer(value):
        yield match[1]


def secrets_of_url(url: str) -> Iterator[str]:
    """Parameters of a URL that probably hold a secret, such as `?api_key=…`."""
    _, _, query = url.partition("?")
    for name, value in parse_qsl(query):
        if looks_secret(name):
            yield value
