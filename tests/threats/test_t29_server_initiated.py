"""T29, server-initiated requests: declined unless the host has a handler, which then learns which server asks."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import pytest

from servers.fault_expectations import text_of
from servers.fault_servers import fault_server, manager_of
from servers.live_processes import processes_by_a_word
from toolbridge.config.server_config import ServerLimits
from toolbridge.errors import ServerError, ServerProtocolError
from toolbridge.servers.requests import ElicitationAnswer, ElicitationRequest

LIMITS = ServerLimits(connect_seconds=20.0, call_seconds=20.0, close_seconds=0.2)
ERAS = pytest.mark.parametrize("era", [(), ("--modern",)], ids=["legacy", "modern"])


class Host:
    """A host that answers everything, and notes who asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, object]] = []
        self.most_at_once = self._at_once = 0

    async def elicit(self, request: ElicitationRequest) -> ElicitationAnswer:
        self.asked.append((request.server, request.message))
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        await anyio.sleep(0.001)
        self._at_once -= 1
        return ElicitationAnswer("accept", {"password": "swordfish"})

    async def sample(self, server: str, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        self.asked.append((server, parameters["maxTokens"]))
        return {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}

    async def list_roots(self, server: str) -> Sequence[str]:
        self.asked.append((server, "roots"))
        return ["file:///srv/project"]

    @property
    def handlers(self) -> dict[str, Any]:
        return {"elicitor": self, "sampler": self, "roots": self}


class FailingHost(Host):
    """A host whose handlers all fail, with something in their errors that is nobody's business."""

    async def elicit(self, request: ElicitationRequest) -> ElicitationAnswer:
        raise RuntimeError("/home/alice/secret-plan")

    async def sample(self, server: str, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        raise RuntimeError("/home/alice/secret-plan")

    async def list_roots(self, server: str) -> Sequence[str]:
        raise RuntimeError("/home/alice/secret-plan")


def reply_to(mode: str, *words: str, **handlers: Any) -> Any:
    """What a server of this mode gets to hear when it asks."""

    async def main() -> Any:
        with processes_by_a_word() as word:
            async with manager_of([fault_server("curious", mode, *words, word)], LIMITS, **handlers) as manager:
                return json.loads(text_of(await manager.call("curious", "faulty", {"text": "x"})))

    return anyio.run(main)


# ---- without handlers


@ERAS
def test_nothing_is_announced_that_nobody_handles(era: tuple[str, ...]) -> None:
    assert reply_to("tells-capabilities", *era) == {}


@pytest.mark.parametrize("kind", ["sampling", "roots", "unknown"])
def test_without_a_handler_a_question_is_refused(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "toolbridge")
    reply = reply_to(f"ask-{kind}")
    assert "result" not in reply
    assert reply["error"]["code"] == -32601
    if kind != "unknown":
        (line,) = [record.getMessage() for record in caplog.records]
        assert "'curious'" in line
        assert kind in line
        assert "declined" in line


def test_without_a_handler_elicitation_is_declined(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "toolbridge")
    assert reply_to("ask-elicitation")["result"] == {"action": "decline"}
    (line,) = [record.getMessage() for record in caplog.records]
    assert "'curious'" in line
    assert "elicitation" in line


def test_without_handlers_the_questions_of_the_newer_era_are_declined_too(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "toolbridge")

    async def main() -> str:
        with processes_by_a_word() as word:
            async with manager_of([fault_server("curious", "input-required", "--modern", word)], LIMITS) as manager:
                try:
                    return text_of(await manager.call("curious", "faulty", {"text": "x"}))
                except ServerError as error:
                    return str(error)

    outcome = anyio.run(main)
    assert "swordfish" not in outcome
    assert "accept" not in outcome
    assert any("'curious'" in record.getMessage() for record in caplog.records)


def test_questions_before_the_handshake_are_declined_as_well() -> None:
    async def main() -> None:
        host = Host()
        with processes_by_a_word() as word:
            async with manager_of([fault_server("curious", "ask-at-start", word)], LIMITS) as manager:
                assert text_of(await manager.call("curious", "faulty", {"text": "x"})) == "x"
        assert host.asked == []

    anyio.run(main)


# ---- with handlers


@ERAS
def test_what_is_handled_is_announced(era: tuple[str, ...]) -> None:
    assert set(reply_to("tells-capabilities", *era, **Host().handlers)) == {"elicitation", "roots", "sampling"}


def test_a_handler_learns_which_server_asks_and_its_answer_reaches_that_server() -> None:
    host = Host()
    elicited = reply_to("ask-elicitation", **host.handlers)["result"]
    assert (elicited["action"], elicited["content"]) == ("accept", {"password": "swordfish"})
    assert reply_to("ask-sampling", **host.handlers)["result"]["content"] == {"type": "text", "text": "hi"}
    assert reply_to("ask-roots", **host.handlers)["result"]["roots"] == [{"uri": "file:///srv/project"}]
    assert host.asked == [("curious", "What is your password?"), ("curious", 10), ("curious", "roots")]


def test_handlers_serve_the_questions_of_the_newer_era_too() -> None:
    host = Host()
    replies = reply_to("input-required", "--modern", **host.handlers)
    assert replies["elicitation"]["content"] == {"password": "swordfish"}
    assert replies["roots"]["roots"] == [{"uri": "file:///srv/project"}]
    assert {server for server, _ in host.asked} == {"curious"}


def test_a_server_that_never_stops_asking_is_given_up() -> None:
    async def main() -> None:
        host = Host()
        with processes_by_a_word() as word:
            server = fault_server("curious", "input-required-for-ever", "--modern", word)
            async with manager_of([server], LIMITS, **host.handlers) as manager:
                with pytest.raises(ServerProtocolError, match="'curious'"):
                    await manager.call("curious", "faulty", {"text": "x"})
                assert text_of(await manager.call("curious", "echo", {"text": "y"})) == "y"
        assert len(host.asked) < 100

    anyio.run(main)


@pytest.mark.parametrize("kind", ["sampling", "roots", "elicitation"])
def test_a_handler_that_fails_tells_the_server_nothing_of_the_host(kind: str) -> None:
    reply = reply_to(f"ask-{kind}", **FailingHost().handlers)
    assert "error" in reply
    assert "alice" not in json.dumps(reply)
    assert "secret-plan" not in json.dumps(reply)


def test_a_flood_of_questions_does_not_become_a_flood_of_handlers() -> None:
    """Two thousand questions at once: a bounded number is asked at a time, and the call that waits is answered."""

    async def main() -> None:
        host = Host()
        with processes_by_a_word() as word:
            server = fault_server("curious", "elicitation-flood", word)
            async with manager_of([server], LIMITS, **host.handlers) as manager:
                assert text_of(await manager.call("curious", "faulty", {"text": "x"})) == "x"
        assert 1 <= host.most_at_once <= 32

    anyio.run(main)


@pytest.mark.parametrize("kind", ["elicitation", "sampling", "roots", "unknown-request"])
def test_a_flood_of_declined_questions_does_not_become_a_flood_of_log_lines(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        with processes_by_a_word() as word:
            async with manager_of([fault_server("curious", f"{kind}-flood", word)], LIMITS) as manager:
                assert text_of(await manager.call("curious", "faulty", {"text": "x"})) == "x"

    anyio.run(main)
    assert len(caplog.records) <= 10, f"{len(caplog.records)} lines in answer to 2,000 questions"


def test_odd_questions_do_no_harm() -> None:
    async def main() -> None:
        with processes_by_a_word() as word:
            server = fault_server("curious", "odd-request-flood", word)
            async with manager_of([server], LIMITS, **Host().handlers) as manager:
                assert text_of(await manager.call("curious", "faulty", {"text": "x"})) == "x"

    anyio.run(main)
