"""T13, identifier collision: every tool has a name of its own, the same whatever the order, and it leads back to it."""

from __future__ import annotations

import ast
import itertools
import random
import re
from typing import Any

import pytest

from codegen import corpus
from codegen.stub_syntax import python_facts
from threats import stub_facts
from toolbridge_codegen.catalog import Catalog, ServerListing, ToolDefinition, build_catalog
from toolbridge_codegen.stubs import generate

TWINS = [
    ["delete-all", "delete_all"],
    ["delete-all", "delete all", "delete.all", "delete/all"],
    ["a", "a\u200b", "\u0430", "a\u0301"],
    ["class", "class_", "class-", "class__"],
    ["", "_", "__", "tool", "tool_", "-", "\U0001f600"],
    ["get_user", "getUser", "GetUser", "get-user", "GET_USER", "get__user"],
    ["x" * 64, "x" * 65, "x" * 5000],
    ["tool_proto", "__proto__", "__proto__ "],
    ["1a", "_1a"],
]


def catalog_of(names: list[str]) -> Catalog:
    tools = tuple(ToolDefinition(name, {"type": "object", "properties": {f"p{len(name)}": {}}}) for name in names)
    return build_catalog([ServerListing("s", tools)])


def every_name(catalog: Catalog) -> dict[str, tuple[str, str, str]]:
    return {tool.name: (tool.identifier, tool.qualified_name, tool.short_name) for tool in catalog.tools}


@pytest.mark.parametrize("names", TWINS, ids=lambda names: ascii(names[0])[:20])
def test_twins_get_names_of_their_own_that_no_order_changes(names: list[str]) -> None:
    first = every_name(catalog_of(names))
    assert set(first) == set(names)
    for kind in range(3):
        assert len({made[kind] for made in first.values()}) == len(names)
    for order in itertools.islice(itertools.permutations(names), 24):
        assert every_name(catalog_of(list(order))) == first


@pytest.mark.parametrize("names", TWINS, ids=lambda names: ascii(names[0])[:20])
def test_the_function_that_code_calls_is_the_tool_that_was_listed(names: list[str]) -> None:
    """Manifest, stubs and catalog say the same of every identifier: there is no second way to make a name."""
    catalog = catalog_of(names)
    typescript, python = generate(catalog, language="typescript"), generate(catalog, language="python")
    for stubs in (typescript, python):
        exports = stubs.manifest["host:mcp-s"]
        assert {name: (entry.server, entry.tool) for name, entry in exports.items()} == {
            tool.identifier: ("s", tool.name) for tool in catalog.tools
        }
    for tool in catalog.tools:
        assert catalog.tool("s", tool.name) is tool
        # Each tool's only property tells which one it is.
        line = next(
            line for line in typescript.files["mcp-s.d.ts"].splitlines() if f"function {tool.identifier}(" in line
        )
        own = f"p{len(tool.name)}"
        declared = re.search(r"input\??: (\w+)", line)
        stub = typescript.files["mcp-s.d.ts"]
        where = line if declared is None else stub[stub.index(f" {declared[1]} ") :]
        assert own in where


def test_the_hostile_names_are_all_different_in_one_server() -> None:
    catalog = build_catalog(corpus.corpus_listings())
    module = next(module for module in catalog.modules if module.server == "names")
    identifiers = [tool.identifier for tool in module.tools]
    assert len(identifiers) == len(corpus.text_cases("names")) + 1
    assert not stub_facts.duplicates(identifiers)
    for tool in module.tools:
        assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", tool.identifier)
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool.qualified_name)
        assert re.fullmatch(r"[A-Za-z0-9_]{1,64}", tool.short_name)


def test_an_exact_name_is_not_taken_away_by_one_that_had_to_be_changed() -> None:
    """A hostile tool `delete-all` must not get the identifier of the tool `delete_all` that a person approved."""
    for names in (["delete-all", "delete_all"], ["\u0430dmin", "admin"], ["admin\u200b", "admin"]):
        catalog = catalog_of(names)
        own = catalog.tool("s", names[1])
        assert own is not None
        assert own.identifier == names[1]


def test_names_do_not_depend_on_other_servers() -> None:
    tool = ToolDefinition("a-b", {})
    alone = build_catalog([ServerListing("s", (tool,))]).tools[0]
    other = ServerListing("r", (tool, ToolDefinition("a_b", {})))
    among = build_catalog([other, ServerListing("s", (tool,))]).tool("s", "a-b")
    assert among == alone


def test_types_never_meet_each_other() -> None:
    """Two interfaces of one name would be merged, or one of them lost: each has a property that tells it apart."""
    source = random.Random(7)
    words = ["a", "b", "input", "output", "item", "A", "a_b", "ab", "aB", "item_input", "input_item"]
    told: list[str] = []

    def leaf() -> dict[str, Any]:
        told.append(f"told_{len(told)}_")
        return {"type": "object", "properties": {"x": {"type": "object", "properties": {told[-1]: {"type": "string"}}}}}

    def schema(levels: int) -> dict[str, Any]:
        names = source.sample(words, 3)
        definitions = {name: leaf() for name in names} if levels == 2 else {}
        properties = {name: schema(levels - 1) if levels else leaf() for name in names}
        properties |= {f"to_{name}": {"$ref": f"#/$defs/{name}"} for name in definitions}
        return {"type": "object", "properties": properties, "$defs": definitions}

    tools = tuple(ToolDefinition(word, schema(2), output_schema=schema(2)) for word in words)
    catalog = build_catalog([ServerListing("s", tools)])
    text = generate(catalog, language="typescript").files["mcp-s.d.ts"]
    stub = generate(catalog, language="python").files["host/mcp_s/__init__.pyi"]
    assert len(told) > 200
    for written in (text, stub):
        assert [name for name in told if name not in written] == []
    declared = re.findall(r"^ *(?:export )?(?:interface|type) (\w+)", text.partition('"host:mcp-s/async"')[0], re.M)
    assert declared
    assert not stub_facts.duplicates(declared)
    classes = [node.name for node in ast.parse(stub).body if isinstance(node, ast.ClassDef)]
    assert classes
    assert not stub_facts.duplicates([*classes, *python_facts(stub).functions])
    assert not {tool.identifier for tool in catalog.tools} & set(declared)
