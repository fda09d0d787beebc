"""Schema bombs: small to send, endless to follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

STRING = {"type": "string"}


def chain(length: int, link: Callable[[dict[str, Any], int], dict[str, Any]]) -> dict[str, Any]:
    """Definitions that each refer to the next one."""
    definitions = {f"d{index}": link({"$ref": f"#/$defs/d{index + 1}"}, index) for index in range(length)}
    return _using({**definitions, f"d{length}": STRING})


def ring(length: int, link: Callable[[dict[str, Any], int], dict[str, Any]]) -> dict[str, Any]:
    """Definitions that each refer to the next one, and the last to the first."""
    following = {f"d{index}": {"$ref": f"#/$defs/d{(index + 1) % length}"} for index in range(length)}
    return _using({name: link(other, index) for index, (name, other) in enumerate(following.items())})


def web(size: int, link: Callable[[list[dict[str, Any]], int], dict[str, Any]]) -> dict[str, Any]:
    """Definitions that each refer to all of them."""
    everyone = [{"$ref": f"#/$defs/d{index}"} for index in range(size)]
    return _using({f"d{index}": link(everyone, index) for index in range(size)})


def nested(depth: int, wrap: Callable[[Any], Any], core: Any = STRING) -> Any:
    """A schema inside a schema inside a schema."""
    for _ in range(depth):
        core = wrap(core)
    return core


def _using(definitions: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


DEEP = 100_000

BOMBS: dict[str, Callable[[], Any]] = {
    "objects that double": lambda: chain(100, lambda to, _: _object(**{f"p{n}": to for n in range(10)})),
    "allOf that doubles": lambda: chain(40, lambda to, _: {"allOf": [to, {**to, "title": "x"}, {"allOf": [to]}]}),
    "anyOf that doubles": lambda: chain(
        40, lambda to, _: {"anyOf": [to, {**to, "minLength": 1}, {"type": "array", "items": to}]}
    ),
    "anyOf that doubles beside properties": lambda: chain(
        40, lambda to, n: {**_object(**{f"a{n}": STRING}), "anyOf": [to, {**to, "minLength": 1}]}
    ),
    "tuples that double": lambda: chain(300, lambda to, _: {"type": "array", "prefixItems": [to, to]}),
    "arrays and maps that double": lambda: chain(
        300, lambda to, _: {"anyOf": [{"type": "array", "items": to}, {"type": "object", "additionalProperties": to}]}
    ),
    "references 9,000 deep": lambda: chain(9000, lambda to, _: to),
    "arrays of references 5,000 deep": lambda: chain(5000, lambda to, _: {"type": "array", "items": to}),
    "maps of references 5,000 deep": lambda: chain(5000, lambda to, _: {"type": "object", "additionalProperties": to}),
    "choices of references 5,000 deep": lambda: chain(5000, lambda to, _: {"anyOf": [to, {"type": "null"}]}),
    "a ring of references": lambda: ring(3000, lambda to, _: to),
    "a ring of choices": lambda: ring(3000, lambda to, n: {"anyOf": [to, {"const": n}]}),
    "a web of choices": lambda: web(60, lambda all_, n: {"anyOf": [*all_, {"const": n}]}),
    "a web of choices beside properties": lambda: web(
        40, lambda all_, n: {**_object(**{f"p{n}": STRING}), "anyOf": all_}
    ),
    "a web of allOf": lambda: web(60, lambda all_, n: {"allOf": all_, "properties": {f"p{n}": all_[n * 7 % 60]}}),
    "a web of objects": lambda: web(120, lambda all_, _: _object(**{f"p{n}": to for n, to in enumerate(all_)})),
    "all subsets of definitions": lambda: web(
        20,
        lambda all_, n: _object(l={"allOf": [all_[n - 1], all_[n - 2]]}, r={"allOf": [all_[n - 3], all_[n * 3 % 20]]}),
    ),
    "10,000 properties": lambda: _object(**{f"p{n}": {**STRING, "description": "d" * 50} for n in range(10_000)}),
    "10,000 objects": lambda: _object(**{f"p{n}": _object(a=STRING, b=STRING) for n in range(10_000)}),
    "100,000 required names": lambda: {"type": "object", "required": [f"p{n}" for n in range(100_000)]},
    "objects 1,000 deep": lambda: nested(1000, lambda inner: _object(a=inner)),
    "objects 100,000 deep": lambda: nested(DEEP, lambda inner: _object(a=inner)),
    "arrays 100,000 deep": lambda: nested(DEEP, lambda inner: {"type": "array", "items": inner}),
    "maps 100,000 deep": lambda: nested(DEEP, lambda inner: {"additionalProperties": inner}),
    "allOf 100,000 deep": lambda: nested(DEEP, lambda inner: {"allOf": [inner]}),
    "allOf of two 100,000 deep": lambda: nested(DEEP, lambda inner: {"allOf": [inner, {"title": "x"}]}),
    "anyOf 100,000 deep": lambda: nested(DEEP, lambda inner: {"anyOf": [inner]}),
    "not 100,000 deep": lambda: nested(DEEP, lambda inner: {"not": inner}),
    "if 100,000 deep": lambda: nested(DEEP, lambda inner: {**_object(a=STRING), "if": inner}),
    "then 100,000 deep": lambda: nested(DEEP, lambda inner: {**_object(a=STRING), "if": True, "then": inner}),
    "a default 100,000 deep": lambda: _object(a={"default": nested(DEEP, lambda inner: [inner])}),
    "a constant 100,000 deep": lambda: _object(
        a={"const": nested(DEEP, lambda inner: [inner]), "enum": [nested(DEEP, lambda inner: [inner])]}
    ),
    "definitions 100,000 deep": lambda: {
        **_object(x={"$ref": "#/$defs/a/a"}),
        "$defs": nested(DEEP, lambda inner: {"a": inner}),
    },
    "anyOf times anyOf times anyOf": lambda: {
        "allOf": [{"anyOf": [_object(**{f"p{n}_{m}": STRING}) for m in range(10)]} for n in range(20)]
    },
    "anyOf in anyOf in anyOf": lambda: {
        **_object(z=STRING),
        "anyOf": [
            {"anyOf": [{"anyOf": [{"properties": {f"q{n}{m}{o}": STRING}} for o in range(6)]} for m in range(6)]}
            for n in range(6)
        ],
    },
    "5,000 branches": lambda: _object(a={"anyOf": [_object(**{f"p{n}": STRING}) for n in range(5000)]}),
    "100,000 constants": lambda: _object(a={"enum": [f"v{n}" for n in range(100_000)]}),
    "1,000 times 200 constants": lambda: _object(
        **{f"p{m}": {"enum": [f"value number {n}" for n in range(200)]} for m in range(1000)}
    ),
    "3,000 patterns": lambda: {
        "type": "object",
        "patternProperties": {f"^(a+)+{n}$": _object(**{f"x{n}": STRING}) for n in range(3000)},
    },
    "20 megabytes of descriptions": lambda: _object(
        **{f"p{n}": {**STRING, "description": "word " * 20_000} for n in range(200)}
    ),
    "a name of 100,000 characters": lambda: _object(**{"n" * 100_000: STRING, "ok": STRING}),
    "2,000 references that lead nowhere": lambda: _object(
        **{f"a{n}": {"$ref": f"#/{'a/' * 400}{n}"} for n in range(2000)}
    ),
    "3,000 documents in one": lambda: _object(
        **{f"p{n}": {"$id": f"http://x/{n}/", "properties": {"y": {"$ref": f"../{n - 1}/"}}} for n in range(3000)}
    ),
}
