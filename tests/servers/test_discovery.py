"""Discovery: pages, caps, and tools that cost only themselves."""

from __future__ import annotations

from typing import Any

import pytest

from toolbridge.config.server_config import ServerLimits
from toolbridge.errors import ServerProtocolError
from toolbridge.servers.discovery import list_tools
from toolbridge.servers.listing import Listing, ToolProblem, listing_from_json, listing_to_json
from toolbridge_codegen.catalog import ToolDefinition

pytestmark = pytest.mark.anyio

ABOUT = Listing("shop", ())


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


class Pages:
    """A server's answers, one after the other; asks are recorded."""

    def __init__(self, *pages: dict[str, Any]) -> None:
        self._pages = list(pages)
        self.asked: list[dict[str, Any]] = []

    async def __call__(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        assert method == "tools/list"
        self.asked.append(parameters)
        return self._pages[min(len(self.asked), len(self._pages)) - 1]


async def test_all_pages_are_read_in_order() -> None:
    pages = Pages({"tools": [tool("a")], "nextCursor": "x"}, {"tools": [tool("b")], "nextCursor": "y"}, {"tools": []})
    listing = await list_tools(ABOUT, pages, ServerLimits())
    assert [found.name for found in listing.tools] == ["a", "b"]
    assert pages.asked == [{}, {"cursor": "x"}, {"cursor": "y"}]


async def test_a_bad_tool_costs_that_tool_only() -> None:
    bad: list[Any] = [
        {"inputSchema": {"type": "object"}},
        {"name": "", "inputSchema": {"type": "object"}},
        {"name": 7, "inputSchema": {"type": "object"}},
        {"name": "x" * 2000, "inputSchema": {"type": "object"}},
        "nonsense",
        None,
    ]
    listing = await list_tools(ABOUT, Pages({"tools": [tool("first"), *bad, tool("last")]}), ServerLimits())
    assert [found.name for found in listing.tools] == ["first", "last"]
    assert [problem.tool for problem in listing.problems] == ["#2", "#3", "#4", "#5", "#6", "#7"]
    assert listing.problems[0] == ToolProblem("#2", "has no usable name")


NOT_OBJECTS: list[Any] = [True, False, None, [], "text", 3]


@pytest.mark.parametrize("schema", NOT_OBJECTS)
async def test_a_tool_whose_input_schema_is_none_takes_any_input_and_is_reported(schema: Any) -> None:
    (found,), (problem,) = await listed({"name": "a", "inputSchema": schema})
    assert (found.name, found.input_schema) == ("a", {})
    assert (problem.tool, problem.usable, "inputSchema" in problem.problem) == ("a", True, True)


@pytest.mark.parametrize("kind", ["array", "string", ["object", "null"], 3])
async def test_a_tool_whose_input_schema_is_not_of_an_object_keeps_it_and_is_reported(kind: Any) -> None:
    schema = {"type": kind, "description": "Text that is pinned, and read by the audit"}
    (found,), (problem,) = await listed({"name": "a", "inputSchema": schema})
    assert found.input_schema == schema
    assert problem == ToolProblem("a", f'has an inputSchema whose type is {kind!r}, not "object"', usable=True)


@pytest.mark.parametrize("schema", [each for each in NOT_OBJECTS if each is not None])
async def test_an_output_schema_that_is_none_is_not_used_and_reported(schema: Any) -> None:
    (found,), (problem,) = await listed(tool("a", outputSchema=schema))
    assert found.output_schema is None
    assert (problem.usable, "outputSchema" in problem.problem) == (True, True)


async def listed(entry: dict[str, Any]) -> tuple[tuple[ToolDefinition, ...], tuple[ToolProblem, ...]]:
    listing = await list_tools(ABOUT, Pages({"tools": [entry]}), ServerLimits())
    kept = listing_from_json("shop", listing_to_json(listing))
    assert (kept.tools, kept.problems) == (listing.tools, listing.problems)  # also from disk
    return listing.tools, listing.problems


async def test_a_tool_that_can_be_called_only_as_a_task_is_left_out_and_reported() -> None:
    tasks = {**tool("research"), "execution": {"taskSupport": "required"}}
    either = {**tool("either"), "execution": {"taskSupport": "optional"}}
    listing = await list_tools(ABOUT, Pages({"tools": [tasks, either]}), ServerLimits())
    assert [found.name for found in listing.tools] == ["either"]
    assert listing.problems == (ToolProblem("research", "can be called only as a task, which is not supported"),)


async def test_a_tool_without_a_schema_type_is_listed_and_reported() -> None:
    untyped = {"name": "untyped", "inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#"}}
    listing = await list_tools(ABOUT, Pages({"tools": [tool("a"), untyped]}), ServerLimits())
    assert [found.name for found in listing.tools] == ["a", "untyped"]
    assert listing.problems == (
        ToolProblem("untyped", "has an inputSchema without a type; it is taken for an object", usable=True),
    )


async def test_a_name_listed_twice_is_one_tool_whatever_the_order() -> None:
    one, other = tool("a", description="one"), tool("a", description="other")
    for pair in ([one, other], [other, one], [one, one]):
        listing = await list_tools(ABOUT, Pages({"tools": pair}), ServerLimits())
        assert [found.description for found in listing.tools] == ["one"]
        assert [(problem.tool, problem.usable) for problem in listing.problems] == [("a", True)]


