"""The parameters of a host's function with the types that their hints mean, also where a hint is written as text.

`inspect` reads a hint that is text as a whole. One inside another, as in `list["Place"]`, it leaves alone, and so a
second reading is needed in the same module.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, cast, get_args, get_type_hints

from toolbridge.errors import ToolDefinitionError
from toolbridge.servers.own_typed_dicts import readable
from toolbridge.servers.tool_context import ToolContext


def signature_of(name: str, function: Callable[..., Any]) -> inspect.Signature:
    """What a function takes and returns, every hint a type.

    Raises:
        ToolDefinitionError: it is not known, or a hint means nothing.
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
    hints = {each.name: each.annotation for each in signature.parameters.values()}
    hints["return"] = signature.return_annotation  # no parameter can be called so
    known = {name: hint for name, hint in hints.items() if hint is not inspect.Parameter.empty}
    read = get_type_hints(SimpleNamespace(__annotations__=known), names, include_extras=True)
    types = {name: readable(hint) for name, hint in read.items()}
    parameters = [each.replace(annotation=types.get(each.name, each.empty)) for each in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=types.get("return", inspect.Signature.empty))


def _globals_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Of the module in which the hints were written."""
    while isinstance(function, partial):
        function = cast("partial[Any]", function).func
    function = inspect.unwrap(function)
    if not hasattr(function, "__globals__"):
        function = type(function).__call__  # an object's
    return getattr(function, "__globals__", {})
