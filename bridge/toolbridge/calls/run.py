"""One run, top to bottom: connect the servers that are missing, type-check the program, execute it.

A connected server costs a run nothing: no connect, no approval, no second look-up. A run's time begins when every
approval that it waits for is settled; connecting and type-checking are part of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from anyio import create_task_group, move_on_after, sleep, to_thread

from toolbridge.boundary.host_call import (
    BRIDGE,
    CallFailed,
    HostFunction,
    HostSide,
    Reply,
    RunClock,
    known_specifier,
    no_such_module,
)
from toolbridge.boundary.wire import ErrorFrame
from toolbridge.calls.call_errors import import_failed
from toolbridge.calls.tool_call import CallRules, HandleStore, ToolCalls
from toolbridge.check.checker import Checked, Checker, CheckReport, SessionNames, World
from toolbridge.check.javascript import needed_stubs
from toolbridge.errors import SandboxClosedError, ServerError, advised
from toolbridge.events import Observer, RunEnded, RunStarted
from toolbridge.limits import Limits
from toolbridge.sandbox.outcome import Failure, RunResult, Usage
from toolbridge.schema.validate import ValidatorCache
from toolbridge.servers.listing import blocked_error
from toolbridge.servers.registry import notify
from toolbridge.trust.gate import PermissionGate
from toolbridge_codegen.catalog import identifier, module_specifier, python_module

if TYPE_CHECKING:
    from toolbridge.sandbox.sandbox import Sandbox
    from toolbridge.servers.lifecycle import AcquireMode
    from toolbridge.servers.manager import ServerManager
    from toolbridge_codegen.catalog import Catalog
    from toolbridge_codegen.stubs import Language as StubLanguage
    from toolbridge_codegen.stubs import StubSet

Check: TypeAlias = bool | Literal["advisory"]
"""Whether a program is type-checked before it runs, and whether an error keeps it from running."""
Execute: TypeAlias = Callable[..., Awaitable[RunResult]]
"""Runs the program in a guest; takes `erased` and `spent` as `Sandbox.run` does."""

_MENTIONED = re.compile(r"""["'`]host:mcp-([a-z0-9_-]{1,64})(?:/async)?["'`]""")
_MENTIONED_IN_PYTHON = re.compile(r"\bhost\.mcp_([a-z0-9_]{1,64})\b")
_IMPORTED_IN_PYTHON = re.compile(r"^[ \t]*from[ \t]+host[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)", re.MULTILINE)
_PYTHON_NAME = re.compile(r"\bmcp_([a-z0-9_]{1,64})\b")
_HOST_WORD = {"javascript": re.compile(r"host:"), "typescript": re.compile(r"host:"), "python": re.compile(r"\bhost\b")}
_WORD = re.compile(r"[^\W\d][\w$]*")
_MOST_MENTIONED, _MOST_TOLD = 50, 5
_UNCHECKED = Checked(CheckReport())
_NOTHING_SPENT = Usage()


def mentioned_servers(source: str, known: Iterable[str]) -> tuple[str, ...]:
    """Returns those of `known` whose modules a program's text names, sorted."""
    named = set(_MENTIONED.findall(source))
    in_python = set(_MENTIONED_IN_PYTHON.findall(source))
    for names in _IMPORTED_IN_PYTHON.findall(source):
        in_python.update(_PYTHON_NAME.findall(names))
    return tuple(sorted(server for server in known if server in named or server.replace("-", "_") in in_python))


def hidden_tool_warnings(manager: ServerManager, code: str, told: str = "") -> tuple[str, ...]:
    """Returns warnings about tools that a program names and that are blocked by their pins. Quotes no server.

    To type-checker and guest, a blocked tool just doesn't exist. Skips explanations that are part of `told`.
    """
    hiding = manager.servers_with_blocked_tools()
    if not hiding:
        return ()
    words = set(_WORD.findall(code))
    lines: list[str] = []
    for server in mentioned_servers(code, hiding):
        blocked = manager.blocked_tools(server)
        named = [tool for tool in blocked if identifier(tool.name) in words]
        if not named and ((exposed := manager.exposed(server)) is None or not exposed.tools):
            named = list(blocked)  # it exposes no tool at all: any of them may be meant
        config = manager.config_of(server)
        problems = (str(blocked_error(config, tool)) for tool in named[:_MOST_TOLD])
        lines += [f"{problem}." for problem in problems if problem not in told]
        more = len(named) - _MOST_TOLD
        lines += [f"Server {server!r} has {more} more tools blocked."] if more > 0 else []
    return tuple(lines)


class RunModules:
    """The modules of one run or session: a server's tools as functions, resolved on first import."""

    def __init__(self, manager: ServerManager, bridge: dict[str, HostFunction], clock: RunClock) -> None:
        self._manager = manager
        self._clock = clock
        self._modules: dict[str, dict[str, HostFunction]] = {BRIDGE: bridge}
        self._source = ""
        self._calls: ToolCalls | None = None
        self._connected: frozenset[str] = frozenset()
        self.problems: dict[str, ServerError] = {}
        """Servers that could not be connected in this run: it does not retry."""

    @property
    def host(self) -> HostSide:
        """Returns the modules, their importer and the clock, as the sandbox takes them."""
        return HostSide(self._modules, self._import, self._clock)

    def begin(self, source: str, calls: ToolCalls) -> None:
        """Starts a run, whose calls are made by `calls`; forgets the last run's connections and problems."""
        self._source = source
        self._calls = calls
        self._connected = frozenset()
        self.problems = {}

    def missing(self, names: Iterable[str]) -> list[str]:
        """Returns the servers without a live connection, except those that failed in this run."""
        return [name for name in self._manager.unconnected(names) if name not in self.problems]

    def connected(self, names: Iterable[str]) -> tuple[str, ...]:
        """Returns the servers that did not fail in this run, and marks them as connected for imports."""
        found = tuple([name for name in names if name not in self.problems])
        self._connected = frozenset(found)
        return found

    async def wait_for_approvals(self, names: Iterable[str]) -> None:
        """Waits until each server is approved or refused; ignores errors, which `connect` records."""

        async def wait(name: str) -> None:
            with suppress(ServerError):  # `connect` records the reason
                await self._manager.wait_for_approval(name)

        async with create_task_group() as tasks:
            for name in names:
                tasks.start_soon(wait, name)

    async def connect(self, names: Iterable[str]) -> None:
        """Connects servers concurrently; a failure is recorded, and raised when the program imports the module."""

        async def connect_or_record(name: str) -> None:
            try:
                await self._manager.connect(name, acquire="queue")
            except ServerError as error:
                self.problems[name] = error

        async with create_task_group() as tasks:
            for name in names:
                tasks.start_soon(connect_or_record, name)

    def _import(self, specifier: str) -> Awaitable[None] | None:
        """Adds a module on import; returns an awaitable that does so if its server has to be connected first.

        Raises:
            CallFailed: there is no such module, or its server can't be connected.
        """
        servers = self._manager.specifiers()
        if specifier not in servers:
            specifier = known_specifier(specifier, servers)
        server = servers.get(specifier)
        if server is None:
            raise CallFailed(self._disabled(specifier) or no_such_module(servers, specifier))
        if server in self.problems:
            raise self._import_failed(self.problems[server], server)
        if server not in self._connected:
            mentioned = mentioned_servers(self._source, servers.values())[:_MOST_MENTIONED]
            missing = self.missing(dict.fromkeys((server, *mentioned)))
            if missing:
                return self._connect_and_import(specifier, server, missing)
        self._add_module(specifier, server)
        return None

    async def _connect_and_import(self, specifier: str, server: str, missing: Sequence[str]) -> None:
        """Connects `missing` servers concurrently, then adds the module; raises CallFailed if its own server failed."""
        problem: ServerError | None = None

        async def approve_and_connect(name: str) -> None:
            nonlocal problem
            acquire: AcquireMode = "queue" if name == server else "if_free"
            try:
                with self._clock.stopped():  # a person may be asked to approve it
                    await self._manager.wait_for_approval(name, acquire=acquire)
                await self._manager.connect(name, acquire=acquire)
            except ServerError as error:
                if name == server:
                    problem = error

        async with create_task_group() as tasks:
            for name in missing:
                tasks.start_soon(approve_and_connect, name)
        if problem is not None:
            raise self._import_failed(problem, server)
        self._add_module(specifier, server)

    def _import_failed(self, problem: ServerError, server: str) -> CallFailed:
        """Makes (doesn't raise) the error of an import; taints the run if it may quote the server."""
        assert self._calls is not None
        self._calls.taint(problem, server)
        return import_failed(problem, server, self._manager)

    def _disabled(self, specifier: str) -> ErrorFrame | None:
        """Returns the error for a disabled server's module; None for a server that is not configured at all."""
        servers = {module_specifier(name): name for name in self._manager.names()}
        server = servers.get(known_specifier(specifier, servers))
        if server is None:
            return None
        message = f"Server {server!r} is disabled: it has no module. A person can run {advised(f'enable {server}')}."
        return ErrorFrame("unknown", message, name="ModuleError", server=server)

    def _add_module(self, specifier: str, server: str) -> None:
        """Adds a server's module to the modules of the run, with a host function for each exported tool."""
        functions: dict[str, HostFunction] = {}
        for name, tool in self._manager.exports(server).items():
            call = partial(self._call, server, tool)
            functions[name] = HostFunction(call, True, keeps_time=True, server=server, tool=tool, may_answer=True)
        self._modules[specifier] = functions

    def _call(self, server: str, tool: str, *given: Any) -> Reply | Awaitable[Reply]:
        assert self._calls is not None
        return self._calls.call(server, tool, given)


class TypeChecks:
    """Type-checks the programs of a runtime against the stubs of its connected servers."""

    def __init__(
        self, manager: ServerManager, sandbox: Sandbox, stubs_of: Callable[[Catalog, StubLanguage], StubSet]
    ) -> None:
        self._manager = manager
        self._stubs_of = stubs_of
        self.checker = Checker(sandbox)
        self._stubs: dict[StubLanguage, tuple[Catalog, Mapping[str, str]]] = {}
        self._worlds: dict[StubLanguage, tuple[Catalog, tuple[str, ...], World]] = {}

    async def check(
        self, code: str, language: str, connected: tuple[str, ...], session: SessionNames | None, limits: Limits
    ) -> Checked:
        """Checks a program against these servers' stubs, in the time of a run; skips one that names a changed tool.

        Raises:
            ToolbridgeError: the sandbox is closed, or the installation is broken.
        """
        blocked = {tool for server in connected for tool in self._manager.changed_tools(server)}
        if blocked and not blocked.isdisjoint(_WORD.findall(code)):
            return _UNCHECKED  # a blocked tool is not in the stubs, and the run says why
        wanted: StubLanguage = "python" if language == "python" else "typescript"
        world = self._known_world(wanted, connected) or await self._world(wanted, connected)
        return await self.checker.check(code, language, world, session, limits)

    def known(self, code: str, language: str, connected: tuple[str, ...]) -> Checked | None:
        """Returns the cached answer for the same program and stubs, or None."""
        world = self._known_world("python" if language == "python" else "typescript", connected)
        return None if world is None else self.checker.known(code, language, world)

    def _known_world(self, language: StubLanguage, connected: tuple[str, ...]) -> World | None:
        """Returns the cached stubs if they are of these servers and the current catalog, else None."""
        kept = self._worlds.get(language)
        is_current = kept is not None and kept[0] is self._manager.catalog and kept[1] == connected
        return kept[2] if kept is not None and is_current else None

    async def _world(self, language: StubLanguage, connected: tuple[str, ...]) -> World:
        """Builds and caches connected servers' stubs; other modules are untyped, as cached listings may be stale."""
        catalog = self._manager.catalog
        known = self._stubs.get(language)
        if known is None or known[0] is not catalog:
            # In a worker thread: a listing may be megabytes.
            known = self._stubs[language] = (catalog, await to_thread.run_sync(self._generate, catalog, language))
        untyped = tuple(name for name in self._manager.names() if name not in connected)
        hidden = tuple(_stub_name(name, language) for name in untyped)
        world = World(
            stubs={name: text for name, text in known[1].items() if not name.startswith(hidden)},
            modules=tuple(self._manager.specifiers()),
            untyped=tuple(module_specifier(name) for name in untyped),
        )
        self._worlds[language] = (catalog, connected, world)
        return world

    def _generate(self, catalog: Catalog, language: StubLanguage) -> Mapping[str, str]:
        """Generates all stub files, by name; for TypeScript also parses and caches them. Slow: for a worker thread."""
        files = self._stubs_of(catalog, language).files
        if language == "typescript":
            needed_stubs(files, "")  # parses the stubs, and caches that for the check
        return files


def _stub_name(server: str, language: StubLanguage) -> str:
    """Returns the prefix of a server's stub files."""
    if language == "python":
        return python_module(server).replace(".", "/") + "/"
    return f"{module_specifier(server).removeprefix('host:')}.d.ts"


class RunScope:
    """State of one run, or of a session of several: modules, handles, granted permissions, taint."""

    def __init__(
        self,
        manager: ServerManager,
        *,
        rules: CallRules,
        limits: Limits,
        checks: ValidatorCache,
        gate: PermissionGate,
        observers: Sequence[Observer],
        type_checks: TypeChecks,
        rule_warnings: Callable[[], Iterable[str]],
        session: str | None = None,
    ) -> None:
        self.limits = limits
        self._manager = manager
        self._rules = rules
        self._checks = checks
        self._clock = RunClock(limits.ask_seconds)
        self._gate = gate.open_run(self._clock.stopped)
        self._observers = observers
        self._type_checks = type_checks
        self._rule_warnings = rule_warnings
        self._session = session
        self._names = None if session is None else SessionNames()
        self._handles = HandleStore(limits, exact_integers=rules.exact_integers)
        self._modules = RunModules(manager, self._handles.functions(), self._clock)
        self._servers: dict[str, None] = {}

    @property
    def host(self) -> HostSide:
        """The modules and functions for guest code."""
        return self._modules.host

    async def run(
        self,
        code: str,
        language: str,
        execute: Execute,
        *,
        limits: Limits | None = None,
        check: Check = True,
        keeps_answers: bool = True,
    ) -> RunResult:
        """Type-checks and runs a program, and notifies observers; without `keeps_answers`, asks a person anew.

        Raises:
            ToolbridgeError: the sandbox is closed, or the installation is broken.
        """
        limits = limits or self.limits
        if not keeps_answers:
            self._gate.forget_answers()
        run, began = new_run(), perf_counter()
        calls = ToolCalls(
            run,
            self._manager,
            rules=self._rules,
            limits=limits,
            checks=self._checks,
            gate=self._gate,
            handles=self._handles,
            clock=self._clock,
            observers=self._observers,
        )
        self._modules.begin(code, calls)
        await self._manager.close_revoked()
        if self._observers:
            size = len(code.encode("utf-8", "surrogatepass"))
            notify(self._observers, RunStarted(run, language, size, self._session))
        result: RunResult | None = None
        try:
            checked, spent, refusal = _UNCHECKED, _NOTHING_SPENT, None
            # A program that names no module makes no call: running it is as safe as checking it.
            if check and (_HOST_WORD[language].search(code) or (self._names and self._names.is_used_in(code))):
                is_advisory = check == "advisory"
                checked, spent, refusal = await self._type_check(code, language, limits, is_advisory=is_advisory)
            report, found = checked.report, checked.report.failure
            if found is not None and (report.syntax is not None or check != "advisory"):
                refusal = found
            if refusal is not None:
                result = RunResult(failure=refusal, usage=spent)
            else:
                result = await execute(erased=checked.erased, spent=spent)
                if self._names is not None and check:
                    self._names.add(code, language, checked.names)
            advice = "" if refusal or not report.has_checker else _advice(found) if found else report.warning
            warnings = self._warnings(code, advice, result.failure)
            servers = tuple({**self._servers, **calls.servers})
            result = replace(result, servers=servers, warnings=(*result.warnings, *warnings))
            return result
        finally:
            self._servers |= calls.servers
            if self._observers:
                self._notify_end(run, began, calls, result)

    async def check(self, code: str, language: str) -> CheckReport:
        """Connects the servers that a program names, and type-checks it; the report names servers that are unknown.

        Raises:
            ToolbridgeError: the sandbox is closed, or the installation is broken.
        """
        named = self._named(code)
        await self._modules.connect(self._modules.missing(named))
        connected = self._modules.connected(named)
        report = (await self._type_checks.check(code, language, connected, self._names, self.limits)).report
        unknown = [name for name in mentioned_servers(code, self._manager.names()) if name not in connected]
        hidden = () if report.ok else hidden_tool_warnings(self._manager, code)
        if hidden and not report.warning:
            return replace(report, warning=" ".join(hidden))
        if not unknown or report.warning:
            return report
        is_checked = report.is_checked and (bool(connected) or not report.ok)
        what = "calls of them were not checked" if is_checked else "nothing was checked"
        servers = f"{', '.join(map(repr, unknown))} are not known (not approved, disabled, or not reached)"
        warning = f"The tools of {servers}, so {what}."
        return replace(report, warning=warning, is_checked=is_checked)

    def close(self) -> None:
        """Frees the handles."""
        self._handles.close()

    async def _type_check(
        self, code: str, language: str, limits: Limits, *, is_advisory: bool
    ) -> tuple[Checked, Usage, Failure | None]:
        """Connects the servers that a program names and type-checks it, within the time of the run.

        An advisory check gets half of the time. Returns the check, its time, and a failure if nothing may be executed.
        """
        checks, names = self._type_checks, self._names
        try:
            if language not in checks.checker.prepared:
                await checks.checker.prepare(language)  # compiling the checker is not billed to the run
            deadline = monotonic() + limits.wall_seconds
            named = self._named(code)
            missing = self._modules.missing(named)
            if missing:
                deadline = await self._connect(missing, limits.wall_seconds)
            connected = self._modules.connected(named)
            checked = checks.known(code, language, connected) if names is None else None
            left = deadline - monotonic()
            if left <= 0:
                message = f"The run took longer than {limits.wall_seconds:g} s."
                return _UNCHECKED, _NOTHING_SPENT, Failure("timeout", message)
            if checked is None:
                of_check = limits.with_(wall_seconds=left / 2 if is_advisory else left)
                checked = await checks.check(code, language, connected, names, of_check)
        except SandboxClosedError:  # closed meanwhile
            return _UNCHECKED, _NOTHING_SPENT, Failure("cancelled", "The run was cancelled.")
        return checked, Usage(wall_seconds=limits.wall_seconds - (deadline - monotonic())), None

    async def _connect(self, missing: Sequence[str], seconds: float) -> float:
        """Connects servers, for `seconds` at most after approvals; returns the run's deadline (monotonic clock)."""
        deadline = inf

        async def give_up_after_approvals() -> None:
            nonlocal deadline
            with move_on_after(self.limits.ask_seconds):
                await self._modules.wait_for_approvals(missing)
            deadline = monotonic() + seconds
            await sleep(seconds)
            tasks.cancel_scope.cancel()

        async with create_task_group() as tasks:
            tasks.start_soon(give_up_after_approvals)
            await self._modules.connect(missing)
            tasks.cancel_scope.cancel()
        return min(deadline, monotonic() + seconds)

    def _named(self, code: str) -> tuple[str, ...]:
        """Returns the enabled servers that a program names, or an earlier program of the session imported."""
        text = code if self._names is None else f"{code}\n{self._names.mentions}"
        return mentioned_servers(text, self._manager.specifiers().values())[:_MOST_MENTIONED]

    def _warnings(self, code: str, advice: str, failure: Failure | None) -> list[str]:
        """Returns a run's warnings: its check's advice, after a failure its blocked tools, and those of rules."""
        hidden = () if failure is None else hidden_tool_warnings(self._manager, code, str(failure))
        return [*([advice] if advice else []), *hidden, *self._rule_warnings()]

    def _notify_end(self, run: str, began: float, calls: ToolCalls, result: RunResult | None) -> None:
        """Notifies observers of the run's end; without a result, it was cancelled."""
        outcome = "cancelled" if result is None else "ok" if result.failure is None else result.failure.kind
        cpu_seconds = 0.0 if result is None else result.usage.cpu_seconds
        ended = RunEnded(run, outcome, perf_counter() - began, cpu_seconds, calls.count, tuple(self._servers))
        notify(self._observers, ended)


def _advice(failure: Failure) -> str:
    """Formats the finding of an advisory type-check."""
    place = "" if failure.line is None else f" (line {failure.line})"
    return f"The program ran against the advice of its check: {failure.message}{place}"


def new_run() -> str:
    """Returns a random run id: short, and unique among processes that share a log."""
    return os.urandom(6).hex()
