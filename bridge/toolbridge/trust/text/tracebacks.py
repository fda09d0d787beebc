"""SECURITY: stack traces in a server's errors, of which only the message is for the guest.

Judged line by line, each by its beginning and its end: the time is that of reading the text once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

# SECURITY: home directories in a server's errors are written as `~`: they tell a model the user's name.
#
# Paths that the call or the operator's configuration names stay whole, so that a model can use them; so does all that
# is in no home directory.


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


_PYTHON = re.compile(r"(?:Exception Group )?Traceback \(most recent call last\):")
_PYTHON_CHAIN = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
_GROUP_BORDER = re.compile(r"\s{0,80}[|+](?:[-+ ]*\d*[-+ ]*$| ?)")
_GO = re.compile(r"goroutine \d+ (?:gp=\S+ m=\S+ (?:mp=\S+ )?)?\[")
_GO_FRAME = re.compile(r"\t\S[^\n]*:\d+(?: \+0x[0-9a-f]+)?$|created by \S|[\w./*()$·\[\]-]+\(.*\)$|exit status \d+$")
_RUST = re.compile(r"stack backtrace:$|note: (?:run with `RUST_BACKTRACE|Some details are omitted)")
_RUST_FRAME = re.compile(r"\s+\d+: \S|\s+at \S+:\d+")
# One line of a trace, in a language whose lines tell by themselves.
_POSITION = re.compile(r":\d+(?::\d+)?\)?$|:line \d+$|\)$|<anonymous>$")
_OTHER_FRAMES = re.compile(
    r"\s*\.\.\. \d+ (?:more|common frames omitted)$"  # Java
    r"|\s*--- End of (?:inner exception )?stack trace"  # .NET
    r"|\s+from \S+:\d+:in "  # Ruby
    r"|#\d+ (?:\S+\(\d+\): |\{main\}|\[internal function\])|Stack trace:$|\s+thrown in \S+ on line \d+$"  # PHP
    r"|Node\.js v\d+\.\d+|\(Use `node --trace-|node:internal/\S+:\d+$"
)
_SOURCE_LINE = re.compile(r"\S[^\n]*\.[cm]?[jt]sx?:\d+$")
_CARET = re.compile(r"\s*[\^~]+\s*$")
# A trace in a JSON string in a text: its line breaks are written out.
_MOST_AT_AN_END = 200
"""Of more lines, those in the middle are left out: a message is at one of the ends."""
_ESCAPED_BREAK = re.compile(r"\\r\\n|\\n")
_ESCAPED_TRACE = re.compile(r"Traceback \(most recent call last\):\\n|\\n(?: {2,8}|\\t)at ")


def without_traces(text: str) -> str:
    """Text without the frames of stack traces (Python, Node, Java, .NET, Go, Rust, Ruby, PHP): messages stay."""
    if _ESCAPED_TRACE.search(text):
        text = _ESCAPED_BREAK.sub("\n", text).replace("\\t", "\t")
    if "\n" not in text:
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    if len(lines) > 2 * _MOST_AT_AN_END:
        lines = lines[:_MOST_AT_AN_END] + lines[-_MOST_AT_AN_END:]
    if any("Exception Group Traceback" in line for line in lines):
        lines = [_GROUP_BORDER.sub("", line, count=1) for line in lines]
    return "\n".join(_messages(_without_source_lines(lines)))


def _messages(lines: Iterable[str]) -> list[str]:
    kept: list[str] = []
    inside = ""
    for line in lines:
        if begin := _PYTHON.search(line):
            inside = "python"
            _drop_chain(kept)
            if before := line[: begin.start()].strip(" |+-"):
                kept.append(before)
        elif _GO.match(line):
            inside = "go"
        elif _RUST.match(line):
            inside = "rust"
        elif inside and _belongs(inside, line):
            continue
        elif not (_is_frame(line) or _OTHER_FRAMES.match(line)):
            inside = ""
            kept.append(line)
    return kept


def _belongs(language: str, line: str) -> bool:
    """Whether a line is part of the trace that began above it."""
    if language == "python":
        return line[:1] in {" ", "\t"} or not line.strip()
    if not line.strip():
        return True
    return (_GO_FRAME if language == "go" else _RUST_FRAME).match(line) is not None


def _drop_chain(kept: list[str]) -> None:
    """Of errors that led to one another, Python's last is the one that was raised: the earlier go.

    Everything back to the previous trace was said by the earlier error.
    """
    while kept and not kept[-1].strip():
        kept.pop()
    if not kept or kept[-1].strip() not in _PYTHON_CHAIN:
        return
    kept.pop()
    while kept and not kept[-1].strip():
        kept.pop()
    # Its message may have lines of its own; the last that looks like `Name: words` begins it.
    for place in range(len(kept) - 1, max(-1, len(kept) - 50), -1):
        if re.match(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning|Group)?(?::|$)", kept[place]):
            del kept[place:]
            return


def _is_frame(line: str) -> bool:
    """`    at f (file.js:1:2)`, `\\tat a.B.c(B.java:12)`, `   at A.B(String c) in d.cs:line 12`."""
    words = line.lstrip()
    if len(words) == len(line) or not words.startswith("at "):
        return False
    # Node writes an error's other properties behind the last frame, in braces.
    return _POSITION.search(words[-200:].rstrip(" {")) is not None


def _without_source_lines(lines: list[str]) -> list[str]:
    """Node shows the line that threw: a file and line, the source, a caret."""
    kept: list[str] = []
    place = 0
    while place < len(lines):
        if _SOURCE_LINE.match(lines[place][:2000]):
            caret = next((n for n in range(place + 1, min(place + 4, len(lines))) if _CARET.match(lines[n])), None)
            if caret is not None:
                place = caret + 1
                continue
        kept.append(lines[place])
        place += 1
    return kept
