"""Tools, and a person to ask, for tests of the gate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolbridge.config.config import Config
from toolbridge.config.policy import DEFAULT_FLOWS, Level, Permissions
from toolbridge.config.server_config import ServerConfig
from toolbridge.trust.gate import Decision, ToolUse
from toolbridge_codegen.catalog import Catalog, ServerListing, ToolDefinition, ToolSpec, build_catalog


def catalog_of(**tools: list[str]) -> Catalog:
    """A catalog of servers, by their tools' names; `_` in a keyword is `_` in the server's name."""
    return build_catalog(
        ServerListing(server, tuple(ToolDefinition(name, {}) for name in names)) for server, names in tools.items()
    )


def spec(server: str = "mail", name: str = "send", annotations: Mapping[str, Any] | None = None) -> ToolSpec:
    """A tool that is alone in its catalog."""
    definition = ToolDefinition(name, {}, annotations=annotations or {})
    return build_catalog([ServerListing(server, (definition,))]).tools[0]


def configured(
    *servers: ServerConfig | str,
    flows: Mapping[str, Level] | None = None,
    project: Permissions | None = None,
    **permissions: Any,
) -> Config:
    """A configuration in which these servers may be called by these patterns."""
    made = [ServerConfig.stdio(server, "x") if isinstance(server, str) else server for server in servers or ("mail",)]
    return Config(
        {server.name: server for server in made},
        permissions=Permissions(**permissions),
        project_permissions=project or Permissions(),
        flows=DEFAULT_FLOWS if flows is None else flows,
    )


def labelled(name: str, *labels: str) -> ServerConfig:
    return ServerConfig.stdio(name, "x", labels=labels)


class Person:
    """Answers with what was prepared, the last of it for ever, and remembers what was asked."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.asked: list[ToolUse] = []

    async def __call__(self, use: ToolUse) -> Decision | bool:
        self.asked.append(use)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer
