"""Runtimes with the friendly weather server, for tests."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from toolbridge import ApprovalRequest, Config, RunResult, Runtime, ServerConfig, create_server, open_runtime
from toolbridge.approval import Approval
from toolbridge.config.server_config import ServerLimits
from toolbridge.demo.weather import server


class ApproveAll:
    """Says yes, and remembers to what."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def approve(self, request: ApprovalRequest) -> Approval:
        self.asked.append(request.server.name)
        return Approval(True)


def weather(name: str = "weather", **options: Any) -> ServerConfig:
    """The weather server in this process: the same protocol, without the second that a child takes to start."""
    return ServerConfig.in_process(name, server, **options)


def weather_process(name: str = "weather", **options: Any) -> ServerConfig:
    """The weather server as a child process."""
    return ServerConfig.stdio(name, sys.executable, ["-m", "toolbridge.demo.weather"], **options)


def named(name: str) -> ServerConfig:
    """A server whose one tool says which it is."""

    def who() -> str:
        return name

    return create_server(name, [who])


@asynccontextmanager
async def runtime_of(directory: Path, *servers: ServerConfig, **options: Any) -> AsyncGenerator[Runtime]:
    """A runtime whose servers are all approved, with a cache of its own."""
    config = options.pop("config", None) or Config.of(*servers)
    approver = options.pop("approver", None) or ApproveAll()
    async with open_runtime(config, approver=approver, directory=directory, **options) as runtime:
        yield runtime


def patient_runtime_of(directory: Path, *servers: ServerConfig, **options: Any) -> AbstractAsyncContextManager[Runtime]:
    """The same without pins, with timeouts that a busy machine does not reach, and none of its patience at the end."""
    limits = ServerLimits(connect_seconds=20.0, call_seconds=20.0, close_seconds=0.2)
    return runtime_of(directory, config=Config.of(*servers, limits=limits), pins="none", **options)


def value_of(result: RunResult) -> Any:
    """The value of a run that must not have failed."""
    assert result.failure is None, str(result.failure)
    return result.value


def check_failure(result: RunResult, kind: str, *words: str) -> None:
    """A run has failed in this way, with these words, and without anything of the host's insides."""
    assert result.failure is not None, result.value
    text = str(result.failure)
    assert result.failure.kind == kind, text
    assert all(word in text for word in words), text
    assert "Traceback" not in text
    assert re.search(r"\.py\b", text) is None  # stubs are .pyi files
