"""Finds and reads configuration files: bounded, with exact places in errors, and without quoting the content."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, cast

from toolbridge.config.values import kind_of
from toolbridge.errors import ConfigError
from toolbridge.files import user_path

# JSON with comments and trailing commas (VS Code's), converted to plain JSON.
#
# Removed characters become spaces, so that positions stay those of the file.


# Unterminated strings and comments match, too, and are left to the JSON parser: a search for their ends from every
# later quotation mark would take quadratic time (ReDoS).
_STRING = r'"[^"\\\r\n]*(?:\\.[^"\\\r\n]*)*"?'
_STRING_OR_COMMENT = re.compile(rf"{_STRING}|//[^\r\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_STRING_OR_LAST_COMMA = re.compile(rf"{_STRING}|,(?=[ \t\r\n]*[}}\]])")
_NOT_LINE_BREAK = re.compile(r"[^\r\n]")
_SPACE = " \t\r\n"
_BEFORE_NO_VALUE = "[{,:"


def plain_json(text: str) -> str:
    """Blank comments and trailing commas with spaces, so that positions stay; broken JSON is left to the parser."""
    return _without_last_commas(_STRING_OR_COMMENT.sub(_blank, text))


def _blank(match: re.Match[str]) -> str:
    """Return a comment as spaces, with its line breaks; a string or an unterminated comment as it is."""
    found = match[0]
    is_comment = found.startswith("//") or (len(found) >= 4 and found.endswith("*/") and found.startswith("/*"))
    return _NOT_LINE_BREAK.sub(" ", found) if is_comment else found


def _without_last_commas(text: str) -> str:
    """Blank commas before `]` or `}`, outside strings, that follow a value."""
    pieces: list[str] = []
    end = 0
    before = ""  # the last character that is no space
    for match in _STRING_OR_LAST_COMMA.finditer(text):
        between = text[end : match.start()]
        before = (between.rstrip(_SPACE) or before)[-1:]
        is_extra = match[0] == "," and before != "" and before not in _BEFORE_NO_VALUE
        pieces += [between, " " if is_extra else match[0]]
        before, end = match[0][-1], match.end()
    return "".join([*pieces, text[end:]])


# The places of configuration files, and which of them are used.


PROJECT_FILES = ("toolbridge.json", ".agents/mcp.json", ".vscode/mcp.json", ".mcp.json")
USER_FILE = "config.json"
CONFIG_VARIABLE = "TOOLBRIDGE_CONFIG_DIR"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place of a configuration file."""

    path: str
    """Absolute, with links of its directory resolved, not of the file itself."""
    origin: Literal["project", "user"]
    exists: bool
    used: bool
    """The first existing file of the project, and the user's file, are used; or only a given file."""
    base: str
    """The directory that relative paths in it are resolved against."""
    given: bool = False
    """Whether the caller gave it."""


def locate(
    file: str | os.PathLike[str] | None, *, directory: str | os.PathLike[str], environ: Mapping[str, str]
) -> tuple[Candidate, ...]:
    """List all places in order of precedence, used or not; a given file comes first, existing or not. Reads no file.

    Raises:
        ConfigError: the given path is invalid, or `TOOLBRIDGE_CONFIG_DIR` is not absolute.
    """
    users = user_directory(environ)
    candidates: list[Candidate] = []
    if file is not None:
        if "\0" in os.fspath(file) or not os.fspath(file):
            raise ConfigError(f"{os.fspath(file)!r} is not the path of a file.", fix="Give the path of a JSON file.")
        path = _physical(os.path.join(directory, file))
        origin = "user" if users is not None and _is_within(path, users) else "project"
        candidates.append(Candidate(path, origin, os.path.exists(path), True, _base(path), given=True))
    is_open = file is None
    for name in PROJECT_FILES:
        path = _physical(os.path.join(directory, *name.split("/")))
        exists = os.path.lexists(path)
        candidates.append(Candidate(path, "project", exists, exists and is_open, _base(path)))
        is_open = is_open and not exists
    if users is not None:
        path = _physical(os.path.join(users, USER_FILE))
        exists = os.path.lexists(path)
        candidates.append(Candidate(path, "user", exists, exists and file is None, _base(path)))
    return tuple(candidates)


def user_directory(environ: Mapping[str, str]) -> str | None:
    """The directory of this user's configuration, if there is a home. `TOOLBRIDGE_CONFIG_DIR` overrides it.

    Always absolute: a relative one would resolve within the current repository.

    Raises:
        ConfigError: `TOOLBRIDGE_CONFIG_DIR` is not absolute.
    """
    chosen = environ.get(CONFIG_VARIABLE, "")
    if chosen:
        if not os.path.isabs(chosen):
            raise ConfigError(f"{CONFIG_VARIABLE} is not an absolute path.", fix="Write the path in full.")
        return chosen
    home = home_directory(environ) or ""
    path = user_path("XDG_CONFIG_HOME", ".config", "Application Support", home, environ)
    return path if os.path.isabs(path) else None


def home_directory(environ: Mapping[str, str]) -> str | None:
    """The user's home directory by `HOME`, else by the system; None if it is not absolute."""
    home = environ.get("HOME") or os.path.expanduser("~")
    return home if os.path.isabs(home) else None


def _physical(path: str) -> str:
    """The canonical path of a file, with links of its directory resolved: approvals are bound to it."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def _is_within(path: str, directory: str) -> bool:
    """Whether a file, its directory canonical already, lies in the user's `directory`, where links are trusted."""
    folder, root = os.path.dirname(path), os.path.realpath(directory)
    return folder == root or folder.startswith(root.rstrip(os.sep) + os.sep)


