"""Secrets for tests to plant, and the search for them in whatever was written: by decoding, not by our own rules."""

from __future__ import annotations

import base64
import binascii
import importlib.util
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote_plus, unquote_to_bytes

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "hostile" / "servers"

# Characters that every encoding writes otherwise; a middle that is easy to find should only a part be masked.
SPECIAL = "+/=&?%<'\"\\ä~"

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{12,}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){8,}")
_MIDDLE = re.compile("[a-z]+Wq9Jt4Rn8")


@dataclass(frozen=True, slots=True)
class Found:
    """A secret where it must not be."""

    secret: str
    where: str
    context: str


def secret(word: str) -> str:
    """A secret that no other text has anything of, and whose parts are told from those of the others."""
    return f"Qz7{SPECIAL}{word}Wq9Jt4Rn8{word[::-1]}"


def plain_secret(word: str) -> str:
    """One that can be sent in a header or be a token."""
    return f"Qz7.{word}Wq9Jt4Rn8_{word[::-1]}"


@cache
def encodings(value: str) -> tuple[str, ...]:
    """A secret in the forms in which the hostile servers repeat it."""
    spec = importlib.util.spec_from_file_location("secret_encodings", FIXTURES / "secret_encodings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return tuple(module.encodings(value))


def found_in(text: str, where: str, secrets: Mapping[str, str]) -> list[Found]:
    """Every secret in a text, whole or in part, as it is or in any encoding that can be undone."""
    found: list[Found] = []
    for reading in _readings(text):
        for name, value in secrets.items():
            for fragment in _fragments(value):
                at = reading.find(fragment)
                if at >= 0:
                    found.append(Found(name, where, reading[max(0, at - 60) : at + 80]))
                    break
    return found


def found_under(directory: Path, secrets: Mapping[str, str], *, but: tuple[str, ...] = ()) -> list[Found]:
    """The same in every file, and in the names of files; `but` are patterns of files that may have one."""
    found: list[Found] = []
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        found += found_in(name, f"the name {name}", secrets)
        if path.is_file() and path.suffix != ".cwasm" and not any(path.match(pattern) for pattern in but):
            found += found_in(path.read_bytes().decode("utf-8", "replace"), name, secrets)
    return found


def _fragments(value: str) -> tuple[str, str]:
    """Of a secret, what tells: its whole, and its middle, which no encoding but base64 and hex writes otherwise."""
    middle = _MIDDLE.search(value)
    assert middle is not None
    return value, middle[0]


def _readings(text: str, nested: int = 2) -> Iterator[str]:
    """A text as it is, and as each encoding would have it read."""
    yield text
    yield unquote_plus(text)
    yield unquote_plus(unquote_plus(text))
    yield unquote_to_bytes(text).decode("utf-8", "replace")
    yield unescape(text)
    yield re.sub(r"\\+u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), text).replace("\\/", "/")
    yield re.sub(r"\\(.)", r"\1", text)
    for run in set(_HEX.findall(text)):
        for shift in (0, 1):
            half = run[shift:]
            yield bytes.fromhex(half[: len(half) // 2 * 2]).decode("utf-8", "replace")
    for run in set(_BASE64.findall(text)):
        for shift in range(4):
            piece = run[shift:].replace("-", "+").replace("_", "/")
            try:
                decoded = base64.b64decode(piece[: len(piece) // 4 * 4]).decode("utf-8", "replace")
            except (binascii.Error, ValueError):
                continue
            yield decoded.replace("\0", "")  # of UTF-16
            yield from _readings(decoded, nested - 1) if nested else ()


def json_lines(path: Path) -> list[dict[str, object]]:
    """The lines of an audit log."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
