"""The runtime: the one place where configuration, trust, servers, stubs and sandbox meet.

async with open_runtime("toolbridge.json", approver=...) as runtime:
    result = await runtime.run('require("host:mcp-weather").get_forecast({ location: "Austin, TX" })')
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args
from weakref import WeakSet

import anyio
import anyio.to_thread

from toolbridge.callbacks import observers_of, settle
from toolbridge.calls.run import RunScope, mentioned_servers, new_run
from toolbridge.calls.tool_call import CallRules
from toolbridge.composition import CurrentServers
from toolbridge.config.config import Config
from toolbridge.config.load import ConfigSource, config_reader
from toolbridge.config.policy import Errors
from toolbridge.config.profiles import profile_names, with_profiles
from toolbridge.describe.modules import ModuleInfo, ModuleSummary
from toolbridge.describe.search import SearchHit, ToolSearch
from toolbridge.describe.system_prompt import PromptForm, SystemPrompt
from toolbridge.errors import (
    ConfigError,
    LanguageError,
    MisuseError,
    SandboxClosedError,
    SectionError,
    SessionBusyError,
    ToolbridgeError,
    UnknownModuleError,
)
from toolbridge.files import cache_directory
from toolbridge.limits import Limits
from toolbridge.observe.events import Observer, wants_arguments, wants_progress
from toolbridge.sandbox.outcome import RunResult, Usage
from toolbridge.sandbox.sandbox import Sandbox, check_types
from toolbridge.sandbox.scheduler import is_in_event_loop
from toolbridge.schema.validate import CheckStore
from toolbridge.servers.manager import ServerManager
from toolbridge.sources.sections import RenderedPrompt, checked_paths
from toolbridge.sources.tasks import Task
from toolbridge.trust.approval.store import ApprovalStore
from toolbridge.trust.gate.gate import CanUseTool, PermissionGate
from toolbridge.trust.gate.patterns import stray_patterns
from toolbridge.trust.pins.pins import LockPins, Pins
from toolbridge_codegen.cache import StubCache
from toolbridge_codegen.catalog import Catalog
from toolbridge_codegen.stubs import Detail, StubSet, generate
from toolbridge_codegen.stubs import Language as StubLanguage

if TYPE_CHECKING:
    from toolbridge.boundary.host_call import HostSide
    from toolbridge.calls.run import CheckedRuns
    from toolbridge.check.checker import CheckReport, SessionNames
    from toolbridge.config.server_config import ServerConfig
    from toolbridge.sandbox.engine import CompileNotice
    from toolbridge.servers.auth.sign_in import SignInLike
    from toolbridge.servers.pool import ServerStatus
    from toolbridge.servers.requests import ElicitorLike, RootsLike, SamplerLike
    from toolbridge.trust.approval.approver import ApproverLike


# What a host gives a runtime besides its configuration. One for a task gets the same as the one it is made of.


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeOptions:
    """`open_runtime` says what each of these is for."""

    approver: ApproverLike | None
    elicitor: ElicitorLike | None
    sampler: SamplerLike | None
    roots: RootsLike | None
    sign_in: SignInLike | None
    can_use_tool: CanUseTool | None
    limits: Limits
    observers: tuple[Observer, ...]
    errors: Errors | None
    """None: as configured."""
    strict_results: bool | None
    """None: as configured."""
    pins: Pins | None
    directory: str
    """Where listings and stubs are kept."""
    on_compile: CompileNotice | None


# A session of a runtime: several programs in one guest, each of them checked and allowed like any other.


class RuntimeSession:
    """Several programs, one after another, in one guest. Use it with `async with`, or close it."""

    def __init__(
        self,
        sandbox: Sandbox,
        scope: RunScope,
        language: Language,
        checked_runs: CheckedRuns | None,
        *,
        is_advisory: bool = False,
    ) -> None:
        self._scope = scope
        self._language: Language = language
        self._checked_runs = checked_runs
        self._is_advisory = is_advisory
        self._names: SessionNames | None = None
        self._is_busy = False
        self._session = sandbox.session(language=language, limits=scope.limits, host=scope.host)

    async def run(
        self, code: str, *, seed: bytes | None = None, limits: Limits | None = None, keeps_answers: bool = True
    ) -> RunResult:
        """Run a program with what earlier ones left; `limits` are for this one, but memory is the session's.

        Without `keeps_answers`, what `can_use_tool` answered to earlier programs is asked again.

        Raises:
            ToolbridgeError: the session or runtime is closed, the session is busy, or the installation is broken.
        """

        self._session.check_open()
        # Before anything of the run under way is replaced; the sandbox would say so only after that.
        if self._is_busy:
            raise SessionBusyError

        async def run(erased: str | None, spent: Usage | None) -> RunResult:
            return await self._session.run(code, seed=seed, erased=erased, spent=spent, limits=limits)

        async def execute(_: HostSide) -> RunResult:
            if self._checked_runs is None:
                return await run(None, None)
            if self._names is None:
                from toolbridge.check.checker import SessionNames

                self._names = SessionNames()
            return await self._checked_runs.run(
                code,
                self._language,
                self._scope,
                run,
                limits=limits or self._scope.limits,
                session=self._names,
                is_advisory=self._is_advisory,
            )

        self._is_busy = True
        try:
            return await self._scope.run(code, self._language, execute, limits, keeps_answers=keeps_answers)
        finally:
            self._is_busy = False

    def close(self) -> None:
        """Free the guest and its handles."""
        self._session.close()
        self._scope.close()

    async def __aenter__(self) -> RuntimeSession:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


_log = logging.getLogger("toolbridge")

Language: TypeAlias = Literal["javascript", "typescript", "python"]
"""What a program may be written in."""
Check: TypeAlias = bool | Literal["advisory"]
"""Whether a program is checked before it runs, and whether that may keep it from running."""


def open_runtime(
    config: ConfigSource = None,
    *,
    approver: ApproverLike | None = None,
    elicitor: ElicitorLike | None = None,
    sampler: SamplerLike | None = None,
    roots: RootsLike | None = None,
    sign_in: SignInLike | None = None,
    can_use_tool: CanUseTool | None = None,
    limits: Limits | None = None,
    observers: Iterable[Observer] = (),
    errors: Errors | None = None,
    strict_results: bool | None = None,
    pins: Pins | Literal["lock", "none"] = "lock",
    profiles: Iterable[str] = (),
    prompt: RenderedPrompt | None = None,
    directory: str | os.PathLike[str] | None = None,
    on_compile: CompileNotice | None = None,
) -> Runtime:
    """A runtime for a configuration: made in code, read from a file, or looked for (None). Use it with `async with`.

    A callback is an object with its method, an async function, or a plain one, which runs on a thread (observers: at
    once, on the event loop's). Without an approver no server is started or reached. `can_use_tool` is asked about calls
    that the permissions leave open. `errors` and `strict_results` override the configuration's. `pins` are by default
    those of `toolbridge.lock`. `profiles` are those of the configuration whose servers are wanted; `prompt` brings the
    servers of its sections. `directory` keeps listings and stubs between runs (by default the user's cache).

    Raises:
        ConfigError: the configuration can't be used as it is, or there is no such profile.
        MisuseError: an argument is of the wrong type.
    """
    read_config = config_reader(config)
    profiles = profile_names(profiles)
    resolved = read_config()
    options = RuntimeOptions(
        approver=approver,
        elicitor=elicitor,
        sampler=sampler,
        roots=roots,
        sign_in=sign_in,
        can_use_tool=can_use_tool,
        limits=limits or Limits(),
        observers=observers_of(observers),
        errors=errors,
        strict_results=strict_results,
        pins=LockPins() if pins == "lock" else None if pins == "none" else pins,
        directory=cache_directory() if directory is None else os.fspath(directory),
        on_compile=on_compile,
    )
    used = with_profiles(resolved, profiles) if profiles else resolved
    return Runtime(used, options, read_config=read_config, prompt=prompt)


class Runtime:
    """Runs programs that call the tools of MCP servers. Safe to use from several tasks of one event loop."""

    def __init__(
        self,
        config: Config,
        options: RuntimeOptions,
        *,
        read_config: Callable[[], Config],
        prompt: RenderedPrompt | None = None,
        task: Task | None = None,
        above: Runtime | None = None,
    ) -> None:
        self._options = options
        self._read_config = read_config
        self._current = CurrentServers(
            config, prompt, options.observers, task=task, above=None if above is None else above._current
        )
        self._of_tasks: WeakSet[Runtime] = WeakSet() if above is None else above._of_tasks
        """All runtimes for tasks that were made of this one, or that this one is among."""
        self._shows_arguments = wants_arguments(options.observers)
        self._shows_progress = wants_progress(options.observers)
        self._checks = CheckStore()
        self._gate = PermissionGate(self._config, options.can_use_tool, listed=self._listed)
        self._stub_cache = StubCache(os.path.join(options.directory, "stubs"))
        self._search: tuple[Catalog, ToolSearch] | None = None
        self._sandbox = Sandbox(limits=options.limits, on_compile=options.on_compile)
        self._manager = ServerManager(
            self.config,
            approver=options.approver,
            elicitor=options.elicitor,
            sampler=options.sampler,
            roots=options.roots,
            sign_in=options.sign_in,
            pins=options.pins,
            directory=os.path.join(options.directory, "listings"),
            observers=options.observers,
        )
        self._checks_of_programs: CheckedRuns | None = None
        self._warnings: set[str] = set() if above is None else above._warnings
        self._state: Literal["new", "open", "closed"] = "new"

    async def __aenter__(self) -> Runtime:
        if self._state != "new":
            raise ToolbridgeError("A runtime is entered once: open a new one.")
        has_changed = await self._current.begin()
        await self._manager.__aenter__()
        self._state = "open"
        if has_changed:
            await self._follow()
        self._warn_of_stray_rules()
        self._warn_of_rules()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._state = "closed"
        self._sandbox.close()
        await self._manager.__aexit__(kind, error, traceback)
        await settle(self._options.observers)

    async def close(self) -> None:
        """End every run and close every server. Safe to call again, in any state, and from any task."""
        self._state = "closed"
        self._sandbox.close()
        await self._manager.close()
        await settle(self._options.observers)

    # ── running ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def run(
        self,
        code: str,
        *,
        language: Language = "javascript",
        limits: Limits | None = None,
        seed: bytes | None = None,
        check: Check = True,
    ) -> RunResult:
        """Run a program in a fresh guest. Whatever it does comes back in the result; cancelling ends it.

        With `check`, one that names a module of a server is checked against the stubs first, in the time of the run: a
        mistake that its types show is a failure of kind `type`, a check that doesn't end one of kind `check_timeout`,
        and no call is made. With `check="advisory"` both are warnings, and the program runs. Without a checker it just
        runs.

        Raises:
            ToolbridgeError: the runtime is not open, or the installation is broken.
        """
        self._check(language)
        limits = limits or self._options.limits
        check_types(code, limits, seed)
        scope = self._scope(language, limits)

        async def execute(host: HostSide) -> RunResult:
            async def run(erased: str | None, spent: Usage) -> RunResult:
                return await self._sandbox.run(
                    code, language=language, limits=limits, seed=seed, host=host, erased=erased, spent=spent
                )

            if not check:
                return await run(None, Usage())
            is_advisory = check == "advisory"
            return await self._checked_runs.run(code, language, scope, run, limits=limits, is_advisory=is_advisory)

        try:
            return await scope.run(code, language, execute)
        finally:
            scope.close()
            self._warn_of_rules()

    def _listed(self) -> Catalog:
        return self._manager.listed()

    def _warn_of_rules(self) -> None:
        """Say once which permissions and labels match no tool: a rule that is misspelt protects nothing."""
        self._warn(self._gate.warnings(self._manager.catalog))

    def _warn_of_stray_rules(self) -> None:
        """Say once which permissions name no server, unless a section that is closed may yet bring it."""
        if self.config.gateway and not (self.prompt is not None and self.prompt.closed):
            self._warn(stray_patterns(self._config))

    def _warn(self, warnings: Iterable[str]) -> None:
        for words in warnings:
            if words not in self._warnings:
                self._warnings.add(words)
                _log.warning("%s", words)

    async def check(self, code: str, *, language: Language = "javascript") -> CheckReport:
        """Check a program against the stubs without running it. Connects the servers that it names, as running would.

        Raises:
            ToolbridgeError: the runtime is not open, or the installation is broken.
        """
        self._check(language)
        scope = self._scope(language, self._options.limits)
        try:
            return await self._checked_runs.report(code, language, scope)
        finally:
            scope.close()

    def session(
        self,
        language: Language = "javascript",
        *,
        limits: Limits | None = None,
        check: Check = True,
        name: str | None = None,
    ) -> RuntimeSession:
        """A guest that keeps its state from one program to the next, with its handles and granted permissions.

        With `check`, each program is checked first, as `run` does, with what earlier ones declared. Observers are told
        its `name`; without one, it is made up.
        """
        self._check(language)
        check_types("", limits or self._options.limits, None)
        scope = self._scope(language, limits or self._options.limits, session=name or new_run())
        checked_runs = self._checked_runs if check else None
        return RuntimeSession(self._sandbox, scope, language, checked_runs, is_advisory=check == "advisory")

    @property
    def _checked_runs(self) -> CheckedRuns:
        if self._checks_of_programs is None:
            from toolbridge.calls.run import CheckedRuns

            self._checks_of_programs = CheckedRuns(self._manager, self._sandbox, self._stubs_of)
        return self._checks_of_programs

    def _scope(self, language: Language, limits: Limits, *, session: str | None = None) -> RunScope:
        self._warn_of_rules()
        return RunScope(
            self._manager,
            rules=self._rules(language),
            limits=limits,
            checks=self._checks,
            gate=self._gate,
            observers=self._options.observers,
            session=session,
        )

    def _rules(self, language: Language) -> CallRules:
        """As given when it was opened, else as configured now."""
        strict = self._options.strict_results
        if strict is None:
            strict = self._config.strict_results
        is_python = language == "python"  # its integers are of any size
        return CallRules(
            self._errors_as,
            strict,
            exact_integers=is_python,
            shows_arguments=self._shows_arguments,
            shows_progress=self._shows_progress,
        )

    @property
    def _errors_as(self) -> Errors:
        return self._options.errors or self._config.errors

    def _check(self, language: str) -> None:
        if language not in get_args(Language):
            raise LanguageError(language, get_args(Language))
        if self._state == "new":
            raise ToolbridgeError("A runtime is used inside `async with`.")
        if self._state == "closed":
            raise SandboxClosedError("runtime")

    # ── what there is ────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _config(self) -> Config:
        return self._current.config

    @property
    def config(self) -> Config:
        """What holds now, of all sources: as opened, reloaded or switched, without servers while the gateway is off."""
        return self._config if self._current.is_on else replace(self._config, gateway=False)

    @property
    def catalog(self) -> Catalog:
        """Every exposed tool of every server whose listing is known."""
        return self._manager.catalog

    @property
    def servers(self) -> ServerManager:
        """The servers: their states, listings and connections."""
        return self._manager

    def stub_set(self, language: StubLanguage, *, detail: Detail = "full") -> StubSet:
        """The stubs with their manifest and diagnostics."""
        if language not in get_args(StubLanguage):
            raise LanguageError(language, get_args(StubLanguage), of_stubs=True)
        return self._stubs_of(self.catalog, language, detail=detail)

    def _stubs_of(self, catalog: Catalog, language: StubLanguage, *, detail: Detail = "full") -> StubSet:
        return generate(catalog, language=language, detail=detail, errors=self._errors_as, cache=self._stub_cache)

    def stubs(self, language: StubLanguage, *, detail: Detail = "full") -> Mapping[str, str]:
        """File name → text of the stubs that a program is written against."""
        return self.stub_set(language, detail=detail).files

    def list_modules(self) -> tuple[ModuleSummary, ...]:
        """Every module, also of servers that were never asked for their tools."""
        from toolbridge.describe.modules import list_modules

        return list_modules(self.catalog, self._manager.statuses())

    def module_info(self, specifier: str, *, language: StubLanguage = "typescript") -> ModuleInfo:
        """Everything about one module: `host:mcp-weather`.

        Raises:
            UnknownModuleError: there is none, or its server was never asked for its tools.
        """
        from toolbridge.describe.modules import module_info

        info = module_info(self.catalog, specifier, language=language, errors=self._errors_as)
        if info is None:
            raise UnknownModuleError(specifier, tuple(module.specifier for module in self.list_modules()))
        return info

    def search(self, query: str, *, limit: int = 10) -> tuple[SearchHit, ...]:
        """The tools that fit best what is looked for."""
        return self.prepared_search(query, limit=limit)()

    def prepared_search(self, query: str, *, limit: int = 10) -> Callable[[], tuple[SearchHit, ...]]:
        """A search of the tools as they are now, to be run in a worker thread."""
        if not isinstance(query, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise MisuseError("query", query, "a text")
        catalog = self.catalog
        if self._search is None or self._search[0] is not catalog:
            self._search = (catalog, ToolSearch(catalog))
        return partial(self._search[1].find, query, limit, errors=self._errors_as)

    def system_prompt(
        self, *, language: StubLanguage | Language = "javascript", budget: int | None = None, form: PromptForm = "auto"
    ) -> SystemPrompt:
        """A section for a model's prompt: how to write code here, and which modules there are."""
        from toolbridge.describe.system_prompt import system_prompt

        known = self._manager.statuses()
        errors = self._errors_as
        return system_prompt(self.catalog, language=language, budget=budget, form=form, known=known, errors=errors)

    # ── servers ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def start_all(self) -> tuple[ServerStatus, ...]:
        """Connect all enabled servers at the same time, so that the catalog is complete."""
        statuses = await self._manager.start_all()
        self._warn_of_rules()
        return statuses

    def servers_named_in(self, code: str) -> tuple[str, ...]:
        """The servers whose modules a program names: those to connect before it runs, if waiting should not count."""
        return mentioned_servers(code, self._manager.enabled_servers())

    async def reload(self, config: ConfigSource = None) -> None:
        """Take over a changed configuration: what changed or vanished is closed, the rest stays connected.

        So it is in the runtimes for tasks that were made of this one, unless they were reloaded themselves. With None,
        what was given last is read again: the same file, or the same places. Whatever is read, so are the pins; a
        Config is taken as it is, and nothing is read.

        Raises:
            ConfigError: the configuration can't be used as it is; everything stays as it was.
        """
        read_config = self._read_config if config is None else config_reader(config)
        self._current.use(read_config())
        self._read_config = read_config
        await self._follow(reread_pins=not isinstance(config, Config))
        self._warn_of_stray_rules()
        self._warn_of_rules()

    async def _follow(self, *, reread_pins: bool = False) -> None:
        """Have gate and manager do as the servers are now, and those of the tasks' runtimes."""
        self._gate.config = self._config
        runtimes = [each for each in self._of_tasks if each._current.is_below(self._current)]
        for runtime in runtimes:
            try:
                runtime._current.look_again()
            except ConfigError as error:  # it has fewer servers than it could have, and none that it may not
                _log.warning("A task's servers stay as they were: %s", error)
        async with anyio.create_task_group() as tasks:
            for runtime in (each for each in runtimes if each._state == "open"):  # others do so when they are entered
                runtime._gate.config = runtime._config
                tasks.start_soon(partial(runtime._manager.reload, runtime.config, reread_pins=reread_pins))
            await self._manager.reload(self.config, reread_pins=reread_pins)

    async def revoke(self, server: str, *, approvals: ApprovalStore | None = None) -> None:
        """Take back a server's approval: it is closed, and its module is gone until the configuration is reloaded.

        It is gone also from the runtimes for tasks that were, or will be, made of this one.

        Raises:
            UnknownServerError: there is none of this name.
            ApprovalStoreError: the approvals can't be written; the server is closed all the same.
        """
        config = self._manager.config_of(server)
        self._current.revoke(server)
        store = approvals or ApprovalStore()
        with anyio.CancelScope(shield=True):  # whoever asked for it may be gone before it is written
            await self._follow()
            await anyio.to_thread.run_sync(store.revoke, server, config.origin)

    async def switch_gateway(self, *, on: bool) -> None:
        """Switch all of MCP on or off: off, there is no server and no module, and every connection is closed.

        So it is in the runtimes for tasks that were, or will be, made of this one.
        """
        self._current.switch(on=on)
        await self._follow()

    # ── where servers come from ──────────────────────────────────────────────────────────────────────────────────

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why each server is there, by name."""
        return self._current.reasons

    @property
    def prompt(self) -> RenderedPrompt | None:
        """The prompt whose sections' servers are there, as it stands."""
        return self._current.prompt

    def for_task(
        self, description: str = "", *, servers: Iterable[ServerConfig | str] = (), capabilities: Iterable[str] = ()
    ) -> Runtime:
        """A runtime for one task, to be used with `async with`: as this one, and with what the task wants besides.

        That is: servers of the task's own, servers named, and those of plugins that have one of the capabilities, or
        of whose keywords the description has one. Plugins are asked when it is entered; a name that is nowhere is an
        UnknownServerError then.

        Its prompt is the one that this runtime has now. Configuration and profiles are this one's, also later, unless
        it is given its own; so is what is revoked or switched off here. What is revoked there is revoked there only.

        Raises:
            MisuseError: an argument is of the wrong type.
        """
        now = self._current
        task = Task.of(description, servers, capabilities, outer=now.task)
        runtime = Runtime(
            now.own, self._options, read_config=self._read_config, prompt=now.prompt, task=task, above=self
        )
        self._of_tasks.add(runtime)
        return runtime

    async def switch_profiles(self, *profiles: str) -> tuple[ServerStatus, ...]:
        """Have the servers of these profiles and of no others: connects those that are new, closes those that go.

        One that was connected, and that is not as it was in the profiles before, is connected anew. A server that can't
        be connected is not raised: its status says why.

        Raises:
            ConfigError: there is no such profile; everything stays as it was.
        """
        before = set(self.config.servers)
        connected = {status.name for status in self._manager.statuses() if status.state == "connected"}
        self._current.choose_profiles(profiles)
        await self._follow()
        statuses = await self._manager.start_all((set(self.config.servers) - before) | connected)
        self._warn_of_rules()
        return statuses

    async def follow_prompt(self, prompt: RenderedPrompt) -> None:
        """Have the servers of this prompt's sections instead of those before: what is gone is closed."""
        self._current.follow(prompt)
        await self._follow()

    async def open_sections(self, paths: Sequence[str]) -> RenderedPrompt:
        """Open sections of the prompt: their servers are there from now on. Gives the prompt as it then is.

        Raises:
            SectionError: there is no such section, or no prompt.
        """
        if self.prompt is None:
            raise SectionError(", ".join(checked_paths(paths)), "the runtime has no prompt: give open_runtime one")
        prompt = self.prompt.open_sections(paths)
        await self.follow_prompt(prompt)
        return prompt


def run_sync(
    config: ConfigSource, code: str, *, language: Language = "javascript", limits: Limits | None = None, **options: Any
) -> RunResult:
    """Open a runtime, run one program, and close it again: for scripts. Options are those of `open_runtime`.

    Raises:
        ToolbridgeError: the configuration or installation can't be used, or an event loop is running here: await
            `Runtime.run` instead.
    """

    async def main() -> RunResult:
        async with open_runtime(config, limits=limits, **options) as runtime:
            return await runtime.run(code, language=language)

    if is_in_event_loop():
        raise ToolbridgeError("run_sync was called inside an event loop: use `async with open_runtime(...)` there.")
    return anyio.run(main)
