"""Python values as JSON: arguments of calls, and the run's value. docs/write-programs-python.md has the table."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import fractions
import json
import json.encoder
import pathlib
import types
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, cast

from .handles import Handle, size_text
from .wire import dumps

_MOST_BITS = 14_000  # longer numbers can't be read as decimal text on the other side
_MOST_DEPTH = 900
_ADVICE = "Give a dict, list, str, number, bool or None"


class UnconvertibleError(TypeError):
    """A value has no JSON form; the message says which, where, and what to do."""


def value_text(value: Any) -> str:
    """Encodes the run's value as JSON. Handles and bytes become a description, NaN becomes null.

    Raises:
        UnconvertibleError: some part of it has no JSON form.
    """
    return _text(value, "The run's value", for_call=False)


def arguments_text(arguments: list[Any]) -> str:
    """Encodes a call's arguments as JSON. Handles stand for their content.

    Raises:
        UnconvertibleError: some part of them has no JSON form.
    """
    return _text(arguments, "A call's arguments", for_call=True)


def _text(value: Any, what: str, *, for_call: bool) -> str:
    """Encodes a value as JSON, by the C encoder if possible; `what` names it in errors.

    Raises:
        UnconvertibleError: some part of it has no JSON form.
    """
    try:
        return (_call_encoder if for_call else _value_encoder)(value)
    except (TypeError, ValueError, RecursionError):
        pass  # the slow path finds the place, or converts values that the fast path can't
    try:
        return dumps(_Walk(what, for_call).plain(value, "", 0, ()))
    except RecursionError:
        raise UnconvertibleError(f"{what} is nested too deeply. Give something flatter.") from None
    except ValueError as error:
        raise UnconvertibleError(f"{what} can't be written as JSON: {error}.") from None


def _converted(value: Any) -> Any:
    """Converts one level of a value to JSON's own types; NotImplemented for an unknown type."""
    for kinds, convert in _CONVERSIONS:
        if isinstance(value, kinds):
            return convert(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return NotImplemented


def _sorted_if_possible(values: Iterable[Any]) -> list[Any]:
    """Lists a set's elements, sorted if they can be compared, so that the order is the same in every run."""
    listed = list(values)
    try:
        listed.sort()
    except Exception:
        return listed
    return listed


def _number(value: decimal.Decimal) -> Any:
    """Converts a decimal: to int if it is whole and has no more than 16 digits, else to float."""
    if not value.is_finite():
        return float(value)
    return int(value) if value == value.to_integral_value() and abs(value.adjusted()) < 16 else float(value)


def _as_dict(value: Mapping[Any, Any]) -> dict[Any, Any]:
    return dict(value)


def _attributes(value: types.SimpleNamespace) -> dict[str, Any]:
    return dict(vars(value))


def _error(value: BaseException) -> dict[str, str]:
    return {"name": type(value).__name__, "message": str(value)}


_CONVERSIONS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (enum.Enum, lambda value: value.value),
    ((datetime.datetime, datetime.date, datetime.time), lambda value: value.isoformat()),
    (datetime.timedelta, lambda value: value.total_seconds()),
    (decimal.Decimal, _number),
    ((uuid.UUID, fractions.Fraction, pathlib.PurePath), str),
    ((bytes, bytearray, memoryview), lambda value: base64.b64encode(value).decode("ascii")),
    (Set, _sorted_if_possible),
    (Mapping, _as_dict),
    (types.SimpleNamespace, _attributes),
    (BaseException, _error),
    (Sequence, list),
)


def _default_of_call(value: Any) -> Any:
    """Converts what the C encoder can't, in arguments: handles to a reference; raises TypeError if it is unknown."""
    if isinstance(value, Handle):
        return value._as_argument()
    return _converted_or_refused(value)


def _default_of_value(value: Any) -> Any:
    """Converts what the C encoder can't, in the run's value: handles and bytes to text; raises TypeError if unknown."""
    description = _description(value)
    return _converted_or_refused(value) if description is None else description


