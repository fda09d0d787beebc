"""`toolbridge serve`: code mode for MCP clients, over stdio or HTTP."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from toolbridge.cli import INTERRUPTED, OK, TERMINATED
from toolbridge.cli.server_options import (
    ServerChoice,
    choice_options,
    chosen_servers,
    config_option,
    heard_signals,
    refuse_inside_run,
)
from toolbridge.cli.terminal import write

if TYPE_CHECKING:
    from toolbridge import Config
    from toolbridge.serve.http_guard import Guard
    from toolbridge.serve.service import ServeOptions

_SIGNALS = "SIGINT", "SIGTERM", "SIGHUP"
TOKEN_VARIABLE = "TOOLBRIDGE_SERVE_TOKEN"  # noqa: S105  # the name of a variable


@click.command(
    "serve",
    epilog=(
        "Exit codes: 0 the client closed the connection; 2 wrong usage, or a configuration that can't be read; "
        "4 toolbridge itself failed; 130 interrupted; 143 terminated."
    ),
)
@config_option
@choice_options
@click.option("--http", is_flag=True, help="Serve over HTTP, at /mcp, instead of stdin and stdout.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on. Beyond loopback, a token is required."
)
@click.option("--port", type=click.IntRange(0, 65535), default=8787, show_default=True, help="0 picks a free one.")
@click.option("--token-file", metavar="FILE", help=f"Require the bearer token in this file. Or set {TOKEN_VARIABLE}.")
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME", help="Accept requests for this host name, too.")
@click.option(
    "--allow-origin", "origins", multiple=True, metavar="URL", help="Accept requests from web pages of this origin."
)
@click.option("--metrics", is_flag=True, help="Serve Prometheus metrics at /metrics.")
@click.option(
    "--timeout",
    type=click.FloatRange(0.1, 3600),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="Timeout of a program.",
)
@click.option("--sessions", type=click.IntRange(0, 1000), default=16, show_default=True, help="Most sessions at once.")
@click.option("--no-ask", is_flag=True, help="Never ask through the client: use approved servers only.")
@click.option("--no-management", is_flag=True, help="Omit the tools that manage servers: three tools instead of six.")
@click.option("--audit-log", metavar="FILE", help="Append one line of JSON per event to this file.")
def command(config_file: str | None, audit_log: str | None, **given: Any) -> int:
    """Serve your servers to an MCP client as modules for programs: search_tools, describe and run_code.

    An unapproved server is asked about through the client if that supports elicitation; if not, the model is told the
    command for you to run. See docs/serve-to-clients.md, and `toolbridge install` for the usual clients.

    \b
    Examples:  toolbridge serve
               toolbridge serve --server weather --server acme__notes
               toolbridge serve --http --port 8787
               toolbridge serve --http --host 0.0.0.0 --allow-host tools.example.org --token-file token.txt
    """
    import anyio

    from toolbridge import AuditLog

    refuse_inside_run()
    token = _token(given["token_file"])
    _check(given, token)
    chosen = ServerChoice(config_file, given["servers"], given["task"], given["capabilities"])
    config = chosen_servers(chosen).config
    with ExitStack() as stack:
        observers: list[Any] = []
        if audit_log is not None:
            log = AuditLog(audit_log)
            stack.callback(log.close)
            observers.append(log)
        options = _options(config_file, given, tuple(observers))

        if given["http"]:
            return anyio.run(_over_http, config, options, given, token)
        return anyio.run(_unless_stopped, lambda: _over_stdio(config, options))


def _options(config_file: str | None, given: dict[str, Any], observers: tuple[Any, ...]) -> ServeOptions:
    """The options of the service by those of the command."""
    from toolbridge import Limits
    from toolbridge.serve.run_code import SessionLimits
    from toolbridge.serve.service import ServeOptions

    limits = Limits()
    seconds = given["timeout"]
    return ServeOptions(
        limits=limits.with_(wall_seconds=seconds, cpu_seconds=min(seconds, max(limits.cpu_seconds, seconds / 3))),
        sessions=SessionLimits(total=given["sessions"]),
        asks=not given["no_ask"],
        management=not given["no_management"],
        config_file=config_file,
        observers=observers,
    )


async def _unless_stopped(main: Callable[[], Awaitable[None]]) -> int:
    """Run `main` until its end or a signal, which cancels it; returns the exit code."""
    import anyio

    codes: list[int] = []
    failure: Exception | None = None

    async def obey_signals() -> None:
        """Cancel `main` at a signal."""
        with anyio.open_signal_receiver(*heard_signals(*_SIGNALS)) as signals:
            async for number in signals:
                codes.append(_code_of(number))
                tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(obey_signals)
        try:
            await main()
        except Exception as error:  # a task group would wrap it
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return codes[0] if codes else OK


def _code_of(number: int) -> int:
    return INTERRUPTED if number == signal.SIGINT else TERMINATED


async def _over_stdio(config: Config, options: ServeOptions) -> None:
    """Serve over stdin and stdout until the client closes them; UsageError if they are closed already."""
    from toolbridge.serve.service import CodeModeServer, Service
    from toolbridge.serve.stdio import serve_stdio

    if sys.stdin is None or sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]  # None when closed
        raise click.UsageError("stdin or stdout is closed: there is no client to serve. --http needs neither.")
    if sys.stdin.isatty():
        write(sys.stderr, "Waiting for an MCP client on standard input. `toolbridge install` sets one up.\n")
    _say_what_is_unattended(config, options)
    async with Service(config, options) as service:
        await serve_stdio(CodeModeServer(service))


async def _over_http(config: Config, options: ServeOptions, given: dict[str, Any], token: str | None) -> int:
    """Serve over HTTP until a signal; a second one cancels all requests at once. Returns the exit code."""
    import anyio

    from toolbridge.serve.http import HttpApp, HttpLimits, open_socket, serve_http
    from toolbridge.serve.http_guard import is_loopback
    from toolbridge.serve.service import CodeModeServer, Service

    host, limits = given["host"], HttpLimits()
    listening = open_socket(host, given["port"])
    port = listening.getsockname()[1]
    guard = _guard(given, port, token)

    def ready() -> None:
        """Print the address and warnings, once requests are accepted."""
        shown = f"[{host}]" if ":" in host else host
        write(sys.stderr, f"Serving at http://{shown}:{port}/mcp\n")
        if not is_loopback(host):
            write(sys.stderr, "Warning: the token and all data travel unencrypted: put TLS in front of it.\n")
        _say_what_is_unattended(config, options)

    stop = anyio.Event()
    codes: list[int] = []

    async def obey_signals() -> None:
        """Stop at the first signal, cancel at the second."""
        with anyio.open_signal_receiver(*heard_signals(*_SIGNALS)) as signals:
            async for number in signals:
                if stop.is_set():
                    tasks.cancel_scope.cancel()
                codes.append(_code_of(number))
                stop.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(obey_signals)
        async with Service(config, options) as service:
            app = HttpApp(CodeModeServer(service), service, guard, limits, metrics=given["metrics"])
            await serve_http(app, listening, limits, ready=ready, stop=stop)
        tasks.cancel_scope.cancel()
    return codes[0] if codes else OK


def _say_what_is_unattended(config: Config, options: ServeOptions) -> None:
    """Print the rule for calls without a person to ask."""
    from toolbridge.serve.management import UNATTENDED_WORDS

    where = "Where a client can't ask its person" if options.asks else "Nobody is asked"
    write(sys.stderr, f"{where}: {UNATTENDED_WORDS[config.unattended]}.\n")


def _guard(given: dict[str, Any], port: int, token: str | None) -> Guard:
    """The guard of requests: allowed hosts, origins and the token."""
    from toolbridge.serve.http_guard import guard_of

    return guard_of(given["host"], port, more_hosts=given["hosts"], origins=given["origins"], token=token)


def _check(given: dict[str, Any], token: str | None) -> None:
    """Refuse options that need --http, unusable tokens, and listening beyond loopback without a token or host name.

    Raises:
        click.UsageError: one of these.
    """
    if not given["http"]:
        named = any(given[name] for name in ("token_file", "hosts", "origins", "metrics"))
        source = click.get_current_context().get_parameter_source
        if named or any(source(name) is not ParameterSource.DEFAULT for name in ("host", "port")):
            raise click.UsageError(
                "--host, --port, --token-file, --allow-host, --allow-origin and --metrics go only with --http."
            )
        return
    from toolbridge.serve.http_guard import LEAST_TOKEN, is_everywhere, is_loopback

    if token is not None and (len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable()):
        raise click.UsageError(f"A token has at least {LEAST_TOKEN} characters, all of them plain ones.")
    if token is None and not is_loopback(given["host"]):
        raise click.UsageError(
            f"Others can reach {given['host']}: a token is needed. Put one into a file for --token-file, "
            f"or into {TOKEN_VARIABLE}."
        )
    if is_everywhere(given["host"]) and not given["hosts"]:
        raise click.UsageError(f"{given['host']} has no name: say which with --allow-host, such as tools.example.org.")


def _token(file: str | None) -> str | None:
    """Read the bearer token from a private file, or without one the variable; None if there is neither.

    Raises:
        click.UsageError: it can't be read, is empty, or others can read or change the file.
    """
    if file is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    try:
        with open(file, encoding="utf-8") as opened:
            is_open_to_others = os.fstat(opened.fileno()).st_mode & 0o077
            token = opened.read(4096).strip()
    except (OSError, UnicodeError) as error:
        raise click.UsageError(f"The token can't be read from {file!r}: {error}.") from None
    if is_open_to_others:
        raise click.UsageError(
            f"Others on this machine can read or change {file!r}: run `chmod 600` on it, and put a new token into it. "
            f"Where that can't be, set {TOKEN_VARIABLE} instead."
        )
    if not token:
        raise click.UsageError(f"There is no token in {file!r}.")
    return token
