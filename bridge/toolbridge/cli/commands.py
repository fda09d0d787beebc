"""The group of all commands."""

from __future__ import annotations

from importlib import import_module

import click

# Command → module and attribute in this package, and the help line: known without importing the command itself.
_COMMANDS = {
    "approve": ("access.approve", "Let a server be started or reached."),
    "audit": ("audit.command", "Look for hostile text in what servers say of their tools."),
    "call": ("call.command", "Call one tool."),
    "check": ("run_program.check", "Check a program against the types of the tools it calls."),
    "completion": ("install.completion", "Print what makes a shell complete commands."),
    "config-schema": ("install.config_schema", "Print the JSON Schema of a configuration file."),
    "demo": ("demo.command", "See it at work: two servers, eight programs."),
    "disable": ("access.disable", "Never start a server until it is enabled."),
    "doctor": ("doctor.command", "Find out what is wrong with configuration and servers."),
    "enable": ("access.enable", "Let a disabled server be used again."),
    "info": ("inspect.info", "Show one server and its tools."),
    "init": ("init.command", "Take over the servers that other clients have."),
    "install": ("install.install", "Put `toolbridge serve` into a client's configuration."),
    "list": ("inspect.list_servers", "List the configured servers."),
    "lock": ("lock.command", "Pin tools, and see or accept what changed."),
    "plugins": ("inspect.plugins", "List the plugins and the servers they offer."),
    "revoke": ("access.revoke", "Take back the approval of a server."),
    "run": ("run_program.run", "Run a program in the sandbox."),
    "search": ("inspect.search", "Find tools by what they do."),
    "serve": ("serve.command", "Serve any MCP client: code mode in front of your servers."),
    "sign-in": ("access.sign_in", "Sign in to a server that is reached by HTTP."),
    "sign-out": ("access.sign_out", "Forget the sign-in to a server."),
    "stubs": ("write_stubs.command", "Print or write the types of the tools."),
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
        module, _, attribute = _COMMANDS[cmd_name][0].partition(".")
        command = getattr(import_module(f"toolbridge.cli.{module}"), attribute)
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
