"""The runtime: joins configuration, trust, servers, stubs and the sandbox.

async with open_runtime("toolbridge.json", approver=...) as runtime:
    result = await runtime.run('require("host:mcp-weather").get_forecast({ location: "Austin, TX" })')
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args
from weakref import WeakSet

import anyio.to_thread

from toolbridge.callbacks import observers_of, settle
from toolbridge.calls.run import Check, RunScope, TypeChecks, mentioned_servers, new_run
from toolbridge.calls.tool_call import CallRules
from toolbridge.composition import CurrentServers
from toolbridge.config.config import Config, ConfigSource, config_reader
from toolbridge.config.policy import Errors
from toolbridge.describe import module_info as details
from toolbridge.describe import modules
from toolbridge.describe.search import SearchHit, ToolSearch
from toolbridge.describe.system_prompt import PromptForm, SystemPrompt, system_prompt
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
from toolbridge.events import wants_arguments, wants_progress
from toolbridge.files import cache_directory
from toolbridge.limits import Limits
from toolbridge.sandbox.outcome import RunResult
from toolbridge.sandbox.sandbox import Sandbox, check_types
from toolbridge.schema.validate import ValidatorCache
from toolbridge.servers.manager import ServerManager
from toolbridge.sources.merge import Task
from toolbridge.sources.sections import RenderedPrompt, checked_paths
from toolbridge.trust.approval.store import ApprovalStore
from toolbridge.trust.gate import PermissionGate
from toolbridge.trust.permissions import stray_patterns
from toolbridge.trust.pins.pins import LockPins
from toolbridge_codegen.cache import StubCache
from toolbridge_codegen.catalog import Catalog
from toolbridge_codegen.stubs import Detail, StubSet, generate
from toolbridge_codegen.stubs import Language as StubLanguage

if TYPE_CHECKING:
    from toolbridge.check.checker import CheckReport
    from toolbridge.config.server_config import ServerConfig
    from toolbridge.opening import RuntimeOptions
    from toolbridge.servers.registry import ServerStatus


_log = logging.getLogger("toolbridge")


class RuntimeSession:
    """Runs programs one after another in one guest. Made by `Runtime.session`; use it with `async with`."""

    def __init__(self, sandbox: Sandbox, scope: RunScope, language: Language, check: Check) -> None:
        self._scope = scope
        self._language: Language = language
        self._check: Check = check
        self._is_busy = False
        self._session = sandbox.session(language=language, limits=scope.limits, host=scope.host)

    async def run(
        self, code: str, *, seed: bytes | None = None, limits: Limits | None = None, keeps_answers: bool = True
    ) -> RunResult:
        """Runs a program with the state that earlier ones left; `limits` apply to this run, except for memory.

        Without `keeps_answers`, `can_use_tool` is asked again about calls that it answered for earlier programs.

        Raises:
            ToolbridgeError: the session or runtime is closed, the session is busy, or the installation is broken.
        """
        self._session.check_open()
        # Before anything of the run under way is replaced; the sandbox would raise it only after that.
        if self._is_busy:
            raise SessionBusyError
        execute = partial(self._session.run, code, seed=seed, limits=limits)
        self._is_busy = True
        try:
            return await self._scope.run(
                code, self._language, execute, limits=limits, check=self._check, keeps_answers=keeps_answers
            )
        finally:
            self._is_busy = False

    def close(self) -> None:
        """Frees the guest and its handles."""
        self._session.close()
        self._scope.close()

    async def __aenter__(self) -> RuntimeSession:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


Language: TypeAlias = Literal["javascript", "typescript", "python"]
"""What a program may be written in."""


class Runtime:
    """Runs programs that call the tools of MCP servers. Made by `open_runtime`; safe to use from several tasks."""

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
        self._limits = options.get("limits") or Limits()
        self._observers = observers_of(options.get("observers", ()))
        self._read_config = read_config
        outer = None if above is None else above._current
        self._current = CurrentServers(config, prompt, self._observers, task=task, above=outer)
        self._of_tasks: WeakSet[Runtime] = WeakSet() if above is None else above._of_tasks
        """Runtimes made by `for_task`, nested ones too; shared by all of them."""
        self._rules: dict[str, CallRules] = {}
        """By language; cleared when the configuration changes."""
        self._checks = ValidatorCache()
        directory = os.fspath(options.get("directory") or cache_directory())
        self._stub_cache = StubCache(os.path.join(directory, "stubs"))
        self._search: tuple[Catalog, ToolSearch] | None = None
        self._sandbox = Sandbox(limits=self._limits, on_compile=options.get("on_compile"))
        pins = options.get("pins", "lock")
        self._manager = ServerManager(
            self.config,
            approver=options.get("approver"),
            elicitor=options.get("elicitor"),
            sampler=options.get("sampler"),
            roots=options.get("roots"),
            sign_in=options.get("sign_in"),
            pins=LockPins() if pins == "lock" else None if pins == "none" else pins,
            directory=os.path.join(directory, "listings"),
            observers=self._observers,
        )
        self._gate = PermissionGate(self._current.config, options.get("can_use_tool"), listed=self._manager.listed)
        self._type_checks = TypeChecks(self._manager, self._sandbox, self._stubs_of)
        self._rule_problems: tuple[Catalog, Config, tuple[str, ...]] | None = None
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
        self._rule_warnings()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._state = "closed"
        self._sandbox.close()
        await self._manager.__aexit__(kind, error, traceback)
        await settle(self._observers)

    async def close(self) -> None:
        """Ends every run and closes every server. Safe to call again, in any state, and from any task."""
        self._state = "closed"
        self._sandbox.close()
        await self._manager.close()
        await settle(self._observers)

    async def run(
        self,
        code: str,
        *,
        language: Language = "javascript",
        limits: Limits | None = None,
        seed: bytes | None = None,
        check: Check = True,
    ) -> RunResult:
        """Runs a program in a fresh guest; its result has any failure. Cancelling ends the run.

        With `check`, a program that names a server's module is type-checked first, within the time of the run: failures
        are of kind `type` or `check_timeout`; with `check="advisory"` they are warnings, and the program runs.

        Raises:
            ToolbridgeError: an argument is invalid, the runtime is not open, or the installation is broken.
        """
        self._check_open(language)
        limits = limits or self._limits
        check_types(code, limits, seed)
        scope = self._scope(language, limits)
        execute = partial(self._sandbox.run, code, language=language, limits=limits, seed=seed, host=scope.host)
        try:
            return await scope.run(code, language, execute, check=check)
        finally:
            scope.close()

    def _rule_warnings(self) -> tuple[str, ...]:
        """Returns, and logs once, permissions and labels that match no tool: a misspelt rule protects nothing."""
        catalog, config = self._manager.catalog, self._gate.config
        kept = self._rule_problems
        if kept is None or kept[0] is not catalog or kept[1] is not config:
            problems = self._gate.warnings(catalog)
            self._warn(problems)
            kept = self._rule_problems = (catalog, config, (*problems, *self._manager.filter_warnings))
        return kept[2]

    def _warn_of_stray_rules(self) -> None:
        """Logs permissions that name no server, unless a closed section may yet bring it."""
        if self.config.gateway and not (self.prompt is not None and self.prompt.closed):
            self._warn(stray_patterns(self._current.config))

    def _warn(self, warnings: Iterable[str]) -> None:
        """Logs warnings that were not logged before."""
        for warning in warnings:
            if warning not in self._warnings:
                self._warnings.add(warning)
                _log.warning("%s", warning)

    async def check(self, code: str, *, language: Language = "javascript") -> CheckReport:
        """Type-checks a program against the stubs without running it. Connects the servers that it names.

        Raises:
            ToolbridgeError: an argument is invalid, the runtime is not open, or the installation is broken.
        """
        self._check_open(language)
        scope = self._scope(language, self._limits)
        try:
            return await scope.check(code, language)
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
        """Opens a guest that keeps state, handles and granted permissions from one program to the next.

        With `check`, each program is type-checked as by `run`, with the names that earlier ones declared. Events have
        the session's `name`, which is generated by default.

        Raises:
            ToolbridgeError: an argument is invalid, or the runtime is not open.
        """
        self._check_open(language)
        check_types("", limits or self._limits, None)
        scope = self._scope(language, limits or self._limits, session=name or new_run())
        return RuntimeSession(self._sandbox, scope, language, check)

    def _scope(self, language: Language, limits: Limits, *, session: str | None = None) -> RunScope:
        """Makes the scope of one run or session: its servers, rules and limits."""
        return RunScope(
            self._manager,
            rules=self._rules.get(language) or self._call_rules(language),
            limits=limits,
            checks=self._checks,
            gate=self._gate,
            observers=self._observers,
            type_checks=self._type_checks,
            rule_warnings=self._rule_warnings,
            session=session,
        )

    def _call_rules(self, language: Language) -> CallRules:
        """Makes and caches a language's rules of calls: options of `open_runtime` override the configuration."""
        strict = self._options.get("strict_results")
        rules = self._rules[language] = CallRules(
            self._errors_as,
            self._current.config.strict_results if strict is None else strict,
            exact_integers=language == "python",  # its integers are of any size
            shows_arguments=wants_arguments(self._observers),
            shows_progress=wants_progress(self._observers),
        )
        return rules

    @property
    def _errors_as(self) -> Errors:
        return self._options.get("errors") or self._current.config.errors

    def _check_open(self, language: str) -> None:
        """Raises LanguageError for an unknown language, and ToolbridgeError unless the runtime is open."""
        if language not in get_args(Language):
            raise LanguageError(language, get_args(Language))
        if self._state == "new":
            raise ToolbridgeError("A runtime is used inside `async with`.")
        if self._state == "closed":
            raise SandboxClosedError("runtime")

    @property
    def config(self) -> Config:
        """Returns the current configuration, merged from all sources; without servers while the gateway is off."""
        return self._current.config if self._current.is_on else replace(self._current.config, gateway=False)

    @property
    def catalog(self) -> Catalog:
        """Returns every exposed tool of every server whose listing is known."""
        return self._manager.catalog

    @property
    def servers(self) -> ServerManager:
        """Returns the server manager: states, listings and connections."""
        return self._manager

    def stub_set(self, language: StubLanguage, *, detail: Detail = "full") -> StubSet:
        """Generates the stubs of known listings, with manifest and diagnostics; LanguageError for another language."""
        if language not in get_args(StubLanguage):
            raise LanguageError(language, get_args(StubLanguage), of_stubs=True)
        return self._stubs_of(self.catalog, language, detail=detail)

    def _stubs_of(self, catalog: Catalog, language: StubLanguage, *, detail: Detail = "full") -> StubSet:
        return generate(catalog, language=language, detail=detail, errors=self._errors_as, cache=self._stub_cache)

    def stubs(self, language: StubLanguage, *, detail: Detail = "full") -> Mapping[str, str]:
        """Generates the stubs that a program is written against: file name → text; LanguageError as by `stub_set`."""
        return self.stub_set(language, detail=detail).files

    def list_modules(self) -> tuple[modules.ModuleSummary, ...]:
        """Lists every module, also of servers that were never connected; connects none."""
        return modules.list_modules(self.catalog, self._manager.statuses())

    def module_info(self, specifier: str, *, language: StubLanguage = "typescript") -> details.ModuleInfo:
        """Describes one module in full: `host:mcp-weather`.

        Raises:
            UnknownModuleError: there is none, or its server was never asked for its tools.
        """
        info = details.module_info(self.catalog, specifier, language=language, errors=self._errors_as)
        if info is None:
            raise UnknownModuleError(specifier, tuple(module.specifier for module in self.list_modules()))
        return info

    def search(self, query: str, *, limit: int = 10) -> tuple[SearchHit, ...]:
        """Finds the tools that match a query best; the first search of a catalog blocks to build its index."""
        return self.prepared_search(query, limit=limit)()

    def prepared_search(self, query: str, *, limit: int = 10) -> Callable[[], tuple[SearchHit, ...]]:
        """Returns a search of the current catalog, for a worker thread; MisuseError if the query is no text."""
        if not isinstance(query, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise MisuseError("query", query, "a text")
        catalog = self.catalog
        if self._search is None or self._search[0] is not catalog:
            self._search = (catalog, ToolSearch(catalog))
        return partial(self._search[1].find, query, limit, errors=self._errors_as)

    def system_prompt(
        self, *, language: StubLanguage | Language = "javascript", budget: int | None = None, form: PromptForm = "auto"
    ) -> SystemPrompt:
        """Writes a section for a model's prompt: how to write code here, and which modules there are."""
        known, errors = self._manager.statuses(), self._errors_as
        return system_prompt(self.catalog, language=language, budget=budget, form=form, known=known, errors=errors)

    async def start_all(self) -> tuple[ServerStatus, ...]:
        """Connects all enabled servers concurrently, so that the catalog is complete; failures are in the statuses."""
        statuses = await self._manager.start_all()
        self._rule_warnings()
        return statuses

    def servers_named_in(self, code: str) -> tuple[str, ...]:
        """Lists the servers whose modules a program names, to connect them outside the time of its run."""
        return mentioned_servers(code, self._manager.enabled_servers())

    async def reload(self, config: ConfigSource = None) -> None:
        """Applies a changed configuration: changed and removed servers are closed, the others stay connected.

        None rereads the last source. Files are read together with the pins; a Config is taken as it is. Runtimes made
        by `for_task` follow, unless they were reloaded themselves.

        Raises:
            ConfigError: the configuration can't be used as it is; everything stays as it was.
        """
        read_config = self._read_config if config is None else config_reader(config)
        self._current.use(read_config())
        self._read_config = read_config
        await self._follow(reread_pins=not isinstance(config, Config))
        self._warn_of_stray_rules()
        self._rule_warnings()

    async def _follow(self, *, reread_pins: bool = False) -> None:
        """Applies the current servers to gate and manager, here and in runtimes of `for_task`; closes lost ones."""
        self._apply()
        runtimes = [each for each in self._of_tasks if each._current.is_below(self._current)]
        for runtime in runtimes:
            try:
                runtime._current.refresh()
            except ConfigError as error:  # it lacks servers, and has none that it may not have
                _log.warning("A task's servers stay as they were: %s", error)
        async with anyio.create_task_group() as tasks:
            for runtime in (each for each in runtimes if each._state == "open"):  # others do so when they are entered
                runtime._apply()
                tasks.start_soon(partial(runtime._manager.reload, runtime.config, reread_pins=reread_pins))
            await self._manager.reload(self.config, reread_pins=reread_pins)

    def _apply(self) -> None:
        """Applies the current configuration to gate and calls."""
        self._gate.config = self._current.config
        self._rules.clear()

    async def revoke(self, server: str, *, approvals: ApprovalStore | None = None) -> None:
        """Revokes a server's approval and closes it, here and in the runtimes made by `for_task`.

        Its module is gone until the configuration is reloaded.

        Raises:
            UnknownServerError: no server has this name.
            ApprovalStoreError: the approvals can't be written; the server is closed nonetheless.
        """
        config, store = self._manager.config_of(server), approvals or ApprovalStore()
        self._current.revoke(server)
        with anyio.CancelScope(shield=True):  # the caller may be gone before the store is written
            await self._follow()
            await anyio.to_thread.run_sync(store.revoke, server, config.origin)

    async def switch_gateway(self, *, on: bool) -> None:
        """Switches all of MCP on or off, here and in the runtimes made by `for_task`. Off closes every connection."""
        self._current.switch(on=on)
        await self._follow()

    @property
    def reasons(self) -> Mapping[str, str]:
        """Returns the reason for each server's presence, by name."""
        return self._current.reasons

    @property
    def prompt(self) -> RenderedPrompt | None:
        """Returns the rendered prompt that brings its sections' servers; None without one."""
        return self._current.prompt

    def for_task(
        self, description: str = "", *, servers: Iterable[ServerConfig | str] = (), capabilities: Iterable[str] = ()
    ) -> Runtime:
        """Makes a runtime with additional servers for one task. Use it with `async with`.

        Plugins' servers join by one of the capabilities, or by a keyword in the description; plugins are loaded on
        entry, which raises UnknownServerError for an unknown name. Later changes of this runtime's configuration and
        profiles apply there, too, unless the task's runtime has its own; so do revocations and the gateway.

        Raises:
            MisuseError: an argument is of the wrong type.
        """
        now = self._current
        task = Task(description, servers, capabilities, outer=now.task)
        read = self._read_config
        runtime = Runtime(now.own, self._options, read_config=read, prompt=now.prompt, task=task, above=self)
        self._of_tasks.add(runtime)
        return runtime

    async def switch_profiles(self, *profiles: str) -> tuple[ServerStatus, ...]:
        """Switches to the servers of these profiles: connects new ones, closes others, reconnects changed ones.

        A failed connection is not raised: the server's status has the error.

        Raises:
            ConfigError: there is no such profile; everything stays as it was.
        """
        before = set(self.config.servers)
        connected = {status.name for status in self._manager.statuses() if status.state == "connected"}
        self._current.choose_profiles(profiles)
        await self._follow()
        statuses = await self._manager.start_all((set(self.config.servers) - before) | connected)
        self._rule_warnings()
        return statuses

    async def follow_prompt(self, prompt: RenderedPrompt) -> None:
        """Replaces the prompt and its sections' servers; closes those that are gone."""
        self._current.use_prompt(prompt)
        await self._follow()

    async def open_sections(self, paths: Sequence[str]) -> RenderedPrompt:
        """Opens sections of the prompt, which adds their servers. Returns the new prompt.

        Raises:
            SectionError: the section, or the prompt, does not exist.
        """
        if self.prompt is None:
            raise SectionError(", ".join(checked_paths(paths)), "the runtime has no prompt: give open_runtime one")
        await self.follow_prompt(prompt := self.prompt.open_sections(paths))
        return prompt
