"""T11, rug pull, seen by programs: a tool that was pinned and changed says so when it is called, in both languages."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from runtime.programs import Program, in_each_language
from runtime.worlds import check_failure, runtime_of, value_of
from threats.test_t11_rug_pull import CHANGES, ECHO, FAULTY, SECONDS, Rug, with_rug
from toolbridge import Config
from toolbridge.runtime import Language

CALL = Program(
    'import { echo } from "host:mcp-rug"; echo({ text: "hello" })',
    "from host.mcp_rug import echo\necho(text='hello')",
)
OTHER = Program(
    'import { faulty } from "host:mcp-rug"; faulty({ text: "hello" })',
    "from host.mcp_rug import faulty\nfaulty(text='hello')",
)
NEW = Program(
    'import * as rug from "host:mcp-rug"; "wipe" in rug ? "function" : "undefined"',
    "import host.mcp_rug as rug\n'function' if hasattr(rug, 'wipe') else 'undefined'",
)
BLOCKED = "Server 'rug' has its tool 'echo' blocked: it changed since it was pinned (description)."


@in_each_language
def test_a_program_is_told_that_a_tool_changed_and_nothing_that_it_says(tmp_path: Path, language: Language) -> None:
    async def use(rug: Rug) -> None:
        config = Config.of(rug.server)
        async with runtime_of(rug.directory / "kept", config=config) as runtime:
            assert value_of(await runtime.run(CALL.of(language), language=language)) == "hello"
        rug.list({**ECHO, **CHANGES["description"]}, FAULTY, {**ECHO, "name": "wipe"})
        async with runtime_of(rug.directory / "kept", config=config) as runtime:
            result = await runtime.run(CALL.of(language), language=language)
            check_failure(result, "denied", "ToolDeniedError", BLOCKED, "toolbridge lock --check rug")
            assert "id_rsa" not in str(result.failure)
            assert [(call.tool, call.outcome) for call in result.calls] == [("echo", "denied")]
            assert value_of(await runtime.run(OTHER.of(language), language=language)) == "hello"
            assert value_of(await runtime.run(NEW.of(language), language=language)) == "undefined"
            assert "id_rsa" not in "".join(runtime.stubs("typescript").values())
            assert [tool.name for tool in runtime.catalog.tools] == ["faulty"]

    with_rug(tmp_path, use)


@in_each_language
def test_a_tool_that_changes_while_a_session_has_it_is_blocked_there_too(tmp_path: Path, language: Language) -> None:
    async def use(rug: Rug) -> None:
        async with (
            runtime_of(rug.directory / "kept", config=Config.of(rug.server)) as runtime,
            runtime.session(language) as session,
        ):
            assert value_of(await session.run(CALL.of(language))) == "hello"
            rug.list({**ECHO, **CHANGES["description"]}, FAULTY)
            assert value_of(await session.run(OTHER.of(language))) == "hello"  # makes the server tell of the change
            result = await session.run(CALL.of(language))
            with anyio.fail_after(SECONDS):
                while result.failure is None:
                    await anyio.sleep(0.05)
                    result = await session.run(CALL.of(language))
            check_failure(result, "denied", BLOCKED)

    with_rug(tmp_path, use)


@pytest.mark.parametrize("name", ["echo-all", "__proto__", "class"])
def test_a_changed_tool_whose_name_is_not_its_identifier_takes_nobodys_place(tmp_path: Path, name: str) -> None:
    odd = {**ECHO, "name": name}

    async def use(rug: Rug) -> None:
        rug.list(odd, FAULTY)
        config = Config.of(rug.server)
        names = "import host.mcp_rug as rug\nsorted(name for name in vars(rug) if not name.startswith('__'))"
        async with runtime_of(rug.directory / "kept", config=config) as runtime:
            assert len(value_of(await runtime.run(names, language="python"))) == 2
        rug.list({**odd, **CHANGES["description"]}, FAULTY)
        async with runtime_of(rug.directory / "kept", config=config) as runtime:
            assert value_of(await runtime.run(names, language="python")) == ["faulty"]

    with_rug(tmp_path, use)
