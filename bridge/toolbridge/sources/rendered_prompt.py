"""A prompt whose sections were rendered: its text, its servers, and which of its sections are open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from toolbridge.config.server_config import ServerConfig
from toolbridge.errors import MisuseError, SectionError
from toolbridge.servers.events import ServerCollided
from toolbridge.sources.checked_items import checked_items


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A prompt as it stands: its text, and the servers of the sections that are shown."""

    text: str
    mcps: tuple[ServerConfig, ...]
    """In the order of the text; of one name, the first."""
    opened: tuple[str, ...]
    """Paths of sections that are shown in full: `tools.database`."""
    closed: tuple[str, ...]
    """Paths of those of which only the summary is shown."""
    sections: Mapping[str, str]
    """By server: the path of the section that declares it."""
    warnings: tuple[str, ...] = ()
    collisions: tuple[ServerCollided, ...] = ()
    _render: Callable[[frozenset[str]], RenderedPrompt] | None = field(default=None, repr=False, compare=False)
    _asked: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    def open_sections(self, paths: Sequence[str]) -> RenderedPrompt:
        """The prompt with these sections shown in full, and those that they are in.

        Raises:
            SectionError: there is no such section.
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
    """See that a prompt is one.

    Raises:
        MisuseError: it is text, perhaps.
    """
    if prompt is not None and not isinstance(prompt, RenderedPrompt):
        raise MisuseError("prompt", prompt, "a RenderedPrompt, which `render` gives")


def checked_paths(paths: object) -> tuple[str, ...]:
    """Paths of sections.

    Raises:
        SectionError: it is one path, not a list of them.
        MisuseError: it is something else.
    """
    if isinstance(paths, str):
        raise SectionError(paths, "give a list of paths")
    return checked_items("paths", paths, str, "the path of a section")
