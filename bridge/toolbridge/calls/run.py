"""A program's check before its run: which stubs it is checked against, and what becomes of it then."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any

import anyio
from anyio import create_task_group, move_on_after, sleep, to_thread

from toolbridge.boundary.host_call import BRIDGE, CallFailed, HostFunction, HostSide, Reply, RunClock, no_such_module
from toolbridge.boundary.wire import ErrorFrame, known_specifier
from toolbridge.calls.tool_call import CallRules, HandleStore, ToolCalls, import_failed
from toolbridge.check.checker import Checked, Checker, CheckReport, SessionNames, World, names_a_module
from toolbridge.check.javascript import needed_stubs
from toolbridge.errors import SandboxClosedError, ServerError, advised
from toolbridge.limits import Limits
from toolbridge.observe.events import Observer, RunEnded, RunStarted
from toolbridge.sandbox.outcome import Failure, RunResult, Usage
from toolbridge.schema.validate import CheckStore
from toolbridge.servers.listing import blocked_error
from toolbridge.servers.manager import tell
from toolbridge.trust.gate.gate import PermissionGate
from toolbridge_codegen.catalog import ModuleSpec, identifier, module_specifier, python_module

if TYPE_CHECKING:
    from toolbridge.sandbox.sandbox import Sandbox
    from toolbridge.servers.lifecycle import Place
    from toolbridge.servers.manager import ServerManager
    from toolbridge_codegen.catalog import Catalog
    from toolbridge_codegen.stubs import Language as StubLanguage
    from toolbridge_codegen.stubs import StubSet


# The modules of one run or session: a server's tools as functions, made when guest code first asks for them.


# A specifier as a program writes it: within quotes of any kind.
_MENTIONED = re.compile(r"""["'`]host:mcp-([a-z0-9_-]{1,64})(?:/async)?["'`]""")
# The same in Python, where a dash is an underscore.
_MENTIONED_IN_PYTHON = re.compile(r"\bhost\.mcp_([a-z0-9_]{1,64})\b")
_IMPORTED_IN_PYTHON = re.compile(r"^[ \t]*from[ \t]+host[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)", re.MULTILINE)
_PYTHON_NAME = re.compile(r"\bmcp_([a-z0-9_]{1,64})\b")
_MOST_MENTIONED = 50


class RunModules:
    """Which modules guest code has imported, and which tools their functions call."""

    def __init__(self, manager: ServerManager, handles: HandleStore, clock: RunClock) -> None:
        self._manager = manager
        self._clock = clock
        self._modules: dict[str, dict[str, HostFunction]] = {BRIDGE: handles.functions()}
        self._source = ""
        self._calls: ToolCalls | None = None
        self._problems: dict[str, ServerError] = {}
        """Of servers that could not be connected before the run: it does not try again."""

    @property
    def host(self) -> HostSide:
        """For the sandbox."""
        return HostSide(self._modules, self._import, self._clock)

    def begin(self, source: str, calls: ToolCalls) -> None:
        """A run begins: its calls go through these."""
        self._source = source
        self._calls = calls
        self._problems = {}

    async def wait_for_approvals(self, source: str) -> None:
        """Until everybody who is asked about the servers whose modules a program names has answered."""

        async def wait(name: str) -> None:
            with suppress(ServerError):  # connecting it says so
                await self._manager.wait_for_approval(name)

        async with anyio.create_task_group() as tasks:
            for name in mentioned_servers(source, self._manager.enabled_servers())[:_MOST_MENTIONED]:
                tasks.start_soon(wait, name)

    async def connect_named(self, source: str) -> tuple[str, ...]:
        """Connects the servers whose modules a program names, as importing them would; those that are connected now."""
        named = mentioned_servers(source, self._manager.enabled_servers())[:_MOST_MENTIONED]

        async def connect(name: str) -> None:
            try:
                if name not in self._problems:
                    await self._manager.connect(name, place="in_turn")
            except ServerError as error:  # the program hears of it when it imports the module
                self._problems[name] = error

        async with anyio.create_task_group() as tasks:
            for name in named:
                tasks.start_soon(connect, name)
        return tuple(name for name in named if name not in self._problems)

    async def _import(self, specifier: str) -> None:
        """Connects the server of a module, if there is one, and offers its tools.

        Raises:
            CallFailed: there is no such module, or its server can't be connected.
        """
        servers = {module_specifier(name): name for name in self._manager.enabled_servers()}
        specifier = known_specifier(specifier, servers)
        server = servers.get(specifier)
        if server is None:
            raise CallFailed(self._disabled(specifier) or no_such_module(servers, specifier))
        await self._connect_mentioned(set(servers.values()) - {server}, server)
        module = self._manager.catalog.module(specifier)
        self._modules[specifier] = self._functions(server, module)

    def _disabled(self, specifier: str) -> ErrorFrame | None:
        """The error for a module whose server is switched off; None for one that is not configured at all."""
        servers = {module_specifier(status.name): status.name for status in self._manager.statuses()}
        server = servers.get(known_specifier(specifier, servers))
        if server is None:
            return None
        words = f"Server {server!r} is disabled: it has no module. A person can run {advised(f'enable {server}')}."
        return ErrorFrame("unknown", words, name="ModuleError", server=server)

    async def _connect_mentioned(self, others: set[str], server: str) -> None:
        """Connects this server, and in the same time those that the program names elsewhere: it will want them next."""
        mentioned = _mentioned(self._source, others)
        problem: ServerError | None = None

        async def connect(name: str) -> None:
            nonlocal problem
            try:
                if name in self._problems:
                    raise self._problems[name]
                place: Place = "in_turn" if name == server else "if_free"
                with self._clock.stopped():  # a person may have to read what it would be
                    await self._manager.wait_for_approval(name, place=place)
                await self._manager.connect(name, place=place)
            except ServerError as error:  # of the others, the program hears when it imports them
                problem = error if name == server else problem

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connect, server)
            for name in sorted(mentioned)[:_MOST_MENTIONED]:
                tasks.start_soon(connect, name)
        if problem is not None:
            assert self._calls is not None
            self._calls.heard(problem, server)
            raise import_failed(problem, server, self._manager)

    def _functions(self, server: str, module: ModuleSpec | None) -> dict[str, HostFunction]:
        functions = {tool.identifier: self._tool(server, tool.name) for tool in module.tools} if module else {}
        # A program that was written before a tool changed is told so when it calls it, and not that there is none.
        # A name that had to be changed could be another tool's: that one is missing.
        for name in self._manager.changed_tools(server):
            if identifier(name) == name:
                functions.setdefault(name, self._tool(server, name))
        return functions

    def _tool(self, server: str, tool: str) -> HostFunction:
        def call(*given: Any) -> Reply | Awaitable[Reply]:
            assert self._calls is not None
            return self._calls.call(server, tool, given)

        return HostFunction(call, is_async=True, keeps_time=True, server=server, tool=tool, may_answer=True)


