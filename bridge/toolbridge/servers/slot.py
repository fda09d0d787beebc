"""One configured server's place: its state, and the connection it has or is getting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from toolbridge.config.server_config import Origin, ServerConfig, Transport
from toolbridge.config.server_limits import ServerLimits
from toolbridge.servers.attempt import Attempt
from toolbridge.servers.events import ServerState
from toolbridge.servers.listing import Listing
from toolbridge.servers.own_server import ToolServer
from toolbridge.servers.tool_filter import by_original_name, exposed_tools, unmatched_names
from toolbridge.trust.admission import Admission, BlockedTool
from toolbridge.trust.sanitise import for_error
from toolbridge_codegen.catalog import ServerListing

if TYPE_CHECKING:
    from toolbridge.servers.connected import Connected
    from toolbridge.servers.own_connection import OwnConnection


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """What is known of one server at a moment."""

    name: str
    display_name: str
    origin: Origin
    transport: Transport
    state: ServerState
    tools: int | None
    """Exposed tools; None when the server was never asked."""
    last_error: str
    problems: tuple[str, ...]
    """Tools that can't be used or are blocked by their pins, configured tool names that match none, unset variables."""
    respawns: int
    unseen: int = 0
    """Exposed tools that this user has not accepted: the audit passed them, and nobody has seen them."""


