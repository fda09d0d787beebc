"""SECURITY: what in the arguments of a command is probably a secret (T4, T35).

People write tokens there, though every process of the machine can read them. Whoever decides about a command is shown
all of it; anybody else, and whatever is kept, has a mask in their place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from toolbridge.config.secret_values import looks_secret, secrets_in, secrets_of_url

MASK = "***"

_NAMED = re.compile(r"(-{0,2}[A-Za-z][\w .-]{0,60}?)(\s?[=:]\s?)(.+)", re.DOTALL)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}://\S+")
_LEAST = 8
"""A shorter one, `--max-tokens 4096`, is no secret that could be masked in every answer."""
_PATHS = ("/", "./", "../", "~/")


def masked_url(url: str) -> str:
    """A URL without what may be a secret in it: user, password, and the values of its query."""
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
    """Arguments with what is probably a secret masked. For showing and keeping: a person who decides sees all."""
    for argument, named, value in _read(args):
        if value:
            yield f"{named}{MASK}"
            continue
        shown = _URL.sub(lambda match: masked_url(match[0]), argument)
        for secret in secrets_in(shown):
            shown = shown.replace(secret, MASK)
        yield shown


def secrets_of_arguments(args: Iterable[str]) -> Iterator[str]:
    """Those of them that are masked in what the server says, too. The path of a key is no key."""
    for argument, _, value in _read(args):
        if len(value) >= _LEAST and not value.startswith(_PATHS):
            yield value
        yield from secrets_in(argument)
        for match in _URL.finditer(argument):
            yield from secrets_of_url(match[0])


def _read(args: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Each argument; of one that holds a secret by its name, what stands before it, and the secret."""
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