def mentioned_servers(source: str, known: Sequence[str]) -> tuple[str, ...]:
    """Servers whose modules a program names."""
    return tuple(sorted(_mentioned(source, known)))


def _mentioned(source: str, known: Iterable[str]) -> set[str]:
    named = set(_MENTIONED.findall(source))
    in_python = set(_MENTIONED_IN_PYTHON.findall(source))
    for names in _IMPORTED_IN_PYTHON.findall(source):
        in_python.update(_PYTHON_NAME.findall(names))
    return {server for server in known if server in named or server.replace("-", "_") in in_python}


# Tools that a program wants and is not offered because of their pins: told to whoever reads the result.
#
# A checker, and a guest that imports them, know only that there are no such functions.


_WORD = re.compile(r"[^\W\d][\w$]*")
_MOST_TOLD = 5


def hidden_tool_warnings(manager: ServerManager, code: str, told: str = "") -> tuple[str, ...]:
    """Why tools that a program names are missing from its modules, and what a person can do. No words of a server.

    What was told already, because the program called it, is left out.
    """
    hiding = manager.servers_with_blocked_tools()
    if not hiding:
        return ()
    words = set(_WORD.findall(code))
    lines: list[str] = []
    for server in mentioned_servers(code, hiding):
        blocked = manager.blocked_tools(server)
        named = [tool for tool in blocked if identifier(tool.name) in words]
        exposed = manager.exposed(server)
        if not named and (exposed is None or not exposed.tools):
            named = list(blocked)  # without any, whatever a program wants of it is missing
        config = manager.config_of(server)
        problems = [str(blocked_error(config, tool)) for tool in named[:_MOST_TOLD]]
        lines += [f"{problem}." for problem in problems if problem not in told]
        more = len(named) - _MOST_TOLD
        lines += [f"Server {server!r} has {more} more tools blocked."] if more > 0 else []
    return tuple(lines)


