"""SECURITY: secret detection: which values of a server's configuration are secrets, and their redaction (T4, T35)."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from urllib.parse import parse_qsl, urlsplit

LEAST_CHARACTERS = 4
"""Redacting a shorter value would hit parts of ordinary words."""

_SECRET_NAME = re.compile(
    r"token|secret|passw|passphrase|pwd|credential|auth|cookie|session|bearer|jwt|signature|private|dsn|key"
    r"|(?<![a-z])pat(?![a-z])",
    re.IGNORECASE,
)
_PASSWORD_IN_URL = re.compile(r"://[^/?#@\s:]{0,256}:([^/@\s]{1,256})@")
_SCHEME_AND_REST = re.compile(r"([A-Za-z][A-Za-z-]{1,20})[ \t]+(\S.*)", re.DOTALL)
# Formats of tokens of well-known services: secrets under any variable name.
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:gh[oprsu]_[A-Za-z0-9]{20,255}|github_pat_\w{20,255}|glpat-[\w-]{16,255}|sk-[\w-]{16,255}"
    r"|xox[a-z]-[\w-]{10,255}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,60}|eyJ[\w-]{10,4000}\.[\w-]{2,4000}(?:\.[\w-]{0,4000})?)"
)
_HARMLESS_HEADERS = frozenset(
    {"accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "connection", "content-type"}
    | {"host", "origin", "pragma", "referer", "user-agent"}
)
_LEAST_IN_HEADER = 8
"""In a header whose name is neutral: a shorter value is a version or a word."""
_PLAIN_WORDS = frozenset({"true", "false", "null", "none", "bearer", "basic", "digest", "token", "apikey"})


def looks_secret(name: str) -> bool:
    """Whether a variable, header or parameter of this name probably holds a secret; not case-sensitive."""
    return _SECRET_NAME.search(name) is not None


def maskable(values: Iterator[str]) -> frozenset[str]:
    """The stripped values that can be redacted without hitting ordinary words: not `true`, nor under 4 characters."""
    found = (value.strip() for value in values)
    return frozenset(each for each in found if len(each) >= LEAST_CHARACTERS and each.lower() not in _PLAIN_WORDS)


def parts_of(value: str) -> Iterator[str]:
    """Yield a secret and its parts that are secrets: the token of `Bearer <token>`, the password within `Basic …`."""
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
    """Yield secrets in a value of neutral name: passwords of URLs, and tokens in a well-known format."""
    yield from passwords_in(value)
    for match in _TOKEN.finditer(value):
        yield match[0]


def secrets_of_header(name: str, value: str) -> Iterator[str]:
    """Yield a header's value and its parts if its name suggests a secret, or is uncommon and the value not short.

    Else only passwords of URLs and well-known tokens in it.
    """
    is_harmless = name.lower() in _HARMLESS_HEADERS or len(value) < _LEAST_IN_HEADER
    yield from secrets_in(value) if is_harmless and not looks_secret(name) else parts_of(value)


def passwords_in(value: str) -> Iterator[str]:
    """Yield the passwords of URLs in a text, such as `postgres://user:password@host/`."""
    for match in _PASSWORD_IN_URL.finditer(value):
        yield match[1]


def secrets_of_url(url: str) -> Iterator[str]:
    """Yield values of a URL's query that are probably secrets by their names, such as `?api_key=…`."""
    _, _, query = url.partition("?")
    for name, value in parse_qsl(query):
        if looks_secret(name):
            yield value


# SECURITY: redaction of probable secrets in the arguments of a command (T4, T35).
#
# People write tokens there, though every process of the machine can read them. The person who approves a command sees
# all of it; elsewhere, and in files, they are redacted.


MASK = "***"

_NAMED = re.compile(r"(-{0,2}[A-Za-z][\w .-]{0,60}?)(\s?[=:]\s?)(.+)", re.DOTALL)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}://\S+")
_LEAST = 8
"""A shorter value (`--max-tokens 4096`) can't be redacted in every answer."""
_PATHS = ("/", "./", "../", "~/")


def masked_url(url: str) -> str:
    """A URL with user, password and the values of its query redacted, without fragment; `***` if malformed."""
    try:
        parts = urlsplit(url)
        place = parts.netloc.rpartition("@")
    except ValueError:
        return MASK
    names = [pair.partition("=") for pair in parts.query.split("&") if pair]
    query = "&".join(f"{name}{mark}{MASK if mark else ''}" for name, mark, _ in names)
    netloc = f"{MASK}@{place[2]}" if place[1] else place[2]
    return parts._replace(netloc=netloc, query=query, fragment="").geturl()


def masked_arguments(args: Iterable[str]) -> Iterator[str]:
    """Yield the arguments of a command with probable secrets redacted, to print or store.

    The person who approves sees them unredacted.
    """
    for argument, named, value in _read(args):
        if value:
            yield f"{named}{MASK}"
            continue
        shown = _URL.sub(lambda match: masked_url(match[0]), argument)
        for secret in secrets_in(shown):
            shown = shown.replace(secret, MASK)
        yield shown


def secrets_of_arguments(args: Iterable[str]) -> Iterator[str]:
    """Yield secrets in arguments, which are redacted in the server's text, too.

    Values of options with a telling name, if of 8 characters or more and no path; passwords, tokens and queries in any.
    """
    for argument, _, value in _read(args):
        if len(value) >= _LEAST and not value.startswith(_PATHS):
            yield value
        yield from secrets_in(argument)
        for match in _URL.finditer(argument):
            yield from secrets_of_url(match[0])


def _read(args: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Yield each argument, and if its option's name suggests a secret, the text before the secret, and the secret.

    Both are empty otherwise. `--token x` gives two arguments, `--token=x` one.
    """
    secret_follows = False
    for argument in args:
        if secret_follows and not argument.startswith("-"):
            secret_follows = False
            yield argument, "", argument
            continue
        secret_follows = argument.startswith("-") and "=" not in argument and looks_secret(argument)
        named = _NAMED.fullmatch(argument)
        if named and looks_secret(named[1]) and not named[3].startswith("//"):
            yield argument, f"{named[1]}{named[2]}", named[3]
        else:
            yield argument, "", ""
