"""Functions of the host's own as tools: what they are made of, and that they stay what they were."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Annotated, Any, Literal, NotRequired, cast

import pytest
from pydantic import BaseModel, Field

from toolbridge import ServerConfig, ToolContext, create_server, tool
from toolbridge.errors import ConfigError, MisuseError, ToolbridgeError, ToolDefinitionError
from toolbridge.tools.binding import InvalidArgumentsError
from toolbridge.tools.tool import InProcessTool, is_async


class Place(BaseModel):
    name: str
    height: float = 0.0


@dataclass
class Reading:
    when: date
    value: float


@tool
def forecast(
    place: Annotated[str, Field(description="A town")],
    days: Annotated[int, Field(ge=1, le=14)] = 3,
    unit: Literal["C", "F"] = "C",
) -> list[Reading]:
    """The days ahead."""
    return [Reading(date(2026, 1, day + 1), float(len(place))) for day in range(days)]


def test_a_decorated_function_is_still_the_function() -> None:
    assert forecast("Oslo", days=2) == [Reading(date(2026, 1, 1), 4.0), Reading(date(2026, 1, 2), 4.0)]
    assert (forecast.__name__, forecast.__doc__) == ("forecast", "The days ahead.")
    assert repr(forecast) == "InProcessTool('forecast')"


def test_its_definition_comes_from_name_docstring_and_type_hints() -> None:
    definition = forecast.definition
    assert (definition.name, definition.description) == ("forecast", "The days ahead.")
    assert definition.input_schema == {
        "type": "object",
        "properties": {
            "place": {"type": "string", "description": "A town"},
            "days": {"type": "integer", "minimum": 1, "maximum": 14, "default": 3},
            "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
        },
        "required": ["place"],
        "additionalProperties": False,
    }
    assert definition.output_schema is not None
    assert definition.output_schema["type"] == "array"


def test_a_tool_may_be_made_by_a_function_with_everything_given() -> None:
    def handle_ping(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": f"pong {len(arguments)}"}]}

    ping = tool("ping", "Check the connection.", {}, handle_ping, title="Ping", timeout=5)
    assert ping.definition.input_schema == {"type": "object", "properties": {}}
    assert (ping.definition.title, ping.definition.output_schema, ping.timeout) == ("Ping", None, 5.0)
    assert handle_ping({}) == ping({})


def test_a_decorator_may_have_arguments() -> None:
    @tool("other-name", annotations={"readOnlyHint": True}, output_schema={"type": "integer"})
    async def count() -> int:
        return 1

    assert count.definition.name == "other-name"
    assert count.definition.annotations == {"readOnlyHint": True}
    assert count.definition.output_schema == {"type": "integer"}
    assert count.is_async


def test_the_schema_given_is_not_changed_by_later_changes() -> None:
    schema: dict[str, Any] = {"properties": {"a": {"type": "string"}}}
    made = tool("t", "", schema, one_parameter)
    schema["properties"]["a"] = {"type": "integer"}
    assert made.definition.input_schema["properties"] == {"a": {"type": "string"}}


def bound(made: InProcessTool[..., Any], arguments: dict[str, Any]) -> Any:
    return made.arguments.bind(arguments, ToolContext("s", "t"))


class Clerk:
    def stamp(self, letter: str) -> str:
        return f"{letter}!"

    async def __call__(self, letter: str) -> str:
        return letter


def no_parameters() -> str:
    return "x"


def one_parameter(arguments: Any) -> Any:
    return arguments


def with_default(arguments: Any, dry_run: bool = False) -> Any:
    return arguments, dry_run


def two_parameters(arguments: Any, extra: Any) -> Any:
    return arguments, extra


def context_by_type(arguments: Any, *, context: ToolContext) -> Any:
    return arguments, context


CONTEXT = ToolContext("s", "t")


@pytest.mark.parametrize(
    ("handler", "expected"),
    cast(
        "list[tuple[Any, Any]]",
        [
            (no_parameters, ((), {})),
            (one_parameter, (({"a": 1},), {})),
            (with_default, (({"a": 1},), {})),
            (two_parameters, (({"a": 1}, CONTEXT), {})),
            (context_by_type, (({"a": 1},), {"context": CONTEXT})),
        ],
    ),
)
def test_with_a_schema_a_handler_gets_one_dict_and_a_context_if_it_takes_one(
    handler: Callable[..., Any], expected: Any
) -> None:
    assert bound(tool("t", "", {"properties": {"a": {}}}, handler), {"a": 1}) == expected


def test_with_a_model_a_handler_gets_an_instance() -> None:
    made = tool("t", "", Place, one_parameter)
    assert bound(made, {"name": "Oslo"}) == ((Place(name="Oslo"),), {})
    assert made.definition.input_schema["required"] == ["name"]


def test_a_context_is_no_argument() -> None:
    @tool
    def work(steps: int, context: ToolContext) -> int:
        context.progress(0.5)
        return steps

    assert list(work.definition.input_schema["properties"]) == ["steps"]
    assert bound(work, {"steps": 2}) == ((), {"steps": 2, "context": CONTEXT})
    assert work(3, ToolContext()) == 3  # a unit test needs nothing else


def test_a_context_may_be_left_out_in_a_unit_test() -> None:
    @tool
    def work(steps: int, context: ToolContext | None = None) -> int:
        return steps if context is None else -steps

    assert list(work.definition.input_schema["properties"]) == ["steps"]
    assert bound(work, {"steps": 2}) == ((), {"steps": 2, "context": CONTEXT})
    assert work(3) == 3


def of_places(
    places: list["Later"],  # noqa: UP037  # text within text, as in a module without the import from __future__
    best: Annotated["Later | None", Field(description="The best")] = None,  # noqa: UP037
) -> dict[str, "Later"]:  # noqa: UP037
    return {place.name: place for place in (*places, *filter(None, [best]))}


class Later(BaseModel):
    name: str


@pytest.mark.parametrize("function", [of_places, partial(of_places, best=None)])
def test_a_hint_within_a_hint_may_name_a_class_that_comes_later(function: Callable[..., Any]) -> None:
    made = tool("places", "", None, function)
    assert made.definition.input_schema["properties"]["places"] == {"type": "array", "items": {"$ref": "#/$defs/Later"}}
    assert bound(made, {"places": [{"name": "Oslo"}]}) == ((), {"places": [Later(name="Oslo")]})
    assert made.definition.output_schema is not None
    assert made.definition.output_schema["additionalProperties"] == {"$ref": "#/$defs/Later"}


def test_a_raw_shape_is_the_schemas_of_the_arguments_by_name() -> None:
    shape = {"include": {"type": "boolean"}, "type": {"type": "string", "default": "x"}, "n": {"required": False}}
    made = tool("z", "z", shape, one_parameter)
    assert made.definition.input_schema == {
        "type": "object",
        "properties": {"include": {"type": "boolean"}, "type": {"type": "string", "default": "x"}, "n": {}},
        "required": ["include"],
        "additionalProperties": False,
    }
    assert given_to(made, {"include": True}) == {"include": True}
    for wrong in ({}, {"include": "yes"}, {"include": True, "incldue": 1}):
        with pytest.raises(InvalidArgumentsError):
            given_to(made, wrong)


def test_a_raw_shape_may_have_python_types() -> None:
    made = tool("z", "z", {"when": date, "include": NotRequired[bool], "many": list[int] | None}, one_parameter)
    assert sorted(made.definition.input_schema["required"]) == ["many", "when"]
    assert given_to(made, {"when": "2026-05-04", "many": None}) == {"when": date(2026, 5, 4), "many": None}
    wrongs: list[Any] = [{"when": "2026-05-04"}, {"when": "soon", "many": None}, {"when": "2026-05-04", "x": 1}]
    for wrong in wrongs:
        with pytest.raises(InvalidArgumentsError):
            given_to(made, wrong)


def given_to(made: InProcessTool[..., Any], arguments: dict[str, Any]) -> Any:
    """What the handler would be called with."""
    ((given,), _) = made.arguments.bind(arguments, ToolContext())
    return given


@pytest.mark.parametrize("names", [["$filter", "$top"], ["definitions"], ["dependencies"], ["a", "$ref"]], ids=str)
def test_a_raw_shape_may_have_names_that_look_like_keywords(names: list[str]) -> None:
    made = tool("z", "z", {name: {"type": "array"} for name in names}, one_parameter)
    assert made.definition.input_schema["required"] == names
    with pytest.raises(InvalidArgumentsError):
        given_to(made, dict.fromkeys(names, "no list"))


OPEN: list[dict[str, Any]] = [
    {},
    {"type": "object"},
    {"properties": {}},
    {"properties": {"a": {"type": "string"}}, "$defs": {}},
    {"additionalProperties": {"type": "string"}},
    {"anyOf": [{"required": ["a"]}]},
    {"type": "object", "items": {}, "x-ours": {"a": 1}, "ours": 1},
]


@pytest.mark.parametrize("schema", OPEN, ids=str)
def test_a_json_schema_is_no_raw_shape(schema: dict[str, Any]) -> None:
    whole: dict[str, Any] = {"type": "object", "properties": {}, **schema}
    assert tool("z", "z", schema, one_parameter).definition.input_schema == whole


MIXTURES: list[Any] = [
    {"items": {"type": "array"}},
    {"x-id": {"type": "string"}},
    {"externalDocs": {"type": "string"}},
    {"$defs": {"a": {"type": "string"}}},
    {"type": "object", "include": {"type": "boolean"}},
    {"properties": {"a": {}}, "include": {"type": "boolean"}},
    {"include": bool, "n": {"type": "string"}},
    {"include": "boolean"},
    {"include": None},
    {"include": True},
    {3: {"type": "string"}},
]


@pytest.mark.parametrize("schema", MIXTURES, ids=str)
def test_what_could_be_a_schema_or_a_raw_shape_is_refused(schema: Any) -> None:
    with pytest.raises(MisuseError, match=r"^the schema of tool 'z' is of type dict: expected "):
        tool("z", "z", schema, one_parameter)


def test_a_schema_that_can_not_be_checked_is_told(caplog: pytest.LogCaptureFixture) -> None:
    tool("t", "", {"properties": {"a": {"type": "numbr"}}}, one_parameter)
    assert caplog.messages == ["The schema of tool 't': not checked: 'type' where it is malformed"]


def test_bound_methods_partials_and_callable_objects_are_functions() -> None:
    assert tool(Clerk().stamp).definition.input_schema["required"] == ["letter"]
    named = tool("stamp", "", None, partial(Clerk().stamp, "a"))
    assert named.definition.name == "stamp"
    assert is_async(Clerk())
    assert not is_async(Clerk().stamp)


def lots(*numbers: int) -> None: ...
def options(**named: int) -> None: ...
def by_place(number: int, /) -> None: ...
def odd(thing: Clerk) -> None: ...
def unknown(thing: Nowhere) -> None: ...  # pyright: ignore[reportUndefinedVariable, reportUnknownParameterType]  # noqa: F821
def explained(number: "how many there are") -> None: ...  # pyright: ignore  # noqa: F722
def three(a: Any, b: Any, c: Any) -> None: ...


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: tool(lots), "'*numbers: int' has no schema"),
        (lambda: tool(options), "'**named: int' has no schema"),
        (lambda: tool(by_place), "can't be passed by name"),
        (lambda: tool(odd), "no schema can be made of its type hints"),
        (lambda: tool(cast("Callable[..., None]", unknown)), "is not found"),
        (lambda: tool(cast("Callable[..., None]", explained)), "got 'how many there are'"),
        (lambda: tool(Clerk.stamp), "not bound"),
        (lambda: tool(lambda: 1), "needs a name"),
        (lambda: tool("", "", {}, no_parameters), "needs a name"),
        (lambda: tool("a\nb", "", {}, no_parameters), "needs a name"),
        (lambda: tool("t", "", {}, three), "one dict or model"),
        (lambda: tool("t", "", {"title": object()}, one_parameter), "no JSON Schema"),
        (lambda: tool("t", "", {"type": "array"}, one_parameter), "arguments are an"),
        (lambda: tool("t", "", 3, one_parameter), "of type int"),  # pyright: ignore[reportArgumentType, reportCallIssue]
        (lambda: tool("t", 3, {}, one_parameter), "description is of type int"),  # pyright: ignore[reportArgumentType, reportCallIssue]
        (lambda: tool("t", "", {}, cast("Callable[..., None]", "x")), "not a function"),  # pyright: ignore[reportArgumentType, reportCallIssue]
        (lambda: tool("t", "", {}, one_parameter, timeout=0), "timeout"),
        (lambda: tool("t", "", {}, one_parameter, timeout=1, quick=True), "where a timeout can't end it"),
        (lambda: tool("t", "", {}, one_parameter, output_schema="x"), "output_schema is of type str, not a mapping"),  # pyright: ignore[reportArgumentType, reportCallIssue]
        (lambda: tool("t", "", {}, one_parameter, annotations=5), "annotations is of type int, not a mapping"),  # pyright: ignore[reportArgumentType, reportCallIssue]
        (lambda: tool("t", output_schema={"a": int})(no_parameters), "given as output_schema has no JSON form"),
        (lambda: tool("t", annotations={"a": object()})(no_parameters), "given as annotations has no JSON form"),
        (lambda: tool(cast("Any", 3)), "neither a function nor a name"),
        (lambda: create_server("s", [cast("Any", tool("t", "Words"))]), "it has no handler yet"),
        (lambda: create_server("s", [5]), "Tool 5: it is of type int"),  # pyright: ignore[reportArgumentType]
        (lambda: create_server("s", ["ping"]), "Tool 'ping': it is of type str"),  # pyright: ignore[reportArgumentType]
        (lambda: tool(forecast), "a tool already"),
    ],
)
def test_a_function_that_can_be_no_tool_is_refused_with_the_reason(make: Callable[[], object], words: str) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        make()
    assert words in str(caught.value)
    assert isinstance(caught.value, ToolbridgeError)
    assert isinstance(caught.value, TypeError)


def test_a_server_is_made_of_tools_and_plain_functions() -> None:
    server = create_server("shop", [forecast, no_parameters], instructions="Ask.", labels=["private"])
    assert (server.name, server.transport, server.labels) == ("shop", "in_process", ("private",))
    listing = server.server.listing("shop")
    assert [each.name for each in listing.tools] == ["forecast", "no_parameters"]
    assert listing.instructions == "Ask."
    assert isinstance(server, ServerConfig)


def test_two_tools_of_one_name_or_a_bad_name_of_a_server_are_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="two tools of this name"):
        create_server("shop", [no_parameters, no_parameters])
    with pytest.raises(ConfigError, match="reserved"):
        create_server("fetch", [])
    with pytest.raises(MisuseError, match="tools is of type function: expected a list"):
        create_server("shop", no_parameters)  # pyright: ignore[reportArgumentType]
    with pytest.raises(MisuseError, match="instructions is of type int: expected text"):
        create_server("shop", [], instructions=3)  # pyright: ignore[reportArgumentType]


def test_one_that_is_awaited_may_be_called_quick_and_have_a_timeout() -> None:
    async def look() -> None: ...

    assert tool(timeout=1, quick=True)(look).timeout == 1.0
