"""Programs that call every tool of servers that others wrote, by its stub's name. Skipped where no registry is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from observe.recorder import Recorder
from runtime.programs import Program, in_each_language
from runtime.real_servers import PATIENT, PICTURE, REAL_SERVERS, Failure, everything_config, filesystem
from runtime.worlds import runtime_of
from servers.fault_servers import fault_server
from servers.live_processes import left_after, processes_by_a_word
from toolbridge import Config, Limits
from toolbridge.config.server_config import ServerConfig
from toolbridge.demo.atlas import server as atlas_server
from toolbridge.events import CallProgressed
from toolbridge.runtime import Language
from toolbridge.servers.requests import ElicitationAnswer, ElicitationRequest

pytestmark = pytest.mark.anyio
slow = pytest.mark.slow  # real servers take a second or more to start


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def call_of(server: str, tool: str, arguments: dict[str, Any]) -> Program:
    """One call of a tool."""
    return Program(
        f'require("host:mcp-{server}").{tool}({json.dumps(arguments)})',
        f"from host.mcp_{server} import {tool}\n{tool}(**{arguments!r})",
    )


@slow
@in_each_language
@pytest.mark.parametrize("name", list(REAL_SERVERS))
async def test_every_tool_of_a_real_server_is_called_through_its_stub_name(
    name: str, language: Language, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    real = REAL_SERVERS[name](tmp_path / "data")
    with processes_by_a_word() as word:
        config = Config.of(replace(real.config, env={**real.config.env, "TEST_WORD": word}), limits=PATIENT)
        async with runtime_of(tmp_path, config=config, pins="none", limits=Limits(wall_seconds=60.0)) as runtime:
            await runtime.start_all()
            listed = runtime.catalog.module(f"host:mcp-{name}")
            assert listed is not None
            assert {tool.identifier for tool in listed.tools} == {use.tool for use in real.uses}
            if language == "python":
                stub, start = runtime.stubs("python")[f"host/mcp_{name}/__init__.pyi"], "def"
            else:
                stub, start = runtime.stubs("typescript")[f"mcp-{name}.d.ts"], "export function"
            assert all(f"{start} {use.tool}(" in stub for use in real.uses)
            for use in real.uses:
                program = call_of(name, use.tool, use.input).of(language)
                result = await runtime.run(program, language=language)
                if isinstance(use, Failure):
                    assert result.failure is not None, (use, result.value)
                    assert result.failure.message.startswith("ToolFailedError: "), use
                    assert use.words in result.failure.message, (use, str(result.failure))
                    assert "Traceback" not in str(result.failure)
                else:
                    assert result.failure is None, (use, str(result.failure))
                    assert use.is_right(result.value), (use, result.value)
                    assert [call.outcome for call in result.calls] == ["ok"]
        assert await left_after(word) == {}


def two_pictures(file: Path) -> Program:
    """Passes on a picture of one server, and a file of another."""
    path = json.dumps(str(file))
    return Program(
        f"""
            import {{ get_tiny_image }} from "host:mcp-everything";
            import {{ read_media_file }} from "host:mcp-filesystem";
            import {{ add_picture }} from "host:mcp-atlas";
            const [, logo] = get_tiny_image();
            const [file] = read_media_file({{ path: {path} }}).content;
            const sizes = [logo, file.data].map((data) => add_picture({{ name: "one", data }}).size);
            [logo.size, ...sizes]
        """,
        f"""
