"""Selects servers for a task: by name, capability, or keywords in its description (whole words, linear time)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from toolbridge.config.server_config import ServerConfig
from toolbridge.errors import MisuseError
from toolbridge.sources.plugins import ProvidedServer, checked_items

MOST_CHARACTERS = 100_000
"""Of a description that keywords are searched in."""
_WORD_OR_SIGN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Task:
    """A description of work to do, and the servers and capabilities for it.

    Raises:
        MisuseError: a field is of the wrong type.
    """

    description: str = ""
    servers: Iterable[ServerConfig | str] = ()
    """Servers that the task brings, and names of other ones."""
    capabilities: Iterable[str] = ()
    outer: Task | None = None
    """The enclosing task, whose servers are there, too."""

    def __post_init__(self) -> None:
        if not isinstance(self.description, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise MisuseError("description", self.description, "text")
        servers = checked_items("servers", self.servers, (str, ServerConfig), "a ServerConfig or a name")
        object.__setattr__(self, "servers", servers)
        object.__setattr__(self, "capabilities", checked_items("capabilities", self.capabilities, (str,), "a text"))

    @property
    def may_want_plugins(self) -> bool:
        """Whether it has anything that could select a server of a plugin."""
        return any(
            part.description or part.capabilities or any(isinstance(each, str) for each in part.servers)
            for part in self.chain()
        )

    def chain(self) -> Iterator[Task]:
        """The task and its enclosing tasks, innermost first."""
        task: Task | None = self
        while task is not None:
            yield task
            task = task.outer


def reason_for(task: Task, server: ProvidedServer, configured: Collection[str] = ()) -> str:
    """The reason why a task selects a plugin's server; empty if it does not. A configured name means that server."""
    names = {server.config.name, server.name} - ({server.name} & set(configured))
    return next(filter(None, (_reason(each, server, names) for each in task.chain())), "")


def _reason(task: Task, server: ProvidedServer, names: Collection[str]) -> str:
    if named := next((each for each in task.servers if isinstance(each, str) and each in names), None):
        return f"the task asks for {named!r}"
    wanted = {_folded(each) for each in task.capabilities}
    if capability := next((each for each in server.capabilities if _folded(each) in wanted), None):
        return f"the task asks for the capability {capability!r}"
    text = task.description[:MOST_CHARACTERS]
    if keyword := next((each for each in server.keywords if has_words(text, each)), None):
        return f"the task mentions {keyword!r}"
    return ""


def unmet(task: Task, servers: Iterable[ProvidedServer]) -> tuple[str, ...]:
    """Capabilities of the task that no server has."""
    known = {_folded(capability) for server in servers for capability in server.capabilities}
    wanted = dict.fromkeys(each for part in task.chain() for each in part.capabilities)
    return tuple(each for each in wanted if _folded(each) not in known)


def missing_names(task: Task, configured: Iterable[str], provided: Iterable[ProvidedServer]) -> tuple[str, ...]:
    """Names in the task that no server has."""
    known = known_names(configured, provided)
    named = (each for part in task.chain() for each in part.servers if isinstance(each, str))
    return tuple(each for each in dict.fromkeys(named) if each not in known)


def ambiguous_names(
    task: Task, configured: Iterable[str], provided: Iterable[ProvidedServer]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Names in the task that several plugins have a server of, and those servers."""
    provided = tuple(provided)
    whole = {*configured, *(each.config.name for each in provided)}
    for name in dict.fromkeys(each for part in task.chain() for each in part.servers if isinstance(each, str)):
        meant = tuple(sorted(each.config.name for each in provided if each.name == name))
        if name not in whole and len(meant) > 1:
            yield name, meant


def known_names(configured: Iterable[str], provided: Iterable[ProvidedServer]) -> tuple[str, ...]:
    """Names that a task may use: configured servers, and servers of plugins by full or short name."""
    return tuple(sorted({*configured, *(name for each in provided for name in (each.config.name, each.name))}))


def has_words(text: str, words: str) -> bool:
    """Whether a text has these words and punctuation marks in a row; never matches within a longer word."""
    wanted = _apart(words)
    return wanted != " " and wanted in _apart(text)


@lru_cache(maxsize=128)
def _apart(text: str) -> str:
    """The text with spaces around every word and punctuation mark, so that a plain search finds whole words only."""
    return f" {' '.join(_WORD_OR_SIGN.findall(_folded(text)))} ".replace("  ", " ")


def _folded(text: str) -> str:
    """The text normalised: NFKC, case folded, white space collapsed."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
