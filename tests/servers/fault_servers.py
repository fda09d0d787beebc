"""Configurations of the fixture servers, for tests that make their own use of them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from servers.fault_run import ApproveAll
from toolbridge.config.config import Config
from toolbridge.config.server_config import ServerConfig, ServerLimits
from toolbridge.servers.manager import ServerManager

# The SDK and the transports are imported at first use: now, so that it is no test's first call that takes the time.
for _module in ("connection", "http", "stdio"):
    importlib.import_module(f"toolbridge.servers.{_module}")

FIXTURES = Path(__file__).parents[2] / "fixtures" / "servers"
PYTHON = (sys.executable, "-S", "-E")
"""Without site-packages, which these servers don't need: they start in no time."""


def fault_server(name: str, mode: str, *words: str, **changes: Any) -> ServerConfig:
    """A stdio server with a fault; `--modern` among the words makes it speak the newer era."""
    args = (*PYTHON[1:], str(FIXTURES / "fault_stdio.py"), mode, *words)
    return ServerConfig(name=name, transport="stdio", command=PYTHON[0], args=args, **changes)


def manager_of(servers: Iterable[ServerConfig], limits: ServerLimits | None = None, **more: Any) -> ServerManager:
    """A manager of these servers, all approved."""
    config = Config(servers={server.name: server for server in servers}, limits=limits or ServerLimits())
    return ServerManager(config, approver=ApproveAll(), **more)
