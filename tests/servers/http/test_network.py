"""Connections go to the very address that was checked."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import anyio
import httpcore2
import pytest

from servers.http_servers import hang_up, raw_server, reply
from toolbridge.servers.http.network import CheckedNetwork
from toolbridge.servers.http.ssrf import AddressRefusedError

pytestmark = pytest.mark.anyio

Names = Callable[..., None]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    """Says what a name resolves to: one list of addresses after another, the last one for good."""
    known: dict[str, list[list[str]]] = {}
    system = socket.getaddrinfo

    def getaddrinfo(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name not in known:
            return system(host, port, *args, **kwargs)
        answers = known[name]
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        families = {True: socket.AF_INET6, False: socket.AF_INET}
        return [(families[":" in each], socket.SOCK_STREAM, 6, "", (each, port)) for each in addresses]

    def add(name: str, *answers: list[str]) -> None:
        known[name] = list(answers)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return add


async def refuse(network: CheckedNetwork, host: str, port: int = 80) -> str:
    with pytest.raises(AddressRefusedError) as raised:
        await network.connect_tcp(host, port, timeout=5)
    return str(raised.value)


async def test_a_name_that_leads_to_this_machine_is_not_connected_to(names: Names) -> None:
    async def never(_request: object, _stream: object) -> None:
        hang_up()

    async with raw_server(never) as server:
        names("rebind.example.com", ["127.0.0.1"])
        assert "write localhost" in await refuse(
            CheckedNetwork("rebind.example.com"), "rebind.example.com", server.port
        )
        assert server.received == []


async def test_localhost_is_connected_to_when_the_configuration_says_so() -> None:
    async def answer(_request: object, stream: Any) -> None:
        await stream.send(reply())

    async with raw_server(answer) as server:
        stream = await CheckedNetwork("localhost").connect_tcp("localhost", server.port, timeout=5)
        await stream.aclose()


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "fe80::1", "100.100.100.200", "0.0.0.0", "::ffff:169.254.169.254"]
)
async def test_a_name_that_leads_to_a_metadata_service_is_not_connected_to(names: Names, address: str) -> None:
    names("harmless.example.com", [address])
    assert "never reached" in await refuse(CheckedNetwork("harmless.example.com"), "harmless.example.com")


async def test_a_name_that_leads_to_localhost_by_another_name_of_it_is_refused(names: Names) -> None:
    for address in ("127.8.8.8", "::1", "::ffff:127.0.0.1"):
        names("x.example.com", [address])
        assert "this machine" in await refuse(CheckedNetwork("x.example.com"), "x.example.com")


async def test_a_name_does_not_come_nearer_once_it_was_reached(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second answer of a rebinding name server is refused even where the first one might have been private."""
    network = CheckedNetwork("moves.example.com")
    connected = record_connections(network)
    names("moves.example.com", ["93.184.216.34"], ["192.168.1.1"])
    await network.connect_tcp("moves.example.com", 80)
    assert "private network" in await refuse(network, "moves.example.com")
    assert connected == ["93.184.216.34"]


async def test_of_a_name_with_addresses_of_both_kinds_the_public_ones_are_used(names: Names) -> None:
    network = CheckedNetwork("both.example.com")
    connected = record_connections(network)
    names("both.example.com", ["10.0.0.1", "127.0.0.1", "93.184.216.34", "169.254.169.254"])
    await network.connect_tcp("both.example.com", 80)
    assert connected == ["93.184.216.34"]


async def test_a_name_in_the_private_network_is_reached(names: Names) -> None:
    network = CheckedNetwork("nas.local")
    connected = record_connections(network)
    names("nas.local", ["192.168.1.10"])
    await network.connect_tcp("nas.local", 80)
    assert connected == ["192.168.1.10"]


async def test_what_a_server_names_is_not_nearer_than_the_server(names: Names) -> None:
    network = CheckedNetwork("mcp.example.com")
    connected = record_connections(network)
    names("mcp.example.com", ["93.184.216.34"])
    names("auth.example.com", ["93.184.216.35"])
    names("inside.example.com", ["10.0.0.1"])
    await network.connect_tcp("mcp.example.com", 443)
    await network.connect_tcp("auth.example.com", 443)
    assert "private network" in await refuse(network, "inside.example.com")
    assert "private network" in await refuse(network, "192.168.1.1")
    assert "this machine" in await refuse(network, "localhost")
    assert connected == ["93.184.216.34", "93.184.216.35"]


async def test_a_private_server_may_name_a_private_place_but_not_this_machine(names: Names) -> None:
    network = CheckedNetwork("nas.local")
    record_connections(network)
    names("nas.local", ["192.168.1.10"])
    names("sso.corp", ["10.0.0.1"])
    await network.connect_tcp("nas.local", 443)
    await network.connect_tcp("sso.corp", 443)
    assert "this machine" in await refuse(network, "127.0.0.1")


async def test_before_the_server_was_reached_only_public_places_are(names: Names) -> None:
    network = CheckedNetwork("mcp.example.com")
    names("inside.example.com", ["10.0.0.1"])
    assert "private network" in await refuse(network, "inside.example.com")


async def test_an_address_that_does_not_answer_holds_up_the_next_one_only_briefly(names: Names) -> None:
    network = CheckedNetwork("two.example.com")
    connected = record_connections(network, stuck={"93.184.216.34"})
    names("two.example.com", ["93.184.216.34", "93.184.216.35"])
    with anyio.fail_after(60):
        await network.connect_tcp("two.example.com", 80)
    assert connected == ["93.184.216.34", "93.184.216.35"]


async def test_a_name_that_does_not_exist_is_a_connect_error(names: Names) -> None:
    names("nowhere.example.com", [])
    with pytest.raises(httpcore2.ConnectError, match="can't be resolved"):
        await CheckedNetwork("nowhere.example.com").connect_tcp("nowhere.example.com", 80)


async def test_nobody_listening_is_a_connect_error() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(httpcore2.ConnectError, match="no connection"):
            await CheckedNetwork("127.0.0.1").connect_tcp("127.0.0.1", unused.getsockname()[1], timeout=5)


async def test_a_connection_that_takes_too_long_is_a_timeout(names: Names) -> None:
    network = CheckedNetwork("slow.example.com")
    record_connections(network, stuck={"93.184.216.34"})
    names("slow.example.com", ["93.184.216.34"])
    with pytest.raises(httpcore2.ConnectTimeout):
        await network.connect_tcp("slow.example.com", 80, timeout=0.1)


def record_connections(network: CheckedNetwork, stuck: set[str] | None = None) -> list[str]:
    """Which addresses are connected to, in place of connecting to them: tests reach nobody."""
    connected: list[str] = []

    class Recorder:
        async def connect_tcp(self, host: str, port: int, **_options: Any) -> object:
            connected.append(host)
            if host in (stuck or ()):
                await anyio.sleep_forever()
            return object()

    network._backend = Recorder()
    return connected
