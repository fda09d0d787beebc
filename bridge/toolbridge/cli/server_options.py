"""Shared by the commands on servers: options, configuration, selection, and signals."""

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
    """Add `--config FILE`, passed as `config_file`, and `--profile NAME`, read by `chosen_profiles`.

    Both are also repeated in the commands that error messages advise.
    """
    text = "Read this configuration file only."
    profile = click.option(
        "--profile",
        multiple=True,
        metavar="NAME",
        expose_value=False,
        callback=_keep_profiles,
        help="Activate this profile. May be given more than once.",
    )
    return click.option("--config", "config_file", metavar="FILE", callback=_keep_config, help=text)(profile(command))


def _keep_profiles(context: click.Context, _parameter: click.Parameter, names: tuple[str, ...]) -> None:
    """Store the profiles for `chosen_profiles`, and for the advice in errors; click's callback."""
    context.meta[_PROFILES] = names
    advise_with(context.meta.get(_CONFIG), names)


def _keep_config(context: click.Context, _parameter: click.Parameter, config_file: str | None) -> str | None:
    """Store the file for the advice in errors, and return it; click's callback."""
    context.meta[_CONFIG] = config_file
    advise_with(config_file, context.meta.get(_PROFILES, ()))
    return config_file


def chosen_profiles() -> tuple[str, ...]:
    """The names given with `--profile`, unchecked; empty outside of a command."""
    context = click.get_current_context(silent=True)
    return () if context is None else context.meta.get(_PROFILES, ())


def choice_options(command: _Command) -> _Command:
    """Add `--server`, `--task` and `--capability`, the fields of `ServerChoice` but `config_file`."""
    for option in (
        click.option("--capability", "capabilities", multiple=True, metavar="NAME", help=_CAPABILITY),
        click.option("--task", metavar="TEXT", help=_TASK),
        click.option("--server", "servers", multiple=True, metavar="NAME", help=_SERVER),
    ):
        command = option(command)
    return command


_SERVER = "Offer only this server. May be given more than once."
_TASK = "Task description: attaches the plugins' servers whose keywords it mentions."
_CAPABILITY = "Attach plugins' servers with this capability. May be given more than once."


@dataclass(frozen=True, slots=True)
class ServerChoice:
    """The options that select servers."""

    config_file: str | None = None
    servers: tuple[str, ...] = ()
    """Only these and those that the task selects; empty: all configured."""
    task: str | None = None
    capabilities: tuple[str, ...] = ()

    @property
    def is_made(self) -> bool:
        """Whether any option was given, `--config` and `--profile` included."""
        return bool(self.servers or self.config_file or self.task or self.capabilities or chosen_profiles())


def chosen_servers(choice: ServerChoice) -> Merged:
    """Load the configuration and select the chosen servers, with the reason for each; prints warnings.

    Plugins are loaded only if theirs may be wanted. Starts no server.

    Raises:
        ClickException: there is no such server.
        ConfigError: the configuration can't be used, or a name is ambiguous.
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
    except UnknownServerError as error:  # list full names only: short ones are not accepted here
        known = sorted([*config.servers, *(each.config.name for each in provided_servers(plugins))])
        raise click.ClickException(str(UnknownServerError(error.server, tuple(known)))) from None
    return replace(merged, config=switched(merged.config))


def _only(config: Config, servers: tuple[str, ...], *, none_is_all: bool = True) -> Config:
    """Keep these servers, or all if there are none and `none_is_all`; the others become optional.

    Raises:
        ClickException: there is no such server.
    """
    for name in servers:
        configured_server(config, name)
    is_all = none_is_all and not servers
    chosen = {name: server for name, server in config.servers.items() if is_all or name in servers}
    others = {name: server for name, server in config.servers.items() if name not in chosen}
    return replace(config, servers=chosen, optional={**config.optional, **others})


def connect_option(command: _Command) -> _Command:
    """Add `--connect`."""
    text = "Connect approved servers and list their tools anew."
    return click.option("--connect", is_flag=True, help=text)(command)


def complete_servers(context: click.Context, _parameter: click.Parameter, beginning: str) -> list[str]:
    """Names of configured servers that begin so, for shell completion; empty if the configuration is broken."""
    from toolbridge import ToolbridgeError, load_config

    try:
        names = load_config(context.params.get("config_file")).servers
    except ToolbridgeError:
        return []
    return [name for name in names if name.startswith(beginning)]


def read_config(config_file: str | None, *, plugins: bool = False, named: Sequence[str] = ()) -> Config:
    """Load the configuration, with chosen profiles and the user's enabled and disabled servers; prints warnings.

    With `plugins`, all plugins are loaded and their servers added; else only plugins of servers in `named`.

    Raises:
        ConfigError: it can't be used, or there is no such profile.
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
    """SECURITY: refuse to run programs in a process that a server of toolbridge started: flow labels are unknown (T22).

    Raises:
        ClickException: this is such a process.
    """
    from toolbridge.servers.stdio.process_tree import MARK

    if MARK in os.environ:
        raise click.ClickException(
            "a run inside a run is refused: this process was started by a server of toolbridge. Configure the servers "
            f"that you want in the outer one. In a shell of your own, run `unset {MARK}` first."
        )


