"""From a file to a JSON object: bounded, exact about what is wrong and where, and without quoting the content."""

from __future__ import annotations

import json
import os
import stat
from typing import Any, NoReturn, cast

from toolbridge.config.jsonc import plain_json
from toolbridge.config.wording import kind_of
from toolbridge.errors import ConfigError

MOST_BYTES = 1_000_000
MOST_DEPTH = 32
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_UTF_8_MARK = b"\xef\xbb\xbf"


def read_object(path: str, form: str = '{"mcpServers": {…}}') -> dict[str, object]:
    """The JSON object in a file. Comments and trailing commas are taken in `.vscode/` and in `*.jsonc`.

    `form` is what to write there, for whoever wrote something else.

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
    # Without O_NONBLOCK, opening a named pipe would wait for a writer.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
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
    if content.startswith(_UTF_16_MARKS):
        raise ConfigError("is not UTF-8 but UTF-16.", file=path, fix="Save it as UTF-8.")
    try:
        # Windows editors begin a file with this mark; it is no part of the text.
        return content.removeprefix(_UTF_8_MARK).decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
    # Outside: the first error holds the whole content, and would be part of this one's context.
    raise ConfigError(f"is not UTF-8: see line {line}.", file=path, fix="Save it as UTF-8.")


class _Object(dict[str, Any]):
    """A JSON object that knows which of its keys were written twice."""

    repeated: str | None = None


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    found = _Object(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        found.repeated = next(key for key, _ in pairs if key in seen or seen.add(key))
    return found


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _parsed(path: str, text: str, *, with_comments: bool) -> object:
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
    """What the parser lets through and no reader expects: repeated keys, towers of brackets."""
    waiting: list[tuple[object, tuple[str, ...]]] = [(document, ())]
    while waiting:
        value, place = waiting.pop()
        if len(place) > MOST_DEPTH:
            server, field = _where(place[:4])
            raise ConfigError("is nested too deeply.", file=path, server=server, field=field)
        if isinstance(value, _Object):
            if value.repeated is not None:
                server, field = _where((*place, value.repeated))
                problem = "is written twice in the same object."
                raise ConfigError(problem, file=path, server=server, field=field, fix="Remove one.")
            waiting += [(item, (*place, key)) for key, item in value.items()]
        elif isinstance(value, list):
            items = cast("list[object]", value)
            waiting += [(item, (*place, f"[{index}]")) for index, item in enumerate(items)]


def _where(place: tuple[str, ...]) -> tuple[str | None, str]:
    """Server and field of a place in the document."""
    server = place[1][:60] if place[0] in ("mcpServers", "servers") and len(place) > 2 else None
    rest = place if server is None else place[2:]
    return server, ".".join(part[:60] for part in rest).replace(".[", "[")
