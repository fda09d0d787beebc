"""Which servers a run has: those of the configuration, or some of them, and what its task wants besides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from toolbridge import Config
    from toolbridge.sources.merge import Merged

_Command = TypeVar("_Command", bound=Callable[..., Any])


def choice_options(command: _Command) -> _Command:
    """`--server`, `--task` and `--capability`: which servers are wanted, those of plugins among them."""
    for option in (
        click.option("--capability", "capabilities", multiple=True, metavar="NAME", help=_CAPABILITY),
        click.option("--task", metavar="TEXT", help=_TASK),
        click.option("--server", "servers", multiple=True, metavar="NAME", help=_SERVER),
    ):
        command = option(command)
    return command


_SERVER = "Offer only this server. May be given more than once."
_TASK = "What is to be done: attaches the servers of plugins that it mentions."
_CAPABILITY = "Attach servers of plugins that have it."


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
    from toolbridge.sources.plugins import provided_servers
    from toolbridge.sources.task import Task

    config = read_config(choice.config_file)
    if not config.gateway:
        return Merged(config)
    of_plugins = tuple(name for name in choice.servers if "__" in name)
    is_by_name = choice.task is None and not choice.capabilities
    if is_by_name and not of_plugins:
        return merge_sources(_only(config, choice.servers))
    from toolbridge.errors import UnknownServerError

    task = Task(choice.task or "", of_plugins, choice.capabilities)
    own = _only(config, tuple(name for name in choice.servers if name not in of_plugins), none_is_all=not of_plugins)
    plugins = installed_plugins(config, named=of_plugins if is_by_name else None)
    try:
        merged = merge_sources(own, task=task, plugins=plugins)
    except UnknownServerError as error:  # here, a plugin's is named in full only
        known = sorted([*config.servers, *(each.config.name for each in provided_servers(plugins))])
        raise click.ClickException(str(UnknownServerError(error.server, tuple(known)))) from None
    return replace(merged, config=switched(merged.config))


def _only(config: Config, servers: tuple[str, ...], *, none_is_all: bool = True) -> Config:
    """The configuration with these servers, or with all of them."""
    from toolbridge.cli.server_options import configured_server

    for name in servers:
        configured_server(config, name)
    is_all = none_is_all and not servers
    chosen = {name: server for name, server in config.servers.items() if is_all or name in servers}
    others = {name: server for name, server in config.servers.items() if name not in chosen}
    return replace(config, servers=chosen, optional={**config.optional, **others})
