"""The functions that hostile programs find in `host:demo`: one of every sort."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import anyio


def add(left: Any, right: Any) -> Any:
    """The sum."""
    return left + right


def echo(value: Any) -> Any:
    """What it got."""
    return value


def repeat(text: str, count: int) -> str:
    """A reply as long as the guest likes."""
    return text * count


def fail(message: str) -> None:
    """Raises."""
    raise ValueError(message)


async def sleep(seconds: float, *_held: object) -> None:
    """Waits, as a coroutine that can be cancelled, and keeps its arguments meanwhile."""
    await anyio.sleep(seconds)


def block(seconds: float) -> None:
    """Waits, as a plain function that can't be interrupted."""
    time.sleep(seconds)


DEMO_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": add,
    "echo": echo,
    "repeat": repeat,
    "fail": fail,
    "sleep": sleep,
    "block": block,
}
