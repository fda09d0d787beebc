"""Tools that are functions of the host's own: `@tool`, or `tool(name, description, schema, handler)`.

A tool stays the function that it was made of: calling it calls the function, as a unit test does.
"""

from __future__ import annotations

import base64
import inspect
import math
import sys
from collections.abc import Callable, Mapping
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeAlias, TypeVar, cast, overload

from toolbridge.errors import ToolDefinitionError, reports_misuse
from toolbridge.servers.listing import MAX_NAME
from toolbridge.tools.binding import (
    ArgumentBinding,
    arguments_from_hints,
    arguments_from_mapping,
    arguments_from_model,
    json_schema_of,
    plain_json,
    signature_of,
)
from toolbridge_codegen.catalog import ToolDefinition

if TYPE_CHECKING:
    from pydantic import BaseModel, TypeAdapter


_SCALARS = frozenset({str, int, bool})
_RESULT_FIELDS = frozenset({"content", "structuredContent", "isError", "_meta"})


def result_of(value: Any, adapter: TypeAdapter[Any] | None) -> dict[str, Any]:
    """Build the raw result for a handler's return value; a value without a JSON form is a tool error."""
    if value is None:
        return {"content": []}
    if isinstance(value, (bytes, bytearray)):
        return {"content": [_data_block(bytes(value))]}
    if (given := _given_result(value)) is not None:
        return given
    try:
        return {"structuredContent": _as_json(value, adapter)}
    except (ValueError, TypeError, RecursionError) as error:
        return error_of(f"its result has no JSON form: {(str(error) or type(error).__name__).splitlines()[0]}")


def error_of(text: str) -> dict[str, Any]:
    """Build, not raise, the raw result of a tool that failed."""
    return {"isError": True, "content": [{"type": "text", "text": text}]}


def _as_json(value: Any, adapter: TypeAdapter[Any] | None) -> Any:
    """Convert a handler's result to JSON values, by its adapter if there is one. Raises ValueError or TypeError."""
    if type(value) in _SCALARS or (type(value) is float and math.isfinite(value)):
        return value
    if adapter is not None:
        return adapter.serializer.to_python(value, mode="json", by_alias=True, warnings=False)
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value, by_alias=True)


def _given_result(value: Any) -> dict[str, Any] | None:
    """Return a raw result that a handler gave, an SDK object or `{"content": [{"type": …}]}`, as a dict; else None."""
    if type(value) is not dict:
        types = sys.modules.get("mcp_types")  # nobody can return what was never imported
        if types is not None and isinstance(value, types.CallToolResult):
            return cast("dict[str, Any]", value.model_dump(mode="json", by_alias=True, exclude_none=True))
        return None
    members = cast("dict[str, Any]", value)
    content = members.get("content")
    if not isinstance(content, list) or not _RESULT_FIELDS.issuperset(members):
        return None
    blocks = cast("list[Any]", content)
    is_result = all(map(_is_block, blocks)) and (blocks or "isError" in members)
    return members if is_result else None


def _is_block(block: object) -> bool:
    return isinstance(block, Mapping) and isinstance(cast("Mapping[str, Any]", block).get("type"), str)


def _data_block(data: bytes) -> dict[str, Any]:
    encoded = base64.b64encode(data).decode("ascii")
    return {"type": "resource", "resource": {"mimeType": "application/octet-stream", "blob": encoded}}


P = ParamSpec("P")
R = TypeVar("R")
_DECORATOR = "tool.<locals>.make"
"""What `tool` gives when it has no handler: a mistake where a tool is expected."""
InputSchema: TypeAlias = "Mapping[str, Any] | type[BaseModel]"