# What a run, or a session of several, has to itself: modules, handles, what it was granted and whom it called.


class RunScope:
    """One run, or one session."""

    def __init__(
        self,
        manager: ServerManager,
        *,
        rules: CallRules,
        limits: Limits,
        checks: CheckStore,
        gate: PermissionGate,
        observers: Sequence[Observer],
        session: str | None = None,
    ) -> None:
        self.limits = limits
        self._manager = manager
        self._rules = rules
        self._checks = checks
        self._clock = RunClock(limits.ask_seconds)
        self._gate = gate.open_run(self._clock.stopped)
        self._rule_warnings = lambda: (*gate.warnings(manager.catalog), *manager.filter_warnings)
        self._observers = observers
        self._session = session
        self._handles = HandleStore(limits, exact_integers=rules.exact_integers)
        self._modules = RunModules(manager, self._handles, self._clock)
        self._servers: dict[str, None] = {}

    @property
    def host(self) -> HostSide:
        """What guest code is offered."""
        return self._modules.host

    async def wait_for_approvals(self, code: str) -> None:
        """Until everybody who is asked about the servers that a program names has answered, or nobody will."""
        with move_on_after(self.limits.ask_seconds):
            await self._modules.wait_for_approvals(code)

    async def connect_named(self, code: str) -> tuple[str, ...]:
        """Connects the servers whose modules a program names; those that are connected now."""
        return await self._modules.connect_named(code)

    async def run(
        self,
        code: str,
        language: str,
        execute: Callable[[HostSide], Awaitable[RunResult]],
        limits: Limits | None = None,
        *,
        keeps_answers: bool = True,
    ) -> RunResult:
        """Runs a program, with its events around it; the result says whose words may be in it."""
        await self._manager.follow_revocations()
        if not keeps_answers:
            self._gate.forget_answers()
        run, began = new_run(), perf_counter()
        calls = ToolCalls(
            run,
            self._manager,
            rules=self._rules,
            limits=limits or self.limits,
            checks=self._checks,
            gate=self._gate,
            handles=self._handles,
            clock=self._clock,
            observers=self._observers,
        )
        self._modules.begin(code, calls)
        size = len(code.encode("utf-8", "surrogatepass"))
        tell(self._observers, RunStarted(run, language, size, self._session))
        result: RunResult | None = None
        try:
            result = await execute(self.host)
            if result.failure is not None:
                hidden = hidden_tool_warnings(self._manager, code, str(result.failure))
                result = replace(result, warnings=(*result.warnings, *hidden))
            rules = self._rule_warnings()
            if rules:
                result = replace(result, warnings=(*result.warnings, *rules))
            return replace(result, servers=tuple({**self._servers, **calls.servers}))
        finally:
            self._servers |= calls.servers
            self._tell_end(run, began, calls, result)

    def close(self) -> None:
        """Frees the handles."""
        self._handles.close()

    def _tell_end(self, run: str, began: float, calls: ToolCalls, result: RunResult | None) -> None:
        if result is None:
            outcome, cpu_seconds = "cancelled", 0.0
        else:
            outcome = "ok" if result.failure is None else result.failure.kind
            cpu_seconds = result.usage.cpu_seconds
        ended = RunEnded(run, outcome, perf_counter() - began, cpu_seconds, calls.count, tuple(self._servers))
        tell(self._observers, ended)


