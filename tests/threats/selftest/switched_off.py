"""What it is to switch a mitigation off: one exact text of the source is replaced, and named tests must fail."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class NotFoundError(Exception):
    """The text that would be replaced is not there, or more than once: the table has to follow the source."""


@dataclass(frozen=True, slots=True)
class SwitchedOff:
    """One mitigation, and how it is taken away."""

    threat: str
    """`T7`."""
    what: str
    """What toolbridge no longer does then."""
    file: str
    """From the repository's root."""
    text: str
    """Exactly once in that file."""
    instead: str
    tests: tuple[str, ...]
    """Of `tests/threats`: files, or tests in them. One failure among them is enough."""


def off(threat: str, what: str, file: str, text: str, instead: str, *tests: str) -> SwitchedOff:
    """A line of the table. `file` is below `bridge/toolbridge`, or begins with `codegen/`."""
    place = f"codegen/toolbridge_codegen/{file.removeprefix('codegen/')}"
    whole = place if file.startswith("codegen/") else f"bridge/toolbridge/{file}"
    return SwitchedOff(threat, what, whole, text, instead, tests)


def applied(switched: SwitchedOff, root: Path) -> str:
    """The file's text with the mitigation taken away.

    Raises:
        NotFoundError: the source is no longer what the table says.
    """
    source = (root / switched.file).read_text(encoding="utf-8")
    count = source.count(switched.text)
    if count != 1 or switched.text == switched.instead:
        raise NotFoundError(f"{switched.threat}: {switched.file} has {switched.text!r} {count} times")
    return source.replace(switched.text, switched.instead)
