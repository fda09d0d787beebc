"""How the arguments of a call become those of a handler: by its type hints, by a pydantic model, or by a JSON Schema.

pydantic is imported when a tool is made: whoever has none does not pay for it.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, Required, TypeAlias, cast, get_origin

from toolbridge.errors import MisuseError, ToolDefinitionError
from toolbridge.servers.own_signature import is_context
from toolbridge.servers.tool_context import ToolContext

if TYPE_CHECKING:
    from pydantic import BaseModel, TypeAdapter

Call: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional arguments and those by keyword."""
_MOST_PROBLEMS = 5
_log = logging.getLogger("toolbridge")


class InvalidArgumentsError(Exception):
    """Arguments don't fit; the text says which and how."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a tool takes."""

    schema: dict[str, Any]
    bind: Callable[[Mapping[str, Any], ToolContext], Call]
    """Checks arguments, and gives what to call the handler with. Raises InvalidArgumentsError."""
    wants_context: bool


def arguments_from_hints(name: str, signature: inspect.Signature) -> Arguments:
    """By the parameters of the handler: each is a property, and is passed by its name.

    Raises:
        ToolDefinitionError: they can't be.
    """
    from pydantic import Field

    properties: dict[str, Any] = {}
    context: str | None = None
    for parameter in signature.parameters.values():
        if is_context(parameter.annotation):
            context = parameter.name
            continue
        _check_parameter(name, parameter)
        hint = Any if parameter.annotation is parameter.empty else parameter.annotation
        if parameter.default is parameter.empty:
            properties[parameter.name] = Required[hint]
        else:
            # The function knows its own default: it is shown in the schema, and otherwise the function's affair.
            shown = _shown_default(parameter.default)
            properties[parameter.name] = NotRequired[Annotated[hint, Field(json_schema_extra=shown)]]
    adapter, schema = _typed(name, properties, "its type hints")

    def bind(arguments: Mapping[str, Any], given: ToolContext) -> Call:
        checked = _validated(adapter.validator.validate_python, dict(arguments))
        if context is not None:
            checked[context] = given
        return (), checked

    return Arguments(schema, bind, context is not None)


def arguments_from_model(name: str, model: type[BaseModel], signature: inspect.Signature) -> Arguments:
    """By a pydantic model: the handler gets an instance of it, and a context if it takes two."""
    count, by_name = _positional(name, signature)
    schema = json_schema_of(_adapter(model), "validation")

    def bind(arguments: Mapping[str, Any], given: ToolContext) -> Call:
        instance = _validated(model.model_validate, dict(arguments))
        return _as_positional(instance, given, count, by_name)

    return Arguments(schema, bind, count == 2 or by_name is not None)


_OF_NAMES = {"properties", "patternProperties", "dependentSchemas", "dependentRequired", "dependencies"}
"""Keywords about an object whose value is a mapping by names of properties."""
_OF_ARGUMENTS = _OF_NAMES | {"additionalProperties", "propertyNames", "unevaluatedProperties"}
"""Keywords about an object whose value may be a mapping."""
_DEFINITIONS = {"$defs", "definitions"}
_BESIDE = _DEFINITIONS | {"$vocabulary", "discriminator", "externalDocs"}
"""Keywords whose value is a mapping, and which say nothing of an object's properties."""
_OF_OTHERS = {"items", "additionalItems", "contains", "unevaluatedItems", "contentSchema"} | {
    "not",
    "if",
    "then",
    "else",
    "const",
    "default",
    "example",
}
"""Keywords whose value may be a mapping, and which say nothing, or little, of the arguments of a tool."""
_OF_TEXTS = {"type", "enum", "title", "description", "required", "examples", "deprecated", "id", "nullable"} | {
    "allOf",
    "anyOf",
    "oneOf",
    "minProperties",
    "maxProperties",
}
"""Keywords whose value is never a mapping."""
_KEYWORDS = _OF_ARGUMENTS | _BESIDE | _OF_OTHERS | _OF_TEXTS