async def test_odd_optional_fields_are_left_out() -> None:
    odd = tool("odd", description=5, title=["x"], annotations="none")
    (found,) = (await list_tools(ABOUT, Pages({"tools": [odd]}), ServerLimits())).tools
    assert (found.description, found.title, dict(found.annotations)) == ("", "", {})


@pytest.mark.parametrize(
    ("page", "limits", "kept", "says"),
    [
        ({"tools": [tool("a")], "nextCursor": "again"}, ServerLimits(), 1, "same cursor twice"),
        ({"tools": [tool("a")], "nextCursor": 5}, ServerLimits(), 1, "a cursor that is not text"),
        ({"tools": [tool(str(n)) for n in range(11)]}, ServerLimits(tools=10), 10, "more than 10 tools"),
        (
            {"tools": [tool("a"), tool("b", description="x" * 5000), tool("c")]},
            ServerLimits(listing_bytes=4000),
            1,
            "more than 4000 bytes",
        ),
    ],
)
async def test_a_listing_past_a_cap_keeps_what_came_and_says_so(
    page: dict[str, Any], limits: ServerLimits, kept: int, says: str
) -> None:
    listing = await list_tools(ABOUT, Pages(page), limits)
    assert len(listing.tools) == kept
    assert any(not each.tool and says in each.problem and "cut after" in each.problem for each in listing.problems)


@pytest.mark.parametrize("page", [{"tools": {"a": 1}}, {}])
async def test_a_first_page_that_is_no_listing_is_refused(page: dict[str, Any]) -> None:
    with pytest.raises(ServerProtocolError, match="without a list of tools") as caught:
        await list_tools(ABOUT, Pages(page), ServerLimits())
    assert caught.value.server == "shop"


async def test_a_later_page_that_is_no_listing_costs_that_page() -> None:
    listing = await list_tools(ABOUT, Pages({"tools": [tool("a")], "nextCursor": "x"}, {"tools": 5}), ServerLimits())
    assert [found.name for found in listing.tools] == ["a"]
    assert "further page" in listing.problems[0].problem


HEADER = "x-mcp-header"
INVALID_HEADERS: list[dict[str, Any]] = [
    {"properties": {"a": {"type": "string", HEADER: "My Region"}}},
    {"properties": {"a": {"type": "string", HEADER: ""}}},
    {"properties": {"a": {"type": "string", HEADER: 5}}},
    {"properties": {"a": {"type": "number", HEADER: "Region"}}},
    {"properties": {"a": {"type": "object", HEADER: "Region"}}},
    {"properties": {"a": {"type": "string", HEADER: "R"}, "b": {"type": "string", HEADER: "r"}}},
    {"properties": {"a": {"type": "array", "items": {"type": "string", HEADER: "Region"}}}},
    {"properties": {"a": {"type": "string", HEADER: "R\r\nX: y"}}},
]


async def test_tools_with_an_invalid_header_annotation_are_left_out_where_headers_are_sent() -> None:
    bad = [tool(f"bad{n}", inputSchema={"type": "object", **each}) for n, each in enumerate(INVALID_HEADERS)]
    fine = tool("fine", inputSchema={"type": "object", "properties": {"a": {"type": "string", HEADER: "Region"}}})
    pages = Pages({"tools": [*bad, fine]})
    listing = await list_tools(ABOUT, pages, ServerLimits(), mirrors_headers=True)
    assert [found.name for found in listing.tools] == ["fine"]
    assert [each.tool for each in listing.problems] == [each["name"] for each in bad]
    assert all("invalid x-mcp-header" in each.problem for each in listing.problems)
    # Elsewhere the annotation means nothing, and costs nothing.
    assert len((await list_tools(ABOUT, pages, ServerLimits())).tools) == len(bad) + 1


async def test_ever_new_cursors_end_at_the_cap_of_pages() -> None:
    asked = 0

    async def endless(_method: str, _parameters: dict[str, Any]) -> dict[str, Any]:
        nonlocal asked
        asked += 1
        return {"tools": [], "nextCursor": str(asked)}

    listing = await list_tools(ABOUT, endless, ServerLimits(pages=7))
    assert asked == 7
    assert "more than 7 pages" in listing.problems[0].problem


async def test_a_tool_nested_too_deeply_costs_that_tool_only() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"properties": deep}
    entries = [tool("a"), tool("deep", inputSchema={"type": "object", "x": deep}), tool("b")]
    listing = await list_tools(ABOUT, Pages({"tools": entries}), ServerLimits())
    assert [found.name for found in listing.tools] == ["a", "b"]
    assert listing.problems == (ToolProblem("deep", "is nested too deeply"),)


async def test_the_cap_counts_bytes_and_the_instructions(anyio_backend: str) -> None:
    del anyio_backend

    async def request(method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"tools": [{"name": "t", "inputSchema": {"type": "object"}, "description": "\U0001f600" * 300}]}

    limits = ServerLimits(listing_bytes=1_000)
    (cut,) = (await list_tools(Listing("one", ()), request, limits)).problems
    assert cut.problem == "has more than 1000 bytes; it is cut after 0 tools"
    for said in ("instructions", "serverName", "serverVersion", "serverTitle", "serverDescription"):
        about = listing_from_json("one", {said: "x" * 1_001, "protocolVersion": "2025-11-25"})
        listing = await list_tools(about, request, limits)
        assert (listing.instructions, listing.about, listing.protocol_version) == ("", {}, "2025-11-25")
        assert "more than 1000 bytes about the server" in listing.problems[0].problem
