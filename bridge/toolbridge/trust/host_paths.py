"""SECURITY: paths of this machine in a server's errors are shortened to what is no secret: the last part.

They tell a model, and whoever it writes to, the name of the user and where things are. What the call itself
named stays: without it "no such file" would not say which.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection
from functools import lru_cache

HIDDEN_PATH = "<path>"

# Where files are on Unix. Only these: `/repos/a/b` is most often a resource of some API.
_ROOTS = (
    "home|Users|root|tmp|var|private|opt|usr|etc|mnt|media|srv|bin|sbin|lib|lib64|proc|sys|run|nix|snap|Volumes|Library"
    "|Applications|System|workspace|workspaces|__w"
)
_HOMES = re.compile(r"(?:/home|/Users|[A-Za-z]:[\\/]+Users|/mnt/[a-z]/Users)[\\/]+[^\\/]+[\\/]*", re.IGNORECASE)
_LAST = re.compile(r"[^\\/]+(?=[\\/]*$)")

# A part of a path, and a whole one in quotes, which may have spaces.
_PART = r"[^\s\"'`<>|*?:;,()\[\]{}\\/]{1,255}"
_URL = r"(?P<url>\b(?!file:)[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s\"'`<>]+)"
_WINDOWS = (
    rf"(?<![A-Za-z0-9])(?:\\\\\?\\)?(?:[A-Za-z]:[\\/]{{1,4}}|\\\\[\w.$-]+\\)"
    rf"(?:{_PART}(?: {_PART}){{0,4}}[\\/]{{1,4}})*(?:{_PART})?"
)


@lru_cache(maxsize=8)
def _pattern(own: tuple[str, ...]) -> re.Pattern[str]:
    roots = "|".join([*map(re.escape, own), _ROOTS])
    unix = rf"(?:file://)?(?<!{HIDDEN_PATH})(?<![\w.~%@\\-])(?<!(?<!file:/)/)/(?:{roots})(?![\w.-])"
    return re.compile(
        rf"{_URL}|(?P<quote>[\"'`])(?P<quoted>(?:file://)?/(?:{roots})/[^\"'`\n]{{1,1024}}"
        rf"|[A-Za-z]:\\[^\"'`\n]{{1,1024}})(?P=quote)"
        rf"|(?P<windows>{_WINDOWS})|(?P<unix>{unix}(?:/{{1,4}}{_PART})*/?)"
    )


def _own_roots() -> tuple[str, ...]:
    """The first parts of the places this process knows: they need not be among the usual ones."""
    import tempfile  # here, because every command imports this module

    places = (os.path.expanduser("~"), tempfile.gettempdir(), sys.prefix, _working_directory())
    known = [place.strip("/") for place in places if place.startswith("/") and place.count("/") > 1]
    firsts = {place.split("/")[0] for place in known}
    # Elsewhere a space ends a path; in one of these it does not.
    return tuple(sorted(firsts | {place for place in known if " " in place}, key=lambda each: (-len(each), each)))


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:  # it may be gone
        return ""


def without_host_paths(text: str, keep: Collection[str] = ()) -> str:
    """Text whose absolute paths are `<path>/last-part`, except those that `keep`, the call's arguments, names.

    URLs stay; a password in one does not.
    """
    kept = tuple(sorted({each for each in keep if "/" in each or "\\" in each}, key=len, reverse=True))

    def replaced(match: re.Match[str]) -> str:
        if match["url"] is not None:
            return re.sub(r"(?<=://)[^/?#@\s]{0,256}:[^/@\s]{1,256}@", "***@", match["url"])
        if match["quoted"] is not None:
            return f"{match['quote']}{_shortened(match['quoted'], kept)}{match['quote']}"
        # The end of a sentence is no part of a path.
        path = match[0].rstrip(".!")
        return _shortened(path, kept) + match[0][len(path) :]

    return _pattern(_own_roots()).sub(replaced, text)


def _shortened(path: str, kept: tuple[str, ...]) -> str:
    bare = path.removeprefix("file://")
    if bare.rstrip("/\\") in {"/dev/null", ""}:
        return path
    for each in kept:
        if bare in each or _is_below(bare, each):
            return path
        if _ends_with(bare, each):
            return f"{HIDDEN_PATH}/{each.lstrip('./')}"
    if _HOMES.fullmatch(bare) or bare.rstrip("/").count("/") == 1:
        return HIDDEN_PATH
    last = _LAST.search(bare)
    return f"{HIDDEN_PATH}/{last[0]}" if last else HIDDEN_PATH


def _is_below(path: str, named: str) -> bool:
    """Whether a path is inside a directory that the call named. One of a single part names too much: `/home`."""
    parts = re.split(r"[\\/]+", named.strip("\\/"))
    named = named.rstrip("\\/")
    return len(parts) > 1 and path.startswith(named) and path[len(named) : len(named) + 1] in {"/", "\\"}


def _ends_with(path: str, named: str) -> bool:
    """Whether the call named the end of a path: a server resolves `notes/a.txt` against a directory of its own."""
    named = named.removeprefix("./").lstrip("/\\")
    return bool(named) and path.endswith(named) and path[-len(named) - 1 : -len(named)] in {"/", "\\"}