from host.mcp_everything import get_tiny_image
from host.mcp_filesystem import read_media_file
from host.mcp_atlas import add_picture
logo = get_tiny_image()[1]
file = read_media_file(path={path})["content"][0]
[logo.size, *(add_picture(name="one", data=data)["size"] for data in (logo, file["data"]))]
        """,
    )


@slow
@in_each_language
async def test_a_picture_goes_from_a_real_server_to_another_without_passing_through_the_program(
    language: Language, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    real = filesystem(tmp_path / "data")
    atlas = ServerConfig.in_process("atlas", atlas_server)
    config = Config.of(everything_config(), real.config, atlas, limits=PATIENT)
    async with runtime_of(tmp_path, config=config, pins="none", limits=Limits(wall_seconds=60.0)) as runtime:
        program = two_pictures(tmp_path / "data" / "picture.png").of(language)
        result = await runtime.run(program, language=language)
    assert result.failure is None, str(result.failure)
    size, logo, file = result.value
    assert size == logo > 3_000
    assert file == len(PICTURE)
    assert result.servers == ("everything", "filesystem", "atlas")


class Declining:
    """A host that knows of questions, and answers none."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def elicit(self, request: ElicitationRequest) -> ElicitationAnswer:
        self.asked.append(request.server)
        return ElicitationAnswer("decline")

    async def sample(self, server: str, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        self.asked.append(server)
        raise RuntimeError("no model here")


@slow
async def test_a_real_servers_questions_are_declined_cleanly(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    host = Declining()
    program = """
        import * as everything from "host:mcp-everything";
        const outcome = (call) => { try { return call(); } catch (error) { return [error.name, error.message]; } };
        ({
          form: outcome(() => everything.trigger_elicitation_request()),
          address: outcome(() => everything.trigger_url_elicitation({ url: "https://example.org/" })),
          sample: outcome(() => everything.trigger_sampling_request({ prompt: "Say hi" })),
          after: everything.echo({ message: "still here" }),
        })
    """
    config = Config.of(everything_config(), limits=PATIENT)
    async with runtime_of(tmp_path, config=config, pins="none", elicitor=host, sampler=host) as runtime:
        await runtime.start_all()
        with anyio.fail_after(30):
            result = await runtime.run(program)
    assert result.failure is None, str(result.failure)
    assert "declined" in str(result.value["form"])
    assert "declin" in str(result.value["address"]).lower()
    assert result.value["sample"][0] == "ToolFailedError"
    assert "no model here" not in str(result.value)
    assert result.value["after"] == "Echo: still here"
    assert host.asked == ["everything"] * 3


@slow
async def test_a_real_server_that_is_not_offered_answers_does_not_list_what_needs_them(tmp_path: Path) -> None:
    config = Config.of(everything_config(), limits=PATIENT)
    async with runtime_of(tmp_path, config=config, pins="none") as runtime:
        result = await runtime.run('require("host:mcp-everything").trigger_sampling_request({ prompt: "x" })')
    assert result.failure is not None
    assert 'no export "trigger_sampling_request"' in result.failure.message
    assert result.calls == ()


@pytest.mark.parametrize("mode", ["ask-sampling", "ask-roots", "ask-elicitation", "ask-unknown", "ask-ping"])
async def test_a_server_that_asks_all_the_same_is_answered_at_once(mode: str, tmp_path: Path) -> None:
    async with runtime_of(tmp_path, fault_server("asker", mode), pins="none") as runtime:
        with anyio.fail_after(60):
            result = await runtime.run('require("host:mcp-asker").faulty({ text: "x" })')
    assert result.failure is None, str(result.failure)
    answer = dict(result.value)
    if mode == "ask-ping":
        assert answer["result"] == {}
    elif mode == "ask-elicitation":  # the one question whose answer may be no
        assert answer["result"] == {"action": "decline"}
    else:
        assert answer["error"]["code"] in (-32601, -32600)


@pytest.mark.parametrize("mode", ["input-required", "input-required-for-ever"])
async def test_a_server_of_the_newer_era_that_wants_input_gets_none_and_the_call_ends(
    mode: str, tmp_path: Path
) -> None:
    async with runtime_of(tmp_path, fault_server("asker", mode, "--modern"), pins="none") as runtime:
        with anyio.fail_after(60):
            result = await runtime.run("""
                import { faulty, echo } from "host:mcp-asker";
                let name = "";
                try { faulty({ text: "x" }); } catch (error) { name = error.name; }
                [name, echo({ text: "y" })]
            """)
    assert result.failure is None, str(result.failure)
    assert result.value[1] == "y"
    assert result.value[0].startswith("Tool")


@slow
async def test_a_long_operation_of_a_real_server_tells_how_far_it_is(tmp_path: Path) -> None:
    recorder = Recorder()
    program = 'require("host:mcp-everything").trigger_long_running_operation({ duration: 1, steps: 4 })'
    config = Config.of(everything_config(), limits=PATIENT)
    async with runtime_of(tmp_path, config=config, pins="none", observers=[recorder]) as runtime:
        result = await runtime.run(program)
    assert result.failure is None, str(result.failure)
    told = [(event.server, event.done, event.total) for event in recorder.of(CallProgressed)]
    assert told == [("everything", float(step), 4.0) for step in (1, 2, 3, 4)]
    assert recorder.broken_promises() == []
