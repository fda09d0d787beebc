"""The runtime: the one place where configuration, trust, servers, stubs and sandbox meet.

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
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack, get_args
from weakref import WeakSet

import anyio
import anyio.to_thread

from toolbridge.callbacks import observers_of, settle
from toolbridge.calls.run import Check, RunScope, TypeChecks, mentioned_servers, new_run
from toolbridge.calls.tool_call import CallRules
from toolbridge.composition import CurrentServers
from toolbridge.config.config import Config, ConfigSource, config_reader
from toolbridge.config.policy import Errors, check_errors
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
    reports_misuse,
    unknown_argument,
)
from toolbridge.events import Observer, wants_arguments, wants_progress
from toolbridge.files import cache_directory
from toolbridge.limits import Limits
from toolbridge.sandbox.outcome import RunResult
from toolbridge.sandbox.sandbox import Sandbox, check_types
from toolbridge.sandbox.scheduler import is_in_event_loop
from toolbridge.schema.validate import CheckStore
from toolbridge.servers.manager import ServerManager
from toolbridge.sources.sections import RenderedPrompt, checked_paths
from toolbridge.sources.tasks import Task
from toolbridge.trust.approval.store import ApprovalStore
from toolbridge.trust.gate.gate import CanUseTool, PermissionGate
from toolbridge.trust.gate.permissions import stray_patterns
from toolbridge.trust.pins.pins import LockPins, Pins
from toolbridge_codegen.cache import StubCache
from toolbridge_codegen.catalog import Catalog
from toolbridge_codegen.stubs import Detail, StubSet, generate
from toolbridge_codegen.stubs import Language as StubLanguage

if TYPE_CHECKING:
    from toolbridge.check.checker import CheckReport
    from toolbridge.config.server_config import ServerConfig
    from toolbridge.sandbox.engine import CompileNotice
    from toolbridge.servers.auth.sign_in import SignInLike
    from toolbridge.servers.pool import ServerStatus
    from toolbridge.servers.requests import ElicitorLike, RootsLike, SamplerLike
    from toolbridge.trust.approval.approver import ApproverLike


class RuntimeOptions(TypedDict, total=False):
    """The keyword arguments of `open_runtime` and `run_sync`. A callback is an object with its method, or a function.

    Plain functions run on a thread (observers: at once, on the event loop's thread), async ones on the event loop.
    """

    approver: ApproverLike | None
    """Approves servers before they are started or reached; without one, none is."""
    elicitor: ElicitorLike | None
    """Answers a server's questions to a person (elicitation)."""
    sampler: SamplerLike | None
    """Answers a server's requests to a model (sampling)."""
    roots: RootsLike | None
    """Lists the directories that servers are told of."""
    sign_in: SignInLike | None
    """Has a person sign in to a remote server (OAuth)."""
    can_use_tool: CanUseTool | None
    """Authorizes calls that the permissions leave open."""
    limits: Limits | None
    """Limits of each run."""
    observers: Iterable[Observer]
    """Plain or async functions that are called with each event."""
    errors: Errors | None
    """Whether guest code gets tool errors raised or returned; None: as configured."""
    strict_results: bool | None
    """Whether a result that doesn't match its output schema is an error; None: as configured."""
    pins: Pins | Literal["lock", "none"]
    """Pins of tool definitions; by default those of `toolbridge.lock`."""
    profiles: Iterable[str]
    """Profiles of the configuration whose servers are wanted."""
    prompt: RenderedPrompt | None
    """A rendered prompt, which brings the servers of its sections."""
    directory: str | os.PathLike[str] | None
    """Where listings and stubs are kept between runs; by default the user's cache directory."""
    on_compile: CompileNotice | None
    """Called with a language whose engine has to be compiled first, which takes seconds."""


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

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


_log = logging.getLogger("toolbridge")

Language: TypeAlias = Literal["javascript", "typescript", "python"]
"""What a program may be written in."""


def open_runtime(config: ConfigSource = None, **options: Unpack[RuntimeOptions]) -> Runtime:
    """Makes a runtime for a configuration: a Config, a file, or the one that is found (None). Use it with `async with`.

    `RuntimeOptions` documents the options.

    Raises:
        ConfigError: the configuration can't be used as it is, or there is no such profile.
        MisuseError: an argument is of the wrong type, or there is no such option.
    """
    _check_options(options)
    read_config = config_reader(config)
    profiles = profile_names(options.get("profiles", ()))
    resolved = read_config()
    used = with_profiles(resolved, profiles) if profiles else resolved
    return Runtime(used, options, read_config=read_config, prompt=options.get("prompt"))


_OPTION_TYPES: Mapping[str, tuple[Any, str]] = {
    "limits": (Limits, "Limits(…)"),
    "strict_results": (bool, "a bool"),
    "directory": ((str, os.PathLike), "a path"),
    "on_compile": (Callable, "a plain or async function that takes a language"),
}


def _check_options(options: RuntimeOptions) -> None:
    """Checks the options that nothing else checks; callbacks are checked by their users.

    Raises:
        ConfigError: `errors` is no such word.
        MisuseError: an option is unknown, or of the wrong type.
    """
    for name, value in options.items():
        if name not in RuntimeOptions.__annotations__:
            raise unknown_argument("open_runtime", name, sorted(RuntimeOptions.__annotations__))
        kinds, expected = _OPTION_TYPES.get(name, (object, ""))
        if value is not None and not isinstance(value, kinds):
            raise MisuseError(name, value, expected)
    if options.get("errors") is not None:
        check_errors(options.get("errors"))
    pins = options.get("pins", "lock")
    if pins not in ("lock", "none") and not hasattr(pins, "admit"):
        raise MisuseError("pins", pins, '"lock", "none", or an object such as LockPins(…)')


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
        self._current = CurrentServers(
            config, prompt, self._observers, task=task, above=None if above is None else above._current
        )
        self._of_tasks: WeakSet[Runtime] = WeakSet() if above is None else above._of_tasks
        """All runtimes for tasks that were made of this one, or that this one is among."""
        self._rules: dict[str, CallRules] = {}
        """By language, for the configuration as it is now."""
        self._checks = CheckStore()
        self._gate = PermissionGate(self._config, options.get("can_use_tool"), listed=self._listed)
        directory = options.get("directory")
        directory = cache_directory() if directory is None else os.fspath(directory)
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
        """End every run and close every server. Safe to call again, in any state, and from any task."""
        self._state = "closed"
        self._sandbox.close()
        await self._manager.close()
        await settle(self._observers)

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
        self._check_open(language)
        limits = limits or self._limits
        check_types(code, limits, seed)
        scope = self._scope(language, limits)
        execute = partial(self._sandbox.run, code, language=language, limits=limits, seed=seed, host=scope.host)
        try:
            return await scope.run(code, language, execute, check=check)
        finally:
            scope.close()

    def _listed(self) -> Catalog:
        return self._manager.listed()

    def _rule_warnings(self) -> tuple[str, ...]:
        """Permissions and labels that match no tool: a misspelt rule protects nothing. Each is logged once."""
        catalog, config = self._manager.catalog, self._gate.config
        kept = self._rule_problems
        if kept is None or kept[0] is not catalog or kept[1] is not config:
            problems = self._gate.warnings(catalog)
            self._warn(problems)
            kept = self._rule_problems = (catalog, config, (*problems, *self._manager.filter_warnings))
        return kept[2]

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
        """A guest that keeps its state from one program to the next, with its handles and granted permissions.

        With `check`, each program is checked first, as `run` does, with what earlier ones declared. Observers are told
        its `name`; without one, it is made up.
        """
        self._check_open(language)
        check_types("", limits or self._limits, None)
        scope = self._scope(language, limits or self._limits, session=name or new_run())
        return RuntimeSession(self._sandbox, scope, language, check)

    def _scope(self, language: Language, limits: Limits, *, session: str | None = None) -> RunScope:
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
        """The rules of every call: options of `open_runtime` override the configuration."""
        strict = self._options.get("strict_results")
        rules = self._rules[language] = CallRules(
            self._errors_as,
            self._config.strict_results if strict is None else strict,
            exact_integers=language == "python",  # its integers are of any size
            shows_arguments=wants_arguments(self._observers),
            shows_progress=wants_progress(self._observers),
        )
        return rules

    @property
    def _errors_as(self) -> Errors:
        return self._options.get("errors") or self._config.errors

    def _check_open(self, language: str) -> None:
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
        self._rule_warnings()
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
        self._rule_warnings()

    async def _follow(self, *, reread_pins: bool = False) -> None:
        """Have gate and manager do as the servers are now, and those of the tasks' runtimes."""
        self._take_over()
        runtimes = [each for each in self._of_tasks if each._current.is_below(self._current)]
        for runtime in runtimes:
            try:
                runtime._current.look_again()
            except ConfigError as error:  # it has fewer servers than it could have, and none that it may not
                _log.warning("A task's servers stay as they were: %s", error)
        async with anyio.create_task_group() as tasks:
            for runtime in (each for each in runtimes if each._state == "open"):  # others do so when they are entered
                runtime._take_over()
                tasks.start_soon(partial(runtime._manager.reload, runtime.config, reread_pins=reread_pins))
            await self._manager.reload(self.config, reread_pins=reread_pins)

    def _take_over(self) -> None:
        """Has gate and calls follow the configuration as it is now."""
        self._gate.config = self._config
        self._rules.clear()

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
        self._rule_warnings()
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


@reports_misuse
def run_sync(
    config: ConfigSource, code: str, *, language: Language = "javascript", **options: Unpack[RuntimeOptions]
) -> RunResult:
    """Opens a runtime, runs one program, and closes it again: for scripts.

    Raises:
        ToolbridgeError: the configuration or installation can't be used, or an event loop is running here: await
            `Runtime.run` instead.
    """

    async def main() -> RunResult:
        async with open_runtime(config, **options) as runtime:
            return await runtime.run(code, language=language)

    if is_in_event_loop():
        raise ToolbridgeError("run_sync was called inside an event loop: use `async with open_runtime(...)` there.")
    return anyio.run(main)