def _description(value: Any) -> str | None:
    """Describes a handle or bytes in the run's value; None for other values."""
    if isinstance(value, Handle):
        return repr(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        size = value.nbytes if isinstance(value, memoryview) else len(value)
        return f"<application/octet-stream {size_text(size)}>"
    return None


def _converted_or_refused(value: Any) -> Any:
    """Converts one level of a value to JSON's own types; raises TypeError for an unknown type."""
    converted = _converted(value)
    if converted is NotImplemented:
        raise TypeError
    return converted


def _encoder(default: Callable[[Any], Any]) -> Callable[[Any], str]:
    """Creates the C encoder. A circle ends as a RecursionError, and the slow path finds its place."""
    make: Any = getattr(json.encoder, "c_make_encoder")  # noqa: B009  # the stubs don't know it
    text = json.encoder.encode_basestring
    pieces: Callable[[Any, int], Iterable[str]] = make(None, default, text, None, ":", ",", False, False, False)
    return lambda value: "".join(pieces(value, 0))


_call_encoder = _encoder(_default_of_call)
_value_encoder = _encoder(_default_of_value)


class _Walk:
    """The slow path: converts a value part by part, tracking the path for errors."""

    def __init__(self, what: str, for_call: bool) -> None:
        self._what = what
        self._for_call = for_call

    def plain(self, value: Any, path: str, depth: int, above: tuple[int, ...]) -> Any:
        """Converts a value to JSON's own types.

        Raises:
            UnconvertibleError: a part has no JSON form.
        """
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, (int, float)):
            return self._number(value, path)
        if self._for_call and isinstance(value, Handle):
            return value._as_argument()
        description = None if self._for_call else _description(value)
        return self._composed(value, path, depth, above) if description is None else description

    def _composed(self, value: Any, path: str, depth: int, above: tuple[int, ...]) -> Any:
        """Converts an object, list or another type; raises UnconvertibleError if it is too deep, cyclic or unknown."""
        if depth > _MOST_DEPTH:
            raise UnconvertibleError(f"{self._what} is nested deeper than {_MOST_DEPTH} levels{self._at(path)}.")
        if id(value) in above:
            raise UnconvertibleError(f"{self._what} contains itself{self._at(path)}.")
        inner = (*above, id(value))
        if isinstance(value, Mapping):
            return self._object(cast("Mapping[Any, Any]", value), path, depth, inner)
        if isinstance(value, (list, tuple)):
            items = cast("Sequence[Any]", value)
            return [self.plain(item, f"{path}[{index}]", depth + 1, inner) for index, item in enumerate(items)]
        converted = _converted(value)
        if converted is NotImplemented:
            raise self._refused(value, path)
        return self.plain(converted, path, depth + 1, inner)

    def _object(self, value: Mapping[Any, Any], path: str, depth: int, above: tuple[int, ...]) -> dict[str, Any]:
        """Converts a mapping's keys to strings, and its values."""
        made: dict[str, Any] = {}
        for key, item in value.items():
            name = key if isinstance(key, str) else self._key(key, path)
            made[name] = self.plain(item, f"{path}[{name!r}]", depth + 1, above)
        return made

    def _key(self, key: Any, path: str) -> str:
        """Converts a mapping's key to a string; raises UnconvertibleError if it isn't a scalar."""
        if key is None or isinstance(key, (bool, int, float)):
            return dumps(key)
        converted = _converted(key)
        if isinstance(converted, str):
            return converted
        if isinstance(converted, (bool, int, float)):
            return dumps(converted)
        kind = _kind(key)
        raise UnconvertibleError(
            f"{self._what} has {kind} as a key{self._at(path)}: keys are strings in JSON. Use str(…) of it, or a list."
        )

    def _number(self, value: float, path: str) -> float | None:
        """Returns a plain number; None for NaN or infinity. UnconvertibleError: too long, or NaN in a call."""
        if isinstance(value, int):
            if value.bit_length() > _MOST_BITS:
                raise UnconvertibleError(f"{self._what} has a number that is too long{self._at(path)}. Give its text.")
            return int(value)
        if value - value == 0.0:
            return float(value)
        if self._for_call:
            raise UnconvertibleError(f"{self._what} have {value!r}{self._at(path)}, which JSON doesn't have.")
        return None

    def _refused(self, value: Any, path: str) -> UnconvertibleError:
        """Makes (doesn't raise) the error for a value without a JSON form, with advice on its type."""
        kind = _kind(value)
        if isinstance(value, types.CoroutineType):
            advice = "Write await before the call"
        elif isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.MethodType, type)):
            advice = "Call it, or give something else"
        elif hasattr(value, "__next__"):
            advice = "Wrap it in list(…)"
        else:
            advice = _ADVICE
        return UnconvertibleError(f"{self._what} has {kind}{self._at(path)}, which has no JSON form. {advice}.")

    def _at(self, path: str) -> str:
        return f" at {path}" if path else ""


def _kind(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
