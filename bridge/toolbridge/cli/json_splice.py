"""Adding one member to a JSON file that is somebody else's: every other character stays as it is, comments too."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple, cast

from toolbridge.config.jsonc import plain_json

_SPACE = re.compile(r"[ \t\r\n]*")
_INDENT = re.compile(r"\n([ \t]+)\S")


class SpliceError(Exception):
    """The file is not what it should be; nothing was changed."""


class _Object(NamedTuple):
    start: int
    """Of its brace."""
    members: dict[str, int]
    """Where each value begins."""


def read_json(text: str) -> dict[str, Any]:
    """The object in a file with comments and trailing commas; an empty file is an empty object.

    Raises:
        SpliceError: it has none.
    """
    text = text.removeprefix("\ufeff")
    if not text.strip():
        return {}
    try:
        value: object = json.loads(plain_json(text))
    except (ValueError, RecursionError) as error:
        raise SpliceError(f"it is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise SpliceError("it holds no JSON object")
    return cast("dict[str, Any]", value)


def with_member(text: str, key: str, name: str, value: dict[str, Any]) -> str:
    """The text with `name: value` added to the object under `key`, which is made if there is none.

    Raises:
        SpliceError: it can't be done without touching anything else.
    """
    before = read_json(text)
    servers: object = before.get(key, {})
    if not isinstance(servers, dict):
        raise SpliceError(f"its {key!r} is no object")
    if name in servers:
        raise SpliceError(f"it has {name!r} already")
    wanted = {**before, key: {**cast("dict[str, Any]", servers), name: value}}
    if not text.strip("\ufeff \t\r\n"):
        return json.dumps(wanted, indent=2, ensure_ascii=False) + "\n"
    changed = _spliced(text, key, name, value)
    if read_json(changed) != wanted:
        raise SpliceError("it can't be changed safely")
    return changed


def _spliced(text: str, key: str, name: str, value: dict[str, Any]) -> str:
    plain = plain_json(text)
    found = _INDENT.search(plain)
    indent = found[1] if found else "  "
    top = _object(plain, _after_space(plain, 1 if text.startswith("\ufeff") else 0))
    if key in top.members:
        inner = _object(plain, top.members[key])
        return _inserted(text, inner, _member(name, value, indent, 2), indent * 2, indent)
    return _inserted(text, top, _member(key, {name: value}, indent, 1), indent, "")


def _inserted(text: str, where: _Object, member: str, indent: str, outer: str) -> str:
    place = where.start + 1
    end = "," if where.members else f"\n{outer}"
    return f"{text[:place]}\n{indent}{member}{end}{text[place:]}"


def _member(name: str, value: Any, indent: str, level: int) -> str:
    lines = json.dumps({name: value}, indent=indent, ensure_ascii=False).split("\n")[1:-1]
    return "\n".join([lines[0].lstrip(), *(indent * (level - 1) + line for line in lines[1:])])


def _object(plain: str, start: int) -> _Object:
    """What is in the object that begins here. Comments are spaces already."""
    decoder = json.JSONDecoder()
    members: dict[str, int] = {}
    place = _after_space(plain, start + 1)
    try:
        if plain[start] != "{":
            raise SpliceError("it holds no JSON object")
        while plain[place] != "}":
            name, place = decoder.raw_decode(plain, place)
            place = _after_space(plain, _after_space(plain, place) + 1)
            if name in members:
                raise SpliceError(f"it has {name!r} twice")
            members[name] = place
            _, place = decoder.raw_decode(plain, place)
            place = _after_space(plain, place)
            if plain[place] == ",":
                place = _after_space(plain, place + 1)
    except (ValueError, IndexError) as error:
        raise SpliceError(f"it is not JSON ({error})") from None
    return _Object(start, members)


def _after_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    assert found is not None
    return found.end()
