"""`toolbridge run` for programs that call servers; imported only for those."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from toolbridge import (
    ApprovalRequest,
    AuditLog,
    CheckReport,
    Config,
    Limits,
    Progress,
    RunResult,
    Runtime,
    ServerManager,
    ToolbridgeError,
    ToolUse,
    open_runtime,
)
from toolbridge.approval import Approval, Decision
from toolbridge.calls.run import new_run
from toolbridge.cli import OK
from toolbridge.cli.lock import LockOutcome, accepted_at
from toolbridge.cli.run_program import make_ready
from toolbridge.cli.server_options import ServerChoice, chosen_profiles, chosen_servers, unless_terminated
from toolbridge.cli.terminal import write
from toolbridge.errors import GuestImageError, ServerNotApprovedError, ToolNotFoundError
from toolbridge.events import RunEnded, RunStarted, ServerCollided
from toolbridge.trust.approval.approver import Terminal
from toolbridge.trust.approval.approvers import TerminalApprover
from toolbridge.trust.pins.pins import FirstListing, LockPins
from toolbridge.trust.pins.review import TerminalAcceptance
from toolbridge.trust.sanitise import for_terminal

if TYPE_CHECKING:
    from toolbridge.events import Observer
    from toolbridge.sandbox.outcome import SandboxLanguage
    from toolbridge_codegen.catalog import ToolSpec


# `toolbridge run --dry-run`: the merged configuration with reasons, secrets redacted.


def show_servers(choice: ServerChoice) -> int:
    """Print one JSON object: `mcpServers` as in a file, the reason for each, and those left out. Starts nothing.

    Imports plugins if theirs may be wanted. Gives the exit code.
    """
    from toolbridge.sources.merge import shown_config

    merged = chosen_servers(choice)
    servers = merged.config.servers
    collided = [event for event in merged.events if isinstance(event, ServerCollided)]
    facts = {
        **shown_config(merged.config),
        "why": {
            name: {"origin": str(servers[name].origin), "reason": merged.reasons[name]} for name in sorted(servers)
        },
        "collisions": [asdict(event) for event in collided],
        "ignored": [asdict(event) for event in merged.events if event not in collided],
    }
    write(sys.stdout, json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
    return OK


_Result = TypeVar("_Result")

_ANSWERS = {"y": Decision(True), "yes": Decision(True), "a": Decision(True, remember=True)}
_QUESTION = "Allow this call? [y]es, [a]lways in this run, [N]o: "


class _Person:
    """The person at the terminal: asked one question at a time, with the progress line hidden."""

    def __init__(self, progress: Progress, config_file: str | None) -> None:
        self._progress = progress
        self._terminal = Terminal()
        self._approver = TerminalApprover(config_file=config_file, profiles=chosen_profiles())
        self._acceptance = TerminalAcceptance(self._terminal)
        self.pins = LockPins(on_first_use="ask", accept=self.accept_tools) if self.is_there else LockPins()
        """Of the lock; at a terminal, definitions that this user has not accepted are asked about."""
        self._turn = anyio.Lock()
        self._refused: dict[str, Approval] = {}

    @property
    def is_there(self) -> bool:
        return self._terminal.is_there

    async def approve(self, request: ApprovalRequest) -> Approval:
        """Ask whether a server may be started or reached; a refusal holds until the command ends."""
        async with self._turn:
            if request.digest in self._refused:
                return self._refused[request.digest]
            with self._progress.hidden():
                approval = await self._approver.approve(request)
            if not approval.approved:
                self._refused[request.digest] = approval
            return approval

    async def accept_tools(self, first: FirstListing) -> bool | None:
        """Ask whether unaccepted tools may be pinned and called; None without an answer."""
        async with self._turn:
            with self._progress.hidden():
                return await self._acceptance(first)

    async def accept_changes(self, servers: ServerManager, name: str) -> None:
        """Show what changed in a server's tools since they were pinned, and ask; a yes pins, a no is stored.

        Returns without asking if there is no terminal, the server was never pinned, or there are only new tools.

        Raises:
            ToolbridgeError: they can't be pinned.
        """
        listing, admission = servers.listing(name), servers.admission(name)
        if listing is None or admission is None or not (self.is_there and admission.is_pinned):
            return
        # New tools alone are not asked about: the program can do without them, and gets a warning.
        has_changed = admission.instructions_diff and not admission.instructions_problem
        if not (has_changed or servers.changed_tools(name)):
            return
        server, others = servers.config_of(name), servers.other_tools(name)
        first = FirstListing(server, listing.tools, listing.instructions, others, listing.about)
        outcome = LockOutcome(name, "", admission).with_findings(first.findings)
        async with self._turn:
            with self._progress.hidden():
                agreed = await accepted_at(self._terminal, outcome)
        if agreed:
            await servers.accept_tools(name, listing)  # the listing that was shown, not a later one
        elif agreed is False:
            await self.pins.refuse(first.only(admission.different))

    async def can_use_tool(self, use: ToolUse) -> Decision:
        """Ask whether a call may be made, for once or for the rest of the run; any other answer denies it."""
        async with self._turn:
            with self._progress.hidden():
                text = f"\nServer {use.server!r}: {use.detail}\n  {for_terminal(use.reason)}"
                try:
                    answer = await self._terminal.ask(text, _QUESTION)
                except anyio.get_cancelled_exc_class():
                    with suppress(OSError):
                        write(sys.stderr, "\n")  # the run ended meanwhile; its report begins a new line
                    raise
        return _ANSWERS.get(answer.strip().lower(), Decision(False, "the person at the terminal said no"))


def run_with_servers(
    sources: Sequence[str],
    language: SandboxLanguage,
    limits: Limits,
    chosen: ServerChoice,
    *,
    check: bool,
    audit_log: str | None,
    session: str | None = None,
    on_result: Callable[[RunResult], None] = lambda _: None,
) -> RunResult:
    """Run a program with the chosen servers as its modules; several, one after another, in a session.

    Blocks; may ask at the terminal. Calls `on_result` after each, stops at the first that fails, and returns the last
    result.

    Raises:
        ToolbridgeError: configuration, installation or audit log can't be used.
    """

    async def run(runtime: Runtime) -> RunResult:
        """Run the program, or all of them in a session until one fails."""
        if session is None:
            result = await runtime.run(sources[0], language=language, check=check)
            on_result(result)
            return result
        async with runtime.session(language, check=check, name=session) as opened:
            for source in sources[:-1]:
                result = await opened.run(source)
                on_result(result)
                if result.failure is not None:
                    return result
            result = await opened.run(sources[-1])
            on_result(result)
            return result

    make_ready("python" if language == "python" else "javascript")
    _make_compiler_ready(language, check=check)
    return _with_servers("\n".join(sources), run, limits, chosen, audit_log=audit_log, runs=True)


def call_with_servers(
    server: str,
    tool: str,
    arguments: Callable[[ToolSpec], dict[str, Any]],
    limits: Limits,
    chosen: ServerChoice,
    *,
    audit_log: str | None,
) -> RunResult:
    """Connect a server and call one tool, by its name or identifier, with what `arguments` makes of its definition.

    Blocks; may ask at the terminal. A failure of the tool itself is in the result.

    Raises:
        ServerError: the server is not approved, not reachable, or has no such tool.
    """
    from toolbridge.cli.call import program_of

    async def call(runtime: Runtime) -> RunResult:
        """Call the tool by a generated program."""
        spec = _tool(runtime, server, tool)
        # Not type-checked: the host's validation names the arguments, not lines of a generated program.
        return await runtime.run(program_of(spec, arguments(spec)), check=False)

    make_ready("javascript")
    named = f'require("host:mcp-{server}")'
    return _with_servers(named, call, limits, chosen, audit_log=audit_log, runs=True, must_connect=True)


def _tool(runtime: Runtime, server: str, tool: str) -> ToolSpec:
    """Find an exposed tool of a connected server by identifier, else by name.

    Raises:
        ToolNotFoundError: there is none, or a filter hides it.
        ToolBlockedError: its pin blocks it.
    """
    module = runtime.catalog.module(f"host:mcp-{server}")
    known = () if module is None else module.tools
    found = [each for each in known if each.identifier == tool] or [each for each in known if each.name == tool]
    if found:
        return found[0]
    runtime.servers.check_exposed(server, tool)
    raise ToolNotFoundError(server, f"exposes no tool {for_terminal(tool)!r}")


def check_with_servers(source: str, language: SandboxLanguage, chosen: ServerChoice) -> CheckReport:
    """Check a program against the types of the chosen servers, those it names connected; runs nothing of it.

    Blocks; may ask at the terminal.
    """

    async def check(runtime: Runtime) -> CheckReport:
        return await runtime.check(source, language=language)

    _make_compiler_ready(language, check=True)
    return _with_servers(source, check, Limits(), chosen, audit_log=None, runs=False)


def _make_compiler_ready(language: SandboxLanguage, *, check: bool) -> None:
    """Compile the type checker if it is needed; for JavaScript, a missing one is ignored: it isn't checked then.

    Raises:
        GuestImageError: it is missing, and the program is TypeScript.
    """
    if language == "typescript" or (check and language == "javascript"):
        try:
            make_ready("typescript")
        except GuestImageError:
            if language == "typescript":
                raise  # else the program runs unchecked


def _with_servers(
    source: str,
    work: Callable[[Runtime], Awaitable[_Result]],
    limits: Limits,
    chosen: ServerChoice,
    *,
    audit_log: str | None,
    runs: bool,
    must_connect: bool = False,
) -> _Result:
    """Open a runtime of the chosen servers, connect those that `source` names, and return the result of `work`.

    Blocks; may ask at the terminal. A server that can't be connected is a warning; with `must_connect`, its error is
    raised. `runs` tells that a program runs, which reports some problems itself.
    """
    config = chosen_servers(chosen).config
    limits = limits.with_(call_seconds=limits.wall_seconds)  # the configuration limits single calls
    progress = Progress()

    async def main() -> _Result:
        """Open the runtime, connect servers, warn, and work."""
        person = _Person(progress, chosen.config_file)
        async with open_runtime(
            config,
            approver=person,
            can_use_tool=person.can_use_tool if person.is_there else None,
            limits=limits,
            observers=observers,
            errors="raise" if must_connect else None,
            pins=person.pins,
        ) as runtime:
            with _drawn(progress):
                failed = await _connect_named(runtime, source, person, runs=runs)
                if must_connect:  # its error is the command's
                    for name in runtime.servers_named_in(source):
                        await runtime.servers.connect(name)
            _warn_of_rules(config, None if runs else runtime)
            result = await work(runtime)
            told = str(result.failure) if isinstance(result, RunResult) else ""
            for words in failed:
                if words not in told:  # may have paths of this machine, which are kept from programs
                    _warn(words)
            return result

    with ExitStack() as stack:
        observers: list[Observer] = [progress]
        if audit_log is not None:
            log = AuditLog(audit_log)
            stack.callback(log.close)
            observers.append(log)
        return anyio.run(unless_terminated, main)


@contextmanager
def _drawn(progress: Progress) -> Generator[None]:
    """Draw the progress line while servers are connected, by the events of a run."""
    run = new_run()
    progress(RunStarted(run, "", 0))
    try:
        yield
    finally:
        progress(RunEnded(run, "ok", 0.0, 0.0, 0))


async def _connect_named(runtime: Runtime, source: str, person: _Person, *, runs: bool) -> list[str]:
    """Connect the servers that a program names, before its time begins to count: a person may have to be asked.

    Returns why servers could not be connected; raises nothing for them. An unapproved server is left to the program's
    import if it `runs`. Prints other problems as warnings.
    """
    failed: list[str] = []

    async def connect(name: str) -> None:
        """Connect one server and have its changes reviewed; errors are collected, not raised."""
        try:
            await runtime.servers.connect(name)
            await person.accept_changes(runtime.servers, name)
            for problem in runtime.servers.status(name).problems:
                words = f"Server {name!r}: {problem.removesuffix('.')}."
                if not (runs and words in runtime.servers.filter_warnings):  # a run reports those itself
                    _warn(words)
        except ServerNotApprovedError as error:
            if not runs:  # else the program gets it as the error of its import
                failed.append(str(error))
        except ToolbridgeError as error:
            failed.append(str(error))

    async with anyio.create_task_group() as tasks:
        for name in runtime.servers_named_in(source):
            tasks.start_soon(connect, name)
    return failed


def _warn_of_rules(config: Config, runtime: Runtime | None) -> None:
    """Print warnings about rules that name no server and, with a runtime, about those that match no tool.

    A run has the latter among its own warnings.
    """
    from toolbridge.trust.permissions import label_warnings, pattern_warnings, stray_patterns

    warnings = stray_patterns(config)
    if runtime is not None:
        listed = runtime.servers.listed()
        warnings += (*pattern_warnings(config, listed), *label_warnings(config, listed))
    for warning in warnings:
        _warn(warning)


def _warn(text: str) -> None:
    with suppress(OSError):
        write(sys.stderr, f"Warning: {for_terminal(text)}\n")
