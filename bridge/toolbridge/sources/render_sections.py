"""From sections to a prompt: who is shown, what the text is, and which servers that brings."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from string import Template
from types import MappingProxyType
from typing import Any, cast

from toolbridge.config.names import twin_key
from toolbridge.config.server_config import ServerConfig
from toolbridge.errors import MisuseError, SectionError
from toolbridge.servers.events import ServerCollided
from toolbridge.sources.checked_items import checked_items
from toolbridge.sources.rendered_prompt import RenderedPrompt
from toolbridge.sources.sections import Section, Visibility, check_own

MOST_SECTIONS = 1_000
DEEPEST = 20
_DEEPEST_HEADING = 6


def render(sections: Sequence[Section[Any]], params: Mapping[str, Any] | None = None) -> RenderedPrompt:
    """Render sections in order. `params` has, by path, parameters that take the place of a section's own.

    Raises:
        SectionError: a path is there twice, sections contain each other, or a template, a condition or a server's
            function fails.
        TypeError: a function in `mcps` gives something else than a ServerConfig; or something is no section.
    """
    sections = checked_items("sections", sections, Section, "a Section")
    if params is not None and not isinstance(params, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise MisuseError("params", params, "parameters by the paths of sections")
    given = dict(params or {})

    def again(asked: frozenset[str]) -> RenderedPrompt:
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
        """Paths of sections within those that are closed or not enabled: nothing else of them was looked at."""
        self._parts: list[str] = []
        self._opened: list[str] = []
        self._closed: list[str] = []
        self._servers: dict[str, ServerConfig] = {}
        self._sections: dict[str, str] = {}
        self._warnings: list[str] = []
        self._collisions: list[ServerCollided] = []

    def visit(self, section: Section[Any], above: tuple[int, ...], params: Any, path: tuple[str, ...]) -> None:
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
        for child in section.children if depth < DEEPEST and len(self.hidden) < MOST_SECTIONS else ():
            self.hidden.add(f"{name}.{child.key}")
            self._hide(child, f"{name}.{child.key}", depth + 1)

    def _declare(self, section: Section[Any], params: Any, name: str) -> None:
        servers = list(_made(section, params, name))
        check_own(name, servers)
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
    for each in section.mcps:
        if isinstance(each, ServerConfig):
            yield each
            continue
        try:
            server = cast("object", each(params))
        except Exception as error:
            raise SectionError(name, f"a function in mcps failed: {type(error).__name__}: {error}") from error
        if not isinstance(server, ServerConfig):
            raise TypeError(f"Section {name!r}: a function in mcps gave a {type(server).__name__}, not a ServerConfig.")
        yield server


def _is_enabled(section: Section[Any], params: Any, name: str) -> bool:
    if not callable(section.enabled):
        return bool(section.enabled)
    try:
        answer: object = section.enabled(params)
        if inspect.iscoroutine(answer):  # which is true, whatever it would come to
            answer.close()
            raise TypeError("it is async, and nobody awaits it here")
        return bool(answer)
    except Exception as error:
        raise SectionError(name, f"its condition failed: {type(error).__name__}: {error}") from error


def _filled(text: str, params: Any, name: str) -> str:
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
