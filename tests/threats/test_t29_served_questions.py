"""T29, through `toolbridge serve`: a server's question reaches the person whose program called it, and nobody else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from toolbridge import ElicitationRequest
from toolbridge.serve.asking import PassedOn
from toolbridge.serve.caller import Answer, Caller, Client, News, Question

pytestmark = pytest.mark.anyio

REQUEST = ElicitationRequest(
    "curious", "Your \x1b[2Jpassword?", {"type": "object", "properties": {"password": {"type": "string"}}}
)


class Channel:
    """A client that answers everything, and remembers what it was asked."""

    def __init__(self, *, can_ask: bool = True) -> None:
        self.can_ask = can_ask
        self.asked: list[Question] = []

    async def ask(self, question: Question) -> Answer:
        self.asked.append(question)
        return Answer("accept", {"password": "swordfish"})

    async def tell(self, news: News, number: int) -> None:
        raise AssertionError


_callers: list[Caller] = []


def caller_of(channel: Channel, client: Client | None = None) -> Caller:
    _callers.append(Caller(client or Client("a"), channel, ask_seconds=5))
    return _callers[-1]


@pytest.fixture(autouse=True)
def each_is_closed() -> Iterator[None]:
    """As every call closes its caller."""
    yield
    while _callers:
        _callers.pop().close()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_the_one_caller_is_asked_under_the_servers_name_and_inertly() -> None:
    channel = Channel()
    answer = await PassedOn(lambda _: Counter([caller_of(channel)])).elicit(REQUEST)
    assert (answer.action, answer.content) == ("accept", {"password": "swordfish"})
    (question,) = channel.asked
    assert question.message.startswith("The MCP server 'curious' asks (these are its words")
    assert "\x1b" not in question.message


async def test_of_two_clients_neither_is_asked() -> None:
    channels = [Channel(), Channel()]
    callers = Counter(caller_of(channel, Client(str(number))) for number, channel in enumerate(channels))
    assert (await PassedOn(lambda _: callers).elicit(REQUEST)).action == "decline"
    assert [channel.asked for channel in channels] == [[], []]


async def test_two_calls_of_one_client_are_no_doubt() -> None:
    channel, client = Channel(), Client("a")
    callers = Counter([caller_of(channel, client), caller_of(channel, client)])
    assert (await PassedOn(lambda _: callers).elicit(REQUEST)).action == "accept"
    assert len(channel.asked) == 1


async def test_without_anybody_to_ask_it_is_declined() -> None:
    for callers in (Counter[Caller](), Counter([caller_of(Channel(can_ask=False))])):
        assert (await PassedOn(lambda _, callers=callers: callers).elicit(REQUEST)).action == "decline"


async def test_a_page_to_open_is_not_passed_on() -> None:
    channel = Channel()
    request = ElicitationRequest("curious", "Sign in", None, "https://evil.example")
    assert (await PassedOn(lambda _: Counter([caller_of(channel)])).elicit(request)).action == "decline"
    assert channel.asked == []
