"""What the commands about servers have in common: which configuration, and which servers may be started."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from toolbridge.cli import TERMINATED
from toolbridge.cli.terminal import write
from toolbridge.errors import advise_with, advised, nearest
from toolbridge.files import cache_directory

if TYPE_CHECKING:
    from toolbridge import Config, ServerConfig, ServerManager, ServerStatus
    from toolbridge.sources.merge import Merged
    from toolbridge.sources.plugins import Plugin
    from toolbridge.trust.pins.pins import Pins

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Result = TypeVar("_Result")


_CONFIG, _PROFILES = "toolbridge.config", "toolbridge.profiles"


def config_option(command: _Command) -> _Command:
    """`--config FILE` and `--profile NAME`: which servers there are."""
    text = "Read this file instead of looking for one."
    profile = click.option(
        "--profile",
        multiple=True,
        metavar="NAME",
        expose_value=False,
        callback=_keep_profiles,
        help="With the servers of this profile. May be given more than once.",
    )
    return click.option("--config", "config_file", metavar="FILE", callback=_keep_config, help=text)(profile(command))


def _keep_profiles(context: click.Context, _parameter: click.Parameter, names: tuple[str, ...]) -> None:
    context.meta[_PROFILES] = names
    advise_with(context.meta.get(_CONFIG), names)


def _keep_config(context: click.Context, _parameter: click.Parameter, config_file: str | None) -> str | None:
    context.meta[_CONFIG] = config_file
    advise_with(config_file, context.meta.get(_PROFILES, ()))
    return config_file


def chosen_profiles() -> tuple[str, ...]:
    """What `--profile` was given, as often as it was."""
    context = click.get_current_context(silent=True)
    return () if context is None else context.meta.get(_PROFILES, ())


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
        return bool(self.servers or self.config_file or self.task or self.capabilities or chosen_profiles())


def chosen_servers(choice: ServerChoice) -> Merged:
    """The servers that were chosen, and why each is there. Plugins are asked only if theirs may be wanted.

    Raises:
        ClickException: there is no such server.
    """
    from toolbridge.sources.merge import Merged, Task, merge_sources
    from toolbridge.sources.plugins import provided_servers

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
    for name in servers:
        configured_server(config, name)
    is_all = none_is_all and not servers
    chosen = {name: server for name, server in config.servers.items() if is_all or name in servers}
    others = {name: server for name, server in config.servers.items() if name not in chosen}
    return replace(config, servers=chosen, optional={**config.optional, **others})


def connect_option(command: _Command) -> _Command:
    """`--connect`."""
    text = "Connect to the servers that are approved, and list their tools anew."
    return click.option("--connect", is_flag=True, help=text)(command)


def complete_servers(context: click.Context, _parameter: click.Parameter, beginning: str) -> list[str]:
    """The names of servers, for a shell that completes one. Nothing is said of what goes wrong: nobody reads it."""
    from toolbridge import ToolbridgeError, load_config

    try:
        names = load_config(context.params.get("config_file")).servers
    except ToolbridgeError:
        return []
    return [name for name in names if name.startswith(beginning)]


def read_config(config_file: str | None, *, plugins: bool = False, named: Sequence[str] = ()) -> Config:
    """The configuration as this user switched its servers on and off, with its warnings on stderr.

    It has the servers of the profiles that were chosen and, with `plugins`, all that plugins offer. Of those that are
    `named`, a plugin's are there too; no other plugin is asked for that.
    """
    from toolbridge import load_config
    from toolbridge.config.profiles import with_profiles

    config = load_config(config_file)
    if not config.gateway:
        write(sys.stderr, f"{switched_off(config)}\n")
    for warning in config.warnings:
        write(sys.stderr, f"Warning: {warning}\n")
    if config.gateway:
        config = with_profiles(config, chosen_profiles())
        config = _with_plugins(config, None if plugins else named)
    return switched(config)


def refuse_inside_run() -> None:
    """SECURITY: a server that toolbridge started runs no programs by toolbridge: their flow labels would be new (T22).

    Raises:
        ClickException: we are such a server, or were started by one.
    """
    from toolbridge.servers.stdio.process_tree import MARK

    if MARK in os.environ:
        raise click.ClickException(
            "a run inside a run is refused: this process was started by a server of toolbridge. Configure the servers "
            f"that you want in the outer one. In a shell of your own, run `unset {MARK}` first."
        )


def switched_off(config: Config) -> str:
    """Why there are no servers where the gateway is off."""
    return f"MCP is switched off in {', '.join(config.files)}: there are no servers."


def _with_plugins(config: Config, named: Sequence[str] | None) -> Config:
    if named is not None and not any("__" in name for name in named):
        return config
    from toolbridge.sources.plugins import provided_servers

    found = {each.config.name: each.config for each in provided_servers(installed_plugins(config, named=named))}
    wanted = {name: server for name, server in found.items() if named is None or name in named}
    return replace(config, servers={**config.servers, **wanted})


def installed_plugins(
    config: Config, *, named: Sequence[str] | None = None, logs_problems: bool = True
) -> tuple[Plugin, ...]:
    """The plugins, or those of these servers, and what they offer. What they print goes to stderr: stdout is ours."""
    from toolbridge.sources.plugins import load_plugins, plugins_of

    wanted = None if named is None else plugins_of(named)
    with contextlib.redirect_stdout(sys.stderr):
        plugins = load_plugins(config.plugins, only=wanted, on_wait=_tell_of_waiting, logs_problems=logs_problems)
    refused = {plugin.name: plugin.refusal for plugin in plugins}
    for name in sorted(wanted or ()):
        if name not in refused:
            write(sys.stderr, f"No plugin {name!r} is installed.\n")
        elif refused[name]:
            write(sys.stderr, f"Plugin {name!r} is not imported: {refused[name]}.\n")
    return plugins


def _tell_of_waiting(plugins: Sequence[str]) -> None:
    """Say for whom a person at a terminal waits: a plugin that hangs would look like a command that does."""
    if sys.stderr is not None and sys.stderr.isatty():  # pyright: ignore[reportUnnecessaryComparison]
        from toolbridge.sources.plugins import LOAD_SECONDS

        how_long = f"for up to {LOAD_SECONDS:g} s ('plugins.deny' in the configuration leaves one out)"
        write(sys.stderr, f"Waiting for plugins to answer, {how_long}: {', '.join(plugins)}\n")


def switched(config: Config) -> Config:
    """The configuration with every server on or off as this user switched it."""
    from toolbridge.trust.approval.store import ApprovalStore, ApprovalStoreError, with_switches

    try:
        return with_switches(config, ApprovalStore().read())
    except ApprovalStoreError as error:  # nothing is approved then, so nothing is started
        write(sys.stderr, f"Warning: {error}\n")
        return config


def configured_server(config: Config, name: str) -> ServerConfig:
    """One server of the configuration; an error in the command's usage where there is none of this name."""
    if name not in config.servers:
        known = ", ".join(sorted(config.servers)) or "none"
        has_it = [profile.name for profile in config.profiles if name in profile.servers]
        near = nearest(name, config.servers)
        meant = f" Did you mean {near!r}?" if near else ""
        hint = f" It is in a profile: add --profile {has_it[0]}." if has_it else f"{meant} Known servers: {known}."
        raise click.ClickException(f"No server {name!r} is configured.{hint}")
    return config.servers[name]


