"""The command line. Each command lives in a file of its own and is imported only when it is used."""

from __future__ import annotations

import os
import sys

from toolbridge.cli.exit_codes import FAILED, INTERRUPTED, USAGE


def main() -> None:
    """Runs a command and exits with its code. No traceback is ever shown for what a user can do."""
    sys.exit(_run())


def _run() -> int:
    import click

    from toolbridge.cli.commands import toolbridge
    from toolbridge.cli.terminal import write
    from toolbridge.errors import ToolbridgeError

    try:
        code = toolbridge.main(prog_name="toolbridge", standalone_mode=False)
        if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison]  # it is, when closed by the parent
            sys.stdout.flush()
    except click.UsageError as error:
        error.show()
        return USAGE
    except click.ClickException as error:
        write(sys.stderr, f"Error: {error.format_message()}\n")  # it may quote a file's name
        return USAGE
    except ToolbridgeError as error:
        print(f"Error: {error}", file=sys.stderr)
        return FAILED
    except (KeyboardInterrupt, click.Abort):
        print("Interrupted.", file=sys.stderr)
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # Whoever read our output has gone (click turns that into an exit). Nothing more can be said,
        # also not when the interpreter flushes at its end.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        return FAILED
    return code if isinstance(code, int) else 0
