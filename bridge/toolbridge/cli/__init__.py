"""The command line. Each command lives in a file of its own and is imported only when it is used."""

from __future__ import annotations

import sys

from toolbridge.cli.exit_codes import FAILED, INTERRUPTED, USAGE


def main() -> None:
    """Runs a command and exits with its code. No traceback is ever shown for what a user can do."""
    sys.exit(_run())


def _run() -> int:
    import click

    from toolbridge.cli.commands import toolbridge
    from toolbridge.errors import ToolbridgeError

    try:
        code = toolbridge.main(prog_name="toolbridge", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return USAGE
    except ToolbridgeError as error:
        print(f"Error: {error}", file=sys.stderr)
        return FAILED
    except (KeyboardInterrupt, click.Abort):
        print("Interrupted.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone. Nothing more can be said, also not at exit.
        sys.stdout = open("/dev/null" if sys.platform != "win32" else "nul", "w", encoding="utf-8")  # noqa: SIM115
        return FAILED
    return code if isinstance(code, int) else 0
