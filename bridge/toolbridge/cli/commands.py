"""The group of all commands."""

from __future__ import annotations

from importlib import import_module

import click

# Command → module and help line: known without importing the command itself.
_COMMANDS = {
    "approve": ("toolbridge.cli.approve", "Let a server be started or reached."),
    "audit": ("toolbridge.cli.audit", "Look for hostile text in what servers say of their tools."),
    "call": ("toolbridge.cli.call", "Call one tool."),
    "check": ("toolbridge.cli.check", "Check a program against the types of the tools it calls."),
    "completion": ("toolbridge.cli.completion", "Print what makes a shell complete commands."),
    "demo": ("toolbridge.cli.demo", "See it at work: two servers, eight programs."),
    "disable": ("toolbridge.cli.disable", "Never start a server until it is enabled."),
    "doctor": ("toolbridge.cli.doctor", "Find out what is wrong with configuration and servers."),
    "enable": ("toolbridge.cli.enable", "Let a disabled server be used again."),
    "info": ("toolbridge.cli.info", "Show one server and its tools."),
    "init": ("toolbridge.cli.init", "Take over the servers that other clients have."),
    "install": ("toolbridge.cli.install", "Put `toolbridge serve` into a client's configuration."),
    "list": ("toolbridge.cli.list_servers", "List the configured servers."),
    "lock": ("toolbridge.cli.lock", "Pin tools, and see or accept what changed."),
    "plugins": ("toolbridge.cli.plugins", "List the plugins and the servers they offer."),
    "revoke": ("toolbridge.cli.revoke", "Take back the approval of a server."),
    "run": ("toolbridge.cli.run", "Run a program in the sandbox."),
    "search": ("toolbridge.cli.search", "Find tools by what they do."),
    "serve": ("toolbridge.cli.serve", "Serve any MCP client: code mode in front of your servers."),
    "sign-in": ("toolbridge.cli.sign_in", "Sign in to a server that is reached by HTTP."),
    "sign-out": ("toolbridge.cli.sign_out", "Forget the sign-in to a server."),
    "stubs": ("toolbridge.cli.stubs", "Print or write the types of the tools."),
}


class _LazyGroup(click.Group):
    """Imports a command's module when that command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        command = import_module(_COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in sorted(_COMMANDS.items())])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="toolbridge")
def toolbridge() -> None:
    """Run model-written code against MCP servers, in a sandbox that can reach nothing else."""
