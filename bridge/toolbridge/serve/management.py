"""SECURITY: the management tools: a model's view of servers, and changes that a person has to confirm (T1, T26).

A model can look, connect what is approved, and disconnect. Everything that is kept (approvals, switches) is changed by
the person's answer only; where nobody can be asked, the refusal names the command for a terminal. Nothing here reads
the configuration again: a tool may have written to it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import anyio
import anyio.to_thread
from mcp_types import CallToolResult

from toolbridge import ApprovalStore, Runtime, ServerError, ServerStatus
from toolbridge.describe.module_info import module_info, shown_schema
from toolbridge.describe.modules import count_of_tools, filter_lines
from toolbridge.errors import ServerNotApprovedError, advised
from toolbridge.serve.clients import Caller, current_caller
from toolbridge.serve.definitions import ACTIONS, ArgumentError, ArgumentReader, answer, refusal
from toolbridge.serve.elicitation import OpenQuestions, change_question, is_yes
from toolbridge.trust.approval.approver import masked_arguments
from toolbridge.trust.sanitise import for_error, for_guest_error

if TYPE_CHECKING:
    from toolbridge import ServerConfig
    from toolbridge_codegen.catalog import Catalog, ModuleSpec, ToolSpec


# Connecting a server for one caller among several.
# #
# # Connection attempts are shared. Approving a server is asked of each caller's own person; accepting its tools, of the
# # first caller's person: so one client may wait for the person of another.


class AskedElsewhereError(ServerNotApprovedError):
    """Another client's person has not answered in time about a server's tools."""

    def __init__(self, server: str) -> None:
        super().__init__(server, "waits for the answer of another client's person. Try again later")


class ServerConnector:
    """Connects servers for callers, with a bounded wait for other clients' persons."""

    def __init__(self, runtime: Runtime, questions: OpenQuestions) -> None:
        self._runtime = runtime
        self._questions = questions

    async def connect(self, server: str, seconds: float, *, acquire: Literal["evict", "queue"] = "evict") -> None:
        """Connects a server unless it is connected; waits at most `seconds` for the persons of other clients.

        `acquire` says how to find a place in a full pool: see `ServerManager.connect`. Without a caller it waits on.

        Raises:
            AskedElsewhereError: another client's person took longer.
            ServerError: it can't be connected.
        """
        caller = current_caller()
        if caller is None:
            await self._runtime.servers.connect(server, acquire=acquire)
            return
        with self._questions.patience(server, caller.client, seconds) as scope:
            await self._runtime.servers.connect(server, acquire=acquire)
        if scope.cancelled_caught:
            raise AskedElsewhereError(server)

    async def connect_all(self, servers: Sequence[str], seconds: float) -> None:
        """Connects the servers that a program names, at once, and waits for all of them.

        Failures are not raised: they are where the program imports the module.

        Raises:
            AskedElsewhereError: of one of them, when all others are connected or can't be.
        """
        elsewhere: list[AskedElsewhereError] = []

        async def connect(server: str) -> None:
            """Connects one server; keeps an AskedElsewhereError, and ignores other failures."""
            try:
                await self.connect(server, seconds)
            except AskedElsewhereError as error:
                elsewhere.append(error)
            except ServerError:
                return

        if len(servers) == 1:
            await connect(servers[0])
        else:
            async with anyio.create_task_group() as tasks:
                for server in servers:
                    tasks.start_soon(connect, server)
        if elsewhere:
            raise elsewhere[0]


# Why a server can't be used, for a model: the remedy, without details of this machine.


def problem_text(runtime: Runtime, server: str, error: ServerError) -> str:
    """Returns why a server can't be used; sanitised and redacted, but for the command that approves it."""
    if isinstance(error, ServerNotApprovedError):
        return for_error(str(error), limit=2_000)
    servers = runtime.servers
    return for_guest_error(str(error), servers.secrets(server), limit=1_000)


_MOST_TOOLS = 200
UNATTENDED_WORDS: Mapping[str, str] = {
    "allow": "calls that a person would be asked about are made (unattended: allow)",
    "reads": "only calls that read, or that permissions.allow names, are made (unattended: reads)",
    "deny": "only calls that permissions.allow names are made (unattended: deny)",
}
_MOST_SCHEMAS = 60_000
"""Characters of all schemas of one server; each gets an equal share."""