def open_servers(
    config: Config,
    work: Callable[[ServerManager], Awaitable[_Result]],
    *,
    config_file: str | None = None,
    ask: bool = False,
    again: bool = False,
    pins: Pins | None = None,
) -> _Result:
    """Do something with a manager of the configured servers.

    Those that are approved can be started and reached; with `ask`, others once the person at the terminal agrees.
    With `again`, so are tools that they refused. `pins` are by default those of `toolbridge.lock`.
    """
    import anyio

    from toolbridge import ServerManager
    from toolbridge.trust.approval.approvers import StoredApprovals, TerminalApprover

    profiles = chosen_profiles()

    async def main() -> _Result:
        directory = os.path.join(cache_directory(), "listings")
        approver = (TerminalApprover if ask else StoredApprovals)(config_file=config_file, profiles=profiles)
        async with ServerManager(
            config, approver=approver, pins=pins or lock_pins(ask=ask, again=again), directory=directory
        ) as manager:
            return await work(manager)

    return anyio.run(unless_terminated, main)


def lock_pins(*, ask: bool, again: bool = False) -> Pins:
    """The pins of `toolbridge.lock`, and what becomes of tools that this user has not accepted.

    Where a person sits at the terminal, nothing is pinned that they were not shown: they are asked, or, by commands
    that only look, told how to see it.
    """
    from toolbridge.trust.pins.pins import LockPins
    from toolbridge.trust.pins.review import TerminalAcceptance

    acceptance = TerminalAcceptance()
    if not acceptance.can_ask:
        return LockPins()
    return LockPins(on_first_use="ask", accept=acceptance, again=again) if ask else LockPins(on_first_use="refuse")


