"""What a check leaves out of the stubs: whatever the program can't have to do with, and no line."""

from __future__ import annotations

from check.corpus import world
from toolbridge.check.needed_stubs import needed_stubs

STUBS = world("typescript").stubs


def test_every_line_stays_where_it_is() -> None:
    needed = needed_stubs(STUBS, 'import { get_issue } from "host:mcp-tracker"; get_issue({ id: 1 })')
    assert needed.keys() == STUBS.keys()
    for name, text in needed.items():
        before, after = STUBS[name].split("\n"), text.split("\n")
        assert len(before) == len(after)
        for old, new in zip(before, after, strict=True):
            assert new in (old, "") or new.endswith("(input?: any): any;")


def test_what_the_words_lead_to_is_there_and_other_functions_are_names() -> None:
    text = needed_stubs(STUBS, "get_issue({ id: 1 })")["mcp-tracker.d.ts"]
    assert " export function get_issue(input: GetIssueInput): GetIssueOutput;" in text
    assert " interface GetIssueInput { id: number }" in text
    assert '  state: "open" | "closed";' in text
    assert " export function list_issues(input?: any): any;" in text
    assert "ListIssuesOutput" not in text
    assert "Create an issue" not in text


def test_a_type_that_is_named_is_there() -> None:
    assert "interface ListIssuesOutput {" in needed_stubs(STUBS, "let a: ListIssuesOutput")["mcp-tracker.d.ts"]


def test_require_and_the_bridge_stay_whole() -> None:
    text = needed_stubs(STUBS, 'const { ToolTimeoutError } = require("host:bridge")')["bridge.d.ts"]
    assert '(id: "host:mcp-tracker"): typeof import("host:mcp-tracker");' in text
    assert "class ToolTimeoutError extends ToolError" in text
    assert "class ToolError extends Error" in text
    assert "class Handle" not in text


def test_the_async_twin_of_a_module_stays_whole() -> None:
    text = needed_stubs(STUBS, 'import { get_issue } from "host:mcp-tracker/async"')["mcp-tracker.d.ts"]
    assert 'type Sync = typeof import("host:mcp-tracker");' in text
    assert "const twin: {" in text
