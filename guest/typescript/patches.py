"""Our edits to TypeScript's compiler, applied when the image is made: each finds its anchor, or the build fails."""

from __future__ import annotations

from typing import NamedTuple


class Patch(NamedTuple):
    """Puts `after` in place of `before`, wherever that stands."""

    why: str
    before: str
    after: str
    times: int = 1


PATCHES = (
    Patch(
        why="What a stub does not know, a program may use as it likes: `unknown` in declarations is `any`",
        before="      case 159 /* UnknownKeyword */:\n        return unknownType;",
        after="      case 159 /* UnknownKeyword */:\n"
        "        return node.flags & 33554432 /* Ambient */ ? anyType : unknownType;",
    ),
)


def patched(source: str) -> str:
    """The compiler's source with every edit made.

    Raises:
        ValueError: an anchor is not there as often as it should be.
    """
    for patch in PATCHES:
        found = source.count(patch.before)
        if found != patch.times:
            raise ValueError(f"the compiler's source has {found} places for {patch.why!r}, not {patch.times}")
        source = source.replace(patch.before, patch.after)
    return source
