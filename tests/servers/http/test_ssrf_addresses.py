"""Which addresses may be reached."""

from __future__ import annotations

import contextlib
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from toolbridge.servers.http.ssrf import (
    AddressRefusedError,
    Reach,
    check_host_name,
    check_reach,
    is_this_machine,
    literal_address,
    reach_of,
)


def spellings(address: IPv4Address) -> list[str]:
    """Ways to write an IPv4 address that some resolver or URL parser takes."""
    number = int(address)
    a, b, c, d = address.packed
    return [
        str(address),
        f"{address}.",
        str(number),
        hex(number),
        f"0{number:o}",
        f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}",
        f"0{a:o}.0{b:o}.0{c:o}.0{d:o}",
        f"{a}.{(b << 16) + (c << 8) + d}",
        f"{a}.{b}.{(c << 8) + d}",
        f"0x{a:X}.{b}.0{(c << 8) + d:o}",
        f"::ffff:{address}",
        f"[::ffff:{address}]",
        f"::ffff:{number >> 16:x}:{number & 0xFFFF:x}",
    ]


@given(st.ip_addresses(v=4))
def test_every_spelling_of_an_address_is_recognised(address: IPv4Address) -> None:
    for text in spellings(address):
        found = literal_address(text)
        assert found is not None, text
        assert getattr(found, "ipv4_mapped", None) or found == address


@pytest.mark.parametrize("address", ["169.254.169.254", "100.100.100.200", "169.254.170.2", "192.0.0.192"])
def test_no_spelling_of_a_metadata_address_gets_through(address: str) -> None:
    for text in spellings(IPv4Address(address)):
        with pytest.raises(AddressRefusedError):
            check_host_name(text)


@each(
    "host",
    [
        "metadata.google.internal",
        "METADATA.google.internal.",
        "metadata",
        "instance-data",
        "fd00:ec2::254",
        "[fd00:ec2::254]",
        "fd20:ce::254",
        "fe80::1",
        "fe80::1%eth0",
        "fe80::a9fe:a9fe",
        "0.0.0.0",
        "0",
        "0.0.0.7",
        "::",
        "::ffff:0.0.0.0",
        "224.0.0.1",
        "ff02::1",
        "255.255.255.255",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b::169.254.169.254",
        "2002:a9fe:a9fe::1",
        "::169.254.169.254",
        "::ffff:0:a9fe:a9fe",
        "64:ff9b:1::a9fe:a9fe",
        "64:ff9b:1:a9fe:a9:fe00::",
        "64:ff9b:1:aaa9:fe:a9fe::",
        "64:ff9b:1:aaaa:a9:fea9:fe00:0",
        "2001:db8::5efe:a9fe:a9fe",
        "2001:db8::200:5efe:a9fe:a9fe",
        "2001:0:a9fe:a9fe::1",
        "2001:0:808:808:0:0:5601:5601",
    ],
)
def test_addresses_that_are_never_reached(host: str) -> None:
    with pytest.raises(AddressRefusedError, match="never reached"):
        check_host_name(host)


@each(
    "address, reach",
    [
        ("93.184.216.34", Reach.PUBLIC),
        ("2606:4700::1111", Reach.PUBLIC),
        ("64:ff9b::5db8:d822", Reach.PUBLIC),
        ("10.1.2.3", Reach.PRIVATE),
        ("172.31.0.1", Reach.PRIVATE),
        ("192.168.1.10", Reach.PRIVATE),
        ("100.64.0.1", Reach.PRIVATE),
        ("198.18.0.5", Reach.PRIVATE),
        ("fd12:3456::1", Reach.PRIVATE),
        ("::ffff:10.0.0.1", Reach.PRIVATE),
        ("64:ff9b::a00:1", Reach.PRIVATE),
        ("127.0.0.1", Reach.LOOPBACK),
        ("127.8.9.10", Reach.LOOPBACK),
        ("::1", Reach.LOOPBACK),
        ("::ffff:127.0.0.1", Reach.LOOPBACK),
        ("64:ff9b::7f00:1", Reach.LOOPBACK),
        ("2002:7f00:1::", Reach.LOOPBACK),
        ("::ffff:0:7f00:1", Reach.LOOPBACK),
        ("64:ff9b:1::7f00:1", Reach.LOOPBACK),
        ("::ffff:0:a00:1", Reach.PRIVATE),
        ("::ffff:0:5db8:d822", Reach.PUBLIC),
        ("64:ff9b:1::5db8:d822", Reach.PRIVATE),
    ],
)
def test_how_near_an_address_is(address: str, reach: Reach) -> None:
    assert reach_of(ip_address(address)) is reach


@pytest.mark.parametrize(
    "host", ["localhost", "LocalHost.", "api.localhost", "127.0.0.1", "127.1", "2130706433", "::1"]
)
def test_a_host_that_says_it_is_this_machine(host: str) -> None:
    assert is_this_machine(host)


@pytest.mark.parametrize(
    "host",
    [
        *("localhost.example.com", "127.0.0.1.nip.io", "example.com", "10.0.0.1", "mylocalhost"),
        *("::ffff:0:7f00:1", "2002:7f00:1::", "64:ff9b::7f00:1", "::7f00:1"),
    ],
)
def test_a_host_that_does_not_say_so(host: str) -> None:
    assert not is_this_machine(host)


def test_a_name_that_leads_to_this_machine_is_refused_with_what_to_write() -> None:
    with pytest.raises(AddressRefusedError, match="write localhost"):
        check_reach("rebind.example.com", ip_address("127.0.0.1"), nearest=Reach.PRIVATE)


def test_localhost_that_leads_elsewhere_is_refused() -> None:
    with pytest.raises(AddressRefusedError, match="means this machine"):
        check_reach("localhost", ip_address("93.184.216.34"), nearest=Reach.LOOPBACK)


def test_a_public_server_can_not_name_a_private_address() -> None:
    with pytest.raises(AddressRefusedError, match="private network"):
        check_reach("auth.example.com", ip_address("192.168.1.1"), nearest=Reach.PUBLIC)


@given(st.text(max_size=80))
def test_no_text_makes_the_rules_fail_otherwise(host: str) -> None:
    with contextlib.suppress(AddressRefusedError):
        check_host_name(host)
    is_this_machine(host)


@given(st.ip_addresses(v=6))
def test_every_address_has_a_reach_or_is_refused(address: IPv6Address) -> None:
    with contextlib.suppress(AddressRefusedError):
        assert reach_of(address) in Reach
