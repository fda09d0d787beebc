"""SECURITY: home directories in a server's errors are written as `~`: they tell a model the user's name.

Paths that the call or the operator's configuration names stay whole, so that a model can use them; so does all that is
in no home directory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

_MOST_PARTS = 40
_PART = r"[^\s\"'`<>|*?:;,()\[\]{}\\/]"
# As JSON may have it, too.
_SLASH = r"\\{0,4}/"
_SEPARATOR = r"(?:\\{0,4}/|\\{1,4})"
_SEPARATORS = re.compile(r"[\\/]+")
_URL = r"(?P<url>\b(?!file:)[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s\"'`<>]+)"
_PASSWORD = re.compile(r"(?<=://)[^/?#@\s]{0,256}:[^/@\s]{1,256}@")


@lru_cache(maxsize=8)
def _pattern(home: str) -> re.Pattern[str]:
    own = rf"|{re.escape(home)}(?![\w.-])" if len(home) > 1 and os.path.isabs(home) else ""
    # Not behind a slash, but for `file:///`: `//home/item` is an XPath.
    begin = r"(?<![\w.~%@\\-])(?<!(?<!file:/)/)"
    word = rf"{_PART}{{1,64}}"
    windows = rf"[A-Za-z]:{_SEPARATOR}Users{_SEPARATOR}(?:{word}(?: {word}){{1,2}}(?=[\\/])|{word})"
    unix = rf"(?:{_SLASH}mnt{_SLASH}[a-z])?{_SLASH}(?:home|Users){_SLASH}{_PART}{{1,255}}"
    return re.compile(
        rf"{_URL}|{begin}(?P<home>{unix}|{windows}{own})(?P<rest>(?:{_SEPARATOR}{_PART}{{1,255}}){{0,{_MOST_PARTS}}})"
    )


def without_host_paths(text: str, keep: Iterable[str] = ()) -> str:
    """Text whose home directories are `~`, except in paths that `keep` names, and in those above or below them.

    `keep` is the strings of the call's arguments and of the server's configuration. URLs stay; a password in one does
    not.
    """
    pattern = _pattern(os.path.expanduser("~"))
    named: set[str] | None = None
    above: set[str] = set()

    def replaced(match: re.Match[str]) -> str:
        nonlocal named
        if match["url"] is not None:
            return _PASSWORD.sub("***@", match["url"])
        if named is None:  # most errors name no home directory
            named = set()
            for found in (found for each in keep for found in pattern.finditer(each) if found["home"]):
                named.add(_plain(found[0]))
                above.update(_prefixes(_plain(found[0]), len(_plain(found["home"]))))
        path = _plain(match[0])
        if path in above or any(prefix in named for prefix in _prefixes(path)):
            return match[0]
        return "~" + match["rest"]

    return pattern.sub(replaced, text)


def _plain(path: str) -> str:
    """With single slashes, and without the end of a sentence."""
    return _SEPARATORS.sub("/", path).rstrip("/.!")


def _prefixes(path: str, least: int = 0) -> Iterator[str]:
    """A path and the directories that it is in, down to a length."""
    while len(path) >= max(least, 2):
        yield path
        path = path.rpartition("/")[0]
