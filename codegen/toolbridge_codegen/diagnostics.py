"""Diagnostics of one tool: what its schemas say that the stubs can't, or won't, and where."""

from __future__ import annotations

from typing import Any

from toolbridge_codegen.model import Diagnostic
from toolbridge_codegen.sanitise import clean_line

_LONGEST_PATH = 300
_LONGEST_MESSAGE = 300


class Reporter:
    """Collects a tool's diagnostics. It knows where each visited schema is, so that others need not carry it."""

    __slots__ = ("_known", "_most", "_paths", "_server", "_tool", "diagnostics")

    def __init__(self, server: str, tool: str, most: int) -> None:
        self._server = server
        self._tool = tool
        self._most = most
        self._paths: dict[int, str] = {}
        self._known: set[tuple[str, str]] = set()
        self.diagnostics: list[Diagnostic] = []

    def locate(self, schema: Any, path: str) -> None:
        """Remember where a schema is."""
        self._paths.setdefault(id(schema), path)

    def locate_inside(self, schema: Any, inner: Any, step: str) -> None:
        """Remember where a schema is, from one around it. Past a certain length, a path isn't worth its memory."""
        path = self.path_of(schema)
        self.locate(inner, path + step if len(path) < _LONGEST_PATH else path)

    def path_of(self, schema: Any) -> str:
        """Where a schema is, as far as known."""
        return self._paths.get(id(schema), "")

    def report(self, schema: Any, keyword: str, message: str) -> None:
        """A diagnostic about a keyword of a schema, or, without a keyword, about all of it."""
        path = self.path_of(schema)
        self.report_at(f"{path}/{escape_token(keyword)}" if keyword else path, message)

    def report_at(self, path: str, message: str) -> None:
        """A diagnostic about a place. Each is kept once, and not more of them than are useful."""
        if len(self.diagnostics) > self._most or (path, message) in self._known:
            return
        self._known.add((path, message))
        if len(self.diagnostics) == self._most:
            path, message = "", f"more than {self._most} diagnostics; the others are left out"
        self.diagnostics.append(
            Diagnostic(
                server=self._server,
                tool=self._tool,
                path=clean_line(path, limit=_LONGEST_PATH),
                message=clean_line(message, limit=_LONGEST_MESSAGE),
            )
        )


def escape_token(token: str) -> str:
    """A member's name as a part of a JSON Pointer."""
    return token.replace("~", "~0").replace("/", "~1") if "~" in token or "/" in token else token
