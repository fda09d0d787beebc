"""Which servers a task wants: by name, by a capability, or by words in its description. Whole words, in linear time."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from toolbridge.config.server_config import ServerConfig
from toolbridge.errors import MisuseError
from toolbridge.sources.plugins import ProvidedServer

MOST_CHARACTERS = 100_000
"""Of a description that is looked at."""
_WORD_OR_SIGN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be done, and what is asked for it."""

    description: str = ""
    servers: tuple[ServerConfig | str, ...] = ()
    """Servers of the task's own, and names of servers that there are."""
    capabilities: tuple[str, ...] = ()
    outer: Task | None = None
    """The task that it is a part of: what that one wants is there too."""

    def __post_init__(self) -> None:
        if not isinstance(self.description, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise MisuseError("description", self.description, "text")
        object.__setattr__(
            self, "servers", _listed("servers", self.servers, (str, ServerConfig), "ServerConfig or a name")
        )
        object.__setattr__(self, "capabilities", _listed("capabilities", self.capabilities, (str,), "text"))

    @classmethod
    def of(
        cls,
        description: str,
        servers: Iterable[ServerConfig | str],
        capabilities: Iterable[str],
        *,
        outer: Task | None = None,
    ) -> Task:
        """A task as somebody describes it.

        Raises:
            MisuseError: something is of the wrong type.
        """
        return cls(description, cast("tuple[ServerConfig | str, ...]", servers), cast("Any", capabilities), outer)

    @property
    def may_want_plugins(self) -> bool:
        """Whether it says anything that a server of a plugin could be wanted by."""
        return any(
            part.description or part.capabilities or any(isinstance(each, str) for each in part.servers)
            for part in self.chain()
        )

    def chain(self) -> Iterator[Task]:
        """It, and those that it is a part of, innermost first."""
        task: Task | None = self
        while task is not None:
            yield task
            task = task.outer


def _listed(name: str, given: object, kinds: tuple[type, ...], each: str) -> tuple[Any, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise MisuseError(name, given, f"a list, each a {each}")
    items = tuple(cast("Iterable[object]", given))
    for number, item in enumerate(items):
        if not isinstance(item, kinds):
            raise MisuseError(f"{name}[{number}]", item, f"a {each}")
    return items


def reason_for(task: Task, server: ProvidedServer, configured: Collection[str] = ()) -> str:
    """Why a plugin's server belongs to a task; empty if it does not. A configured name means the configured server."""
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
    """Capabilities that the task asks for and no server has."""
    known = {_folded(capability) for server in servers for capability in server.capabilities}
    wanted = dict.fromkeys(each for part in task.chain() for each in part.capabilities)
    return tuple(each for each in wanted if _folded(each) not in known)


def missing_names(task: Task, configured: Iterable[str], provided: Iterable[ProvidedServer]) -> tuple[str, ...]:
    """Servers that a task names and nobody has."""
    known = known_names(configured, provided)
    named = (each for part in task.chain() for each in part.servers if isinstance(each, str))
    return tuple(each for each in dict.fromkeys(named) if each not in known)


def ambiguous_names(
    task: Task, configured: Iterable[str], provided: Iterable[ProvidedServer]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Names of a task that are the own names of servers of several plugins, and which servers they could mean."""
    provided = tuple(provided)
    whole = {*configured, *(each.config.name for each in provided)}
    for name in dict.fromkeys(each for part in task.chain() for each in part.servers if isinstance(each, str)):
        meant = tuple(sorted(each.config.name for each in provided if each.name == name))
        if name not in whole and len(meant) > 1:
            yield name, meant


def known_names(configured: Iterable[str], provided: Iterable[ProvidedServer]) -> tuple[str, ...]:
    """What a task may name: what is configured, and what plugins offer by its full or its own name."""
    return tuple(sorted({*configured, *(name for each in provided for name in (each.config.name, each.name))}))


def has_words(text: str, words: str) -> bool:
    """Whether a text has these words, and signs between them, in a row: not as a part of longer words."""
    wanted = _apart(words)
    return wanted != " " and wanted in _apart(text)


@lru_cache(maxsize=128)
def _apart(text: str) -> str:
    """Every word and every sign with a space on each side: so a plain search finds whole words only."""
    return f" {' '.join(_WORD_OR_SIGN.findall(_folded(text)))} ".replace("  ", " ")


def _folded(text: str) -> str:
    """Text without the differences that a reader does not see: case, form of characters, white space."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