class Slot:
    """A configured server. Only the manager changes it."""

    def __init__(self, server: ServerConfig) -> None:
        self.server = server
        self.state: ServerState = "idle"
        self.last_error = ""
        self.listing: Listing | None = None
        self.admission: Admission | None = None
        """What of the listing its pins let through; None when nothing is pinned, and all of it is."""
        self.connection: Connected | None = None
        self.own_connection: OwnConnection | None = None
        """The same, if it is one to the host's own functions."""
        self.attempt: Attempt | None = None
        self.scope: anyio.CancelScope | None = None
        self.own_secrets: frozenset[str] = frozenset()
        """Of its configuration."""
        self.environment_warnings: tuple[str, ...] = ()
        """Variables that were not set when it was last started, and were left empty."""
        self.channel_secrets: Callable[[], frozenset[str]] | None = None
        self._seen_secrets: frozenset[str] = frozenset()
        self.started = 0
        """How often it was started since the host last closed it."""
        self.is_old = False
        """Whether it ends when it is asked for the newer protocol first."""
        self.users = 0
        """Who waits for its connection or has a call under way: it is not closed for another's sake meanwhile."""
        self.visitors = 0
        """Those of its users who want no more than its listing, and are gone in a moment."""
        self.last_used = 0.0
        """When somebody last had a use for it other than its listing; 0 for never."""
        self.closing = False
        self.closing_reason = ""
        """Why it is being closed, if not because the host said so."""
        self.closings = 0
        """How often the host closed it: a call that began before must not open it again."""
        self.channel_end: Callable[[], str] | None = None
        self._line: anyio.Semaphore | None = None
        self._exposed_names: frozenset[str] | None = None

    @property
    def name(self) -> str:
        """The server's name."""
        return self.server.name

    @property
    def secrets(self) -> frozenset[str]:
        """What must not be shown: of its configuration, and every token that its sign-in had since it was started."""
        if self.channel_secrets is not None:
            self._seen_secrets |= self.channel_secrets()
        return self.own_secrets | self._seen_secrets if self._seen_secrets else self.own_secrets

    @property
    def own_tools(self) -> ToolServer | None:
        """The host's own functions, if it is made of those: nothing is started or reached, and nobody is asked."""
        found: object = self.server.server
        return found if isinstance(found, ToolServer) and self.server.origin.kind == "code" else None

    def connect_seconds(self, limits: ServerLimits) -> float:
        """How long it may take to connect."""
        return self.server.connect_timeout or limits.connect_seconds

    def line(self, limits: ServerLimits) -> anyio.Semaphore:
        """Where calls wait their turn."""
        if self._line is None:
            self._line = anyio.Semaphore(limits.calls_in_flight, fast_acquire=True)
        return self._line

    def renew_line(self) -> None:
        """The limits changed: calls that come from now on wait in a new line."""
        self._line = None

    def end_reason(self) -> str:
        """What its channel has to say of its end: not sanitised."""
        return self.channel_end() if self.channel_end is not None else ""

    def end_words(self, reason: str) -> str:
        """The error of a server that ended by itself."""
        reason = for_error(reason, self.secrets, limit=300)
        return f"Server {self.name!r} ended{': ' + reason if reason else ''}"

    def take(self, listing: Listing, admission: Admission | None) -> None:
        """A listing, and what of it may be used: always both at once."""
        self.listing, self.admission, self._exposed_names = listing, admission, None

    def take_over(self, server: ServerConfig) -> bool:
        """The same connection by a changed configuration; whether it may expose other tools, or show them otherwise."""
        before, self.server, self._exposed_names = self.exposed(), server, None
        return self.exposed() != before

    def exposed(self) -> ServerListing | None:
        """The tools that pins and configuration let through."""
        if self.listing is None:
            return None
        admitted = self.admission or self.listing
        tools = exposed_tools(self.name, admitted.tools, self.server.allow_tools, self.server.deny_tools)
        server = self.server
        name = server.display_name or self.name
        schemas = by_original_name(self.name, admitted.tools, server.output_schemas)
        return ServerListing(self.name, tools, name, admitted.instructions, server.reading, schemas)

    def exposed_names(self) -> frozenset[str]:
        """The original names of exposed tools; made once per listing."""
        if self._exposed_names is None:
            exposed = self.exposed()
            self._exposed_names = frozenset(tool.name for tool in exposed.tools) if exposed else frozenset()
        return self._exposed_names

    def blocked(self, name: str) -> BlockedTool | None:
        """A tool that would be exposed, if its pin let it through."""
        if self.admission is None or name not in self._wanted_names():
            return None
        return self.admission.find_blocked(name)

    def blocked_tools(self) -> tuple[BlockedTool, ...]:
        """All of those, by name."""
        admission = self.admission
        if admission is None or not (admission.blocked or admission.problem):
            return ()
        found = [admission.find_blocked(name) for name in sorted(self._wanted_names())]
        return tuple(tool for tool in found if tool is not None)

    def _wanted_names(self) -> frozenset[str]:
        """The original names of the tools that the configuration lets through, whatever the pins say."""
        tools = () if self.listing is None else self.listing.tools
        wanted = exposed_tools(self.name, tools, self.server.allow_tools, self.server.deny_tools)
        return frozenset(tool.name for tool in wanted)

    def unmatched_names(self) -> tuple[str, ...]:
        """Configured tool names that match no tool."""
        if self.listing is None:
            return ()
        return unmatched_names(self.name, self.listing.tools, self.server.allow_tools, self.server.deny_tools)

    def filter_problems(self) -> list[str]:
        """What to tell of these names."""
        return [f"allowTools or denyTools names {name!r}, which it does not list" for name in self.unmatched_names()]

    def stop(self, reason: str = "") -> None:
        """End its connection, or the attempt at one."""
        self.closings += 1
        if self.attempt is not None:
            self.closing = True
            self.closing_reason = reason
            if self.scope is not None:
                self.scope.cancel()

    def release(self) -> None:
        """Its task is about to end: it holds nothing any more."""
        self.connection = self.own_connection = None
        self.scope = None
        self.channel_end = None

    def settle(self) -> None:
        """Its task has ended: a new attempt may begin."""
        attempt, self.attempt = self.attempt, None
        self.closing = False
        self.closing_reason = ""
        if attempt is not None:
            attempt.over.set()

    async def wait_until_idle(self) -> None:
        """Until the task that it has now, if any, is over."""
        if self.attempt is not None:
            await self.attempt.over.wait()

    def status(self) -> ServerStatus:
        """What is known now."""
        listing, state, last_error = self.listing, self.state, self.last_error
        if state == "connected" and not self.closing and self.connection is not None and self.connection.ended:
            # The task that watches it has yet to run.
            state, last_error = "error", self.end_words(self.connection.end_reason())
        problems = [*self.environment_warnings]
        problems += [
            f"{f'tool {each.tool!r}' if each.tool else 'its tools/list'} {each.problem}"
            for each in (listing.problems if listing else ())
        ]
        if self.admission is not None:
            problems += self.admission.problems(self.name, self._wanted_names())
        problems += self.filter_problems()
        return ServerStatus(
            name=self.name,
            display_name=self.server.display_name or self.name,
            origin=self.server.origin,
            transport=self.server.transport,
            state=state,
            tools=None if listing is None else len(self.exposed_names()),
            last_error=last_error,
            problems=tuple(problems),
            respawns=max(0, self.started - 1),
            unseen=0 if self.admission is None else len(self.exposed_names().intersection(self.admission.unseen)),
        )
