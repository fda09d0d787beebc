"""The tools that a client sees. Every word here is paid for in every conversation: few, and each of use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, get_args

from mcp_types import Tool, ToolAnnotations

from toolbridge.runtime import Language

LANGUAGES: tuple[str, ...] = get_args(Language)
MOST_HITS = 50
MOST_NAMES = 50
MOST_CODE = 1_000_000
ACTIONS = ("connect", "disconnect", "approve", "revoke", "enable", "disable")

_STRING: dict[str, Any] = {"type": "string"}
_STRINGS: dict[str, Any] = {"type": "array", "items": _STRING}
_OBJECTS: dict[str, Any] = {"type": "array", "items": {"type": "object"}}
_LANGUAGE: dict[str, Any] = {"enum": list(LANGUAGES), "default": LANGUAGES[0]}


@lru_cache(maxsize=16)  # every call of a tool looks at them
def tools(modules: str, *, most_seconds: float, sessions: bool, management: bool) -> tuple[Tool, ...]:
    """The tools there are now; `modules` is a list of names for those who read no instructions."""
    found = (_search(modules), _describe(), _run(most_seconds, sessions=sessions))
    return (*found, *_management()) if management else found


def _tool(
    name: str,
    title: str,
    description: str,
    *,
    arguments: Mapping[str, Any],
    required: Sequence[str],
    output: Mapping[str, Any],
    annotations: ToolAnnotations,
) -> Tool:
    given: dict[str, Any] = {"type": "object", "properties": dict(arguments), "additionalProperties": False}
    if required:
        given["required"] = list(required)
    result = {"type": "object", "properties": dict(output), "required": list(output)}
    return Tool(
        name=name,
        title=title,
        description=description,
        input_schema=given,
        output_schema=result,
        annotations=annotations,
    )


# Searching may start an approved server, to ask it for its tools.
_LOOKS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
_RUNS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True)
_CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


def _search(modules: str) -> Tool:
    return _tool(
        "search_tools",
        "Search tools",
        f"Find functions by what they do: module, signature, summary.{modules}",
        arguments={"query": _STRING, "limit": {"type": "integer", "minimum": 1, "maximum": MOST_HITS, "default": 8}},
        required=["query"],
        output={"hits": _OBJECTS, "unavailable": _OBJECTS},
        annotations=_LOOKS,
    )


def _describe() -> Tool:
    return _tool(
        "describe",
        "Describe modules",
        "Typed declarations of modules, or of functions (weather.get_forecast).",
        arguments={
            "names": {"type": "array", "items": _STRING, "minItems": 1, "maxItems": MOST_NAMES},
            "language": _LANGUAGE,
            "detail": {"enum": ["full", "compact"], "default": "full"},
        },
        required=["names"],
        output={"text": _STRING, "unknown": _STRINGS, "unavailable": _OBJECTS},
        annotations=_LOOKS,
    )


def _run(most_seconds: float, *, sessions: bool) -> Tool:
    arguments: dict[str, Any] = {
        "code": _STRING,
        "language": _LANGUAGE,
        "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": most_seconds, "description": "Seconds"},
    }
    output: dict[str, Any] = {
        "value": {},
        "stdout": _STRING,
        "stderr": _STRING,
        "failure": {"type": ["object", "null"]},
        "calls": _OBJECTS,
        "servers": _STRINGS,
        "notes": _STRINGS,
        "session": {"type": ["string", "null"]},
    }
    if sessions:
        text = '"new", or the id an earlier result gave, to keep state'
        arguments["session"] = {"type": "string", "description": text}
    return _tool(
        "run_code",
        "Run code",
        "Run a program in the sandbox; gives its last expression, what it printed, and how it failed.",
        arguments=arguments,
        required=["code"],
        output=output,
        annotations=_RUNS,
    )


def _management() -> list[Tool]:
    server = {"server": _STRING}
    return [
        _tool(
            "list_mcp_servers",
            "List servers",
            "MCP servers, their states and problems.",
            arguments={},
            required=[],
            output={"servers": _OBJECTS, "attended": {"type": "boolean"}, "unattended": _STRING},
            annotations=_LOOKS,
        ),
        _tool(
            "mcp_server_info",
            "Server details",
            "One server: configuration, state, functions.",
            arguments=server,
            required=["server"],
            output={"server": {"type": "object"}},
            annotations=_LOOKS,
        ),
        _tool(
            "manage_mcp",
            "Manage servers",
            "Change a server's state. The user is asked about all but connect and disconnect.",
            arguments={"action": {"enum": list(ACTIONS)}, **server},
            required=["action", "server"],
            output={"done": _STRING},
            annotations=_CHANGES,
        ),
    ]
