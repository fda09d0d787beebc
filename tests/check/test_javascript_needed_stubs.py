"""Tree shaking of stubs: declarations that a program can't reach are dropped, and line numbers kept."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from check.corpus import world
from toolbridge.check.javascript import needed_stubs, without_comments
from toolbridge_codegen.catalog import ServerListing, ToolDefinition, build_catalog
from toolbridge_codegen.stubs import generate

STUBS = world("typescript").stubs
STANDS_IN = re.compile(r"(\w+): any[,;]")


def test_lines_keep_their_number_in_the_whole_stub() -> None:
    needed = needed_stubs(STUBS, 'import { get_issue } from "host:mcp-tracker"; get_issue({ id: 1 })')
    assert needed.keys() == STUBS.keys()
    for name, (text, numbers) in needed.items():
        whole = without_comments(STUBS[name]).split("\n")
        for line, number in zip(text.split("\n"), numbers, strict=True):
            if number == 0:
                assert line == " export const"
            elif (found := STANDS_IN.fullmatch(line)) is not None:
                assert whole[number - 1].startswith(f" export function {found[1]}")
            else:
                assert line == whole[number - 1].rstrip() != ""


def test_reachable_declarations_are_kept_and_other_functions_are_names() -> None:
    text = needed_stubs(STUBS, "get_issue({ id: 1 })")["mcp-tracker.d.ts"].text
    assert " export function get_issue(input: GetIssueInput): GetIssueOutput;" in text
    assert " interface GetIssueInput { id: number }" in text
    assert '  state: "open" | "closed";' in text
    assert "\nlist_issues: any" in text
    assert "ListIssuesOutput" not in text
    assert "Create an issue" not in text
    assert "/*" not in text


def test_a_named_type_is_kept() -> None:
    assert "interface ListIssuesOutput {" in needed_stubs(STUBS, "let a: ListIssuesOutput")["mcp-tracker.d.ts"].text


def test_require_and_the_bridge_stay_whole() -> None:
    text = needed_stubs(STUBS, 'const { ToolTimeoutError } = require("host:bridge")')["bridge.d.ts"].text
    assert '(id: "host:mcp-tracker"): typeof import("host:mcp-tracker");' in text
    assert "class ToolTimeoutError extends ToolError" in text
    assert "class ToolError extends Error" in text
    assert "class Handle" not in text


def test_the_async_twin_of_a_module_stays_whole() -> None:
    text = needed_stubs(STUBS, 'import { get_issue } from "host:mcp-tracker/async"')["mcp-tracker.d.ts"].text
    assert 'type Sync = typeof import("host:mcp-tracker");' in text
    assert "const twin: {" in text


WORDS = ["alpha", "beta", "name", "BetaInput", "{", "}", "*/", "/*", "//", '"', "`", "of the thing"]
KEYWORDS = ["function", "interface", "type", "class", "const", "export function", "declare module", "}", "", "*", '"']
LINES = st.tuples(st.sampled_from(KEYWORDS), st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)).map(" ".join)
TEXTS = st.lists(LINES, max_size=5).map("\n".join)


def stub_of(texts: Mapping[str, str], instructions: str = "") -> str:
    """Of a server whose tools and properties are described with these texts."""
    tools = (
        ToolDefinition(
            name,
            {"type": "object", "properties": {"a": {"type": "string", "description": text}, text: {"enum": [text]}}},
            description=text,
            output_schema={"type": "object", "properties": {"v": {"type": "string"}}, "required": ["v"]},
        )
        for name, text in texts.items()
    )
    catalog = build_catalog([ServerListing("s", tuple(tools), instructions=instructions)])
    return generate(catalog, language="typescript").files["mcp-s.d.ts"]


@settings(max_examples=50, deadline=None)
@given(texts=st.fixed_dictionaries(dict.fromkeys(("alpha", "beta", "gamma"), TEXTS)), instructions=TEXTS)
def test_text_of_a_server_adds_and_removes_no_declaration(texts: dict[str, str], instructions: str) -> None:
    stub = stub_of(texts, instructions)
    text, numbers = needed_stubs({"s": stub}, 'import { beta } from "host:mcp-s"; beta({ a: "1" }).v')["s"]
    whole, left = without_comments(stub).split("\n"), text.split("\n")
    for line, number in zip(left, numbers, strict=True):
        assert STANDS_IN.fullmatch(line) or line == (whole[number - 1].rstrip() if number else " export const")
    for number, line in enumerate(whole, 1):
        is_needed = not line.startswith(" ") or line.startswith((" export function beta(", " interface Beta"))
        assert not line.strip() or not is_needed or number in numbers
    functions = {re.split(r"\W+", line)[3] for line in left if line.startswith(" export function ")}
    names = {found[1] for line in left if (found := STANDS_IN.fullmatch(line))}
    assert functions | names == {"alpha", "beta", "gamma"}
    assert not functions & names
    assert "beta" in functions


def test_comment_markers_in_a_string_start_no_comment() -> None:
    stub = ' type A = "/*" | "\\"//";\n /** type B = 1\n type C = "*\\/" */\n type D = "*/"; // type E'
    assert without_comments(stub).split("\n") == [
        ' type A = "/*" | "\\"//";',
        " " * len(" /** type B = 1"),
        " " * len(' type C = "*\\/" */'),
        ' type D = "*/";' + " " * len(" // type E"),
    ]
