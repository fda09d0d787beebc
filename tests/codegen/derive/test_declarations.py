"""Declarations: named after their content, never reserved, and without duplicates."""

from __future__ import annotations

from typing import Any

from codegen.notation import build
from toolbridge_codegen.catalog import ToolDefinition
from toolbridge_codegen.model import NamedType, UnknownType

STRING = {"type": "string"}
INTEGER = {"type": "integer"}


def with_a(schema: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}, **more}


def names(*tools: ToolDefinition) -> list[tuple[str, bool]]:
    """Name and inlining of each declared type, but for those that only name any value: outputs without a schema."""
    model, _ = build(*tools)
    known = [declaration for declaration in model.declarations if declaration.type != UnknownType()]
    return [(declaration.name, declaration.inline) for declaration in known]


def outputs(*tools: ToolDefinition) -> dict[str, str]:
    """For each tool, the name of its output type."""
    model, _ = build(*tools)
    named = {function.tool.name: function.output for function in model.functions}
    return {tool: node.name if isinstance(node, NamedType) else "" for tool, node in named.items()}


def large(*extra: str) -> dict[str, Any]:
    """An object that is too large to be written in place twice."""
    letters = ["first", "second", "third", "fourth", "fifth", "sixth", *extra]
    return {"type": "object", "properties": dict.fromkeys(letters, STRING)}


def test_types_are_named_after_tool_and_place() -> None:
    schema = with_a({"type": "array", "items": with_a({"type": "object", "additionalProperties": large()})})
    assert names(ToolDefinition("list_all", schema)) == [
        ("ListAllInput", False),
        ("ListAllInputA", True),
        ("ListAllInputAAValue", True),
    ]


def test_the_items_of_an_array_are_named_in_the_singular() -> None:
    plurals = ["entities", "boxes", "classes", "users", "series", "status", "news", "data", "analysis"]
    properties = {name: {"type": "array", "items": large(name)} for name in plurals}
    given_names = [name for name, _ in names(ToolDefinition("f", {"type": "object", "properties": properties}))]
    assert given_names == [
        "FInput",
        *("FInputEntity", "FInputBox", "FInputClass", "FInputUser", "FInputSeries"),
        *("FInputStatus", "FInputNews", "FInputData", "FInputAnalysis"),
    ]


def test_variants_are_named_after_their_titles_or_tags() -> None:
    tagged = [{"properties": {"kind": {"const": f"shape.{tag}"}, "size": INTEGER}} for tag in ("circle", "square")]
    titled = [{"title": title, "properties": {title: large()}} for title in ("one", "two")]
    schema = {"type": "object", "properties": {"a": {"oneOf": tagged}, "b": {"oneOf": titled}}}
    assert [name for name, _ in names(ToolDefinition("f", schema))] == [
        "FInput",
        "FInputACircle",
        "FInputASquare",
        "FInputBOne",
        "FInputBTwo",
        "FInputBOneOne",
    ]


def test_definitions_keep_their_names_unless_two_want_the_same() -> None:
    use = {"type": "object", "properties": {"x": {"$ref": "#/$defs/place"}, "y": {"$ref": "#/$defs/place"}}}
    one = ToolDefinition("one", {**use, "$defs": {"place": large()}})
    same = ToolDefinition("same", {**use, "$defs": {"place": large()}})
    other = ToolDefinition("two", {**use, "$defs": {"place": large("seventh")}})
    assert names(one, same) == [("OneInput", False), ("Place", False), ("SameInput", False)]
    assert names(one, other) == [
        ("OneInput", False),
        ("OnePlace", False),
        ("TwoInput", False),
        ("TwoPlace", False),
    ]


def test_a_shared_type_is_declared_once_and_has_the_common_name() -> None:
    users = {"type": "object", "properties": {"users": {"type": "array", "items": large()}}}
    user = {"type": "object", "properties": {"user": large()}}
    tools = [ToolDefinition("add", users), ToolDefinition("get", users, output_schema=user)]
    assert names(*tools) == [("AddInput", False), ("User", False), ("GetInput", False), ("GetOutput", False)]


def test_a_shared_type_without_a_common_name_is_named_after_its_first_place() -> None:
    tools = [ToolDefinition(name, {"type": "object", "properties": {name: large()}}) for name in ("one", "two")]
    assert names(*tools) == [("OneInput", False), ("OneInputOne", False), ("TwoInput", False)]


