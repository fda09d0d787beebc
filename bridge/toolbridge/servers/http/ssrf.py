"""SECURITY: SSRF rules: the addresses, URLs and headers that HTTP may use (T27). `network` applies them.

- Metadata services, link-local, unspecified, multicast and reserved addresses: never, in any spelling.
- Loopback: only when the configuration itself says so (`localhost`, `127.0.0.1`, `[::1]`). A name that somebody else's
  DNS can point at this machine is refused (DNS rebinding).
- Private networks: for a configured name or address, since `nas.local` and split-horizon names are ordinary.
- A host that a *server* names (an authorization server) is never nearer to us than that server itself: a public
  server can't have us call into the private network, a private one can't have us call this machine.
"""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Mapping
from enum import IntEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TypeAlias

import httpx2

from toolbridge.config.fields import is_transports
from toolbridge.trust.sanitise import for_error

Address: TypeAlias = IPv4Address | IPv6Address


class Reach(IntEnum):
    """The distance of an address. A larger value is nearer."""

    PUBLIC = 0
    PRIVATE = 1
    LOOPBACK = 2


class AddressRefusedError(Exception):
    """An address is refused. The message shows only the host of a URL."""


# Link-local ones (169.254.169.254 and its kind) are refused as link-local.
_METADATA_ADDRESSES: frozenset[Address] = frozenset(
    {
        IPv4Address("100.100.100.200"),
        IPv4Address("168.63.129.16"),
        IPv4Address("192.0.0.192"),
        IPv6Address("fd00:ec2::254"),
        IPv6Address("fd00:ec2::23"),
        IPv6Address("fd20:ce::254"),
        IPv6Address("fd00:42::42"),
    }
)
_METADATA_NAMES = frozenset(
    {
        "instance-data",
        "instance-data.ec2.internal",
        "metadata",
        "metadata.azure.internal",
        "metadata.goog",
        "metadata.google.internal",
        "metadata.platformequinix.com",
        "metadata.tencentyun.com",
    }
)
_PRIVATE = (
    IPv4Network("10.0.0.0/8"),
    IPv4Network("172.16.0.0/12"),
    IPv4Network("192.168.0.0/16"),
    IPv4Network("100.64.0.0/10"),  # carrier-grade NAT, and overlay networks
    IPv4Network("192.0.0.0/24"),
    IPv4Network("198.18.0.0/15"),  # what local proxies give out in place of real addresses
    IPv6Network("fc00::/7"),
    IPv6Network("fec0::/10"),
    IPv6Network("64:ff9b:1::/48"),  # a network's own NAT64: see `_OWN_NAT64`
)
_THIS_NETWORK = IPv4Network("0.0.0.0/8")
_LAST_32_BITS = (
    IPv6Network("::/96"),  # IPv4-compatible
    IPv6Network("::ffff:0:0:0/96"),  # IPv4-translated (SIIT)
    IPv6Network("64:ff9b::/96"),  # NAT64
)
_OWN_NAT64 = IPv6Network("64:ff9b:1::/48")
_ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})


def literal_address(host: str) -> Address | None:
    """Parse a literal address in any spelling that resolvers accept: `2130706433`, `0x7f.1`, `127.1`."""
    host = host.strip("[]").partition("%")[0].rstrip(".")
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return _loose_ipv4(host)


