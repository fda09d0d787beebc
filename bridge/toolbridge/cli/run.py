"""`toolbridge run`: one program, one result."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import click

from toolbridge import Limits, LimitsError, RunResult, Sandbox
from toolbridge.cli.exit_codes import OF_FAILURE, OK
from toolbridge.cli.source import read_source
from toolbridge.cli.terminal import compile_notice, write

_UNITS = {"": 2**20, "k": 2**10, "m": 2**20, "g": 2**30}


class _Memory(click.ParamType[int]):
    """A size: `64` (MiB), `512K`, `64M`, `1G`."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"(\d{1,9})\s*([kmg]?)i?b?", str(value).strip(), re.IGNORECASE)
        if not match:
            self.fail(f"{value!r} is not a size: write 64, 64M or 1G.", param, ctx)
        return int(match[1]) * _UNITS[match[2].lower()]


@click.command(
    "run",
    epilog=(
        "Exit codes: 0 the program ran to its end; 1 it failed (syntax, uncaught exception); 2 wrong usage or a file "
        "that can't be read; 3 it was stopped at a limit; 4 toolbridge itself failed; 130 interrupted."
    ),
)
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as one JSON object.")
@click.option("--timeout", type=float, metavar="SECONDS", help="Stop after this long. Default: 30.")
@click.option(
    "--memory", type=_Memory(), metavar="SIZE", help="Memory the program may use (64, 64M, 1G). Default: 64M."
)
def command(file: str, as_json: bool, timeout: float | None, memory: int | None) -> int:
    """Run a JavaScript program from FILE, or from standard input for "-".

    Its value is the default export, a top-level return, or the last expression.

    \b
    Example:  echo '[1, 2, 3].map((n) => n * n)' | toolbridge run -
    """
    limits = _limits(timeout, memory)
    source = read_source(file, limits)
    with Sandbox(limits=limits, on_compile=compile_notice) as sandbox:
        result = sandbox.run_sync(source)
    if as_json:
        write(sys.stdout, json.dumps(_as_json(result), ensure_ascii=False) + "\n")
    else:
        _show(result)
    return OK if result.failure is None else OF_FAILURE[result.failure.kind]


def _limits(timeout: float | None, memory: int | None) -> Limits:
    limits = Limits()
    try:
        if timeout is not None:
            limits = limits.with_(wall_seconds=timeout, cpu_seconds=timeout)
        if memory is not None:
            limits = limits.with_(memory_bytes=memory)
    except LimitsError as error:
        expected = {"memory_bytes": "--memory takes 8M to 4095M", "wall_seconds": "--timeout takes seconds above 0"}
        raise click.ClickException(f"{expected[error.name]}.") from error
    return limits


def _show(result: RunResult) -> None:
    write(sys.stdout, result.stdout)
    write(sys.stderr, result.stderr)
    if result.failure is not None:
        write(sys.stderr, f"{result.failure}\n")
    elif isinstance(result.value, str):
        write(sys.stdout, result.value + "\n")
    elif result.value is not None:
        write(sys.stdout, json.dumps(result.value, ensure_ascii=False, indent=2) + "\n")


def _as_json(result: RunResult) -> dict[str, Any]:
    from dataclasses import asdict

    failure = result.failure
    return {
        "ok": result.ok,
        "value": result.value,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "failure": None if failure is None else {**asdict(failure), "text": str(failure)},
        "calls": [call._asdict() for call in result.calls],
        "usage": asdict(result.usage),
    }
