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
    yield from passwords_in(value)
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