def test_types_with_different_comments_or_constants_are_not_merged() -> None:
    one = large() | {"properties": {**large()["properties"], "x": {"const": 1}}}
    two = large() | {"properties": {**large()["properties"], "x": {"const": True}}}
    three = large() | {"properties": {**large()["properties"], "x": {"const": 1, "description": "d"}}}
    tools = [ToolDefinition(f"t{index}", with_a(schema)) for index, schema in enumerate([one, two, three])]
    assert len(names(*tools)) == 6


def test_equal_recursive_types_of_several_tools_are_merged() -> None:
    tree = {
        **large(),
        "properties": {**large()["properties"], "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
    }
    use = with_a({"$ref": "#/$defs/tree"}, **{"$defs": {"tree": tree}})
    assert names(ToolDefinition("one", use), ToolDefinition("two", use)) == [
        ("OneInput", False),
        ("Tree", False),
        ("TwoInput", False),
    ]


def test_a_type_never_has_the_name_of_something_else() -> None:
    taken = ["Record", "Promise", "TypedDict", "Any", "ToolError", "dict", "Error", "None", "1", "", "ö", "__proto__"]
    definitions = {name: large(f"x{index}") for index, name in enumerate(taken)}
    properties = {f"p{index}{use}": {"$ref": f"#/$defs/{name}"} for index, name in enumerate(taken) for use in "ab"}
    schema = {"type": "object", "properties": properties, "$defs": definitions}
    given_names = [name for name, _ in names(ToolDefinition("f", schema), ToolDefinition("Dict", {"type": "object"}))]
    assert given_names == [
        "FInput",
        "RecordType",
        "PromiseType",
        "TypedDictType",
        "AnyType",
        "ToolErrorType",
        "DictType",
        "ErrorType",
        "NoneType",
        "Type1",
        "FInputP9a",
        "FInputP10a",
        "Proto",
    ]


def test_two_tools_never_share_a_type_name() -> None:
    tools = [ToolDefinition(name, with_a(STRING)) for name in ("get_item", "getItem", "get__item", "GetItemInput")]
    assert names(*tools) == [
        ("GetItemInputInput", False),
        ("GetItemInput2", False),
        ("GetItem2Input", False),
        ("GetItem3Input", False),
    ]


def test_each_output_without_a_schema_has_a_name_of_its_own() -> None:
    tools = [ToolDefinition(name, with_a(STRING)) for name in ("get_item", "getItem", "get__item", "GetItemOutput")]
    assert outputs(*tools) == {
        "GetItemOutput": "GetItemOutputOutput",
        "getItem": "GetItemOutput2",
        "get__item": "GetItem2Output",
        "get_item": "GetItem3Output",
    }


def test_a_definition_gives_way_to_an_output_without_a_schema() -> None:
    use = {"type": "object", "properties": {name: {"$ref": "#/$defs/FOutput"} for name in "ab"}}
    tool = ToolDefinition("f", {**use, "$defs": {"FOutput": large()}})
    assert outputs(tool) == {"f": "FOutput"}
    assert names(tool) == [("FInput", False), ("FFOutput", False)]


def test_a_nested_type_gives_way_to_the_input_of_another_tool() -> None:
    inner = with_a(large())
    tools = [ToolDefinition("x", {"type": "object", "properties": {"input": inner}}), ToolDefinition("x_input", inner)]
    given_names = [name for name, _ in names(*tools)]
    assert given_names[0] == "XInput"
    assert "XInputInput" in given_names
    assert len(set(given_names)) == len(given_names)


def test_a_small_object_is_written_where_it_is_used_however_often() -> None:
    point = {"type": "object", "properties": {"x": INTEGER, "y": INTEGER}}
    schema = {"type": "object", "properties": {"from": {"$ref": "#/$defs/point"}, "to": {"$ref": "#/$defs/point"}}}
    assert names(ToolDefinition("f", {**schema, "$defs": {"point": point}})) == [("FInput", False), ("Point", True)]


def test_inlining_has_a_maximum_depth() -> None:
    schema: dict[str, Any] = large()
    for _ in range(8):
        schema = {"type": "object", "properties": {"a": schema, "b": {**STRING, "description": "x"}}}
    flags = [inline for _, inline in names(ToolDefinition("f", schema))]
    assert flags == [False, True, True, True, True, False, True, True, True]
