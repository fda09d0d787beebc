"""T29, through `toolbridge serve`: a server's question reaches the person whose program called it, and nobody else."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from toolbridge.approval import ElicitationRequest
from toolbridge.serve.clients import Caller, Client, FormAnswer, Notification, Question
from toolbridge.serve.elicitation import PassedOn

pytestmark = pytest.mark.anyio

REQUEST = ElicitationRequest(
    "curious", "Your \x1b[2Jpassword?", {"type": "object", "properties": {"password": {"type": "string"}}}
)


class Channel:
    """A client that answers everything, and remembers what it was asked."""

    def __init__(self, *, can_ask: bool = True) -> None:
        self.can_ask = self.has_elicitation = can_ask
        self.asked: list[Question] = []

    async def ask(self, question: Question) -> FormAnswer:
        self.asked.append(question)
        return FormAnswer("accept", {"password": "swordfish"})

    async def notify(self, news: Notification, number: int) -> None:
        raise AssertionError


_callers: list[Caller] = []


def caller_of(channel: Channel, client: Client | None = None) -> Caller:
    _callers.append(Caller(client or Client(("test", "a")), channel, ask_seconds=5))
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
    callers = Counter(caller_of(channel, Client(("test", str(number)))) for number, channel in enumerate(channels))
    assert (await PassedOn(lambda _: callers).elicit(REQUEST)).action == "decline"
    assert [channel.asked for channel in channels] == [[], []]


async def test_two_calls_of_one_client_are_no_doubt() -> None:
    channel, client = Channel(), Client(("test", "a"))
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


SECRET = "sk-planted-SECRET-0123456789"


async def asked_with(message: str, schema: dict[str, Any]) -> Question | None:
    """What the person is shown of a server's question, if anything."""
    channel = Channel()
    passed = PassedOn(lambda _: Counter([caller_of(channel)]), lambda _: frozenset({SECRET}))
    await passed.elicit(ElicitationRequest("curious", message, schema))
    return channel.asked[0] if channel.asked else None


def form(**field: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"title": {"type": "string", **field}}, "required": ["title"]}


async def test_secrets_and_hidden_characters_of_a_question_are_not_shown() -> None:
    words = f"\x1b]0;x\x07Start it\u202e\u200b with {SECRET}"
    question = await asked_with(words, {**form(title=words, description=words), "description": words})
    assert question is not None
    shown = question.message + json.dumps(question.schema, ensure_ascii=False)
    assert SECRET not in shown
    assert not any(each in shown for each in ("\x1b", "\x07", "\u202e", "\u200b"))
    assert shown.count("***") == 4
    assert question.schema["properties"]["title"]["type"] == "string"


@pytest.mark.parametrize(
    "schema",
    [
        form(enum=["a", "b\u202e"]),
        form(enum=["a", SECRET]),
        form(default=SECRET),
        form(oneOf=[{"const": "\x1b[2J", "title": "Nothing"}]),
        {"type": "object", "properties": {"na\u200bme": {"type": "string"}}},
        {"type": "object", "properties": {SECRET: {"type": "string"}}},
        {"type": "object", "properties": {f"field{number}": {"type": "string"} for number in range(2_000)}},
        form(enum=["x" * 900 + str(number) for number in range(100)]),
        form(title={"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": 1}}}}}}}}),
    ],
)
async def test_a_form_that_cannot_be_shown_as_it_is_is_not_shown(schema: dict[str, Any]) -> None:
    """Where the text is part of the answer, a cleaned one would be another's question."""
    assert await asked_with("Which?", schema) is None


async def test_a_plain_form_is_passed_on_as_it_is() -> None:
    schema = form(enum=["a", "b"], default="a", title="Wählen Sie", description="One of\ntwo 👍")
    question = await asked_with("Which?", schema)
    assert question is not None
    assert question.schema == schema