def switched_off(config: Config) -> str:
    """The message that there are no servers, since a file switches the gateway off."""
    return f"MCP is switched off in {', '.join(config.files)}: there are no servers."


def _with_plugins(config: Config, named: Sequence[str] | None) -> Config:
    """Add servers of plugins: all for None, else those in `named`; loads no plugin unless a name has `__`."""
    if named is not None and not any("__" in name for name in named):
        return config
    from toolbridge.sources.plugins import provided_servers

    found = {each.config.name: each.config for each in provided_servers(installed_plugins(config, named=named))}
    wanted = {name: server for name, server in found.items() if named is None or name in named}
    return replace(config, servers={**config.servers, **wanted})


def installed_plugins(
    config: Config, *, named: Sequence[str] | None = None, logs_problems: bool = True
) -> tuple[Plugin, ...]:
    """Load the plugins, all or those of the servers in `named`; blocks. Their output goes to stderr: stdout is ours.

    Prints which named plugins are missing or refused.
    """
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
    """Print which plugins are waited for, if a person watches: a hanging one would look like a hanging command."""
    if sys.stderr is not None and sys.stderr.isatty():  # pyright: ignore[reportUnnecessaryComparison]
        from toolbridge.sources.plugins import LOAD_SECONDS

        how_long = f"for up to {LOAD_SECONDS:g} s ('plugins.deny' in the configuration leaves one out)"
        write(sys.stderr, f"Waiting for plugins to answer, {how_long}: {', '.join(plugins)}\n")


def switched(config: Config) -> Config:
    """Apply the user's `enable` and `disable`; unchanged, with a warning on stderr, if the store can't be read."""
    from toolbridge.trust.approval.store import ApprovalStore, ApprovalStoreError, with_switches

    try:
        return with_switches(config, ApprovalStore().read())
    except ApprovalStoreError as error:  # nothing is approved then, so nothing is started
        write(sys.stderr, f"Warning: {error}\n")
        return config


def configured_server(config: Config, name: str) -> ServerConfig:
    """Return the configured server of this name.

    Raises:
        ClickException: there is none; suggests the nearest name, or the profile that has it.
    """
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
    """Run `work` with a manager of the configured servers, closed at its end; blocks, and returns its result.

    Approved servers can be connected; with `ask`, others after a yes at the terminal. `again` asks about refused tools
    once more. `pins` are by default those of `toolbridge.lock`. SIGTERM and SIGHUP cancel the work.
    """
    import anyio

    from toolbridge import ServerManager
    from toolbridge.trust.approval.approvers import StoredApprovals, TerminalApprover

    profiles = chosen_profiles()

    async def main() -> _Result:
        """Open the manager, work, and close it."""
        directory = os.path.join(cache_directory(), "listings")
        approver = (TerminalApprover if ask else StoredApprovals)(config_file=config_file, profiles=profiles)
        async with ServerManager(
            config, approver=approver, pins=pins or lock_pins(ask=ask, again=again), directory=directory
        ) as manager:
            return await work(manager)

    return anyio.run(unless_terminated, main)


