"""What a server lists: its tools, those that can't be used and why, and what it says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from toolbridge_codegen.catalog import ToolDefinition

MAX_NAME = 1_024
"""A longer name of a tool is no name."""


@dataclass(frozen=True, slots=True)
class ToolProblem:
    """What is wrong with a listed tool. It costs nobody but that tool."""

    tool: str
    """Its name, or its place in the listing when it has none; empty for the listing as a whole."""
    problem: str
    usable: bool = False
    """Whether it is exposed all the same."""


@dataclass(frozen=True, slots=True)
class Listing:
    """One complete answer to `tools/list`. Everything in it is the server's text: hostile until sanitised."""

    server: str
    tools: tuple[ToolDefinition, ...]
    problems: tuple[ToolProblem, ...] = ()
    protocol_version: str = ""
    server_name: str = ""
    server_version: str = ""
    server_title: str = ""
    server_description: str = ""
    instructions: str = ""
    live: bool = field(default=True, compare=False)
    """False when it was read from disk and the server has not been asked."""

    @property
    def about(self) -> dict[str, str]:
        """What the server says of itself beside its instructions, by place, for the audit."""
        said = {
            "name": self.server_name,
            "title": self.server_title,
            "version": self.server_version,
            "description": self.server_description,
        }
        return {f"serverInfo/{field}": text for field, text in said.items() if text}

    def tool(self, name: str) -> ToolDefinition | None:
        """The tool of this name."""
        return next((tool for tool in self.tools if tool.name == name), None)


def parse_tool(raw: object, place: int) -> tuple[ToolDefinition | None, ToolProblem | None]:
    """One entry of a listing. What a call needs must be there; anything else that is odd is left out.

    An input that is not described as an object is open: what it may be is then for the server to say.
    """
    entry = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
    name: object = entry.get("name")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        problem = f"is {_kind(raw)}, not an object" if not isinstance(raw, dict) else "has no usable name"
        return None, ToolProblem(f"#{place}", problem)
    if _needs_task(entry.get("execution")):
        return None, ToolProblem(name, "can be called only as a task, which is not supported")
    schema, output = entry.get("inputSchema"), entry.get("outputSchema")
    problem = _input_problem(schema) or _output_problem(output)
    annotations: object = entry.get("annotations")
    known = cast("dict[str, Any]", annotations) if isinstance(annotations, dict) else {}
    tool = ToolDefinition(
        name=name,
        title=_text(entry.get("title")) or _text(known.get("title")),
        description=_text(entry.get("description")),
        input_schema=cast("dict[str, Any]", schema) if isinstance(schema, dict) else {},
        output_schema=cast("dict[str, Any]", output) if isinstance(output, dict) else None,
        annotations=known,
    )
    return tool, ToolProblem(name, problem, usable=True) if problem else None


def _needs_task(execution: object) -> bool:
    """Whether a tool refuses to be called and waited for."""
    return isinstance(execution, dict) and cast("dict[str, Any]", execution).get("taskSupport") == "required"


def _input_problem(schema: object) -> str:
    if not isinstance(schema, dict):
        return f"has an inputSchema that is {_kind(schema)}, not an object; it is taken for one that says nothing"
    known = cast("dict[str, Any]", schema)
    if "type" not in known:
        # Real servers do this, for all of their tools; arguments are an object in any case.
        return "has an inputSchema without a type; it is taken for an object"
    kind = known["type"]
    return "" if kind == "object" else f'has an inputSchema whose type is {repr(kind)[:80]}, not "object"'


def _output_problem(schema: object) -> str:
    if schema is None or isinstance(schema, dict):
        return ""
    return f"has an outputSchema that is {_kind(schema)}, not an object; it is not used"


def listing_to_json(listing: Listing) -> dict[str, Any]:
    """A listing as it is kept on disk."""
    return {
        "server": listing.server,
        "protocolVersion": listing.protocol_version,
        "serverName": listing.server_name,
        "serverVersion": listing.server_version,
        "serverTitle": listing.server_title,
        "serverDescription": listing.server_description,
        "instructions": listing.instructions,
        "tools": [_tool_to_json(tool) for tool in listing.tools],
        "problems": [
            {"tool": problem.tool, "problem": problem.problem, "usable": problem.usable} for problem in listing.problems
        ],
    }


def listing_from_json(server: str, kept: Mapping[str, Any]) -> Listing:
    """A listing that was kept. Entries are checked as if the server had just sent them."""
    parsed = [parse_tool(raw, place)[0] for place, raw in enumerate(_list(kept.get("tools")))]
    problems = [cast("dict[str, Any]", raw) for raw in _list(kept.get("problems")) if isinstance(raw, dict)]
    return Listing(
        server=server,
        tools=tuple(tool for tool in parsed if tool is not None),
        problems=tuple(
            ToolProblem(_text(raw.get("tool")), _text(raw.get("problem")), raw.get("usable") is True)
            for raw in problems
        ),
        protocol_version=_text(kept.get("protocolVersion")),
        server_name=_text(kept.get("serverName")),
        server_version=_text(kept.get("serverVersion")),
        server_title=_text(kept.get("serverTitle")),
        server_description=_text(kept.get("serverDescription")),
        instructions=_text(kept.get("instructions")),
        live=False,
    )


def _tool_to_json(tool: ToolDefinition) -> dict[str, Any]:
    kept: dict[str, Any] = {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
    if tool.title:
        kept["title"] = tool.title
    if tool.output_schema is not None:
        kept["outputSchema"] = tool.output_schema
    if tool.annotations:
        kept["annotations"] = dict(tool.annotations)
    return kept


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _kind(value: object) -> str:
    if value is None:
        return "missing"
    kinds: dict[type, str] = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list"}
    return kinds.get(type(value), f"of type {type(value).__name__}")