class Management:
    """The management tools."""

    def __init__(
        self,
        runtime: Runtime,
        store: ApprovalStore,
        connector: ServerConnector,
        callers_of: Callable[[str], Counter[Caller]],
        *,
        seconds: float,
    ) -> None:
        self._runtime = runtime
        self._store = store
        self._connector = connector
        self._callers_of = callers_of
        self._seconds = seconds
        """The longest wait for another client's person."""

    async def list_servers(self, caller: Caller, *, asks: bool) -> CallToolResult:
        """Lists the servers with their states, after updating which need approval, and what is called unattended."""
        await self._runtime.servers.update_approval_states()
        facts = [self._facts(status) for status in self._runtime.servers.statuses()]
        lines = [_line(each) for each in facts] or ["No servers are configured."]
        attended, unattended = asks and caller.has_elicitation, self._runtime.config.unattended
        if not attended:
            lines.append(f"This client can't ask a user: {UNATTENDED_WORDS[unattended]}.")
        return answer("\n".join(lines), {"servers": facts, "attended": attended, "unattended": unattended})

    async def server_info(self, arguments: ArgumentReader) -> CallToolResult:
        """Describes one server: its configuration without values, and its functions with their schemas.

        Connects nothing.

        Raises:
            ArgumentError: there is no such server.
        """
        name = self._name(arguments)
        await self._runtime.servers.update_approval_states()
        manager = self._runtime.servers
        config = manager.config_of(name)
        catalog = self._runtime.catalog
        module = catalog.module(f"host:mcp-{name}")
        functions, schemas = await anyio.to_thread.run_sync(_shown, catalog, module, abandon_on_cancel=True)
        facts = {
            **self._facts(manager.status(name)),
            "origin": config.origin.kind,
            "transport": config.transport,
            "command": None if config.command is None else _command(config),
            "allowTools": None if config.allow_tools is None else sorted(config.allow_tools),
            "denyTools": sorted(config.deny_tools),
            "module": None if module is None else module.specifier,
            "functions": functions,
            "schemas": schemas,
        }
        lines = [
            f"  {function}  {words}".rstrip() + f"\n    {json.dumps(schemas[function], ensure_ascii=False)}"
            for function, words in functions.items()
        ]
        return answer(
            "\n".join([_line(facts), *(f"  {line}" for line in filter_lines(facts)), *lines]), {"server": facts}
        )

    async def manage(self, arguments: ArgumentReader, caller: Caller) -> CallToolResult:
        """Performs an action on a server, and waits. `revoke`, `enable` and `disable` ask the person first.

        `connect` and `approve` ask about a server that is not approved; `approve` even if that was refused before.
        A no, a failure, or nobody to ask is an error result.

        Raises:
            ArgumentError: there is no such action or server.
        """
        action = arguments.choice("action", ACTIONS)
        name = self._name(arguments)
        if action == "connect":
            return await self._connect(name)
        if action == "disconnect":
            return await self._disconnect(name, caller)
        if action == "approve":  # at the model's explicit request: the person may have changed their mind
            refused = caller.client.refused
            for digest in [digest for digest, server in refused.items() if server == name]:
                del refused[digest]
            return await self._connect(name)
        if not caller.can_ask:
            return refusal(
                f"Only the person can {action} a server, and this client can't ask them. They can run "
                f"{advised(f'{action} {name}')}, and start this server again."
            )
        words = f"The model asks to {action} the MCP server {name!r}. {_CONSEQUENCES[action]}"
        async with caller.question_lock():
            agreed = is_yes(await caller.ask(change_question(action, name, words)))
        if not agreed:
            return refusal(f"The person did not agree to {action} {name}.")
        return await self._change(action, name)

    async def _change(self, action: str, name: str) -> CallToolResult:
        """Revokes, enables or disables a server, as the person agreed, here and in the approval store."""
        config = self._runtime.servers.config_of(name)
        if action == "revoke":
            await self._runtime.revoke(name, approvals=self._store)
            return _done(f"The approval of {name} is revoked, and its module is gone.")
        is_on = action == "enable"
        await anyio.to_thread.run_sync(self._store.set_enabled, config, is_on)
        await self._switch(replace(config, enabled=is_on))
        return _done(f"{name} is {action}d.")

    async def _switch(self, server: ServerConfig) -> None:
        """Applies a server's changed configuration to the runtime."""
        now = self._runtime.config
        await self._runtime.reload(replace(now, servers={**now.servers, server.name: server}))

    async def _disconnect(self, name: str, caller: Caller) -> CallToolResult:
        """Disconnects a server, unless another client's calls are in progress there: no person confirms this."""
        if any(each.client is not caller.client for each in self._callers_of(name)):
            return refusal(f"{name} is not disconnected: other clients have calls under way there. Try again later.")
        await self._runtime.servers.close_server(name)
        return _done(f"{name} is disconnected; its next use connects it again.")

    async def _connect(self, name: str) -> CallToolResult:
        """Connects a server; a failure is an error result."""
        try:
            await self._connector.connect(name, self._seconds)
        except ServerError as error:
            return refusal(problem_text(self._runtime, name, error))
        status = self._runtime.servers.status(name)
        return _done(f"{name} is connected, with {count_of_tools(status.tools)}.")

    def _name(self, arguments: ArgumentReader) -> str:
        """Returns the server's name in the arguments.

        Raises:
            ArgumentError: it is missing, or there is no such server.
        """
        name = arguments.text("server", most=200)
        known = [status.name for status in self._runtime.servers.statuses()]
        if name not in known:
            raise ArgumentError(f"There is no server {name!r}. Known: {', '.join(known) or 'none'}.")
        return name

    def _last_error(self, status: ServerStatus) -> str | None:
        """Returns a server's last error, sanitised and redacted; None without one."""
        if not status.last_error:
            return None
        servers, name = self._runtime.servers, status.name
        return for_guest_error(status.last_error, servers.secrets(name))

    def _facts(self, status: ServerStatus) -> dict[str, Any]:
        """Returns the facts that every tool shows about a server."""
        is_enabled = status.name in self._runtime.servers.enabled_servers()
        return {
            "name": status.name,
            "state": status.state if is_enabled else "disabled",
            "tools": status.tools,
            "lastError": self._last_error(status),
            "problems": [for_error(problem) for problem in status.problems],
        }


