"""A program's check before its run: which stubs it is checked against, and what becomes of it then."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from anyio import create_task_group, sleep, to_thread

from toolbridge.calls.hidden_tools import hidden_tool_warnings
from toolbridge.calls.run_modules import mentioned_servers
from toolbridge.check.checker import Checker, names_a_module
from toolbridge.check.javascript import Checked
from toolbridge.check.needed_stubs import needed_stubs
from toolbridge.check.report import CheckReport
from toolbridge.check.world import SessionNames, World
from toolbridge.errors import SandboxClosedError
from toolbridge.sandbox.outcome import Failure, RunResult, Usage
from toolbridge_codegen.catalog import module_specifier, python_module

if TYPE_CHECKING:
    from toolbridge.calls.run_scope import RunScope
    from toolbridge.limits import Limits
    from toolbridge.sandbox.sandbox import Sandbox
    from toolbridge.servers.manager import ServerManager
    from toolbridge_codegen.catalog import Catalog
    from toolbridge_codegen.stubs import Language as StubLanguage
    from toolbridge_codegen.stubs import StubSet

_WORD = re.compile(r"[^\W\d][\w$]*")
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
