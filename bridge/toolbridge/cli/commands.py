"""The group of all commands."""

from __future__ import annotations

from importlib import import_module

import click

# Command → module and help line: known without importing the command itself.
_COMMANDS = {
    "demo": ("toolbridge.cli.demo", "See the sandbox at work."),
    "run": ("toolbridge.cli.run", "Run a program in the sandbox."),
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
    """Run model-written code in a sandbox that can reach nothing but the functions it is given."""
