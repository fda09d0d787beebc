"""Prompt sections that declare the servers they speak of: a server is there while its section is, and shown.

    Section ─► render(sections, params) ─► RenderedPrompt(text, mcps, opened, closed) ─► open_runtime(config, prompt=…)

A section that shows only its summary hides its servers and children until it is opened. One that is not enabled is not
there at all, and nothing of it is ever started.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, cast

from toolbridge.config.server_config import ServerConfig
from toolbridge.config.validate import check_together
from toolbridge.errors import ConfigError, SectionError
from toolbridge.servers.own_tool import InProcessTool

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    ParamsT = TypeVar("ParamsT", default=None)
else:
    from typing import TypeVar

    ParamsT = TypeVar("ParamsT")
ServerFactory: TypeAlias = Callable[[ParamsT], ServerConfig]
"""Makes a server from the section's parameters, when it is rendered."""

_KEY = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class Visibility(Enum):
    """How much of a section is shown."""

    FULL = "full"
    SUMMARY = "summary"


@dataclass(frozen=True)  # without slots: those of a generic class can't be frozen in Python 3.11
class Section(Generic[ParamsT]):
    """A part of a prompt, with the servers that it speaks of.

    `$name` in a template stands for a parameter; a section without parameters has its parent's, and a template
    without any is left as it is. `mcps` may have functions that make a server from the parameters.

    Raises:
        TypeError: a text is none, or something in `mcps` or `children` is neither.
        SectionError: the key is none, or two servers could be mistaken for each other.
    """

    title: str
    key: str
    template: str = ""
    # A factory, so that a type checker has nothing to guess the parameters of `()` from.
    mcps: Sequence[ServerConfig | ServerFactory[ParamsT]] = field(default_factory=tuple[ServerConfig, ...])
    params: ParamsT | None = None
    enabled: Callable[[ParamsT], bool] | bool = True
    visibility: Visibility = Visibility.FULL
    summary: str = ""
    children: Sequence[Section[Any]] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.key, str) or not _KEY.fullmatch(self.key):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SectionError(str(self.key), 'a key is 1 to 64 of a-z, 0-9, "-" and "_"')
        for name in ("title", "template", "summary"):
            if not isinstance(getattr(self, name), str):
                kind = type(getattr(self, name)).__name__
                raise TypeError(f"Section {self.key!r}: {name} is of type {kind}; expected text.")
        if not isinstance(self.enabled, bool) and not callable(self.enabled):  # pyright: ignore[reportUnnecessaryComparison]
            kind = type(self.enabled).__name__
            raise TypeError(f"Section {self.key!r}: enabled is of type {kind}; expected a bool, or a function.")
        if self.visibility not in list(Visibility) and self.visibility not in [each.value for each in Visibility]:
            raise SectionError(self.key, f"visibility is {self.visibility!r}; expected Visibility.FULL or .SUMMARY")
        object.__setattr__(self, "visibility", Visibility(self.visibility))
        for name, kind in (("mcps", ServerConfig), ("children", Section)):
            items = _items(self, name)
            for item in items:
                if not isinstance(item, kind) and not (name == "mcps" and _may_be_factory(item)):
                    expected = "ServerConfig, or functions that make one" if name == "mcps" else "Section"
                    raise TypeError(f"Section {self.key!r}: {name} has a {type(item).__name__}; expected {expected}.")
            object.__setattr__(self, name, items)
        check_own(self.key, [each for each in self.mcps if isinstance(each, ServerConfig)])

    def clone(self, **changes: Any) -> Section[ParamsT]:
        """The same section, its servers among it, with some fields changed."""
        return dataclasses.replace(self, **changes)


def _items(section: Section[Any], name: str) -> tuple[object, ...]:
    given: object = getattr(section, name)
    if given is None:
        return ()
    if not isinstance(given, (list, tuple)):
        raise TypeError(f"Section {section.key!r}: {name} is a {type(given).__name__}; expected a list.")
    return tuple(cast("list[object]", given))


def _may_be_factory(item: object) -> bool:
    return callable(item) and not isinstance(item, InProcessTool)


def check_own(name: str, servers: Sequence[ServerConfig]) -> None:
    """The servers of one section, which nobody must mistake for each other.

    Raises:
        SectionError: somebody could.
    """
    try:
        check_together(servers)
    except ConfigError as problem:
        raise SectionError(name, str(problem)) from None
