"""SECURITY: who may talk to us over HTTP (T27): decided before a byte of a request's body is read.

A web page in the user's browser can reach loopback. It can't choose its Origin, nor the Host that its name was bound
to, so both are compared: with the addresses that we serve at, and what the operator added.
"""

from __future__ import annotations

import hmac
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from starlette.types import Scope

LEAST_TOKEN = 16


class Refused(NamedTuple):
    """Why a request is not served."""

    status: int
    words: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Guard:
    """The rules."""

    hosts: frozenset[str]
    """Values of Host that mean us, in lower case, with the port."""
    origins: frozenset[str]
    """Values of Origin that may use us. None at all is no browser's."""
    token: str | None = None

    def refusal(self, scope: Scope) -> Refused | None:
        """Why not, or None."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 or _text(hosts[0]).lower() not in self.hosts:
            return Refused(421, "This is not the host that you asked for. --allow-host adds names.")
        for value in (value for name, value in headers if name == b"origin"):
            if _text(value).lower() not in self.origins:
                return Refused(403, "Pages of this origin may not use this server. --allow-origin adds one.")
        if self.token is not None and not _has_token(headers, self.token):
            return Refused(401, "A bearer token is needed.", ((b"www-authenticate", b'Bearer realm="toolbridge"'),))
        return None


def guard_of(
    host: str, port: int, *, more_hosts: tuple[str, ...] = (), origins: tuple[str, ...] = (), token: str | None = None
) -> Guard:
    """The rules for an address that we serve at."""
    names: set[str] = set() if is_everywhere(host) else {_bracketed(host).lower()}
    if is_loopback(host):
        names |= {"127.0.0.1", "localhost", "[::1]"}
    own = {f"{name}:{port}" for name in names}
    if port == 80:
        own |= names
    given = {each.lower() for each in more_hosts}
    with_port = {f"{each}:{port}" for each in given if ":" not in each}
    own_origins = {f"http://{each}" for each in own}
    return Guard(
        frozenset(own | given | with_port),
        frozenset(own_origins | {each.lower().rstrip("/") for each in origins}),
        token,
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to an address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_everywhere(host: str) -> bool:
    """Whether an address stands for all of a machine's."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False


def _has_token(headers: list[tuple[bytes, bytes]], token: str) -> bool:
    given = [value for name, value in headers if name == b"authorization"]
    if len(given) != 1:
        return False
    scheme, _, value = given[0].partition(b" ")
    return scheme.lower() == b"bearer" and hmac.compare_digest(value.strip(), token.encode())


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _text(value: bytes) -> str:
    return value.decode("latin-1")