def heard_signals(*names: str) -> list[signal.Signals]:
    """Those of these signals that this process was not told to ignore: `nohup` lets a command outlive its terminal."""
    numbers = [signal.Signals[name] for name in names if hasattr(signal, name)]
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


async def unless_terminated(main: Callable[[], Awaitable[_Result]]) -> _Result:
    """Run `main`; at SIGTERM, or when the terminal goes, cancel it, so that servers are closed.

    By default these end a process on the spot, and a server that doesn't read its stdin would live on.
    """
    import anyio

    async def cancel_at_signal() -> None:
        with anyio.open_signal_receiver(*heard_signals("SIGTERM", "SIGHUP")) as signals:
            async for _ in signals:
                tasks.cancel_scope.cancel()

    done: list[_Result] = []
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancel_at_signal)
        try:
            done.append(await main())
        except Exception as error:  # a task group would wrap it
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    if not done:
        raise click.exceptions.Exit(TERMINATED)
    return done[0]


def with_servers(
    config: Config,
    look: Callable[[ServerManager, Sequence[ServerStatus]], _Result],
    *,
    connect: Sequence[str] | None,
    config_file: str | None = None,
    ask: bool = False,
    pins: Pins | None = None,
) -> _Result:
    """Connect these servers, or all for None, and look at what they list and how each of them fared."""

    async def work(manager: ServerManager) -> _Result:
        await manager.update_approval_states()
        names = manager.enabled_servers() if connect is None else connect
        fared = await _connect_in_turns(manager, names, config.limits.connections)
        return look(manager, [fared.get(status.name, status) for status in manager.statuses()])

    return open_servers(config, work, config_file=config_file, ask=ask, pins=pins)


def tell_problems(statuses: Sequence[ServerStatus]) -> None:
    """Say on stderr what of these servers can't be used, and what to do about it."""
    for status in statuses:
        for problem in status.problems:
            write(sys.stderr, f"Server {status.name!r}: {problem.removesuffix('.')}.\n")


def unknown_words(statuses: Sequence[ServerStatus]) -> list[str]:
    """Of which of these servers no tools are known, and what to do about it."""
    unknown = [status for status in statuses if status.tools is None]
    unapproved = [status.name for status in unknown if status.state == "needs_approval"]
    failed = [status for status in unknown if status.state != "needs_approval" and status.last_error]
    never = [status.name for status in unknown if status.name not in unapproved and not status.last_error]
    lines = [f"The tools of {status.name} are not known: {status.last_error.removesuffix('.')}." for status in failed]
    if unapproved:
        lines.append(f"Not approved, so their tools are not known: {advised('approve ' + ' '.join(unapproved))}.")
    return [*lines, f"Never asked for their tools: {', '.join(never)}. Use --connect."] if never else lines


async def _connect_in_turns(manager: ServerManager, names: Sequence[str], places: int) -> dict[str, ServerStatus]:
    """Connect servers, no more at once than may be; the status of each when it had answered or failed."""
    import anyio

    from toolbridge import ServerError

    fared: dict[str, ServerStatus] = {}
    room = anyio.CapacityLimiter(places)

    async def connect(name: str) -> None:
        async with room:
            with contextlib.suppress(ServerError):  # its status says why
                await manager.connect(name)
            fared[name] = manager.status(name)
            if len(names) > places:  # others wait for its place; what it lists stays known
                await manager.close_server(name)

    async with anyio.create_task_group() as tasks:
        for name in names:
            tasks.start_soon(connect, name)
    return fared