def lock_pins(*, ask: bool, again: bool = False) -> Pins:
    """The pins of `toolbridge.lock`, with the rule for tools that this user has not accepted.

    At a terminal, `ask` asks about them, `again` also about refused ones; else they are hidden. Without one, they are
    pinned unseen, except those with high findings.
    """
    from toolbridge.trust.pins.pins import LockPins
    from toolbridge.trust.pins.review import TerminalAcceptance

    acceptance = TerminalAcceptance()
    if not acceptance.can_ask:
        return LockPins()
    return LockPins(on_first_use="ask", accept=acceptance, again=again) if ask else LockPins(on_first_use="refuse")


def heard_signals(*names: str) -> list[signal.Signals]:
    """The signals of these names that this process doesn't ignore: `nohup` lets a command outlive its terminal."""
    numbers = [signal.Signals[name] for name in names if hasattr(signal, name)]
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


async def unless_terminated(main: Callable[[], Awaitable[_Result]]) -> _Result:
    """Run `main` and return its result; SIGTERM or SIGHUP cancels it, so that servers are closed.

    By default these end a process at once, and a server that doesn't read its stdin would live on.

    Raises:
        click.exceptions.Exit: it was cancelled, with the code `TERMINATED`.
    """
    import anyio

    async def cancel_at_signal() -> None:
        """Cancel `main` at SIGTERM or SIGHUP."""
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
    """Connect these servers, all enabled ones for None, and return what `look` makes of the manager and all statuses.

    Blocks. A server that can't be connected raises nothing: its status has the error. Updates approval states first.
    """

    async def work(manager: ServerManager) -> _Result:
        """Connect the servers and look at them."""
        await manager.update_approval_states()
        names = manager.enabled_servers() if connect is None else connect
        fared = await _connect_in_turns(manager, names, config.limits.connections)
        return look(manager, [fared.get(status.name, status) for status in manager.statuses()])

    return open_servers(config, work, config_file=config_file, ask=ask, pins=pins)


def tell_problems(statuses: Sequence[ServerStatus]) -> None:
    """Print the known problems of these servers on stderr."""
    for status in statuses:
        for problem in status.problems:
            write(sys.stderr, f"Server {status.name!r}: {problem.removesuffix('.')}.\n")


def unknown_words(statuses: Sequence[ServerStatus]) -> list[str]:
    """Sentences on servers whose tools are unknown: connection errors, missing approvals, never connected."""
    unknown = [status for status in statuses if status.tools is None]
    unapproved = [status.name for status in unknown if status.state == "needs_approval"]
    failed = [status for status in unknown if status.state != "needs_approval" and status.last_error]
    never = [status.name for status in unknown if status.name not in unapproved and not status.last_error]
    lines = [f"The tools of {status.name} are not known: {status.last_error.removesuffix('.')}." for status in failed]
    if unapproved:
        lines.append(f"Not approved, so their tools are not known: {advised('approve ' + ' '.join(unapproved))}.")
    return [*lines, f"Never asked for their tools: {', '.join(never)}. Use --connect."] if never else lines


async def _connect_in_turns(manager: ServerManager, names: Sequence[str], places: int) -> dict[str, ServerStatus]:
    """Connect servers, at most `places` at once; returns the status of each after its attempt, raises nothing for it.

    If there are more than `places`, each is closed after its listing.
    """
    import anyio

    from toolbridge import ServerError

    fared: dict[str, ServerStatus] = {}
    room = anyio.CapacityLimiter(places)

    async def connect(name: str) -> None:
        """Connect one server when there is room, and note its status."""
        async with room:
            with contextlib.suppress(ServerError):  # its status has the error
                await manager.connect(name)
            fared[name] = manager.status(name)
            if len(names) > places:  # others wait for its place; its listing is kept
                await manager.close_server(name)

    async with anyio.create_task_group() as tasks:
        for name in names:
            tasks.start_soon(connect, name)
    return fared
