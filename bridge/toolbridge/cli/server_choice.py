"""Which servers a run has: those of the configuration, or some of them, and what its task wants besides."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolbridge.cli.terminal import write

if TYPE_CHECKING:
    from toolbridge import Config
    from toolbridge.sources.merge import Merged


@dataclass(frozen=True, slots=True)
class ServerChoice:
    """What the options say."""

    config_file: str | None = None
    servers: tuple[str, ...] = ()
    """Only these, and what the task wants; empty: all that are configured."""
    task: str | None = None
    capabilities: tuple[str, ...] = ()

    @property
    def is_made(self) -> bool:
        """Whether anything was chosen at all."""
        from toolbridge.cli.server_options import chosen_profiles

        return bool(self.servers or self.config_file or self.task or self.capabilities or chosen_profiles())


def chosen_servers(choice: ServerChoice) -> Merged:
    """The servers that were chosen, and why each is there. Plugins are asked only if theirs may be wanted.

    Raises:
        ClickException: there is no such server.
    """
    from toolbridge.cli.server_options import installed_plugins, read_config, switched
    from toolbridge.sources.merge import Merged, merge_sources
    from toolbridge.sources.task import Task

    config = read_config(choice.config_file)
    if not config.gateway:
        write(sys.stderr, f"MCP is switched off in {', '.join(config.files)}: there are no servers.\n")
        return Merged(config)
    of_plugins = tuple(name for name in choice.servers if "__" in name)
    if choice.task is None and not choice.capabilities and not of_plugins:
        return merge_sources(_only(config, choice.servers))
    from toolbridge.errors import UnknownServerError

    task = Task(choice.task or "", of_plugins, choice.capabilities)
    own = _only(config, tuple(name for name in choice.servers if name not in of_plugins), none_is_all=not of_plugins)
    try:
        merged = merge_sources(own, task=task, plugins=installed_plugins(config))
    except UnknownServerError as error:
        import click

        raise click.ClickException(str(error)) from None
    return replace(merged, config=switched(merged.config))


def _only(config: Config, servers: tuple[str, ...], *, none_is_all: bool = True) -> Config:
    """The configuration with these servers, or with all of them."""
    from toolbridge.cli.server_options import configured_server

    for name in servers:
        configured_server(config, name)
    is_all = none_is_all and not servers
    chosen = {name: server for name, server in config.servers.items() if is_all or name in servers}
    return replace(config, servers=chosen)
