"""The command group: a table of lazily imported commands."""

from __future__ import annotations

from importlib import import_module

import click

# Command → module.attribute in this package, and its help line, known without importing it.
_COMMANDS = {
    "approve": ("access.approve", "Approve servers, so that they may be started or connected."),
    "audit": ("audit.command", "Scan tool definitions for prompt injection."),
    "call": ("call.command", "Call one tool."),
    "check": ("run_program.check", "Type-check a program without running it."),
    "completion": ("install.completion", "Print a shell completion script."),
    "config-schema": ("install.config_schema", "Print the JSON Schema of a configuration file."),
    "demo": ("demo.command", "Show it at work: two servers, eight programs."),
    "disable": ("access.disable", "Disable a server."),
    "doctor": ("doctor.command", "Diagnose configuration and servers."),
    "enable": ("access.enable", "Enable a disabled server."),
    "info": ("inspect.info", "Show one server and its tools."),
    "init": ("init.command", "Import servers from other clients' configurations."),
    "install": ("install.install", "Add `toolbridge serve` to a client's configuration."),
    "list": ("inspect.list_servers", "List the configured servers."),
    "lock": ("lock.command", "Pin tool definitions; review and accept changes."),
    "plugins": ("inspect.plugins", "List plugins and their servers."),
    "revoke": ("access.revoke", "Revoke a server's approval."),
    "run": ("run_program.run", "Run a program in the sandbox."),
    "search": ("inspect.search", "Search tools by what they do."),
    "serve": ("serve.command", "Serve your servers to an MCP client, in code mode."),
    "sign-in": ("access.sign_in", "Sign in to an HTTP server with OAuth."),
    "sign-out": ("access.sign_out", "Sign out of a server."),
    "stubs": ("write_stubs.command", "Print or write type stubs of the tools."),
}


class _LazyGroup(click.Group):
    """Imports a command's module on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command and return it; None if it is unknown."""
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[cmd_name][0].partition(".")
        command = getattr(import_module(f"toolbridge.cli.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with their help lines; imports none."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in sorted(_COMMANDS.items())])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="toolbridge")
def toolbridge() -> None:
    """Run model-written code against MCP servers, in a sandbox that can reach nothing else."""
