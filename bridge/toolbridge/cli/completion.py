"""`toolbridge completion`: commands and options completed by the shell."""

from __future__ import annotations

import sys

import click

from toolbridge.cli.exit_codes import OK
from toolbridge.cli.terminal import write

_VARIABLE = "_TOOLBRIDGE_COMPLETE"


@click.command("completion", epilog="Exit codes: 0 printed; 2 wrong usage.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    """Print a script for SHELL that completes commands, options and the names of servers.

    \b
    Examples:  toolbridge completion bash >> ~/.bashrc
               toolbridge completion zsh >> ~/.zshrc
               toolbridge completion fish > ~/.config/fish/completions/toolbridge.fish
    """
    from click.shell_completion import get_completion_class

    from toolbridge.cli.commands import toolbridge

    kind = get_completion_class(shell)
    assert kind is not None  # it is one of the choices
    completer = kind(toolbridge, {}, "toolbridge", _VARIABLE)
    # Not `source()`: for bash that looks for the shell's version, of a shell that may not be here.
    write(sys.stdout, completer.source_template % completer.source_vars() + "\n")
    return OK
