"""SECURITY: the one way in which a server is started or reached: prepared, approved, then exactly that is opened.

What the approver sees is the snapshot that is opened: nothing is read again in between (T23).
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from toolbridge.callbacks import callback
from toolbridge.config.digest import configuration_digest
from toolbridge.config.environment import ResolvedEnvironment, resolve_environment
from toolbridge.config.server_config import ServerConfig
from toolbridge.config.server_limits import ServerLimits
from toolbridge.errors import ServerConnectError, ServerNotApprovedError
from toolbridge.foreign_cancellation import is_foreign
from toolbridge.trust.approver import Approval, ApprovalRequest, Approver
from toolbridge.trust.sanitise import for_error

if TYPE_CHECKING:
    from toolbridge.servers.channel import Channel
    from toolbridge.servers.sign_in import SignIn

_log = logging.getLogger("toolbridge")


@dataclass(frozen=True, slots=True)
class Start:
    """A server that was approved, with all that is needed to open it."""

    server: ServerConfig
    executable: str | None
    directory: str | None
    environment: ResolvedEnvironment
    request: ApprovalRequest
    """What was approved."""


def prepare(server: ServerConfig, environ: Mapping[str, str]) -> tuple[ApprovalRequest, ResolvedEnvironment]:
    """The snapshot that would be opened, and what to ask about it. Nothing is started or reached.

    Raises:
        ServerEnvironmentError: a variable is not set.
        ServerConnectError: its command is not there.
    """
    environment = resolve_environment(server, environ)
    executable = directory = target = None
    if server.transport == "stdio":
        from toolbridge.servers.launch import find_executable, link_target

        directory = _directory(server)
        executable = find_executable(replace(server, cwd=directory), environment.env.get("PATH", os.defpath))
        target = link_target(server, executable, directory)
    digest = configuration_digest(server, executable, directory, target)
    return ApprovalRequest(server, executable, digest, directory, target), environment


def _directory(server: ServerConfig) -> str:
    """Where it is started. Fixed before approval: this program may change its own directory in between."""
    try:
        return os.path.abspath(server.cwd or os.curdir)
    except OSError:
        problem = "can't be started: the current directory no longer exists. Change into another one, or set `cwd`."
        raise ServerConnectError(server.name, problem) from None


async def approved_start(server: ServerConfig, approver: Approver, environ: Mapping[str, str]) -> Start:
    """Prepare a server and ask for approval.

    Raises:
        ServerNotApprovedError: the approver refused, or failed.
        ServerEnvironmentError: a variable is not set.
        ServerConnectError: its command is not there.
    """
    request, environment = prepare(server, environ)
    approval: Any = None
    try:
        approval = await callback("approver", approver, "approve", "request")(request)
    except BaseException as error:
        if not isinstance(error, Exception) and not is_foreign(error):
            raise
        # The type only: programs are told the reason, and the text of an error of the host is nothing for them.
        words = for_error(str(error), environment.secrets)
        _log.warning("The approver failed for server %r with %s: %s", server.name, type(error).__name__, words)
        approval = Approval(False, f"the approver failed with {type(error).__name__}")
    if not isinstance(approval, Approval):
        approval = Approval(False, f"the approver answered with a {type(approval).__name__}, not an Approval")
    if approval.approved is not True:
        raise ServerNotApprovedError(server.name, f"is not approved: {approval.reason or 'the approver refused it'}")
    return Start(server, request.executable, request.directory, environment, request)


@asynccontextmanager
async def open_channel(start: Start, limits: ServerLimits, sign_in: SignIn | None) -> AsyncGenerator[Channel]:
    """Open the channel of an approved server. There is no other way to one."""
    server = start.server
    if server.transport == "in_process":
        from toolbridge.servers.in_process import open_in_process

        opening = open_in_process(server)
    elif server.transport == "stdio":
        from toolbridge.servers.launch import Launch
        from toolbridge.servers.stdio import open_stdio

        assert start.executable is not None
        environment = start.environment
        launch = Launch(start.executable, server.args, environment.env, start.directory, environment.secrets)
        opening = open_stdio(server.name, launch, limits)
    else:
        from toolbridge.servers.http import open_http, open_sse

        open_by = open_http if server.transport == "http" else open_sse
        secret = start.environment.client_secret
        opening = open_by(server, start.environment.headers, limits, sign_in=sign_in, client_secret=secret)
    async with opening as channel:
        yield channel
