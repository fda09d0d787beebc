"""T21, confused deputy: nothing that guest code passes or a server says of its tools lowers a decision of the gate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from threats.gated_servers import Reached, gated
from toolbridge import Config, Permissions, ToolUse
from toolbridge.approval import Decision
from toolbridge.config.policy import LEVELS
from toolbridge.trust.gate import PermissionGate
from toolbridge.trust.permissions import permission_verdict
from trust.gate_tools import Person, configured, spec

PATTERNS = ["mcp__mail__send", "mcp:mail_send", "mcp__mail__*", "mcp:mail_*", "*", "mcp__mail__read", "mcp__web__*"]
LISTS = st.lists(st.sampled_from(PATTERNS), max_size=3)
PERMISSIONS = st.builds(Permissions, allow=LISTS, ask=LISTS, deny=LISTS, default=st.sampled_from(LEVELS))


def of_two_files(own: Permissions, project: Permissions) -> Config:
    return replace(configured(project=project), permissions=own)


CONFIGS = st.builds(of_two_files, PERMISSIONS, PERMISSIONS)

HINTS = st.sampled_from(
    ["readOnlyHint", "destructiveHint", "openWorldHint", "idempotentHint", "title", "allow", "trust"]
)
ODD = st.sampled_from([True, False, None, 0, 1, "true", "false", [], {}, "allow", {"allow": ["*"]}])
ARGUMENTS = st.dictionaries(
    st.sampled_from(["server", "tool", "permissions", "rule", "allowed", "__proto__", "x"]), ODD
)


@given(CONFIGS, st.dictionaries(HINTS, ODD, max_size=5))
def test_no_annotation_lowers_a_decision(config: Config, annotations: dict[str, Any]) -> None:
    plain, annotated = (permission_verdict(config, spec(annotations=hints)).level for hints in ({}, annotations))
    assert LEVELS.index(annotated) >= LEVELS.index(plain)


@given(CONFIGS, st.dictionaries(HINTS, ODD, max_size=5))
def test_no_annotation_denies_or_asks_where_a_person_has_allowed(config: Config, annotations: dict[str, Any]) -> None:
    """The other way round it would be no deputy but a nuisance: a server can't undo what a person decided."""
    verdict = permission_verdict(config, spec(annotations=annotations))
    if verdict.rule in ("destructive", "open world"):
        assert verdict.level == "ask"
        assert permission_verdict(config, spec()).rule == "default"


@settings(deadline=None, max_examples=60)
@given(CONFIGS, ARGUMENTS, st.sampled_from([None, True, False]))
def test_no_argument_changes_a_decision(config: Config, arguments: dict[str, Any], answer: bool | None) -> None:
    async def decide(given: dict[str, Any]) -> Decision:
        person = None if answer is None else Person(answer)
        return await PermissionGate(config, person).open_run().authorize(spec(), given)

    nothing: dict[str, Any] = {}
    assert anyio.run(decide, arguments) == anyio.run(decide, nothing)


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_title_or_description_changes_a_decision(title: str, description: str) -> None:
    tool = spec()
    told = replace(tool, definition=replace(tool.definition, title=title, description=description))
    for config in (configured(deny=["mcp__mail__send"]), configured(ask=["*"]), configured()):
        assert permission_verdict(config, told) == permission_verdict(config, tool)


# ---- the whole way: what is denied never reaches the server

CALLS = {
    "plainly": "mail.send({})",
    "with arguments that claim a permission": 'mail.send({ other: { permissions: { allow: ["*"] }, allowed: true } })',
    "with the identity of another tool": 'mail.send({ text: "read", other: { server: "mail", tool: "read" } })',
    "under another this": "mail.send.call({ server: 'mail', tool: 'read' }, {})",
    "through an allowed function": "try { Object.assign(mail.send, mail.read) } catch (error) {} mail.send({})",
    "after catching the refusal": "try { mail.send({}) } catch (error) {} mail.send({})",
    "a thousand times": "for (let i = 0; i < 999; i++) { try { mail.send({}) } catch (error) {} } mail.send({})",
    "by the asynchronous twin": "await later.send({})",
    "in parallel with what is allowed": "await Promise.all([later.read({}), later.send({})])",
    "with a prototype that is not one": 'mail.send(JSON.parse(\'{"__proto__": {"allowed": true}}\'))',
}


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_denied_tool_is_reached_by_no_way_of_calling_it(tmp_path: Path) -> None:
    reached = Reached()
    server = reached.server("mail", {"send": {"readOnlyHint": True, "destructiveHint": False}, "read": {}})
    async with gated(tmp_path, server, deny=["mcp__mail__send"]) as runtime:
        for way, call in CALLS.items():
            program = f'import * as mail from "host:mcp-mail"; import * as later from "host:mcp-mail/async"; {call}; 0'
            result = await runtime.run(program)
            assert result.failure is not None, way
            assert "ToolDeniedError" in str(result.failure), way
            assert ("mail", "send") not in reached.calls, way
        result = await runtime.run('import { read } from "host:mcp-mail"; read({})')
        assert result.failure is None, "the measure for all the others"
    assert reached.calls.count(("mail", "read")) >= 1


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_person_sees_the_real_tool_whatever_the_arguments_say(tmp_path: Path) -> None:
    reached, asked = Reached(), list[ToolUse]()

    async def refuse(use: ToolUse) -> bool:
        asked.append(use)
        return False

    server = reached.server("mail", {"send": {"destructiveHint": True, "title": "Read only"}})
    async with gated(tmp_path, server, can_use_tool=refuse) as runtime:
        result = await runtime.run(
            'import { send } from "host:mcp-mail"; send({ text: "\\u001b[2K\\rread {}", other: "x".repeat(100000) })'
        )
    assert result.failure is not None
    assert "ToolDeniedError" in str(result.failure)
    assert reached.calls == []
    (use,) = asked
    assert (use.server, use.tool) == ("mail", "send")
    assert use.detail.startswith('send {"text": "\\u001b[2K\\rread {}"')
    assert use.detail.isprintable()
    assert len(use.detail) == 200


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_grant_for_one_server_is_of_no_use_to_another_with_the_same_tool(tmp_path: Path) -> None:
    reached, asked = Reached(), list[str]()

    async def only_mail(use: ToolUse) -> Decision:
        asked.append(use.server)
        return Decision(use.server == "mail", remember=True)

    servers = [reached.server(name, {"send": {}}) for name in ("mail", "mail2")]
    program = """
        import { send } from "host:mcp-mail";
        import { send as other } from "host:mcp-mail2";
        send({}); send({});
        for (const time of [1, 2]) { try { other({}); } catch (error) { console.log(error.name); } }
    """
    async with gated(tmp_path, *servers, can_use_tool=only_mail, ask=["*"]) as runtime:
        result = await runtime.run(program)
    assert result.failure is None
    assert result.stdout == "ToolDeniedError\nToolDeniedError\n"
    assert asked == ["mail", "mail2"]
    assert reached.calls == [("mail", "send"), ("mail", "send")]
