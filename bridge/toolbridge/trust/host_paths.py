"""SECURITY: paths of this machine in a server's errors are shortened to what is no secret: the last part.

They tell a model, and whoever it writes to, the name of the user and where things are. What the call itself
named stays: without it "no such file" would not say which.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterable
from functools import cache, lru_cache

HIDDEN_PATH = "<path>"

# Where files are on Unix. Only these: `/repos/a/b` is most often a resource of some API.
_ROOTS = (
    "home|Users|root|tmp|var|private|opt|usr|etc|mnt|media|srv|bin|sbin|lib|lib64|proc|sys|run|nix|snap|Volumes|Library"
    "|Applications|System|workspace|workspaces|__w"
)
# Where files are in containers, as well as resources of APIs: what ends like the name of a file is one.
_PERHAPS_ROOTS = (
    "app|apps|build|builds|code|conf|config|configs|content|data|db|deploy|dist|files|function|functions|github|lambda"
    "|layers|log|logs|output|project|projects|runner|secrets|server|service|site|src|storage|volume|volumes|web|work"
    "|workdir|www"
)
# These are an API's, even on a machine that has them at its top.
_IS_NO_ROOT = re.compile(r"(?:api|rest|repos?|users?|v[0-9]+)(?:/|$)")
# Behind one of these stands a resource of an API, unless its first part says otherwise.
_NO_METHOD = "".join(rf"(?<!{method} )" for method in ("GET", "PUT", "POST", "HEAD", "PATCH", "DELETE", "OPTIONS"))
_HOMES = re.compile(r"(?:/home|/Users|[A-Za-z]:[\\/]+Users|/mnt/[a-z]/Users)[\\/]+[^\\/]+[\\/]*", re.IGNORECASE)
_LAST = re.compile(r"[^\\/]+(?=[\\/]*$)")

# A part of a path, and a whole one in quotes, which may have spaces.
_PART = r"[^\s\"'`<>|*?:;,()\[\]{}\\/]{1,255}"
_URL = r"(?P<url>\b(?!file:)[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s\"'`<>]+)"
_WINDOWS = (
    rf"(?<![A-Za-z0-9])(?:\\\\\?\\)?(?:[A-Za-z]:[\\/]{{1,4}}|\\\\[\w.$-]+\\)"
    rf"(?:{_PART}(?: {_PART}){{0,4}}[\\/]{{1,4}})*(?:{_PART})?"
)


# As JSON may have it, too.
_SLASH = r"\\{0,4}/"
_NAME_OF_FILE = r"(?<=\.)[A-Za-z][A-Za-z0-9]{0,9}(?![\w/\\])"


@lru_cache(maxsize=8)
def _pattern(own: tuple[str, ...]) -> re.Pattern[str]:
    roots = "|".join([*map(re.escape, own), _ROOTS])
    here = "|".join(map(re.escape, _top_directories())) or "(?!)"
    begin = rf"(?:file://)?(?<!{HIDDEN_PATH})(?<![\w.~%@\\-])(?<!(?<!file:/)/)"
    more = rf"(?:(?:{_SLASH}){{1,4}}{_PART})"
    end = rf"(?:{_SLASH})?"
    in_quotes = r"[^\"'`\n]{1,1024}"
    return re.compile(
        rf"{_URL}|(?P<quote>[\"'`])(?P<quoted>(?:file://)?{_SLASH}(?:{roots}|{here}){_SLASH}{in_quotes}"
        rf"|[A-Za-z]:\\{in_quotes}|{_SLASH}(?:{_PERHAPS_ROOTS})/{in_quotes}{_NAME_OF_FILE})(?P=quote)"
        rf"|(?P<windows>{_WINDOWS})"
        rf"|(?P<unix>{begin}(?:{_SLASH}(?:{roots})(?![\w.-]){more}*{end}"
        # Of two slashes one is too much; but `//home/item` is an XPath.
        rf"|/{{2,4}}(?:{roots}|{here}){more}{{2,}}{end}"
        rf"|{_NO_METHOD}{_SLASH}(?:{here}){more}+{end}"
        rf"|{_NO_METHOD}{_SLASH}(?:{_PERHAPS_ROOTS}){more}+{_NAME_OF_FILE}))"
    )


@cache
def _top_directories() -> tuple[str, ...]:
    """What this machine has at the top, wherever its user and its servers put their files; looked up once."""
    try:
        with os.scandir("/") as entries:
            names = {entry.name for entry in entries if entry.is_dir()}
    except OSError:
        return ()
    return tuple(sorted((name for name in names if not _IS_NO_ROOT.match(name)), key=lambda each: (-len(each), each)))


_places_of_servers: set[str] = set()
_MOST_PLACES = 200


def know_places_of_server(places: Iterable[str]) -> None:
    """Where a server works and where its program is: what is below, its errors don't tell."""
    for place in places:
        if len(_places_of_servers) < _MOST_PLACES:
            _places_of_servers.add(os.path.normpath(place))


def _own_roots() -> tuple[str, ...]:
    """The places this process knows, most of them by their first parts: they need not be among the usual ones."""
    # Not `tempfile.gettempdir()`, which tries to write there and fails where nobody can.
    temporary = (os.environ.get(name, "") for name in ("TMPDIR", "TEMP", "TMP"))
    places = (os.path.expanduser("~"), *temporary, sys.prefix, _working_directory(), *_places_of_servers)
    known = [place.strip("/") for place in places if place.startswith("/") and place.strip("/").count("/") > 0]
    # Elsewhere a space ends a path; in one of these it does not.
    whole = {place for place in known if " " in place or _IS_NO_ROOT.match(place)}
    firsts = {place.split("/")[0] for place in known if not _IS_NO_ROOT.match(place)}
    return tuple(sorted(firsts | whole, key=lambda each: (-len(each), each)))


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
    bare = re.sub(rf"^/+|{_SLASH}", "/", path.removeprefix("file://"))
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
