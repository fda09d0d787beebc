"""The checker of a runtime: one question for all languages, and what was answered before is remembered."""

from __future__ import annotations

import logging
import re
from collections import OrderedDict

from toolbridge.check.javascript import Checked, check_javascript
from toolbridge.check.report import CheckReport
from toolbridge.check.world import SessionNames, World
from toolbridge.errors import GuestImageError, ToolbridgeError
from toolbridge.sandbox.sandbox import Sandbox

_log = logging.getLogger("toolbridge")
_MOST_REMEMBERED = 64
_MOST_REMEMBERED_TEXT = 100_000
_NAMES_A_MODULE = {
    "javascript": re.compile(r"host:"),
    "typescript": re.compile(r"host:"),
    "python": re.compile(r"\bhost\b"),
}
# What is said of types can't tell more about a larger program in reasonable time.
MOST_SOURCE = 400_000

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

    async def check(self, source: str, language: str, world: World, session: SessionNames | None = None) -> Checked:
        """What is wrong with a program; nothing, with a warning, when that can't be told.

        Raises:
            ToolbridgeError: the sandbox is closed, or the installation is broken.
        """
        if len(source) > MOST_SOURCE:
            warning = f"The program was not checked before it ran: it is longer than {MOST_SOURCE} characters."
            return Checked(CheckReport(warning=warning, is_checked=False))
        if session is not None:
            return await self._check(source, language, world, session)
        key = (language, source, tuple(world.stubs.items()), world.modules, world.untyped)
        known = self._known.get(key)
        if known is None:
            known = await self._check(source, language, world, None)
            if known.report.is_checked and len(source) <= _MOST_REMEMBERED_TEXT:
                self._known[key] = known
                while len(self._known) > _MOST_REMEMBERED:
                    self._known.popitem(last=False)
        return known

    async def _check(self, source: str, language: str, world: World, session: SessionNames | None) -> Checked:
        """A check that fails, for whatever reason, is a warning: it never stops a run."""
        try:
            return await self._ask(source, language, world, session)
        except ToolbridgeError:
            raise
        except Exception as error:
            _log.debug("The check of a %s program failed", language, exc_info=error)  # whoever runs it gets the warning
            reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            warning = f"The program was not checked before it ran: the check failed ({reason})."
            return Checked(CheckReport(warning=warning, is_checked=False))

    async def _ask(self, source: str, language: str, world: World, session: SessionNames | None) -> Checked:
        if language == "python":
            from toolbridge.check.python import check_python

            return Checked(await check_python(source, world, session))
        try:
            return await check_javascript(source, language, world, session, self._sandbox.ask_compiler)
        except GuestImageError:
            if language == "typescript":
                raise
            return Checked(CheckReport(warning=NO_TYPESCRIPT, is_checked=False, has_checker=False))