def arguments_from_mapping(name: str, given: Mapping[str, Any], signature: inspect.Signature) -> Arguments:
    """By a JSON Schema, or by a raw shape: the arguments' names, each with its JSON Schema or Python type.

    Raises:
        MisuseError: it could be either, or is a mixture.
        ToolDefinitionError: it is neither.
    """
    if not all(isinstance(key, str) for key in given):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise MisuseError(f"the schema of tool {name!r}", given, "names that are text")
    values = given.values()
    is_shape = bool(given) and all(isinstance(each, Mapping) for each in values)
    keys = set(given)
    keywords = {key for key in keys if _is_keyword(key, given[key])}
    if bool(given) and all(map(_is_type, values)):
        return _arguments_from_types(name, given, signature)
    if any(map(_is_type, values)) or (keywords and keywords != keys and not keywords <= _OF_OTHERS):
        problem = "a JSON Schema, or a raw shape whose every value is a JSON Schema, or is a Python type: not a mixture"
    elif given and not is_shape and not any(key in _KEYWORDS or key.startswith("$") for key in given):
        problem = 'a JSON Schema, which has one of its keywords, or a raw shape such as {"name": {"type": "string"}}'
    elif is_shape and keywords == keys and keys.isdisjoint(_OF_ARGUMENTS):
        problem = 'a schema that says "type": "object" if these are keywords, and "properties" if they are arguments'
    elif is_shape and keywords != keys:
        return arguments_from_schema(name, _of_shape(given), signature)
    else:
        return arguments_from_schema(name, given, signature)
    raise MisuseError(f"the schema of tool {name!r}", given, problem)


def _is_keyword(key: str, value: object) -> bool:
    """Whether an entry makes sense as one of a JSON Schema."""
    if not isinstance(value, Mapping):
        return True
    if key in _OF_NAMES or key in _DEFINITIONS:
        return all(isinstance(each, Mapping | bool | list) for each in cast("Mapping[str, object]", value).values())
    return key in _OF_ARGUMENTS or key in _BESIDE or key in _OF_OTHERS or key.startswith("x-")


def _is_type(value: object) -> bool:
    return isinstance(value, type) or value is Any or get_origin(value) is not None