_UNCHECKED = Checked(CheckReport())


class CheckedRuns:
    """Checks the programs of a runtime against the stubs of its servers."""

    def __init__(
        self, manager: ServerManager, sandbox: Sandbox, stubs_of: Callable[[Catalog, StubLanguage], StubSet]
    ) -> None:
        self._manager = manager
        self._stubs_of = stubs_of
        self._checker = Checker(sandbox)
        self._stubs: dict[StubLanguage, tuple[Catalog, Mapping[str, str]]] = {}

    async def run(
        self,
        code: str,
        language: str,
        scope: RunScope,
        execute: Callable[[str | None, Usage], Awaitable[RunResult]],
        *,
        limits: Limits,
        session: SessionNames | None = None,
        is_advisory: bool = False,
    ) -> RunResult:
        """Checks a program and runs it, `execute` being given it without its types; or says why it is not run.

        Its servers are connected and it is checked in the time of the run, which gets what is left of that. If the
        check is only advisory, it gets half of that, and whatever comes of it is a warning.

        Raises:
            ToolbridgeError: the sandbox is closed, or the installation is broken.
        """
        checked, spent = _UNCHECKED, Usage()
        # One that makes no call can be run as it is: whatever is wrong with it, running it shows.
        if names_a_module(code, language) or (session is not None and session.is_used_in(code)):
            try:
                await self._checker.prepare(language)
                deadline = await _connected_before(scope, _named_in(code, session), limits.wall_seconds)
                left = deadline - monotonic()
                if left <= 0:
                    message = f"The run took longer than {limits.wall_seconds:g} s."
                    return RunResult(failure=Failure("timeout", message))
                of_check = limits.with_(wall_seconds=left / 2 if is_advisory else left)
                checked = await self.check(code, language, scope, session, of_check)
            except SandboxClosedError:  # while it was checked
                return RunResult(failure=Failure("cancelled", "The run was cancelled."))
            spent = Usage(wall_seconds=limits.wall_seconds - (deadline - monotonic()))
        report = checked.report
        if report.failure is not None and (report.syntax is not None or not is_advisory):
            return RunResult(failure=report.failure, usage=spent)
        result = await execute(checked.erased, spent)
        if session is not None:
            session.add(code, language, checked.names)
        warning = _advice(report.failure) if report.failure is not None else report.warning
        if warning and report.has_checker:
            result = replace(result, warnings=(*result.warnings, warning))
        return result

    async def check(
        self,
        code: str,
        language: str,
        scope: RunScope,
        session: SessionNames | None = None,
        limits: Limits | None = None,
    ) -> Checked:
        """What is wrong with a program, as far as types show. Connects the servers that it names, as running it would.

        Raises:
            ToolbridgeError: the sandbox is closed, or the installation is broken.
        """
        connected = await scope.connect_named(_named_in(code, session))
        if self._uses_changed_tool(code, connected):
            return _UNCHECKED
        world = await self._world(language, connected)
        return await self._checker.check(code, language, world, session, limits or scope.limits)

    async def report(self, code: str, language: str, scope: RunScope) -> CheckReport:
        """The same for whoever asks only for the check: no run will say which servers' tools are not known.

        Raises:
            ToolbridgeError: the sandbox is closed, or the installation is broken.
        """
        report = (await self.check(code, language, scope)).report
        connected = await scope.connect_named(code)  # as it was for the check: none is tried twice
        named = mentioned_servers(code, [each.name for each in self._manager.statuses()])
        unknown = [name for name in named if name not in connected]
        hidden = () if report.ok else hidden_tool_warnings(self._manager, code)
        if hidden and not report.warning:
            return replace(report, warning=" ".join(hidden))
        if not unknown or report.warning:
            return report
        is_checked = report.is_checked and (bool(connected) or not report.ok)
        what = "calls of them were not checked" if is_checked else "nothing was checked"
        servers = ", ".join(map(repr, unknown))
        reason = "not approved, disabled, or not reached"
        warning = f"The tools of {servers} are not known ({reason}), so {what}."
        return replace(report, warning=warning, is_checked=is_checked)

    async def _world(self, language: str, connected: tuple[str, ...]) -> World:
        """The stubs of these servers. Of all others nothing is said: what was kept of them may be out of date.

        Nor of those that are disabled: the run says so.
        """
        wanted: StubLanguage = "python" if language == "python" else "typescript"
        files = await self._files(wanted)
        servers = self._manager.enabled_servers()
        untyped = tuple(each.name for each in self._manager.statuses() if each.name not in connected)
        hidden = tuple(_stub_name(name, wanted) for name in untyped)
        return World(
            stubs={name: text for name, text in files.items() if not name.startswith(hidden)},
            modules=tuple(module_specifier(name) for name in servers),
            untyped=tuple(module_specifier(name) for name in untyped),
        )

    def _uses_changed_tool(self, code: str, servers: tuple[str, ...]) -> bool:
        """Whether a program names a tool that is blocked: it is not in the stubs, and the run says why."""
        changed = {tool for server in servers for tool in self._manager.changed_tools(server)}
        return bool(changed) and not changed.isdisjoint(_WORD.findall(code))

    async def _files(self, language: StubLanguage) -> Mapping[str, str]:
        """The stubs of the catalog; new ones are generated in a worker thread, as a listing may be megabytes."""
        catalog = self._manager.catalog
        known = self._stubs.get(language)
        if known is None or known[0] is not catalog:
            known = self._stubs[language] = (catalog, await to_thread.run_sync(self._generated, catalog, language))
        return known[1]

    def _generated(self, catalog: Catalog, language: StubLanguage) -> Mapping[str, str]:
        files = self._stubs_of(catalog, language).files
        if language == "typescript":
            needed_stubs(files, "")  # parses them, and keeps that for the check
        return files


