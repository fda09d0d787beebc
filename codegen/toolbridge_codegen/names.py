"""Names: what a server calls its tools, made into identifiers that are safe in every guest language.

The rules give the same result whatever the order of a listing: a tool whose own name is a valid identifier
keeps it; a name that had to be changed and now meets another gets a suffix made from its original.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping

MAX_NAME = 64
"""What model providers accept as the name of a tool; a longer name is cut, and ends in a hash of the whole."""

_JAVASCRIPT = """
abstract any arguments as asserts async await bigint boolean break case catch class const constructor continue debugger
declare default delete do else enum eval export extends false finally for from function get global globalThis if
implements import in Infinity infer instanceof interface is keyof let module NaN namespace never new null number object
of package private protected public readonly require return satisfies set static string super switch symbol this throw
true try type typeof undefined unique unknown using var void while with yield
"""

_PYTHON = """
False None True and as assert async await break case class continue def del elif else except finally for from global
if import in is lambda match nonlocal not or pass raise return try type while with yield
"""

_MEMBERS = """
prototype constructor then toString toLocaleString valueOf hasOwnProperty isPrototypeOf propertyIsEnumerable toJSON
aio default
"""

RESERVED_IDENTIFIERS = frozenset(f"{_JAVASCRIPT} {_PYTHON} {_MEMBERS}".split())
"""Keywords of JavaScript, TypeScript and Python, and members that every object of theirs has."""

_NOT_IDENTIFIER = re.compile(r"[^A-Za-z0-9_]+")
_NOT_WIRE = re.compile(r"[^A-Za-z0-9_-]+")
_NOT_WORD = re.compile(r"[^A-Za-z0-9_]")


def identifier(original: str) -> str:
    """The identifier for a name, before collisions are looked at."""
    name = _NOT_IDENTIFIER.sub("_", original)
    if name.startswith("__") or not name.strip("_"):
        # Python's and JavaScript's own members (`__class__`, `__proto__`) have this form.
        name = f"tool_{name.strip('_')}".rstrip("_")
    elif name[0].isdigit():
        name = f"_{name}"
    if len(name) > MAX_NAME:
        name = f"{name[: MAX_NAME - 9]}_{_digest(original)[:8]}"
    return f"{name}_" if name in RESERVED_IDENTIFIERS else name


def assign_identifiers(originals: Iterable[str]) -> dict[str, str]:
    """An identifier of its own for each name."""
    wanted = {original: identifier(original) for original in originals}
    return _assign(wanted, exact={original for original, name in wanted.items() if original == name})


def assign_wire_names(
    identities: Collection[tuple[str, str]],
    *,
    prefix: str,
    separator: str,
    taken: Iterable[str] = (),
    hyphens: bool = True,
) -> dict[tuple[str, str], str]:
    """`<prefix><server><separator><tool>` for each tool, in the characters and length that model providers accept.

    Some accept no hyphens: for them each character but `[A-Za-z0-9_]` becomes `_`.
    """
    unfit = _NOT_WIRE if hyphens else _NOT_WORD
    natural = {f"{server}\n{tool}": f"{prefix}{server}{separator}{tool}" for server, tool in identities}
    wanted = {key: unfit.sub("_", name) for key, name in natural.items()}
    assigned = _assign(wanted, exact={key for key, name in natural.items() if wanted[key] == name}, taken=taken)
    return {(server, tool): assigned[f"{server}\n{tool}"] for server, tool in identities}


def _assign(wanted: Mapping[str, str], *, exact: set[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Give each key its wanted name if it alone wants it or is exactly it; the rest get a suffix of their own."""
    claims: dict[str, list[str]] = {}
    for key, name in wanted.items():
        claims.setdefault(name, []).append(key)
    used = set(taken)
    result: dict[str, str] = {}
    for name, keys in claims.items():
        owners = keys if len(keys) == 1 else [key for key in keys if key in exact]
        if len(owners) == 1 and len(name) <= MAX_NAME and name not in used:
            result[owners[0]] = name
    used.update(result.values())
    for key in sorted(wanted.keys() - result.keys()):
        digest = _digest(key)
        for length in range(6, MAX_NAME - 1):
            candidate = f"{wanted[key][: MAX_NAME - length - 1]}_{digest[:length]}"
            if candidate not in used and candidate not in RESERVED_IDENTIFIERS:
                used.add(candidate)
                result[key] = candidate
                break
    return result


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
