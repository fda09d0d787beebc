"""Tools with one hostile text in every place that a server controls."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from toolbridge_codegen.catalog import ServerListing, ToolDefinition


def text_tool(name: str, text: str) -> ToolDefinition:
    """The text wherever it can only be for readers: nothing of it may be left outside of comments."""

    def described(schema: dict[str, Any]) -> dict[str, Any]:
        return {
            **schema,
            "title": text,
            "description": text,
            "$comment": text,
            "default": text,
            "examples": [text, {"deep": [text]}],
            "x-unknown": {"a": text},
        }

    schema = described(
        {
            "$id": text,
            "type": "object",
            "properties": {
                "plain": described({"type": "string"}),
                "pattern": {"type": "string", "pattern": text, "description": "x"},
                "format": {"type": "string", "format": text, "description": "x"},
                "content": {"type": "string", "contentMediaType": text, "contentEncoding": text},
                "default": {"type": "string", "default": {"a": [text]}},
                "nested": described(
                    {
                        "type": "object",
                        "properties": {"inner": described({"type": "number"})},
                        "dependentRequired": {text: ["inner"]},
                        "required": ["inner"],
                    }
                ),
                "items": {"type": "array", "items": described({"type": "object", "properties": {"x": described({})}})},
                "either": {"anyOf": [described({"type": "string"}), described({"type": "null"})]},
                "map": {"type": "object", "patternProperties": {text: {"type": "string", "description": text}}},
                "names": {"type": "object", "propertyNames": {"pattern": text, "description": text}},
                "negated": {"type": "string", "not": {"const": text}},
                "conditional": {"type": "string", "if": {"const": text}, "then": {"pattern": text}},
                "remote": {"$ref": f"https://example.invalid/{text}"},
                "malformed": {"type": text, "description": text},
                "minimum": {"type": "number", "minimum": text},
                "shared": {"$ref": "#/$defs/shared", "description": text},
            },
            "required": ["plain"],
            "$defs": {"shared": described({"type": "object", "properties": {"y": described({"type": "string"})}})},
        }
    )
    return ToolDefinition(
        name=name,
        input_schema=schema,
        title=text,
        description=text,
        output_schema=schema,
        annotations={"title": text, "readOnlyHint": text, text: text},
    )


def text_listing(server: str, text: str) -> ServerListing:
    """A server that says one thing everywhere."""
    tools = (text_tool("first", text), text_tool("second", text))
    return ServerListing(server=server, tools=tools, display_name=text, instructions=text)


def name_tool(text: str, name: str | None = None) -> ToolDefinition:
    """The text as the name of the tool (unless it is given another), of a property, of a definition, of a constant."""
    pointer = text.replace("~", "~0").replace("/", "~1").encode("utf-8", "surrogatepass").decode("latin-1")
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            text: {"type": "object", "properties": {text: {"type": "string"}}, "required": [text]},
            "constant": {"const": text},
            "choice": {"enum": [text, "another", 5]},
            "alternatives": {
                "oneOf": [
                    {"type": "object", "properties": {"kind": {"const": text}, text: {"type": "number"}}},
                    {"type": "object", "properties": {"kind": {"const": "another"}, "x": {"type": "number"}}},
                ]
            },
            "referred": {"$ref": f"#/$defs/{quote(pointer, safe='')}"},
        },
        "required": [text, "constant"],
        "dependentRequired": {text: [text]},
        "$defs": {text: {"type": "object", "properties": {"x": {"$ref": "#"}}, "title": text}},
    }
    return ToolDefinition(name=text if name is None else name, input_schema=schema, output_schema=schema)