def _of_shape(shape: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The JSON Schema of a raw shape: an argument is required unless it has a default, or says `"required": False`."""
    optional = {name for name, each in shape.items() if "default" in each or each.get("required") is False}
    properties = {
        name: {key: value for key, value in each.items() if key != "required" or not isinstance(value, bool)}
        for name, each in shape.items()
    }
    required = [name for name in shape if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _arguments_from_types(name: str, shape: Mapping[str, Any], signature: inspect.Signature) -> Arguments:
    """By Python types: an argument is required unless it is `NotRequired[…]`."""
    count, by_name = _positional(name, signature)
    adapter, schema = _typed(name, dict(shape), "the types of its schema")

    def bind(arguments: Mapping[str, Any], given: ToolContext) -> Call:
        checked = _validated(adapter.validator.validate_python, dict(arguments))
        return _as_positional(checked, given, count, by_name)

    return Arguments(schema, bind, count == 2 or by_name is not None)


def _typed(name: str, properties: dict[str, Any], whose: str) -> tuple[TypeAdapter[dict[str, Any]], dict[str, Any]]:
    from pydantic import ConfigDict, TypeAdapter
    from pydantic.errors import PydanticUserError
    from typing_extensions import TypedDict  # pydantic wants this one on Python 3.11

    kind: Any = TypedDict("Arguments", properties)  # type: ignore[operator]  # made from what the host declared
    kind.__pydantic_config__ = ConfigDict(extra="forbid", arbitrary_types_allowed=False)
    try:
        adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(kind)
        return adapter, json_schema_of(adapter, "validation")
    except (PydanticUserError, TypeError, NameError) as error:
        raise ToolDefinitionError(name, f"no schema can be made of {whose}: {_first_line(error)}") from None


def arguments_from_schema(name: str, schema: Mapping[str, Any], signature: inspect.Signature) -> Arguments:
    """By a JSON Schema: the handler gets one dict, and a context if it takes two."""
    from toolbridge.servers.schema_checks import ToolChecks
    from toolbridge_codegen.catalog import ToolDefinition

    count, by_name = _positional(name, signature)
    problem = "its schema is no JSON Schema: give one, or a pydantic model, or leave it to the type hints"
    whole = {"type": "object", **plain_json(schema, name, problem)}
    if whole["type"] != "object":
        raise ToolDefinitionError(name, f'its schema has the type {whole["type"]!r}: arguments are an "object"')
    whole.setdefault("properties", {})
    checks = ToolChecks(ToolDefinition(name, whole))
    for note in checks.notes:
        _log.warning("The schema of tool %r: %s", name, note)

    def bind(arguments: Mapping[str, Any], given: ToolContext) -> Call:
        problems = checks.argument_problems(arguments)
        if problems:
            raise InvalidArgumentsError("; ".join(problems[:_MOST_PROBLEMS]))
        return _as_positional(dict(arguments), given, count, by_name)

    return Arguments(whole, bind, count == 2 or by_name is not None)


def json_schema_of(adapter: TypeAdapter[Any], mode: str) -> dict[str, Any]:
    """The JSON Schema of a type, without the titles that only repeat names."""
    from pydantic.json_schema import GenerateJsonSchema

    class Untitled(GenerateJsonSchema):
        def field_title_should_be_set(self, schema: Any) -> bool:
            del schema
            return False

    schema = adapter.json_schema(schema_generator=Untitled, mode=cast("Any", mode))
    schema.pop("title", None)
    return schema


def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _validated(validate: Callable[[Any], Any], arguments: dict[str, Any]) -> Any:
    try:
        return validate(arguments)
    except ValueError as error:
        from pydantic import ValidationError

        if not isinstance(error, ValidationError):
            raise
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        texts = [f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg']}" for each in problems]
        raise InvalidArgumentsError("; ".join(texts[:_MOST_PROBLEMS])) from None


def _check_parameter(name: str, parameter: inspect.Parameter) -> None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise ToolDefinitionError(name, f"its parameter {str(parameter)!r} has no schema: name each one, or give one")
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise ToolDefinitionError(name, f"its parameter {parameter.name!r} can't be passed by name: remove the '/'")
    if parameter.name in ("self", "cls") and parameter.annotation is parameter.empty:
        raise ToolDefinitionError(name, "it is a method that is not bound: give `tool(object.method)`")


def _positional(name: str, signature: inspect.Signature) -> tuple[int, str | None]:
    """How many positional arguments a handler of a given schema takes, and which parameter is its context by its type.

    `handler()`, `handler(arguments)` and `handler(arguments, context)` are all fine; defaults are left alone.
    """
    parameters = list(signature.parameters.values())
    context = next((each.name for each in parameters if is_context(each.annotation)), None)
    needed = [each for each in parameters if each.default is each.empty and each.name != context]
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    by_place = [each for each in needed if each.kind in kinds]
    is_fine = len(by_place) <= (2 if context is None else 1)
    if not is_fine or any(each.kind is each.KEYWORD_ONLY for each in needed):
        takes = "with a schema, a handler takes the arguments as one dict or model, and maybe a ToolContext"
        raise ToolDefinitionError(name, f"{takes}; this one has the signature {signature}")
    is_open = any(each.kind in (*kinds, each.VAR_POSITIONAL) for each in parameters if each.name != context)
    return len(by_place) or int(is_open), context


def _as_positional(arguments: Any, context: ToolContext, count: int, by_name: str | None) -> Call:
    return (arguments, context)[:count], {} if by_name is None else {by_name: context}


def _shown_default(default: object) -> dict[str, Any]:
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return {"default": to_jsonable_python(default)}
    except (PydanticSerializationError, ValueError, TypeError):
        return {}


def plain_json(given: Mapping[str, Any], name: str, problem: str) -> dict[str, Any]:
    """A copy that is JSON all through: not of Python types, and not to be changed afterwards.

    Raises:
        ToolDefinitionError: it has no JSON form.
    """
    import json

    try:
        return json.loads(json.dumps(dict(given), allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise ToolDefinitionError(name, problem) from None


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0].removesuffix(".")