async def _connected_before(scope: RunScope, named_in: str, seconds: float) -> float:
    """Connects the servers that a program names; the deadline of the run, on the monotonic clock.

    Importing would be part of the run, and so may take no longer. A person may: the time begins after the approvals.
    """
    deadline = inf

    async def give_up() -> None:
        nonlocal deadline
        await scope.wait_for_approvals(named_in)
        deadline = monotonic() + seconds
        await sleep(seconds)
        tasks.cancel_scope.cancel()

    async with create_task_group() as tasks:
        tasks.start_soon(give_up)
        await scope.connect_named(named_in)
        tasks.cancel_scope.cancel()
    return min(deadline, monotonic() + seconds)


def _advice(failure: Failure) -> str:
    """What a check found, for a program that ran all the same."""
    place = "" if failure.line is None else f" (line {failure.line})"
    return f"The program ran against the advice of its check: {failure.message}{place}"


def _named_in(code: str, session: SessionNames | None) -> str:
    """Text that names every module which a program uses, also by an earlier program's import."""
    return code if session is None else f"{code}\n{session.mentions}"


def _stub_name(server: str, language: StubLanguage) -> str:
    """How the names of a server's stub files begin."""
    if language == "python":
        return python_module(server).replace(".", "/") + "/"
    return f"{module_specifier(server).removeprefix('host:')}.d.ts"


def new_run() -> str:
    """A name for a run: short, and no other run's, also among processes that share a log."""
    import os

    return os.urandom(6).hex()
