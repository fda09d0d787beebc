"""T17, reserved members: names that mean something to a language become no members of anything of ours."""

from __future__ import annotations

import ast
import keyword

from cases import each
from codegen import corpus
from threats import stub_facts
from toolbridge_codegen.catalog import ServerListing, ToolDefinition, build_catalog
from toolbridge_codegen.stubs import generate

_WORDS = """
__proto__ constructor prototype then toString valueOf hasOwnProperty __class__ __getattr__ __init__ __dict__ __doc__
__name__ __file__ __all__ __import__ __defineGetter__ __path__ default class function return await async yield delete
new this typeof void var let with enum interface null true false None True False def lambda pass raise global nonlocal
import from as is not and or in del try except finally while for if else elif break continue assert aio eval arguments
"""
RESERVED = _WORDS.split()


@each("name", RESERVED)
def test_a_tool_of_a_reserved_name_is_called_otherwise_and_still_found(name: str) -> None:
    catalog = build_catalog([ServerListing("s", (ToolDefinition(name, {}),))])
    tool = catalog.tools[0]
    assert tool.name == name
    assert tool.identifier not in RESERVED
    assert not tool.identifier.startswith("__")
    assert not keyword.iskeyword(tool.identifier)
    for language in ("typescript", "python"):
        stubs = generate(catalog, language=language)
        assert list(stubs.manifest["host:mcp-s"]) == [tool.identifier]
        # Who reads the stub learns what the tool is really called.
        assert any(f'"{name}"' in text for text in stubs.files.values())


@each("name", [*RESERVED, "keys", "items", "get", "copy", "self", "cls", "input", "more", "kwargs"])
def test_a_property_of_a_reserved_name_keeps_it(name: str) -> None:
    """The server knows no other. It is a property like any other: of a type, never of an object of ours."""
    schema = {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
    catalog = build_catalog([ServerListing("s", (corpus.tool_of("f", schema),))])
    typescript = generate(catalog, language="typescript").files["mcp-s.d.ts"]
    assert f"{name}: string" in typescript or f'"{name}": string' in typescript
    python = generate(catalog, language="python").files["host/mcp_s/__init__.pyi"]
    fields = {
        node.target.id
        for declaration in ast.parse(python).body
        if isinstance(declaration, ast.ClassDef)
        for node in declaration.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    quoted = {node.value for node in ast.walk(ast.parse(python)) if isinstance(node, ast.Constant)}
    assert name in fields or name in quoted
    # A class body would mangle it, or replace a member of the class itself.
    assert not any(field.startswith("__") for field in fields)


def test_hostile_names_leave_python_and_the_catalog_as_they_were() -> None:
    before = (set(dir(object)), set(dir(dict)), set(dir(ToolDefinition)))
    stub_facts.stub_sets()
    build_catalog(stub_facts.hostile_servers().values())
    assert (set(dir(object)), set(dir(dict)), set(dir(ToolDefinition))) == before


def test_a_manifest_answers_for_its_exports_only() -> None:
    catalog = build_catalog([ServerListing("s", (ToolDefinition("fine", {}),))])
    exports = generate(catalog, language="typescript").manifest["host:mcp-s"]
    for name in (*RESERVED, "keys", "items"):
        assert name not in exports


def test_references_do_not_reach_members_of_our_objects() -> None:
    """`#/__class__/…` or `#/items` is looked up in the schema, nowhere else."""
    pointers = ["#/__class__", "#/__proto__", "#/constructor", "#/keys", "#/properties/__len__", "#/properties/get/x"]
    schema = {"type": "object", "properties": {f"p{n}": {"$ref": pointer} for n, pointer in enumerate(pointers)}}
    catalog = build_catalog([ServerListing("s", (corpus.tool_of("f", schema),))])
    for language in ("typescript", "python"):
        stubs = generate(catalog, language=language)
        said = {item.path.removesuffix("/$ref") for item in stubs.diagnostics}
        assert {f"/inputSchema/properties/p{number}" for number in range(len(pointers))} <= said
