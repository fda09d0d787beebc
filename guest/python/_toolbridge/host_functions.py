"""Functions of host modules: called with keywords, with one mapping, or with positional arguments."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from . import wire
from .handles import value_of
from .tool_errors import tool_error
from .values import arguments_text


class HostFunction:
    """A function of a host module; a call blocks until the result arrives."""

    def __init__(self, module: str, specifier: str, name: str) -> None:
        self.__name__ = self.__qualname__ = name
        self.__module__ = module
        self._specifier = specifier
        quoted = wire.dumps(specifier), wire.dumps(name)
        self._head = f'{{"op":"call","module":{quoted[0]},"function":{quoted[1]},"arguments":'

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        return self._result(wire.request(self._frame(arguments, named)))

    def __repr__(self) -> str:
        return f"<function {self.__module__}.{self.__name__}>"

    def __get__(self, holder: Any, kind: Any = None) -> HostFunction:
        return self  # as an attribute of a class it is called without the instance

    def _frame(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> str:
        """Encodes the request frame of a call.

        Raises:
            UnconvertibleError: an argument has no JSON form.
        """
        return f"{self._head}{arguments_text(_merged(arguments, named))}}}"

    def _result(self, reply: dict[str, Any]) -> Any:
        """Returns the value of a reply; raises ToolError if it is an error."""
        if "error" in reply:
            raise tool_error(reply["error"], self._specifier, self.__name__)
        return value_of(reply)


class AwaitedFunction(HostFunction):
    """The same function in an `aio` module: a coroutine function, whose calls overlap."""

    async def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        frame = self._frame(arguments, named)
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

        def settle(reply: dict[str, Any]) -> None:
            if not future.done():  # not cancelled, as by a timeout
                future.set_result(reply)

        wire.start(frame, settle)
        return self._result(await future)

    def __repr__(self) -> str:
        return f"<coroutine function {self.__module__}.{self.__name__}>"


def _merged(arguments: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    """Returns the call's arguments for the host: keywords become one object, or are merged into the mapping given."""
    if not named:
        return list(arguments)
    if not arguments:
        return [named]
    if len(arguments) == 1 and isinstance(arguments[0], Mapping):
        return [{**cast("Mapping[str, Any]", arguments[0]), **named}]
    return [*arguments, named]