def is_this_machine(host: str) -> bool:
    """Return whether a host is `localhost` or a literal loopback address. Uses no DNS."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    address = literal_address(host)
    # Not what is wrapped in a translated or tunnelled one: that would leave for the network, which then brings it back.
    return address is not None and _meanings(address)[0].is_loopback


def check_host_name(host: str) -> None:
    """Refuse a host that is a metadata service by name or, as a literal, an address that is never reached.

    Raises:
        AddressRefusedError: it is one.
    """
    if host.lower().rstrip(".") in _METADATA_NAMES:
        raise AddressRefusedError(f"{host} is a cloud metadata service, which is never reached")
    address = literal_address(host)
    if address is not None:
        reach_of(address)


def reach_of(address: Address) -> Reach:
    """Return the reach of an address, or the nearer one of an IPv4 address that is wrapped in it.

    Raises:
        AddressRefusedError: it is never reached.
    """
    nearest = Reach.PUBLIC
    for meaning in _meanings(address):
        if problem := _never(meaning):
            raise AddressRefusedError(f"{address} is {problem}, which is never reached")
        if meaning.is_loopback:
            nearest = Reach.LOOPBACK
        elif any(meaning.version == network.version and meaning in network for network in _PRIVATE):
            nearest = max(nearest, Reach.PRIVATE)
    return nearest


def check_reach(host: str, address: Address, *, nearest: Reach) -> Reach:
    """Verify the address that a host was resolved to, and return its reach.

    Raises:
        AddressRefusedError: it is never reached, or nearer than this host may be.
    """
    reach = reach_of(address)
    if is_this_machine(host) and reach is not Reach.LOOPBACK:
        raise AddressRefusedError(f"{host} means this machine but leads to {address}")
    if reach > nearest:
        if reach is Reach.LOOPBACK:
            raise AddressRefusedError(
                f"{host} leads to {address}, which is this machine: write localhost in the URL if that is meant"
            )
        raise AddressRefusedError(f"{host} leads to {address}, which is in a private network")
    return reach


def _never(address: Address) -> str:
    """Say why an address is never reached ("a multicast address"); "" if it may be."""
    if address in _METADATA_ADDRESSES:
        return "a cloud metadata service"
    if address.is_link_local:
        return "a link-local address"
    if address.is_unspecified or (address.version == 4 and address in _THIS_NETWORK):
        return "the unspecified address"
    if address.is_multicast:
        return "a multicast address"
    if address.version == 4 and address.is_reserved:
        return "a reserved address"
    return ""


def _meanings(address: Address) -> list[Address]:
    """Return the address itself first, then each IPv4 address that it may end at: mapped, translated or tunnelled."""
    meanings: list[Address] = [address]
    if isinstance(address, IPv6Address):
        number = int(address)
        low = IPv4Address(number & 0xFFFF_FFFF)
        if address.ipv4_mapped:
            # An IPv4-mapped address is that IPv4 address and nothing else.
            return [address.ipv4_mapped]
        if address.sixtofour:
            meanings.append(address.sixtofour)
        if address.teredo:
            meanings.extend(address.teredo)
        is_translated = number > 1 and any(address in network for network in _LAST_32_BITS)
        if is_translated or (number >> 32) & 0xFFFF_FFFF in _ISATAP:
            meanings.append(low)
        if address in _OWN_NAT64:
            # With a shorter prefix than 96 bits, the last ones are zero.
            meanings += [low] if number & 0xFF_FFFF else _within_shorter_prefixes(number)
    return meanings


def _within_shorter_prefixes(number: int) -> list[Address]:
    """Decode the IPv4 addresses in a NAT64 address of a 48, 56 or 64 bit prefix; bits 64 to 71 are a gap (RFC 6052)."""
    without_gap = (number >> 64 << 56) | (number & (1 << 56) - 1)
    return [IPv4Address(without_gap >> (120 - prefix - 32) & 0xFFFF_FFFF) for prefix in (48, 56, 64)]


def _loose_ipv4(host: str) -> IPv4Address | None:
    """Parse an IPv4 address of one to four decimal, hexadecimal or octal numbers; None if it is none."""
    numbers: list[int] = []
    parts = host.split(".")
    if len(parts) > 4:
        return None
    for part in parts:
        number = _number(part)
        if number is None:
            return None
        numbers.append(number)
    *leading, last = numbers
    if any(number > 255 for number in leading) or last >= 256 ** (4 - len(leading)):
        return None
    value = last
    for place, number in enumerate(leading):
        value += number << (8 * (3 - place))
    return IPv4Address(value)


def _number(text: str) -> int | None:
    """Parse a decimal, `0x` hexadecimal or `0` octal number; None if it is none."""
    if not text.isascii() or not 0 < len(text) <= 64:
        return None
    lower = text.lower()
    digits, base = (lower[2:] or "0", 16) if lower.startswith("0x") else (lower, 8 if lower.startswith("0") else 10)
    try:
        return int(digits, base) if digits.isalnum() else None
    except ValueError:
        return None


# URLs and headers, checked before connecting and at every redirect. No message shows a header's value, or more of a URL
# than its scheme and host: both may hold secrets.


_BAD_URL_CHARACTER = re.compile(r"[\x00-\x20\x7f-\x9f\\]")
_HOST_NAME = re.compile(r"[A-Za-z0-9_.-]{1,253}")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]{0,16384}")
_SECRET_PARAMETER = re.compile(r"key|token|secret|auth|passw|credential|signature|\bsig\b", re.IGNORECASE)

# Everybody may see these. Any other header may be somebody's key, whatever it is called.
_HARMLESS_HEADERS = frozenset({"accept-language", "user-agent"})


class HttpRuleError(Exception):
    """A request is refused before it is sent."""


@functools.lru_cache(maxsize=256)  # the same few are checked before every request
def check_url(text: str, *, secrets: bool) -> httpx2.URL:
    """Parse and verify a URL that requests may go to.

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
    """Verify configured headers; True if they may hold a secret.

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
    """Verify a header's name and value: it can be sent, as one header only.

    Raises:
        HttpRuleError: it can't; names the header, never its value.
    """
    if not _HEADER_NAME.fullmatch(name):
        raise HttpRuleError(
            f"The header {for_error(name, limit=80)!r} is too long, or has a character that a name can't have"
        )
    check_header_value(name, value)


def check_header_value(name: str, value: str) -> None:
    """Verify a header's value: printable ASCII, not too long, without spaces at its ends.

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
    """Scheme, host and port: the part of a URL that may be shown."""
    host = url.raw_host.decode("ascii", "replace")
    host = f"[{host}]" if ":" in host else host
    return f"{url.scheme}://{host}" + (f":{url.port}" if url.port is not None else "")


def same_origin(meant: httpx2.URL, other: httpx2.URL) -> bool:
    """Return whether a request for `meant` may go to `other`: the same origin, or the same host by https."""
    if meant.raw_host != other.raw_host:
        return False
    if (meant.scheme, meant.port) == (other.scheme, other.port):
        return True
    return (meant.scheme, meant.port, other.scheme, other.port) == ("http", None, "https", None)


def redirected(sent: httpx2.Request, response: httpx2.Response) -> httpx2.URL | None:
    """Return the checked target of a redirect; None if the response is none. Sends nothing.

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
    """Verify the URL of a sign-in page, as one that carries secrets, and return it.

    Raises:
        HttpRuleError: it is refused: not https and not this machine, or against another rule.
    """
    return check_url(text, secrets=True)


def _has_secret_parameter(url: httpx2.URL) -> bool:
    return any(_SECRET_PARAMETER.search(name) for name in url.params)
