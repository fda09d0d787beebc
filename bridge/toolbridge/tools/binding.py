"""Binds the arguments of a call to a handler: by its type hints, a pydantic model, or a JSON Schema.

pydantic is imported when the first tool is made, so hosts without tools don't pay for it.
"""

from __future__ import annotations

import inspect
import logging
import math
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import GenericAlias, SimpleNamespace, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    TypeAlias,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from toolbridge.errors import MisuseError, ToolDefinitionError

if TYPE_CHECKING:
    from pydantic import BaseModel, TypeAdapter


# Type hints with `typing.TypedDict` in them, made readable for pydantic, which on Python 3.11 reads only another one.
#
# It wants that of `typing_extensions`, which is the same to whoever uses it. Newer Pythons need none of this.


IS_NEEDED = sys.version_info < (3, 12)


def readable(hint: Any) -> Any:
    """Convert a hint for pydantic on Python 3.11; a recursive hint is left unchanged, and pydantic rejects it."""
    return _readable(hint, {}) if IS_NEEDED else hint


def _readable(hint: Any, made: dict[Any, Any]) -> Any:
    """Replace `typing`'s TypedDicts in a hint, at any depth, by those of `typing_extensions`; `made` caches them."""
    if is_typeddict(hint) and type(hint).__module__ == "typing":
        if hint not in made:
            made[hint] = hint  # while it is being made
            made[hint] = _made_readable(hint, made)
        return made[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is None or origin is Literal:
        return hint
    inner = tuple(_readable(each, made) for each in arguments)
    if inner == arguments:
        return hint
    if origin is Annotated:
        return Annotated[inner]
    if origin in (Union, UnionType):
        return Union[inner]  # noqa: UP007  # of a tuple
    return GenericAlias(origin, inner) if isinstance(hint, GenericAlias) else hint.copy_with(inner)


def _made_readable(kind: Any, made: dict[Any, Any]) -> Any:
    """Build the `typing_extensions` TypedDict with the members, docstring and configuration of `kind`."""
    from typing_extensions import TypedDict

    members: dict[str, Any] = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        # What the class knows of its keys is wrong where hints are text: it has not read them.
        is_marked = get_origin(hint) in (Required, NotRequired)
        is_required = get_origin(hint) is Required if is_marked else name in kind.__required_keys__
        bare = get_args(hint)[0] if is_marked else hint
        members[name] = (Required if is_required else NotRequired)[_readable(bare, made)]
    same: Any = TypedDict(kind.__name__, members)  # type: ignore[operator]  # made from what the host declared
    same.__doc__, same.__module__ = kind.__doc__, kind.__module__
    if hasattr(kind, "__pydantic_config__"):
        same.__pydantic_config__ = kind.__pydantic_config__
    return same


# What a tool of the host's own may ask for: where it is called, and a way to say how far it is.


MOST_MESSAGE = 200


@dataclass(frozen=True, slots=True)
class ToolContext:
    """A handler gets one by declaring a parameter of this type. In a unit test, `ToolContext()` does."""

    server: str = ""
    tool: str = ""
    _report: OnProgress | None = field(default=None, repr=False, compare=False)

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Report progress to observers; thread-safe. Ignored if nobody listens or a number is not finite."""
        if self._report is None or not math.isfinite(done) or (total is not None and not math.isfinite(total)):
            return
        self._report(float(done), None if total is None else float(total), str(message)[:MOST_MESSAGE])


def on_loop_thread(report: OnProgress, post: Callable[[Callable[[], Any]], Any]) -> OnProgress:
    """Wrap a progress callback, on the event loop's thread, to be thread-safe: other threads' calls are posted."""
    home = threading.get_ident()

    def tell(done: float, total: float | None, message: str) -> None:
        """Report at once on the event loop's thread, else post; dropped once the event loop is closed."""
        if threading.get_ident() == home:
            report(done, total, message)
        else:
            try:
                post(partial(report, done, total, message))
            except RuntimeError:  # the event loop is closed
                return

    return tell


# The parameters of a host's function with the types that their hints mean, also where a hint is written as text.
#
# `inspect` reads a hint that is text as a whole. One inside another, as in `list["Place"]`, it leaves alone, and so a
# second reading is needed in the same module.


def signature_of(name: str, function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function with every type hint evaluated, also those written as text.

    Raises:
        ToolDefinitionError: it has no known signature, or a hint can't be evaluated.
    """
    try:
        signature = inspect.signature(function, eval_str=True)
        return _with_types(signature, _globals_of(function))
    except (NameError, AttributeError, SyntaxError) as error:
        problem = f"the type in one of its hints is not found ({error}): define it in the module, or give a schema"
        raise ToolDefinitionError(name, problem) from None
    except (TypeError, ValueError):
        raise ToolDefinitionError(name, "its signature is not known: wrap it in a function of your own") from None


def is_context(annotation: object) -> bool:
    """Whether a parameter takes a ToolContext, also one that may be None: so a unit test can leave it out."""
    return annotation is ToolContext or ToolContext in get_args(annotation)


def _with_types(signature: inspect.Signature, names: dict[str, Any]) -> inspect.Signature:
    """Return the signature with hints evaluated by these global names and made readable for pydantic."""
    hints = {each.name: each.annotation for each in signature.parameters.values()}
    hints["return"] = signature.return_annotation  # no parameter can be called so
    known = {name: hint for name, hint in hints.items() if hint is not inspect.Parameter.empty}
    read = get_type_hints(SimpleNamespace(__annotations__=known), names, include_extras=True)
    types = {name: readable(hint) for name, hint in read.items()}
    parameters = [each.replace(annotation=types.get(each.name, each.empty)) for each in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=types.get("return", inspect.Signature.empty))


def _globals_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the globals of the module in which the hints were written; wrappers and partials are looked through."""
    while isinstance(function, partial):
        function = cast("partial[Any]", function).func
    function = inspect.unwrap(function)
    if not hasattr(function, "__globals__"):
        function = type(function).__call__  # an object's
    return getattr(function, "__globals__", {})


Call: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional arguments and those by keyword."""
_MOST_PROBLEMS = 5
_log = logging.getLogger("toolbridge")


class InvalidArgumentsError(Exception):
    """Arguments don't match the schema; the text says which and how."""


@dataclass(frozen=True, slots=True)
class ArgumentBinding:
    """The input schema of a tool, and the binding of arguments to its handler."""

    schema: dict[str, Any]
    bind: Callable[[Mapping[str, Any], ToolContext], Call]
    """Validates arguments and returns those of the handler; raises InvalidArgumentsError."""
    wants_context: bool


def arguments_from_hints(name: str, signature: inspect.Signature) -> ArgumentBinding:
    """Build the binding of arguments to a handler's parameters: each is a property of the schema, passed by name.

    Raises:
        ToolDefinitionError: a parameter can't be passed by name, or its hint has no schema.
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
        """Validate and coerce arguments, and add the context. Raises `InvalidArgumentsError`."""
        checked = _validated(adapter.validator.validate_python, dict(arguments))
        if context is not None:
            checked[context] = given
        return (), checked

    return ArgumentBinding(schema, bind, context is not None)


def arguments_from_model(name: str, model: type[BaseModel], signature: inspect.Signature) -> ArgumentBinding:
    """Build the binding of arguments to one instance of a pydantic model, and a context if the handler takes one.

    Raises:
        ToolDefinitionError: the handler takes other parameters.
    """
    count, by_name = _positional(name, signature)
    schema = json_schema_of(_adapter(model), "validation")

    def bind(arguments: Mapping[str, Any], given: ToolContext) -> Call:
        instance = _validated(model.model_validate, dict(arguments))
        return _as_positional(instance, given, count, by_name)

    return ArgumentBinding(schema, bind, count == 2 or by_name is not None)


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


def arguments_from_mapping(name: str, given: Mapping[str, Any], signature: inspect.Signature) -> ArgumentBinding:
    """Build the binding for a JSON Schema, or a raw shape: the arguments' names, each with its JSON Schema or type.

    Raises:
        MisuseError: it could be either, or is a mixture.
        ToolDefinitionError: it is neither, or the handler takes other parameters.
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
    """Return whether an entry makes sense as a keyword of a JSON Schema with this value."""
    if not isinstance(value, Mapping):
        return True
    if key in _OF_NAMES or key in _DEFINITIONS:
        return all(isinstance(each, Mapping | bool | list) for each in cast("Mapping[str, object]", value).values())
    return key in _OF_ARGUMENTS or key in _BESIDE or key in _OF_OTHERS or key.startswith("x-")


def _is_type(value: object) -> bool:
    return isinstance(value, type) or value is Any or get_origin(value) is not None


def _of_shape(shape: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a raw shape's JSON Schema: arguments are required but for a default or `"required": False`."""
    optional = {name for name, each in shape.items() if "default" in each or each.get("required") is False}
    properties = {
        name: {key: value for key, value in each.items() if key != "required" or not isinstance(value, bool)}
        for name, each in shape.items()
    }
    required = [name for name in shape if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _arguments_from_types(name: str, shape: Mapping[str, Any], signature: inspect.Signature) -> ArgumentBinding:
    """Build the binding of arguments to one dict by Python types; required unless they are `NotRequired[…]`."""
    count, by_name = _positional(name, signature)
    adapter, schema = _typed(name, dict(shape), "the types of its schema")

    def bind(arguments: Mapping[str, Any], given: ToolContext) -> Call:
        """Validate and coerce arguments. Raises `InvalidArgumentsError`."""
        checked = _validated(adapter.validator.validate_python, dict(arguments))
        return _as_positional(checked, given, count, by_name)

    return ArgumentBinding(schema, bind, count == 2 or by_name is not None)


def _typed(name: str, properties: dict[str, Any], whose: str) -> tuple[TypeAdapter[dict[str, Any]], dict[str, Any]]:
    """Build the validator and JSON Schema of an object with these typed properties and no others.

    Raises:
        ToolDefinitionError: pydantic can't; the message names them as `whose`.
    """
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


def arguments_from_schema(name: str, schema: Mapping[str, Any], signature: inspect.Signature) -> ArgumentBinding:
    """Build the binding of arguments to one dict by a JSON Schema, and a context if the handler takes one.

    Logs a warning for each note about the schema.

    Raises:
        ToolDefinitionError: it is no JSON Schema of an object, or the handler takes other parameters.
    """
    from toolbridge.schema.validate import ToolValidator
    from toolbridge_codegen.catalog import ToolDefinition

    count, by_name = _positional(name, signature)
    problem = "its schema is no JSON Schema: give one, or a pydantic model, or leave it to the type hints"
    whole = {"type": "object", **plain_json(schema, name, problem)}
    if whole["type"] != "object":
        raise ToolDefinitionError(name, f'its schema has the type {whole["type"]!r}: arguments are an "object"')
    whole.setdefault("properties", {})
    checks = ToolValidator(ToolDefinition(name, whole))
    for note in checks.notes:
        _log.warning("The schema of tool %r: %s", name, note)

    def bind(arguments: Mapping[str, Any], given: ToolContext) -> Call:
        """Check arguments against the schema. Raises `InvalidArgumentsError`."""
        problems = checks.argument_problems(arguments)
        if problems:
            raise InvalidArgumentsError("; ".join(problems[:_MOST_PROBLEMS]))
        return _as_positional(dict(arguments), given, count, by_name)

    return ArgumentBinding(whole, bind, count == 2 or by_name is not None)


def json_schema_of(adapter: TypeAdapter[Any], mode: str) -> dict[str, Any]:
    """Return the JSON Schema of a type, without the titles that only repeat names; `mode` is pydantic's."""
    from pydantic.json_schema import GenerateJsonSchema

    class Untitled(GenerateJsonSchema):
        def field_title_should_be_set(self, schema: Any) -> bool:
            del schema
            return False

    schema = adapter.json_schema(schema_generator=Untitled, mode=cast("Any", mode))
    schema.pop("title", None)
    return schema


def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Return pydantic's adapter of a type; imports pydantic only now."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _validated(validate: Callable[[Any], Any], arguments: dict[str, Any]) -> Any:
    """Call a pydantic validator; its ValidationError becomes an `InvalidArgumentsError` without the values."""
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
    """Raise `ToolDefinitionError` for a parameter that can't be passed by name, or an unbound `self`."""
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise ToolDefinitionError(name, f"its parameter {str(parameter)!r} has no schema: name each one, or give one")
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise ToolDefinitionError(name, f"its parameter {parameter.name!r} can't be passed by name: remove the '/'")
    if parameter.name in ("self", "cls") and parameter.annotation is parameter.empty:
        raise ToolDefinitionError(name, "it is a method that is not bound: give `tool(object.method)`")


def _positional(name: str, signature: inspect.Signature) -> tuple[int, str | None]:
    """Count the positional arguments that a handler takes, and name the parameter that is a context by its type.

    `handler()`, `handler(arguments)` and `handler(arguments, context)` are all fine; defaults are left alone.

    Raises:
        ToolDefinitionError: it needs others.
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
    """Return a parameter's default as a part of its JSON Schema; empty if it has no JSON form."""
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return {"default": to_jsonable_python(default)}
    except (PydanticSerializationError, ValueError, TypeError):
        return {}


def plain_json(given: Mapping[str, Any], name: str, problem: str) -> dict[str, Any]:
    """Return a deep copy that is plain JSON; `name` is the tool's.

    Raises:
        ToolDefinitionError: it has no JSON form; with `problem` as its text.
    """
    import json

    try:
        return json.loads(json.dumps(dict(given), allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise ToolDefinitionError(name, problem) from None


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0].removesuffix(".")


OnProgress: TypeAlias = Callable[[float, float | None, str], None]
"""Progress callback: done, total if known, and a message. Called on the event loop's thread."""
