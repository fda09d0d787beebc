"""What a check leaves out of the stubs: whatever the program can't have to do with, and no line."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from check.corpus import world
from toolbridge.check.needed_stubs import needed_stubs
from toolbridge.check.stub_comments import without_comments
from toolbridge_codegen.catalog import ServerListing, ToolDefinition, build_catalog
from toolbridge_codegen.stubs import generate

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
def test_no_text_of_a_server_makes_a_declaration_or_takes_one_away(texts: dict[str, str], instructions: str) -> None:
    stub = stub_of(texts, instructions)
    needed = needed_stubs({"s": stub}, 'import { beta } from "host:mcp-s"; beta({ a: "1" }).v')["s"]
    whole, left = without_comments(stub).split("\n"), without_comments(needed).split("\n")
    stands_in = {f" export function {name}(input?: any): any;" for name in ("alpha", "gamma")}
    for before, after in zip(whole, left, strict=True):
        assert after.rstrip() in (before.rstrip(), "") or after in stands_in
        if not before.startswith(" ") or before.startswith((" export function beta(", " interface Beta")):
            assert after == before
    functions = [line for line in left if line.startswith(" export function ")]
    assert [re.split(r"\W+", line)[3] for line in functions] == ["alpha", "beta", "gamma"]


def test_what_looks_like_a_comment_in_a_literal_is_none() -> None:
    stub = ' type A = "/*" | "\\"//";\n /** type B = 1\n type C = "*\\/" */\n type D = "*/"; // type E'
    assert without_comments(stub).split("\n") == [
        ' type A = "/*" | "\\"//";',
        " " * len(" /** type B = 1"),
        " " * len(' type C = "*\\/" */'),
        ' type D = "*/";' + " " * len(" // type E"),
    ]
