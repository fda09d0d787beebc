"""Approvals, permissions and servers' own questions, put to the person behind the client."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.server import MCPServer
from mcp_types import ElicitRequestFormParams, ElicitResult, ToolAnnotations

from runtime.worlds import weather
from serve.http_service import http_service_of
from serve.serving import Era, Person, Says, call, client_of, no, run, service_of, text_of, yes
from servers.fault_servers import fault_server
from toolbridge import Limits, Permissions, ServerConfig
from toolbridge.approval import ElicitationRequest
from toolbridge.serve.elicitation import PassedOn
from toolbridge.serve.service import ServeOptions, Service
from toolbridge.trust.approval.approvers import PROCESS_WARNING

pytestmark = pytest.mark.anyio

FORECAST = 'import { get_forecast } from "host:mcp-weather"; get_forecast({ location: "Oslo" }).days.length'
ECHO = 'require("host:mcp-echo").echo({ text: "hello" })'
ASK = Permissions(ask=("mcp__weather__get_forecast",))


def process(name: str = "echo") -> ServerConfig:
    """A server that has to be approved, and starts in no time."""
    return fault_server(name, "ask-ping", connect_timeout=60)


def as_it_is(params: ElicitRequestFormParams) -> ElicitResult:
    """Sends the form off unseen, with its defaults."""
    given = {name: each.get("default") for name, each in params.requested_schema["properties"].items()}
    return ElicitResult(action="accept", content=given)


def empty(_params: ElicitRequestFormParams) -> ElicitResult:
    return ElicitResult(action="accept", content=None)


def dismissed(_params: ElicitRequestFormParams) -> ElicitResult:
    return ElicitResult(action="cancel")


async def test_a_server_is_started_after_a_yes_which_is_remembered(tmp_path: Path, era: Era) -> None:
    person = Person()
    async with service_of(tmp_path, process()) as service:
        async with client_of(service, era, person) as client:
            assert (await run(client, ECHO))["value"] == "hello"
            (message,) = person.messages
            assert PROCESS_WARNING in message
            assert "ask-ping" in message
            assert "sha256:" in message
            await service.runtime.servers.close_server("echo")
            assert (await run(client, ECHO))["value"] == "hello"
        async with client_of(service, era, Person(no)) as client:  # the approval is the user's, not the client's
            assert (await run(client, ECHO))["value"] == "hello"
    assert len(person.asked) == 1


@pytest.mark.parametrize("says", [no, as_it_is, empty, dismissed])
async def test_anything_but_a_yes_starts_nothing(tmp_path: Path, era: Era, says: Says) -> None:
    person = Person(says)
    async with service_of(tmp_path, process()) as service, client_of(service, era, person) as client:
        result = await run(client, ECHO)
        assert "the person" in result["failure"]["text"]
        assert service.runtime.servers.status("echo").respawns == 0
        assert service.runtime.servers.status("echo").state == "needs_approval"
        asked = len(person.asked)
        assert asked == 1
        await run(client, ECHO)
    assert len(person.asked) == (2 if says is dismissed else 1)  # a no holds; what was not answered comes again


async def test_without_elicitation_the_refusal_names_the_command(tmp_path: Path, era: Era) -> None:
    async with service_of(tmp_path, process()) as service, client_of(service, era) as client:
        result = await run(client, ECHO)
        assert "nobody approved it" in result["failure"]["text"]
        found = await call(client, "search_tools", {"query": "echo"})
        assert found.structured_content is not None
        (unavailable,) = found.structured_content["unavailable"]
        assert "ApproveDigests(" in unavailable["reason"]


async def test_with_no_ask_nobody_is_asked(tmp_path: Path, era: Era) -> None:
    person = Person()
    options = ServeOptions(asks=False)
    async with (
        service_of(tmp_path, process(), options=options) as service,
        client_of(service, era, person) as client,
    ):
        assert (await run(client, ECHO))["failure"] is not None
    assert person.asked == []


async def test_a_search_asks_about_servers_that_nobody_knows(tmp_path: Path, era: Era) -> None:
    person = Person()
    servers = (process(), process("other"))
    async with service_of(tmp_path, *servers) as service, client_of(service, era, person) as client:
        found = await call(client, "search_tools", {"query": "echo"})
        assert found.structured_content is not None
        assert {hit["module"] for hit in found.structured_content["hits"]} >= {"host:mcp-echo", "host:mcp-other"}
    assert len(person.asked) == 2


async def test_a_call_is_asked_about_with_server_tool_and_arguments(tmp_path: Path, era: Era) -> None:
    person = Person()
    async with (
        service_of(tmp_path, weather(), permissions=ASK) as service,
        client_of(service, era, person) as client,
    ):
        assert (await run(client, FORECAST))["value"] == 3
    (message,) = person.messages
    assert "Server: weather" in message
    assert "Tool: get_forecast" in message
    assert '"location": "Oslo"' in message


TWICE = """
import { get_forecast } from "host:mcp-weather";
[get_forecast({ location: "Oslo" }), get_forecast({ location: "Oslo" })].length
"""


@pytest.mark.parametrize(("choice", "questions"), [("once", 2), ("for this run", 1)])
async def test_a_yes_holds_once_or_for_the_run(tmp_path: Path, era: Era, choice: str, questions: int) -> None:
    person = Person(lambda _: ElicitResult(action="accept", content={"allow": choice}))
    async with (
        service_of(tmp_path, weather(), permissions=ASK) as service,
        client_of(service, era, person) as client,
    ):
        assert (await run(client, TWICE))["value"] == 2
        assert len(person.asked) == questions
        await run(client, FORECAST)
        assert len(person.asked) == questions + 1


@pytest.mark.parametrize("says", [no, as_it_is, empty, dismissed])
async def test_a_call_without_a_yes_is_denied(tmp_path: Path, era: Era, says: Says) -> None:
    async with (
        service_of(tmp_path, weather(), permissions=ASK) as service,
        client_of(service, era, Person(says)) as client,
    ):
        result = await run(client, FORECAST)
        assert "the person said no" in result["failure"]["text"]
        assert result["calls"] == [{"server": "weather", "tool": "get_forecast", "outcome": "denied"}]


async def test_a_call_that_nobody_can_be_asked_about_is_denied(tmp_path: Path, era: Era) -> None:
    async with service_of(tmp_path, weather(), permissions=ASK) as service, client_of(service, era) as client:
        result = await run(client, FORECAST)
        assert "nobody can be asked through this client" in result["failure"]["text"]


async def test_what_a_server_says_of_its_tool_is_asked_about_only_where_somebody_can_be(
    tmp_path: Path, era: Era
) -> None:
    server = MCPServer("files")

    @server.tool(annotations=ToolAnnotations(destructive_hint=True), structured_output=False)
    def remove(name: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Remove a file."""
        return f"removed {name}"

    code = 'require("host:mcp-files").remove({ name: "a" })'
    person = Person(no)
    async with service_of(tmp_path, ServerConfig.in_process("files", server)) as service:
        async with client_of(service, era) as client:
            assert (await run(client, code))["value"] == "removed a"
        async with client_of(service, era, person) as client:
            assert "the person said no" in (await run(client, code))["failure"]["text"]
    assert "may destroy something" in person.messages[0]
    assert "\nArguments: {" in person.messages[0]


