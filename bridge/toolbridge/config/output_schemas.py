"""An operator's schemas for the results of tools that have none: written out, or in a file beside the configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from toolbridge.config.read_file import read_object
from toolbridge.config.values import pairs, wrong
from toolbridge.config.wording import shown_path
from toolbridge.errors import ConfigError

_FORM = 'an object such as {"get_forecast": {"type": "object", "properties": {…}}}, or the path of a file that has one'


def from_file(value: object, field: str, absolute: Callable[[str], str]) -> object:
    """What a file has, if its path is given; else what was given.

    Raises:
        ConfigError: it can't be read, or is not a JSON object.
    """
    if not isinstance(value, str) or not value.strip():
        return value
    path = absolute(value)
    try:
        return read_object(path, form='{"get_forecast": {"type": "object"}}')
    except ConfigError as error:  # the field names a file, and it is that one that something is wrong with
        problem, fix = f"{shown_path(path)}: {error.problem}", error.fix
    raise ConfigError(problem, field=field, fix=fix)


def output_schemas(value: object, field: str) -> Mapping[str, Mapping[str, Any]]:
    """A schema by the name of its tool."""
    if not isinstance(value, Mapping):
        raise wrong(value, field, _FORM)
    schemas: dict[str, Mapping[str, Any]] = {}
    for tool, schema in pairs(cast("object", value), field).items():
        if not tool:
            raise ConfigError("a tool's name is empty.", field=field)
        schemas[tool] = pairs(schema, f"{field}.{tool[:60]}")
    return schemas
