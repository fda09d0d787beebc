"""SECURITY: pins, asked in one place, and so that whatever goes wrong with them admits nothing (T11)."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import cast

import anyio.to_thread

from toolbridge.advice import advised
from toolbridge.config.server_config import ServerConfig
from toolbridge.errors import ToolBlockedError, ToolbridgeError
from toolbridge.foreign_cancellation import is_foreign
from toolbridge.servers.listing import Listing
from toolbridge.trust.admission import Admission, BlockedTool, how_to_see, what_to_run
from toolbridge.trust.pins import Pins
from toolbridge.trust.sanitise import for_error

_log = logging.getLogger("toolbridge")
_DIFF_LINES = 12


class Admissions:
    """The host's pins; with none, every listed tool is admitted."""

    def __init__(self, pins: Pins | None) -> None:
        self._pins = pins
        self._changes = 0
        """How often the pins may have changed."""

    def of(self, server: ServerConfig, listing: Listing) -> Admission | None:
        """What of a listing may be used; None for all of it."""
        if self._pins is None:
            return None
        try:
            admission = cast("object", self._pins.admit(server, listing))  # the host's own, maybe
        except Exception as error:
            return Admission(problem=f"its pins failed, so none of its tools can be used: {_words(error)}")
        if not isinstance(admission, Admission):
            return Admission(problem=f"its pins answered with a {type(admission).__name__}, not an Admission")
        return admission

    async def of_foreign(self, server: ServerConfig, listing: Listing) -> Admission | None:
        """The same in a worker thread, again if the pins change meanwhile: a listing may be megabytes."""
        if self._pins is None:
            return None
        while True:
            changes = self._changes
            admission = await anyio.to_thread.run_sync(self.of, server, listing)
            if changes == self._changes:
                return admission

    async def settle(self, server: ServerConfig, listing: Listing, other_tools: Mapping[str, Collection[str]]) -> None:
        """Give a server that has no pins its first, if the host wants that."""
        if self._pins is None:
            return
        try:
            await self._pins.settle(server, listing, other_tools)
        except BaseException as error:
            if not isinstance(error, Exception) and not is_foreign(error):
                raise
            _log.warning("The tools of server %r could not be pinned: %s", server.name, _words(error))

    async def accept(self, server: ServerConfig, listing: Listing, tools: Collection[str] | None) -> None:
        """Pin what somebody has seen.

        Raises:
            ToolbridgeError: there are no pins, or they can't be changed so.
        """
        if self._pins is None:
            raise ToolbridgeError(f"The tools of server {server.name!r} are not pinned: there is nothing to accept.")
        try:
            await self._pins.accept(server, listing, tools)
        finally:
            self._changes += 1

    def reread(self) -> None:
        """Take notice of what was pinned elsewhere."""
        if self._pins is None:
            return
        self._changes += 1
        try:
            self._pins.reread()
        except Exception as error:
            _log.warning("The pins could not be read again: %s", _words(error))


def blocked_error(server: ServerConfig, tool: BlockedTool) -> ToolBlockedError:
    """What a call of a blocked tool comes to."""
    problem = {
        "new": "is not pinned, and nobody has accepted it yet",
        "changed": f"changed since it was pinned ({tool.changed_fields})",
        "unseen": "is pinned, but this user has not accepted it",
        "refused": "was refused by a person",
        "unpinnable": f"{tool.problem}, so that it can't be pinned",
        "unchecked": "can't be compared with its pin",
    }[tool.why]
    lines = tool.diff.split("\n")
    diff = "\n".join([*lines[:_DIFF_LINES], *(["…"] if len(lines) > _DIFF_LINES else [])])
    of_program = server.origin.kind == "code"
    if tool.why in ("unseen", "refused") and not of_program:
        what_to_do = f"see and accept it with {how_to_see(server.name)}"
    elif tool.why == "unchecked":
        what_to_do = f"repair what its problem names: {advised('list --connect')} tells it"
    else:
        what_to_do = what_to_run(server.name, tool.name, of_program=of_program)
    return ToolBlockedError(server.name, for_error(tool.name, limit=100), problem, what_to_do, diff=diff)


def _words(error: BaseException) -> str:
    return for_error(str(error) or type(error).__name__)