class InProcessTool(Generic[P, R]):
    """A function of the host as a tool, still callable. Made by `tool`."""

    __name__: str

    def __init__(
        self,
        handler: Callable[P, R],
        definition: ToolDefinition,
        arguments: ArgumentBinding,
        *,
        output: TypeAdapter[Any] | None,
        timeout: float | None,
        quick: bool,
    ) -> None:
        self.handler = handler
        self.definition = definition
        self.arguments = arguments
        self.output = output
        """How its results are written as JSON; None: as they are."""
        self.timeout = timeout
        self.is_async = is_async(handler)
        self.is_quick = quick
        """Whether its author promises that it never blocks: it is called on the event loop itself."""
        self.was_quick = False
        """Whether its last call returned at once: see `concurrency.THREADS`."""
        update_wrapper(self, handler)

    @property
    def name(self) -> str:
        """Its name."""
        return self.definition.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself: nothing is checked, and what it raises is raised."""
        return self.handler(*args, **kwargs)

    def __repr__(self) -> str:
        return f"InProcessTool({self.name!r})"


@overload
def tool(name: Callable[P, R], /) -> InProcessTool[P, R]: ...
@overload
def tool(
    name: str | None = None,
    description: str | None = None,
    schema: InputSchema | None = None,
    *,
    title: str = "",
    output_schema: Mapping[str, Any] | None = None,
    annotations: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    quick: bool = False,
) -> Callable[[Callable[P, R]], InProcessTool[P, R]]: ...
@overload
def tool(
    name: str | None,
    description: str | None,
    schema: InputSchema | None,
    handler: Callable[P, R],
    *,
    title: str = "",
    output_schema: Mapping[str, Any] | None = None,
    annotations: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    quick: bool = False,
) -> InProcessTool[P, R]: ...
@reports_misuse
def tool(
    name: Any = None,
    description: str | None = None,
    schema: InputSchema | None = None,
    handler: Callable[..., Any] | None = None,
    *,
    title: str = "",
    output_schema: Mapping[str, Any] | None = None,
    annotations: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    quick: bool = False,
) -> Any:
    """Make a tool of a function: as a decorator, with or without arguments, or as a function.

    What is left out comes from the function: its name, its docstring, and a schema from its type hints. With a schema
    of your own, the handler gets the arguments as one dict, or one instance: a JSON Schema, a pydantic model, or a raw
    shape, which is a JSON Schema or a Python type by each argument's name. A parameter of type `ToolContext` is not an
    argument. A call takes at most `timeout` seconds. A plain function runs on a thread beside the event loop; one that
    is `quick`, which computes for a moment and never waits, right on it, and so without a timeout.

    Raises:
        ToolDefinitionError: the function can't be a tool as it is.
        MisuseError: what is given as schema could be a JSON Schema or a raw shape.
    """
    if handler is None and callable(name):
        name, handler = None, name
    if name is not None and not isinstance(name, str):
        raise ToolDefinitionError(name, f"it is of type {type(name).__name__}, neither a function nor a name")

    def make(function: Callable[..., Any]) -> InProcessTool[..., Any]:
        """Build the tool of a function. Raises `ToolDefinitionError`."""
        named = _name(name, function)
        words = _text(named, "description", inspect.getdoc(function) or "" if description is None else description)
        given_output = _mapping(named, "output_schema", output_schema)
        hints = _mapping(named, "annotations", annotations)
        signature = signature_of(named, function)
        arguments = _arguments(named, schema, signature)
        output, produced = (None, given_output) if schema is not None else _output(signature, given_output)
        definition = ToolDefinition(
            name=named,
            title=_text(named, "title", title),
            description=words,
            input_schema=arguments.schema,
            output_schema=produced,
            annotations=hints or {},
        )
        seconds = _seconds(named, timeout)
        if quick and seconds is not None and not is_async(function):
            problem = "it is quick, so it runs on the event loop, where a timeout can't end it: leave one of them out"
            raise ToolDefinitionError(named, problem)
        return InProcessTool(function, definition, arguments, output=output, timeout=seconds, quick=quick)

    return make if handler is None else make(handler)


def is_async(handler: Callable[..., Any]) -> bool:
    """Return whether calling a handler surely returns a coroutine; partials and callable objects are looked through."""
    while isinstance(handler, partial):
        handler = cast("partial[Any]", handler).func
    called: object = getattr(handler, "__call__", None)  # noqa: B004  # an object's own, which may be async
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(called)


def _name(given: object, function: Callable[..., Any]) -> str:
    """Return the tool's name, given or the function's. Raises `ToolDefinitionError` for a bad name or handler."""
    name = getattr(function, "__name__", "") if given is None else given
    if isinstance(function, InProcessTool):
        raise ToolDefinitionError(name, "it is a tool already")
    if not callable(function):
        raise ToolDefinitionError(name, f"its handler is of type {type(function).__name__}, not a function")
    if getattr(function, "__qualname__", "") == _DECORATOR and getattr(function, "__module__", "") == __name__:
        raise ToolDefinitionError(name, "it has no handler yet: `tool(…)` without one is a decorator")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or not name.isprintable() or name == "<lambda>":
        raise ToolDefinitionError(name, "a tool needs a name: give one")
    return name


def _text(name: str, field: str, value: object) -> str:
    """Return `value` if it is text. Raises `ToolDefinitionError` otherwise, which names the field."""
    if not isinstance(value, str):
        raise ToolDefinitionError(name, f"its {field} is of type {type(value).__name__}, not text")
    return value


def _mapping(name: str, field: str, value: object) -> dict[str, Any] | None:
    """Return a JSON copy of a mapping, or None. Raises `ToolDefinitionError` if it is neither, or has no JSON form."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise ToolDefinitionError(name, f"its {field} is of type {type(value).__name__}, not a mapping")
    return plain_json(cast("Mapping[str, Any]", value), name, f"what is given as {field} has no JSON form")


def _seconds(name: str, timeout: object) -> float | None:
    """Return a timeout as a float, or None. Raises `ToolDefinitionError` unless it is above 0 and up to 3600."""
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout <= 3600:
        raise ToolDefinitionError(name, "its timeout is a number of seconds, above 0 and up to 3600")
    return float(timeout)


def _arguments(name: str, schema: object, signature: inspect.Signature) -> ArgumentBinding:
    """Build the binding that `schema` asks for: None, a mapping or a pydantic model. Raises `ToolDefinitionError`."""
    if schema is None:
        return arguments_from_hints(name, signature)
    if isinstance(schema, Mapping):
        return arguments_from_mapping(name, cast("Mapping[str, Any]", schema), signature)
    from pydantic import BaseModel

    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return arguments_from_model(name, schema, signature)
    kind = type(cast("object", schema)).__name__
    raise ToolDefinitionError(name, f"its schema is of type {kind}: give a JSON Schema or a pydantic model")


def _output(
    signature: inspect.Signature, given: dict[str, Any] | None
) -> tuple[TypeAdapter[Any] | None, dict[str, Any] | None]:
    """Return the adapter that writes results as JSON, and their schema: as given, else from the return type.

    No adapter, and only a given schema, where there is no return type or pydantic does not know it.
    """
    returned: Any = signature.return_annotation
    if returned in (signature.empty, Any, object, bytes, bytearray, type(None)):
        return None, given
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(returned)
        return adapter, given if given is not None else json_schema_of(adapter, "serialization")
    except (PydanticUserError, TypeError, NameError):
        return None, given  # a class that pydantic does not know: its results are looked at one by one
