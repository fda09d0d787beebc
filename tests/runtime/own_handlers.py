"""Functions of a host as tools: for each kind of function, what it may return and raise."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import math
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import pydantic

from runtime.programs import Program
from toolbridge import (
    ServerConfig,
    create_server,
    tool,
)


@dataclasses.dataclass
class Point:
    x: int
    y: float = math.nan


class Colour(enum.Enum):
    RED = "red"


class Model(pydantic.BaseModel):
    name: str = pydantic.Field(default="n", serialization_alias="given-name")
    when: datetime.date = datetime.date(2026, 1, 2)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


VALUES: dict[str, Any] = {
    **{f"scalar_{number}": value for number, value in enumerate([None, True, False, 0, -1, 1.5, "", "x", "é\u2028🙂"])},
    **{f"integer_{number}": value for number, value in enumerate([2**53 - 1, 2**53, -(2**53), 2**64, 10**400])},
    **{f"float_{number}": value for number, value in enumerate([1e16, 5e-324, 1.7e308, math.nan, math.inf, -0.0])},
    "lone_surrogate": "\ud800",
    "key_surrogate": {"\udfff": 1},
    "digits": "1234567890123456789",
    "many": "x" * 2_000,
    "empty_list": [],
    "list": [1, [2, {"a": None}]],
    "tuple": (1, 2),
    "empty_object": {},
    "object": {"a": {"b": [None]}},
    "large_object": {"a": "x" * 2_000},
    "large_inside": {"a": [2**60]},
    "nan_inside": {"a": [math.nan, 1]},
    "wrapped": {"result": 5},
    "wrapped_list": {"result": [2**60]},
    "not_wrapped": {"result": 5, "b": 1},
    "no_content": {"content": []},
    "content": {"content": [{"type": "text", "text": "hi"}]},
    "json_content": {"content": [{"type": "text", "text": ' {"a": 1e2}'}]},
    "odd_content": {"content": "x"},
    "structured": {"structuredContent": {"a": 1}},
    "both": {"content": [], "structuredContent": {"a": 1}, "isError": False},
    "error": {"content": [{"type": "text", "text": "no"}], "isError": True},
    "image": {"content": [{"type": "image"}]},
    "bytes": b"\x00\xff",
    "bytearray": bytearray(b"text"),
    "no_bytes": b"",
    "bytes_inside": {"a": b"x"},
    "date": datetime.date(2026, 1, 2),
    "dates": {"a": [datetime.timedelta(1)]},
    "decimal": decimal.Decimal("1.10"),
    "point": Point(1),
    "points": [Point(1, 2.0)],
    "model": Model(),
    "models": {"a": Model()},
    "enum": Colour.RED,
    "set": {1},
    "object_of_the_host": object(),
    "inside": {"a": object()},
    "keys": {1: 2, None: 3},
    "deep": nested(3_000),
    "somewhat_deep": nested(150),
    "type": int,
    "generator": (number for number in range(0)),
}
ERRORS: dict[str, Callable[[], BaseException]] = {
    "value_error": lambda: ValueError("no \x1b[31m such"),
    "stop": StopIteration,
    "exit": lambda: SystemExit(3),
    "bare": Exception,
    "group": lambda: ExceptionGroup("many", [ValueError("one")]),
    "timeout": TimeoutError,
}
HINTS: dict[str, Any] = {
    "anything": Any,
    "integer": int,
    "text": str,
    "numbers": list[int],
    "open": dict[str, Any],
    "model": Model,
    "maybe": int | None,
    "point": Point,
    "float": float,
}


def quickly(name: str, act: Callable[[], Any], hint: Any) -> Any:
    def handler() -> Any:
        return act()

    handler.__annotations__["return"] = hint
    return tool(name, "", None, handler, quick=True)


def awaited(name: str, act: Callable[[], Any], hint: Any) -> Any:
    async def handler() -> Any:
        await anyio.lowlevel.checkpoint()
        return act()

    handler.__annotations__["return"] = hint
    return tool(name, "", None, handler)


def on_a_thread(name: str, act: Callable[[], Any], hint: Any) -> Any:
    def handler() -> Any:
        return act()

    handler.__annotations__["return"] = hint
    return tool(name, "", None, handler)


def later(name: str, act: Callable[[], Any], hint: Any) -> Any:
    """A plain function that says it is quick, and gives something to await."""

    async def wait() -> Any:
        await anyio.lowlevel.checkpoint()
        return act()

    def handler() -> Awaitable[Any]:
        return wait()

    handler.__annotations__["return"] = hint
    return tool(name, "", None, handler, quick=True)


KINDS = (quickly, awaited, on_a_thread, later)


def raising(make: Callable[[], BaseException]) -> Callable[[], Any]:
    def act() -> Any:
        raise make()

    return act


def returning(value: Any) -> Callable[[], Any]:
    return lambda: value


EVERYTHING = Program(
    """
const own = require("host:mcp-own");
const told = (value) => value && value.mime ? [value.mime, value.size, value.name ?? null] : JSON.stringify(value);
Object.keys(own).sort().map((name) => {
  try { return [name, typeof own[name], told(own[name]())]; } catch (error) {
    return [name, error.name, error.kind, error.message, error.server, error.tool];
  }
})
    """,
    """
import json
from host import mcp_own as own
def told(name):
    try:
        value = getattr(own, name)()
        return [name, [value.mime, value.size] if hasattr(value, "mime") else repr(value)]
    except Exception as error:
        return [name, type(error).__name__, error.kind, str(error), error.server, error.tool]
[told(name) for name in sorted(dir(own)) if not name.startswith("_") and name != "aio"]
    """,
)


def of_values(kind: Callable[..., Any], hint: Any) -> ServerConfig:
    made = [kind(name, returning(value), hint) for name, value in VALUES.items()]
    return create_server(
        "own", [*made, *(kind(f"raises_{name}", raising(make), hint) for name, make in ERRORS.items())]
    )