_CONSEQUENCES: Mapping[str, str] = {
    "revoke": "It is closed, and not started again before you approve it anew.",
    "enable": "If it is approved, programs can use it again.",
    "disable": "It is closed, and not used until you enable it again.",
}


def _line(facts: Mapping[str, Any]) -> str:
    """Writes a server's name, state and number of tools, and a line for each problem."""
    tools = "tools not known" if facts["tools"] is None else count_of_tools(facts["tools"])
    problems = "".join(f"\n  {problem}" for problem in (facts["lastError"], *facts["problems"]) if problem)
    return f"{facts['name']}: {facts['state']}, {tools}{problems}"


def _shown(catalog: Catalog, module: ModuleSpec | None) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """Returns the summaries and the bounded schemas of a module's first 200 functions, by identifier."""
    info = None if module is None else module_info(catalog, module.specifier)
    if module is None or info is None:
        return {}, {}
    summaries = {each.identifier: each.summary for each in info.functions}
    tools = module.tools[:_MOST_TOOLS]
    room = _MOST_SCHEMAS // max(1, len(tools))
    return (
        {each.identifier: summaries.get(each.identifier, "") for each in tools},
        {each.identifier: _schemas(each, room) for each in tools},
    )


def _schemas(tool: ToolSpec, room: int) -> dict[str, Any]:
    """Returns a function's input and output schemas, sanitised, each truncated to `room` characters."""
    given = {} if tool.output_schema is None else {"output": shown_schema(tool.output_schema, room)}
    return {"input": shown_schema(tool.definition.input_schema, room), **given}


def _done(words: str) -> CallToolResult:
    """Makes the result of an action that was done."""
    return answer(words, {"done": words})


def _command(config: ServerConfig) -> str | None:
    """Returns a server's command line, redacted and sanitised; None for one without a command."""
    if config.command is None:
        return None
    return for_error(" ".join([config.command, *masked_arguments(config.args)]))