def _base(path: str) -> str:
    """The directory that paths in a file are relative to: its own, or the one above `.vscode` or `.agents`."""
    folder, name = os.path.split(os.path.dirname(path))
    return folder if name in (".vscode", ".agents") else os.path.join(folder, name)


MOST_BYTES = 1_000_000
MOST_DEPTH = 32
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_UTF_8_MARK = b"\xef\xbb\xbf"


def read_object(path: str, form: str = '{"mcpServers": {…}}') -> dict[str, object]:
    """Read the JSON object in a file; comments and trailing commas are allowed in `.vscode/` and in `*.jsonc`.

    `form` is an example for the error message.

    Raises:
        ConfigError: it can't be read, is too long, or is not one JSON object without repeated keys.
    """
    text = _text(path, _content(path))
    with_comments = os.path.basename(os.path.dirname(path)) == ".vscode" or path.endswith(".jsonc")
    document = _parsed(path, plain_json(text) if with_comments else text, with_comments=with_comments)
    if not isinstance(document, dict):
        fix = f"Write {form}."
        raise ConfigError(f"expected an object, found {kind_of(document)}.", file=path, fix=fix)
    _check_tree(path, cast("dict[str, object]", document))
    return cast("dict[str, object]", document)


def _content(path: str) -> bytes:
    """Read a regular file of at most `MOST_BYTES`; never waits for the writer of a named pipe.

    Raises:
        ConfigError: it is missing, unreadable, no regular file, or too long.
    """
    # Without O_NONBLOCK, opening a named pipe would wait for a writer.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        raise ConfigError("there is no such file.", file=path, fix="Check the path.") from None
    except OSError as error:
        raise ConfigError(f"can't be opened: {error.strerror}.", file=path) from None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            what = "a directory" if stat.S_ISDIR(facts.st_mode) else "not a regular file"
            raise ConfigError(f"is {what}.", file=path, fix="Give the path of a JSON file.")
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"can't be read: {error.strerror}.", file=path) from None
    finally:
        os.close(descriptor)
    if len(content) > MOST_BYTES:
        size = max(facts.st_size, len(content))
        raise ConfigError(f"has {size:,} bytes; at most {MOST_BYTES:,} are read.", file=path)
    return content


def _text(path: str, content: bytes) -> str:
    """Decode UTF-8, with or without a byte order mark; ConfigError names the first line that is not."""
    if content.startswith(_UTF_16_MARKS):
        raise ConfigError("is not UTF-8 but UTF-16.", file=path, fix="Save it as UTF-8.")
    try:
        # Some editors begin a file with a byte order mark.
        return content.removeprefix(_UTF_8_MARK).decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
    # Outside: the first error holds the whole content, and would be part of this one's context.
    raise ConfigError(f"is not UTF-8: see line {line}.", file=path, fix="Save it as UTF-8.")


class _JsonObject(dict[str, Any]):
    """A JSON object with the first key that was written twice."""

    repeated: str | None = None


def _object(pairs: list[tuple[str, Any]]) -> _JsonObject:
    """Build a JSON object from the parser's pairs, which notes its first repeated key; the last value is kept."""
    found = _JsonObject(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        found.repeated = next(key for key, _ in pairs if key in seen or seen.add(key))
    return found


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _parsed(path: str, text: str, *, with_comments: bool) -> object:
    """Parse JSON; ConfigError for malformed, empty or deeply nested text, NaN, and numbers that are too long.

    Comments must be blanked before: `with_comments` only selects the hint in the error about one.
    """
    fix = ""
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        problem = f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        if text[error.pos : error.pos + 2] in ("//", "/*"):
            fix = "Close the comment." if with_comments else "Remove the comment, or name the file *.jsonc."
        elif not text.strip():
            problem, fix = "is empty.", 'Write {"mcpServers": {}}.'
    except RecursionError:
        problem = "is nested too deeply."
    except ValueError as error:  # NaN, or a number of thousands of digits
        problem = f"is not JSON: {error}." if "JSON" in str(error) else "has a number that is too long."
    # Outside: the parser's error holds the whole text, and would be part of this one's context.
    raise ConfigError(problem, file=path, fix=fix)


def _check_tree(path: str, document: dict[str, object]) -> None:
    """Raise ConfigError for a repeated key, or more than `MOST_DEPTH` levels, which the JSON parser accepts."""
    waiting: list[tuple[object, tuple[str, ...]]] = [(document, ())]
    while waiting:
        value, place = waiting.pop()
        if len(place) > MOST_DEPTH:
            server, field = _where(place[:4])
            raise ConfigError("is nested too deeply.", file=path, server=server, field=field)
        if isinstance(value, _JsonObject):
            if value.repeated is not None:
                server, field = _where((*place, value.repeated))
                problem = "is written twice in the same object."
                raise ConfigError(problem, file=path, server=server, field=field, fix="Remove one.")
            waiting += [(item, (*place, key)) for key, item in value.items()]
        elif isinstance(value, list):
            items = cast("list[object]", value)
            waiting += [(item, (*place, f"[{index}]")) for index, item in enumerate(items)]


def _where(place: tuple[str, ...]) -> tuple[str | None, str]:
    """Split a path in the document into server, None outside of servers, and field."""
    server = place[1][:60] if place[0] in ("mcpServers", "servers") and len(place) > 2 else None
    rest = place if server is None else place[2:]
    return server, ".".join(part[:60] for part in rest).replace(".[", "[")
