"""What becomes of a Python value that is given to a tool: whether one of this type can ever be what the tool takes.

The checker knows Python's types, and the guest converts more than Python's rules allow: a date is a text, a set is a
list, an enum is its value (docs/PYTHON.md). The host then repairs two things: a null for what may be absent is left
out, and a long number in digits is a number. So types are compared here by the JSON that comes of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from toolbridge.check.python_text import split_outside

_WHOLE = re.compile(r"-?\d+")
_LEFT_OUT = "..."
_LONG_NUMBER = re.compile(r"""["']-?\d{16,}["']""")
_NO_VALUE = ("def ", "<", "type[", "bound method", "(", "Overload[")
_KINDS = {
    **dict.fromkeys(("str", "LiteralString"), "string"),
    **dict.fromkeys(("date", "datetime", "time", "UUID", "Fraction", "bytes", "bytearray", "memoryview"), "text"),
    **dict.fromkeys(("Path", "PosixPath", "WindowsPath", "PurePath", "PurePosixPath", "PureWindowsPath"), "text"),
    "int": "integer",
    **dict.fromkeys(("float", "Decimal", "timedelta"), "number"),
    "bool": "boolean",
    "None": "null",
    **dict.fromkeys(("list", "tuple", "set", "frozenset", "deque", "Sequence", "range"), "array"),
    **dict.fromkeys(("dict_keys", "dict_values", "dict_items"), "array"),
    **dict.fromkeys(("dict", "Mapping", "MutableMapping", "defaultdict", "OrderedDict", "Counter"), "object"),
    **dict.fromkeys(("GeneratorType", "Generator", "map", "filter", "zip", "enumerate", "reversed"), "nothing"),
    **dict.fromkeys(("Coroutine", "CoroutineType", "Future", "Task"), "nothing"),
}
_FITS = {
    "string": {"string"},
    "text": {"string"},
    "integer": {"integer", "number"},
    "number": {"integer", "number"},  # 3.0 is a whole number
    "boolean": {"boolean"},
    "null": {"null"},
    "array": {"array"},
    "object": {"object"},
    "nothing": set[str](),
}


class _Type(NamedTuple):
    """One member of a union."""

    kind: str
    """The JSON that comes of it; empty if that is not known."""
    name: str
    arguments: tuple[str, ...]


class ValueTypes:
    """Compares types as the checker writes them."""

    def __init__(self, is_object: Callable[[str], bool], is_own: Callable[[str], bool]) -> None:
        self._is_object = is_object
        """Whether the stubs have an object of this name."""
        self._is_own = is_own
        """Whether the program has a class of this name."""

    def can_fit(self, expected: str, found: str, *, none_fits: bool = False, has_digits: bool = True) -> bool:
        """Whether a value of the found type can be what is expected.

        With `none_fits`, None can too; without `has_digits`, a text is surely no long number.
        """
        given = self._members(found)
        wanted = self._members(expected)
        if len(given) == 1 and given[0].name == "Literal":
            # Some of many constants are left out of a message. The checker has compared with all of them.
            wanted = [other for other in wanted if other.name != _LEFT_OUT]
        return any(
            (none_fits and one.kind == "null")
            or any(self._fits(other, one) and (has_digits or not _is_as_digits(other, one)) for other in wanted)
            for one in given
        )

    def wrong_constants(self, expected: str, found: str) -> list[str]:
        """The constants among what may be given that can't be what is expected; none if the rest is not constant."""
        given = self._members(found)
        if any(one.name != "Literal" for one in given):
            return []
        wanted = self._members(expected)
        # What is left out of a long message is not known.
        if any(other.name == _LEFT_OUT for other in wanted):
            return []
        return [one.arguments[0] for one in given if not any(self._fits(other, one) for other in wanted)]

    def _members(self, text: str) -> list[_Type]:
        if text.startswith(_NO_VALUE) and " & " not in text:
            return [_Type("nothing", text, ())]
        members: list[_Type] = []
        for part in split_outside(text, " | "):
            plain = split_outside(part, " & ")[0].strip().rstrip("*")
            name, opening, rest = plain.partition("[")
            arguments = tuple(each.strip() for each in split_outside(rest[:-1], ",")) if opening else ()
            if name == "Literal":
                members += [_literal(value) for value in arguments]
            else:
                members.append(_Type(self._kind(name), name, arguments))
        return members

    def _kind(self, name: str) -> str:
        if self._is_own(name):
            return ""
        return "object" if self._is_object(name) else _KINDS.get(name, "")

    def _fits(self, wanted: _Type, given: _Type) -> bool:
        if not wanted.kind or not given.kind:
            return True
        if wanted.name == "Literal":
            return _fits_literal(wanted, given)
        if wanted.kind in ("integer", "number") and given.kind == "string":
            return given.name != "Literal" or _LONG_NUMBER.fullmatch(given.arguments[0]) is not None
        if wanted.kind not in _FITS[given.kind]:
            return False
        return wanted.kind != "array" or self._items_fit(wanted, given)

    def _items_fit(self, wanted: _Type, given: _Type) -> bool:
        """Whether the items can be right. A value that is empty is never asked about: its items have no type."""
        return not wanted.arguments or all(self.can_fit(wanted.arguments[0], item) for item in _items(given))


def _is_as_digits(wanted: _Type, given: _Type) -> bool:
    """Whether a text fits only because it may be a number in digits."""
    return wanted.kind in ("integer", "number") and given.kind == "string" and given.name != "Literal"


def _literal(value: str) -> _Type:
    if value.startswith(('"', "'")):
        return _Type("string", "Literal", (value,))
    if value.startswith(("b'", 'b"')):
        return _Type("text", "bytes", ())
    if value in ("True", "False"):
        return _Type("boolean", "Literal", (value,))
    if _WHOLE.fullmatch(value):
        return _Type("integer", "Literal", (value,))
    return _Type("", _LEFT_OUT if value.startswith(_LEFT_OUT) else "", ())  # otherwise a member of an enumeration


def _fits_literal(wanted: _Type, given: _Type) -> bool:
    if given.name == "Literal":
        return wanted.arguments == given.arguments
    return wanted.kind in _FITS[given.kind]


def _items(given: _Type) -> tuple[str, ...]:
    """The types of an array's items, as far as they are known."""
    match given.name:
        case "range":
            return ("int",)
        case "dict_values":
            return given.arguments[1:]
        case "dict_items":
            return ()
        case "tuple":
            return tuple(each for each in given.arguments if each not in ("...", "()"))
        case _:
            return given.arguments[:1]