async def test_a_question_that_is_never_answered_ends_with_its_call(tmp_path: Path) -> None:
    """The connection that it was asked for does not wait for ever, and the next call asks again."""
    forever = anyio.Event()

    async def never(*_: object) -> ElicitResult:
        await forever.wait()
        return yes(ElicitRequestFormParams(message="", requested_schema={"properties": {"agree": {}}}))

    async with (
        service_of(tmp_path, process()) as service,
        client_of(service, "legacy", Person()) as willing,
    ):
        async with client_of(service, "legacy", never) as silent:  # pyright: ignore[reportArgumentType]
            with anyio.move_on_after(0.5):
                await silent.call_tool("run_code", {"code": ECHO})
        with anyio.fail_after(60):
            assert (await run(willing, ECHO))["value"] == "hello"


async def test_a_person_who_thinks_holds_up_no_other_clients_search(tmp_path: Path) -> None:
    asked = anyio.Event()

    async def thinks(*_: object) -> ElicitResult:
        asked.set()
        await anyio.sleep_forever()
        raise AssertionError

    async with (
        service_of(tmp_path, process(), weather()) as service,
        client_of(service, "legacy", thinks) as slow,  # pyright: ignore[reportArgumentType]
        client_of(service, "legacy") as quick,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(slow.call_tool, "search_tools", {"query": "echo"})
        await asked.wait()
        found = ""
        with anyio.fail_after(60):
            while "get_forecast" not in found:  # the slow one's search may still be connecting that server, too
                found = text_of(await call(quick, "search_tools", {"query": "forecast"}))
        assert "echo: It is being connected for another call" in found
        tasks.cancel_scope.cancel()


async def test_a_person_who_thinks_about_a_call_holds_up_no_other_program(tmp_path: Path, era: Era) -> None:
    """Though only one program runs at a time."""
    asked, decided = anyio.Event(), anyio.Event()

    async def thinks(*_: object) -> ElicitResult:
        asked.set()
        await decided.wait()
        return ElicitResult(action="accept", content={"allow": "once"})

    values: list[object] = []

    async def use(client: Client) -> None:
        values.append((await run(client, FORECAST))["value"])

    options = ServeOptions(runs_at_once=1)
    async with (
        service_of(tmp_path, weather(), permissions=ASK, options=options) as service,
        client_of(service, era, thinks) as slow,  # pyright: ignore[reportArgumentType]
        client_of(service, era) as quick,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(use, slow)
        await asked.wait()
        with anyio.fail_after(60):
            assert (await run(quick, "1 + 1"))["value"] == 2
        decided.set()
    assert values == [3]


async def test_a_question_times_out_as_a_no(tmp_path: Path) -> None:
    async def never(*_: object) -> ElicitResult:
        await anyio.sleep_forever()
        raise AssertionError

    options = ServeOptions(limits=Limits(ask_seconds=0.3))
    async with (
        service_of(tmp_path, process(), options=options) as service,
        client_of(service, "legacy", never) as client,  # pyright: ignore[reportArgumentType]
    ):
        result = await run(client, ECHO)
        assert "the person did not answer" in result["failure"]["text"]


# ---- management


async def connect(service: Service) -> None:
    await service.runtime.start_all()


async def test_management_shows_servers(tmp_path: Path, era: Era) -> None:
    server = replace(weather(), deny_tools=("list_stations",))
    async with service_of(tmp_path, server) as service, client_of(service, era) as client:
        await connect(service)
        listed = await call(client, "list_mcp_servers")
        assert text_of(listed).splitlines()[0] == "weather: connected, 6 tools"
        assert "unattended: allow" in text_of(listed)
        info = await call(client, "mcp_server_info", {"server": "weather"})
        assert info.structured_content is not None
        assert info.structured_content["server"]["functions"]["get_forecast"].startswith("Get the weather forecast")
        schemas = info.structured_content["server"]["schemas"]["get_forecast"]
        assert schemas["input"]["required"] == ["location"]
        assert '"maximum": 14' in text_of(info)
        assert "\n  denyTools  list_stations\n" in text_of(info)


async def test_servers_that_nobody_approved_are_told_so_before_they_are_tried(tmp_path: Path, era: Era) -> None:
    async with service_of(tmp_path, process()) as service, client_of(service, era) as client:
        listed = text_of(await call(client, "list_mcp_servers"))
        assert listed.splitlines()[0] == "echo: needs_approval, tools not known"


@pytest.mark.parametrize("action", ["approve", "revoke", "enable", "disable"])
async def test_a_model_can_ask_for_a_change_and_not_make_it(tmp_path: Path, era: Era, action: str) -> None:
    async with service_of(tmp_path, process()) as service:
        before = service.runtime.config
        for person in (None, Person(no), Person(as_it_is)):
            async with client_of(service, era, person) as client:
                result = await call(client, "manage_mcp", {"action": action, "server": "echo"})
                assert result.is_error
                assert person is None or len(person.asked) == 1
        assert service.runtime.config == before
        assert not (tmp_path / "approvals").exists()


async def test_a_person_agrees_to_changes(tmp_path: Path, era: Era) -> None:
    person = Person()
    async with (
        service_of(tmp_path, process()) as service,
        client_of(service, era, person) as client,
    ):

        async def manage(action: str) -> str:
            return text_of(await call(client, "manage_mcp", {"action": action, "server": "echo"}))

        assert await manage("approve") == "echo is connected, with 2 tools."
        assert await manage("disconnect") == "echo is disconnected; its next use connects it again."
        assert await manage("connect") == "echo is connected, with 2 tools."
        assert await manage("disable") == "echo is disabled."
        assert (await run(client, ECHO))["failure"] is not None
        assert await manage("enable") == "echo is enabled."
        assert (await run(client, ECHO))["value"] == "hello"
        assert await manage("revoke") == "The approval of echo is revoked, and its module is gone."
        assert (await run(client, ECHO))["failure"] is not None
    assert [message.split(".")[0] for message in person.messages[1:]] == [
        f"The model asks to {action} the MCP server 'echo'" for action in ("disable", "enable", "revoke")
    ]


async def test_asking_again_about_one_server_asks_about_no_other(tmp_path: Path, era: Era) -> None:
    person = Person(no)
    async with (
        service_of(tmp_path, process(), process("other")) as service,
        client_of(service, era, person) as client,
    ):
        for name in ("echo", "other"):
            await run(client, ECHO.replace("echo", name, 1))
        assert len(person.asked) == 2
        await call(client, "manage_mcp", {"action": "approve", "server": "other"})
        assert len(person.asked) == 3
        await run(client, ECHO)
    assert len(person.asked) == 3


async def test_a_server_is_not_disconnected_under_another_clients_call(tmp_path: Path) -> None:
    called, done = anyio.Event(), anyio.Event()
    server = MCPServer("slow")

    @server.tool(structured_output=False)
    async def wait() -> str:  # pyright: ignore[reportUnusedFunction]
        """Wait."""
        called.set()
        await done.wait()
        return "waited"

    values: list[object] = []

    async def use(client: Client) -> None:
        values.append((await run(client, 'require("host:mcp-slow").wait()'))["value"])

    disconnect = {"action": "disconnect", "server": "slow"}
    async with (
        http_service_of(tmp_path, ServerConfig.in_process("slow", server)) as http,
        Client(http.url, mode="legacy") as busy,
        Client(http.url, mode="legacy") as other,
    ):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(use, busy)
            await called.wait()
            refused = await call(other, "manage_mcp", disconnect)
            assert refused.is_error
            assert "other clients have calls under way" in text_of(refused)
            done.set()
        assert not (await call(other, "manage_mcp", disconnect)).is_error
    assert values == ["waited"]


async def test_without_the_gateway_there_is_no_management(tmp_path: Path, era: Era) -> None:
    async with service_of(tmp_path, weather()) as service, client_of(service, era) as client:
        await service.runtime.switch_gateway(on=False)
        names = [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]
        assert names == ["search_tools", "describe", "run_code"]


# ---- servers' own questions


def answers(params: ElicitRequestFormParams) -> ElicitResult:
    """Agrees to the server, and answers what that asks."""
    if "agree" in params.requested_schema["properties"]:
        return yes(params)
    return ElicitResult(action="accept", content={"password": "swordfish"})


ASKER = 'JSON.stringify(require("host:mcp-asker").faulty({ text: "x" }))'


async def test_a_servers_question_is_passed_on_with_its_name(tmp_path: Path, era: Era) -> None:
    person = Person(answers)
    async with (
        service_of(tmp_path, fault_server("asker", "ask-elicitation")) as service,
        client_of(service, era, person) as client,
    ):
        assert "swordfish" in (await run(client, ASKER))["value"]
    assert "The MCP server 'asker' asks (these are its words" in person.messages[-1]


async def test_a_servers_question_is_declined_where_it_belongs_to_nobody(tmp_path: Path) -> None:
    """Two clients have calls under way: whose person is meant, nobody can tell."""
    persons = [Person(answers), Person(answers)]
    async with service_of(tmp_path, fault_server("asker", "ask-elicitation")) as service:
        for person in persons:
            async with client_of(service, "legacy", person) as client:
                await run(client, "1")
        passed = PassedOn(service.watch.callers_of)
        request = ElicitationRequest("asker", "Your password?", {"type": "object", "properties": {}})
        assert (await passed.elicit(request)).action == "decline"
    assert all(person.asked == [] for person in persons)
