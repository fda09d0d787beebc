"""A host whose replies hold handles."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import anyio

from toolbridge import Limits, RunResult, Sandbox
from toolbridge.boundary.host_call import BRIDGE, CallFailed, HostFunction, HostSide, Reply
from toolbridge.boundary.wire import ErrorFrame, HandleFrame, encode_handles

HEAD = """\
import { Handle, ToolError, parallel } from "host:bridge";
import * as demo from "host:demo";
import * as later from "host:demo/async";
"""


class HandleHost:
    """Stores the contents of its handles, and the arguments of `echo`."""

    def __init__(self) -> None:
        self.contents: dict[int, bytes] = {}
        self.passed: list[list[Any]] = []
        self.functions: dict[str, HostFunction] = {
            "big": HostFunction(self._big, is_async=False),
            "image": HostFunction(self._image, is_async=False),
            "echo": HostFunction(self._echo, is_async=False),
            "check": HostFunction(self._check, is_async=True),
        }

    def offer(self, name: str, function: Callable[..., Any], *, is_async: bool = False) -> None:
        """Adds a function to `host:demo`."""
        self.functions[name] = HostFunction(function, is_async)

    def keep(
        self, content: bytes, mime: str, name: str = "", path: tuple[str | int, ...] = (), value: bytes = b"null"
    ) -> Reply:
        """A reply with a handle at one place of its value."""
        identity = 1000 + len(self.contents)
        self.contents[identity] = content
        return Reply(encode_handles([HandleFrame(path, identity, mime, len(content), name)], value))

    def side(self) -> HostSide:
        """The modules of a run."""
        offered: dict[str, Callable[..., Any]] = {
            "handle_text": self._text,
            "handle_json": self._json,
            "handle_bytes": self._base64,
            "handle_slice": self._slice,
        }
        bridge = {name: HostFunction(function, is_async=False) for name, function in offered.items()}
        return HostSide({"host:demo": self.functions, BRIDGE: bridge})

    @contextmanager
    def session(self, sandbox: Sandbox, limits: Limits | None = None) -> Generator[Callable[[str], RunResult]]:
        """Runs programs in one session, after the usual imports."""
        with sandbox.session(limits=limits, host=self.side()) as session:
            yield lambda program: session.run_sync(HEAD + program)

    def run(self, sandbox: Sandbox, program: str, limits: Limits | None = None) -> RunResult:
        """Runs one program after the usual imports, which are three lines."""
        with self.session(sandbox, limits) as run:
            return run(program)

    def value(self, sandbox: Sandbox, program: str) -> Any:
        """Returns the value of a run that must not fail."""
        result = self.run(sandbox, program)
        assert result.failure is None, str(result.failure)
        return result.value

    def _content(self, identity: int) -> bytes:
        if identity not in self.contents:
            raise CallFailed(ErrorFrame("failed", "This handle is gone."))
        return self.contents[identity]

    def _text(self, identity: int) -> str:
        return self._content(identity).decode()

    def _json(self, identity: int) -> Any:
        return json.loads(self._content(identity))

    def _base64(self, identity: int) -> str:
        return base64.b64encode(self._content(identity)).decode()

    def _slice(self, identity: int, start: int, end: int) -> Reply:
        return self.keep(self._content(identity)[start:end], "text/plain")

    def _big(self) -> Reply:
        rows = [{"city": "Zürich", "row": index} for index in range(100_000)]
        return self.keep(json.dumps(rows, ensure_ascii=False).encode(), "application/json")

    def _image(self) -> Reply:
        pixels = bytes(range(256)) * 135
        return self.keep(pixels, "image/png", "chart.png", ("images", 1), b'{"images":[0,null],"title":"t"}')

    def _echo(self, *values: Any) -> list[Any]:
        self.passed.append(list(values))
        return list(values)

    async def _check(self, number: int) -> int:
        await anyio.lowlevel.checkpoint()
        if number < 0:
            raise CallFailed(ErrorFrame("failed", f"no {number}", server="s", tool="check"))
        return 10 * number
