"""The checker of a runtime: one question for all languages, and what was answered before is remembered."""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from contextlib import suppress
from functools import partial

from anyio import move_on_after

from toolbridge.check.javascript import Checked, check_javascript
from toolbridge.check.report import CheckReport, unended
from toolbridge.check.world import SessionNames, World
from toolbridge.errors import GuestImageError, ToolbridgeError
from toolbridge.limits import Limits
from toolbridge.sandbox.sandbox import Sandbox

_log = logging.getLogger("toolbridge.check")
_MOST_REMEMBERED = 64
_USUAL_LIMITS = Limits()
_NAMES_A_MODULE = {
    "javascript": re.compile(r"host:"),
    "typescript": re.compile(r"host:"),
    "python": re.compile(r"\bhost\b"),
}
# Checkers take more than linear time, and nobody writes a larger program by hand.
MOST_SOURCE = 100_000
_TOO_LONG = f"The program is longer than the {MOST_SOURCE:,} characters that are checked."

NO_TYPESCRIPT = (
    "The TypeScript image is not built, so programs are not checked: install npm and run `make guest`, "
    "or use a wheel that has it."
)


def names_a_module(source: str, language: str) -> bool:
    """Whether a program may call a tool."""
    return _NAMES_A_MODULE[language].search(source) is not None


class Checker:
    """Checks programs, each in an instance or process of its own."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._known: OrderedDict[tuple[object, ...], Checked] = OrderedDict()

    async def prepare(self, language: str) -> None:
        """Loads the checker of a language, which may have to be compiled: that is no program's time.

        Raises:
            ToolbridgeError: the sandbox is closed.
        """
        if language != "python":
            with suppress(GuestImageError):  # the check says so
                await self._sandbox.prepare_compiler()

    async def check(
        self,
        source: str,
        language: str,
        world: World,
        session: SessionNames | None = None,
        limits: Limits = _USUAL_LIMITS,
    ) -> Checked:
        """What is wrong with a program; nothing, with a warning, when that can't be told.

        It is told in the time of a run with these limits, or the report says that the check did not end.

        Raises:
            ToolbridgeError: the sandbox is closed, or the installation is broken.
        """
        await self.prepare(language)
        checked = Checked(unended())
        with move_on_after(limits.wall_seconds):
            checked = await self._known_or_asked(source, language, world, session, limits)
        report = checked.report
        if report.warning and report.has_checker:
            _log.info("%s", report.warning)  # the run's own warning says it to its host; the tests listen to this
        return checked

    async def _known_or_asked(
        self, source: str, language: str, world: World, session: SessionNames | None, limits: Limits
    ) -> Checked:
        if session is not None:
            return await self._check(source, language, world, session, limits)
        key = (language, source, tuple(world.stubs.items()), world.modules, world.untyped)
        known = self._known.get(key)
        if known is None:
            known = await self._check(source, language, world, None, limits)
            if known.report.is_checked:
                self._known[key] = known
                while len(self._known) > _MOST_REMEMBERED:
                    self._known.popitem(last=False)
        return known

    async def _check(
        self, source: str, language: str, world: World, session: SessionNames | None, limits: Limits
    ) -> Checked:
        """A check that fails by itself, for whatever reason, is a warning: it never stops a run."""
        try:
            return await self._ask(source, language, world, session, limits)
        except ToolbridgeError:
            raise
        except Exception as error:
            _log.debug("The check of a %s program failed", language, exc_info=error)
            reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            warning = f"The program was not checked before it ran: the check failed ({reason})."
            return Checked(CheckReport(warning=warning, is_checked=False))

    async def _ask(
        self, source: str, language: str, world: World, session: SessionNames | None, limits: Limits
    ) -> Checked:
        is_too_long = len(source) > MOST_SOURCE
        if language == "python":
            from toolbridge.check.python import check_python, find_ty

            if is_too_long and find_ty() is not None:
                return Checked(unended(_TOO_LONG))
            return Checked(await check_python(source, world, session, cpu_seconds=limits.cpu_seconds))
        ask = partial(self._sandbox.ask_compiler, run=limits)
        try:
            if is_too_long:
                await self._sandbox.prepare_compiler()
                return Checked(unended(_TOO_LONG))
            return await check_javascript(source, language, world, session, ask)
        except GuestImageError:
            if language == "typescript":
                raise
            return Checked(CheckReport(warning=NO_TYPESCRIPT, is_checked=False, has_checker=False))
