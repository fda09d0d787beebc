"""Tools as rich as those of large real servers, made up: nested objects, references, unions, enums, descriptions."""

from __future__ import annotations

import random
from typing import Any

from toolbridge_codegen.catalog import Catalog, ServerListing, ToolDefinition, build_catalog

Schema = dict[str, Any]

_VERBS = ("create", "list", "get", "update", "search", "archive", "move", "share", "export", "watch")
_NOUNS = ("issue", "page", "invoice", "channel", "deploy", "ticket", "branch", "contact", "event", "report")
_TEXT = """
the identifier of the workspace that owns it returned by an earlier call only items changed since this instant are given
most recent first at most this many unless a cursor says where to go on members who can see and change them text in
Markdown without images whether to notify everybody who watches this a filter over labels and states
"""
_WORDS = _TEXT.split()


def rich_servers(servers: int, tools: int) -> dict[str, list[dict[str, Any]]]:
    """So many servers with so many tools each, in the form of `tools/list`. Always the same ones."""
    source = random.Random("rich tools")  # noqa: S311
    return {f"server-{number}": [_tool(source, index) for index in range(tools)] for number in range(servers)}


def catalog_of(servers: dict[str, list[dict[str, Any]]]) -> Catalog:
    """As the bridge would make it."""
    return build_catalog(
        ServerListing(
            server,
            tuple(
                ToolDefinition(
                    tool["name"],
                    tool["inputSchema"],
                    description=tool["description"],
                    output_schema=tool["outputSchema"],
                )
                for tool in tools
            ),
        )
        for server, tools in servers.items()
    )


def _tool(source: random.Random, index: int) -> dict[str, Any]:
    noun = _NOUNS[index // len(_VERBS) % len(_NOUNS)]
    name = f"{_VERBS[index % len(_VERBS)]}_{noun}"
    return {
        "name": name if index < len(_VERBS) * len(_NOUNS) else f"{name}_{index}",
        "description": _sentence(source, 25),
        "inputSchema": _input(source, noun),
        "outputSchema": _output(source, noun),
    }


def _input(source: random.Random, noun: str) -> Schema:
    properties = {
        f"{noun}_id": _described(source, {"type": "string", "minLength": 1, "maxLength": 64}),
        "workspace": _described(source, {"type": "string", "format": "uuid"}),
        "title": _described(source, {"type": ["string", "null"], "maxLength": 200}),
        "state": _described(
            source, {"type": "string", "enum": ["open", "closed", "merged", "draft"], "default": "open"}
        ),
        "limit": _described(source, {"type": "integer", "minimum": 1, "maximum": 100, "default": 25}),
        "labels": _described(source, {"type": "array", "items": {"type": "string"}, "maxItems": 20}),
        "notify": _described(source, {"type": "boolean", "default": False}),
        "assignee": {"anyOf": [{"$ref": "#/$defs/Person"}, {"type": "null"}], "default": None},
        "body": {"oneOf": [{"$ref": "#/$defs/TextBlock"}, {"$ref": "#/$defs/ImageBlock"}]},
        "filter": {
            "type": "object",
            "description": _sentence(source, 8),
            "properties": {
                "since": _described(source, {"type": "string", "format": "date-time"}),
                "until": {"type": "string", "format": "date-time"},
                "fields": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
                "near": {
                    "type": "array",
                    "items": [{"type": "number"}, {"type": "number"}],
                    "minItems": 2,
                    "maxItems": 2,
                },
            },
            "required": ["since"],
            "additionalProperties": False,
        },
    }
    chosen = [f"{noun}_id", *source.sample(list(properties)[1:], source.randint(5, len(properties) - 1))]
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {name: properties[name] for name in chosen},
        "required": source.sample(chosen, 2),
        "additionalProperties": False,
        "$defs": _definitions(source),
    }


def _output(source: random.Random, noun: str) -> Schema:
    item: Schema = {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "number": {"type": "integer"},
            "created": {"type": "string", "format": "date-time"},
            "author": {"$ref": "#/$defs/Person"},
            "watchers": {"type": "array", "items": {"$ref": "#/$defs/Person"}},
            "content": {
                "type": "array",
                "items": {"oneOf": [{"$ref": "#/$defs/TextBlock"}, {"$ref": "#/$defs/ImageBlock"}]},
            },
            "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
            "parent": {"$ref": "#/$defs/Item"},
        },
        "required": ["id", "number", "author"],
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "title": f"{noun} result",
        "properties": {
            "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
            "cursor": _described(source, {"type": ["string", "null"]}),
            "warnings": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["items"],
        "$defs": {**_definitions(source), "Item": item},
    }


def _definitions(source: random.Random) -> Schema:
    return {
        "Person": {
            "type": "object",
            "description": _sentence(source, 6),
            "properties": {
                "login": _described(source, {"type": "string"}),
                "email": {"type": "string", "format": "email"},
                "role": {"enum": ["owner", "editor", "viewer"]},
            },
            "required": ["login"],
        },
        "TextBlock": {
            "type": "object",
            "properties": {"kind": {"const": "text"}, "text": _described(source, {"type": "string"})},
            "required": ["kind", "text"],
        },
        "ImageBlock": {
            "type": "object",
            "properties": {
                "kind": {"const": "image"},
                "url": {"type": "string", "format": "uri"},
                "size": {"type": "object", "properties": {"width": {"type": "integer"}, "height": {"type": "integer"}}},
            },
            "required": ["kind", "url"],
        },
    }


def _described(source: random.Random, schema: Schema) -> Schema:
    return {**schema, "description": _sentence(source, 10)}


def _sentence(source: random.Random, words: int) -> str:
    return " ".join(source.choices(_WORDS, k=words)).capitalize() + "."
