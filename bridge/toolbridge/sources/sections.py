"""Prompt sections that declare servers: a server is there while its section is enabled and opened.

    Section ─► render(sections, params) ─► RenderedPrompt(text, mcps, opened, closed) ─► open_runtime(config, prompt=…)

A section of which only the summary is shown hides its servers and children until it is opened. A disabled section is
left out, and none of its servers is ever started.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from string import Template
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, cast

from toolbridge.config.fields import check_together
from toolbridge.config.server_config import ServerConfig
from toolbridge.config.values import twin_key
from toolbridge.errors import ConfigError, MisuseError, SectionError, reports_misuse
from toolbridge.events import ServerCollided
from toolbridge.sources.plugins import checked_items
from toolbridge.tools.tool import InProcessTool

# A rendered prompt: its text, its servers, and its open sections.


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A rendered prompt: its text, and the servers of its open sections."""

    text: str
    mcps: tuple[ServerConfig, ...]
    """In the order of the text; of one name, the first."""
    opened: tuple[str, ...]
    """Paths of sections that are shown in full: `tools.database`."""
    closed: tuple[str, ...]
    """Paths of sections of which only the summary is shown."""
    sections: Mapping[str, str]
    """By server: the path of the section that declares it."""
    warnings: tuple[str, ...] = ()
    collisions: tuple[ServerCollided, ...] = ()
    _render: Callable[[frozenset[str]], RenderedPrompt] | None = field(default=None, repr=False, compare=False)
    _asked: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    def open_sections(self, paths: Sequence[str]) -> RenderedPrompt:
        """Render the prompt again with these sections and their ancestors shown in full; this one is not changed.

        Calls the sections' functions again.

        Raises:
            SectionError: there is no such section, or one can't be rendered.
            MisuseError: it is no list of texts.
        """
        assert self._render is not None
        paths = checked_paths(paths)
        for path in paths:
            if not any(path == known or path.startswith(f"{known}.") for known in (*self.closed, *self.opened)):
                there = ", ".join(self.closed) or "none"
                raise SectionError(str(path), f"there is no such section. Closed sections: {there}")
        asked = set(self._asked)
        for path in paths:
            parts = path.split(".")
            asked |= {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
        rendered = self._render(frozenset(asked))
        missing = [path for path in paths if path not in rendered.opened]
        if missing:
            there = ", ".join(rendered.closed) or "none"
            raise SectionError(missing[0], f"there is no such section. Closed sections: {there}")
        return rendered


def check_prompt(prompt: object) -> None:
    """Check the type of a `prompt` argument; None is allowed.

    Raises:
        MisuseError: it is no RenderedPrompt.
    """
    if prompt is not None and not isinstance(prompt, RenderedPrompt):
        raise MisuseError("prompt", prompt, "a RenderedPrompt, which `render` gives")


def checked_paths(paths: object) -> tuple[str, ...]:
    """Check the type of a list of paths of sections; whether they exist is not checked.

    Raises:
        SectionError: it is a single path.
        MisuseError: it is no list of texts.
    """
    if isinstance(paths, str):
        raise SectionError(paths, "give a list of paths")
    return checked_items("paths", paths, str, "the path of a section")


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


@reports_misuse
@dataclass(frozen=True)  # without slots: those of a generic class can't be frozen in Python 3.11
class Section(Generic[ParamsT]):
    """A part of a prompt, with its servers.

    `$name` in a template stands for a parameter; a section without parameters inherits its parent's, and without any
    the template is not substituted. `mcps` may hold functions that make a server from the parameters.

    Raises:
        MisuseError: a field is of the wrong type.
        SectionError: the key is malformed, or names of servers collide.
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
        """Check all fields and copy lists into tuples; calls no function.

        Raises:
            MisuseError: a field is of the wrong type.
            SectionError: the key is malformed, the visibility unknown, or names of servers collide.
        """
        if not isinstance(self.key, str) or not _KEY.fullmatch(self.key):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SectionError(str(self.key), 'a key is 1 to 64 of a-z, 0-9, "-" and "_"')
        for name in ("title", "template", "summary"):
            if not isinstance(getattr(self, name), str):
                raise MisuseError(f"Section {self.key!r}: {name}", getattr(self, name), "text")
        if not isinstance(self.enabled, bool) and not callable(self.enabled):  # pyright: ignore[reportUnnecessaryComparison]
            raise MisuseError(f"Section {self.key!r}: enabled", self.enabled, "a bool, or a function")
        if self.visibility not in list(Visibility) and self.visibility not in [each.value for each in Visibility]:
            raise SectionError(self.key, f"visibility is {self.visibility!r}; expected Visibility.FULL or .SUMMARY")
        object.__setattr__(self, "visibility", Visibility(self.visibility))
        for name, kind in (("mcps", ServerConfig), ("children", Section)):
            items = _items(self, name)
            for item in items:
                if not isinstance(item, kind) and not (name == "mcps" and _may_be_factory(item)):
                    expected = "ServerConfig, or functions that make one" if name == "mcps" else "Section"
                    raise MisuseError(f"Section {self.key!r}: an item of {name}", item, expected)
            object.__setattr__(self, name, items)
        check_servers_of(self.key, [each for each in self.mcps if isinstance(each, ServerConfig)])

    def clone(self, **changes: Any) -> Section[ParamsT]:
        """A copy with some fields changed, checked anew; raises as the constructor."""
        return dataclasses.replace(self, **changes)


def _items(section: Section[Any], name: str) -> tuple[object, ...]:
    """The items of a section's field as a tuple, empty for None; MisuseError for no list or tuple."""
    given: object = getattr(section, name)
    if given is None:
        return ()
    if not isinstance(given, (list, tuple)):
        raise MisuseError(f"Section {section.key!r}: {name}", given, "a list")
    return tuple(cast("list[object]", given))


def _may_be_factory(item: object) -> bool:
    return callable(item) and not isinstance(item, InProcessTool)


def check_servers_of(name: str, servers: Sequence[ServerConfig]) -> None:
    """Check the names of one section's servers together.

    Raises:
        SectionError: two have one name, or names that differ only by `-` and `_`.
    """
    try:
        check_together(servers)
    except ConfigError as problem:
        raise SectionError(name, str(problem)) from None


# Rendering sections: visibility, text, and servers.


MOST_SECTIONS = 1_000
DEEPEST = 20
_DEEPEST_HEADING = 6


@reports_misuse
def render(sections: Sequence[Section[Any]], params: Mapping[str, Any] | None = None) -> RenderedPrompt:
    """Render sections in order, closed ones as their summaries. `params` overrides parameters of sections, by path.

    Calls conditions, and the server functions of open sections; starts no server. Of a name that two sections declare,
    the first stays, and a warning is logged.

    Raises:
        SectionError: a path is there twice or unknown, sections contain each other or are too many, or a template, a
            condition or a server's function fails.
        TypeError: a function in `mcps` gives something else than a ServerConfig; or something is no section.
    """
    sections = checked_items("sections", sections, Section, "a Section")
    if params is not None and not isinstance(params, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise MisuseError("params", params, "parameters by the paths of sections")
    given = dict(params or {})

    def again(asked: frozenset[str]) -> RenderedPrompt:
        """Render with the sections `asked` for opened; SectionError for parameters of an unknown section."""
        walk = _Walk(given, asked)
        for section in sections:
            walk.visit(section, (), None, ())
        unknown = [path for path in given if path not in walk.seen and path not in walk.hidden]
        if unknown:
            raise SectionError(str(unknown[0]), "parameters are given for it, and there is no such section")
        return walk.rendered(again)

    return again(frozenset())


class _Walk:
    """One pass over all sections."""

    def __init__(self, params: Mapping[str, Any], asked: frozenset[str]) -> None:
        self._params = params
        self._asked = asked
        self.seen: dict[str, None] = {}
        self.hidden: set[str] = set()
        """Paths of sections within closed or disabled ones."""
        self._parts: list[str] = []
        self._opened: list[str] = []
        self._closed: list[str] = []
        self._servers: dict[str, ServerConfig] = {}
        self._sections: dict[str, str] = {}
        self._warnings: list[str] = []
        self._collisions: list[ServerCollided] = []

    def visit(self, section: Section[Any], above: tuple[int, ...], params: Any, path: tuple[str, ...]) -> None:
        """Render a section and, if it is open, its children into this walk; `above` has the ids of its ancestors.

        Raises:
            SectionError: as `render`.
        """
        path = (*path, section.key)
        name = ".".join(path)
        if id(section) in above:
            raise SectionError(name, "it contains itself")
        if name in self.seen:
            raise SectionError(name, "there is another section of this path")
        if len(path) > DEEPEST or len(self.seen) >= MOST_SECTIONS:
            raise SectionError(name, f"sections are nested too deeply, or more than {MOST_SECTIONS:,}")
        self.seen[name] = None
        own = self._params.get(name, section.params)
        own = params if own is None else own
        if not _is_enabled(section, own, name):
            self._hide(section, name)
            return
        heading = f"{'#' * min(len(path) + 1, _DEEPEST_HEADING)} {section.title}"
        if section.visibility is Visibility.SUMMARY and name not in self._asked:
            self._hide(section, name)
            self._closed.append(name)
            how = f'(open_sections(["{name}"]) shows the rest.)'
            self._parts.append(_joined(heading, _filled(section.summary, own, name), how))
            return
        self._opened.append(name)
        self._parts.append(_joined(heading, _filled(section.template, own, name)))
        self._declare(section, own, name)
        for child in section.children:
            self.visit(child, (*above, id(section)), own, path)

    def _hide(self, section: Section[Any], name: str, depth: int = 0) -> None:
        """Record the paths of all descendants, so that parameters for them are no error."""
        for child in section.children if depth < DEEPEST and len(self.hidden) < MOST_SECTIONS else ():
            self.hidden.add(f"{name}.{child.key}")
            self._hide(child, f"{name}.{child.key}", depth + 1)

    def _declare(self, section: Section[Any], params: Any, name: str) -> None:
        """Make the servers of an open section and record them; of twins the first stays, with a warning."""
        servers = list(_made(section, params, name))
        check_servers_of(name, servers)
        for server in servers:
            kept = self._servers.get(twin_key(server.name))
            if kept is None:
                self._servers[twin_key(server.name)] = server
                self._sections[server.name] = name
                continue
            other = self._sections[kept.name]
            if kept != server:
                self._collisions.append(ServerCollided(server.name, f"section ({name})", f"section ({other})"))
            self._warnings.append(f"section {name!r} declares server {server.name!r}, as section {other!r} did first.")

    def rendered(self, again: Callable[[frozenset[str]], RenderedPrompt]) -> RenderedPrompt:
        """Log the warnings, and build the prompt; `again` renders it with more sections opened."""
        import logging

        for warning in self._warnings:
            logging.getLogger("toolbridge").warning("Prompt: %s", warning)
        return RenderedPrompt(
            "\n\n".join(self._parts),
            tuple(self._servers.values()),
            tuple(self._opened),
            tuple(self._closed),
            MappingProxyType(self._sections),
            tuple(self._warnings),
            tuple(self._collisions),
            again,
            self._asked,
        )


def _made(section: Section[Any], params: Any, name: str) -> Iterator[ServerConfig]:
    """Yield the servers of a section, and call its functions with the parameters.

    Raises:
        SectionError: a function fails.
        MisuseError: its result is no ServerConfig.
    """
    for each in section.mcps:
        if isinstance(each, ServerConfig):
            yield each
            continue
        try:
            server = cast("object", each(params))
        except Exception as error:
            raise SectionError(name, f"a function in mcps failed: {type(error).__name__}: {error}") from error
        if not isinstance(server, ServerConfig):
            raise MisuseError(f"Section {name!r}: the result of a function in mcps", server, "a ServerConfig")
        yield server


def _is_enabled(section: Section[Any], params: Any, name: str) -> bool:
    """Whether a section is enabled; SectionError if its condition raises, or is async."""
    if not callable(section.enabled):
        return bool(section.enabled)
    try:
        answer: object = section.enabled(params)
        if inspect.iscoroutine(answer):  # a coroutine is always true
            answer.close()
            raise TypeError("it is async; expected a plain function")
        return bool(answer)
    except Exception as error:
        raise SectionError(name, f"its condition failed: {type(error).__name__}: {error}") from error


def _filled(text: str, params: Any, name: str) -> str:
    """Substitute parameters in a template, which without any stays as it is; stripped.

    Raises:
        SectionError: a parameter is missing, or a `$` begins none.
    """
    if params is None:
        return text.strip()
    values = _values(params)
    try:
        return Template(text).substitute(values).strip()
    except KeyError as error:
        problem = f"its template has ${error.args[0]}, which its parameters don't have. They have: "
        raise SectionError(name, problem + (", ".join(sorted(values)) or "none")) from None
    except ValueError:
        raise SectionError(name, "its template has a '$' that begins no parameter: write '$$'") from None


def _values(params: Any) -> dict[str, Any]:
    """Parameters by name: of a mapping, dataclass or named tuple, or an object's public attributes."""
    if isinstance(params, Mapping):
        return {str(key): value for key, value in cast("Mapping[Any, Any]", params).items()}
    if dataclasses.is_dataclass(params):  # it may have slots
        return {each.name: getattr(params, each.name) for each in dataclasses.fields(params)}
    if hasattr(params, "_asdict"):  # a named tuple
        return cast("dict[str, Any]", params._asdict())
    attributes = cast("dict[str, Any]", getattr(params, "__dict__", {}))
    return {name: value for name, value in attributes.items() if not name.startswith("_")}


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)
