"""The Python stubs as the checker reads them: what every function takes when a program runs, said in one signature.

A tool takes its input as keywords, as one mapping, or as both (docs/PYTHON.md). The stubs that a model reads say only
the one that suits a tool: they are small. With both in them, the checker also sees what is wrong with an input that is
written out as a dictionary. And an `aio` function is declared here as what it is, so that messages name it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from toolbridge.check.python_text import end_of_bracket, without_texts

_MOST_KEPT = 32
# Every TypedDict in the stubs has all of its keys: an object that may have others is a plain dictionary there.
_TYPED_DICT = re.compile(r"^(class \w+\(_*TypedDict(?:, total=False)?)\):", re.MULTILINE)
_MADE_TYPED_DICT = re.compile(r"^(\}(?:, total=False)?)\)$", re.MULTILINE)
_FUNCTION = re.compile(r"^def (\w+)(?=\()", re.MULTILINE)
_OBJECT = re.compile(r"^(?:class (\w+)\(_*TypedDict|(\w+) = _*TypedDict\()", re.MULTILINE)
_DECLARED = re.compile(r"^(?:class (\w+)\(|(\w+) = _*TypedDict\(|(\w+): _*TypeAlias = )", re.MULTILINE)
_IMPORTS = re.compile(r"^from (?:builtins|collections\.abc|typing) import [^\n]*\n", re.MULTILINE)
_UNPACKED = re.compile(r"\(\*\*input: _*Unpack\[(\w+)\]\)")
_ONE_MAPPING = re.compile(r"\(input: (.*?)( = \.\.\.)?, /\)", re.DOTALL)
_INPUT = "__input"
_HEAD = "from typing import Any as __Any, Unpack as __Unpack\n"


def checkable_stubs(stubs: Mapping[str, str]) -> dict[str, str]:
    """The stubs for the checker."""
    made: dict[str, str] = {}
    for name, text in stubs.items():
        package = name.removesuffix("/__init__.pyi")
        if name.endswith("/aio.pyi"):
            continue
        if package == name or "/" not in package:
            made[name] = text
            continue
        made[name] = _checkable(text)
        if f"{package}/aio.pyi" in stubs:
            made[f"{package}/aio.pyi"] = _awaited(made[name], package.replace("/", "."))
    return made


@lru_cache(maxsize=_MOST_KEPT)
def _checkable(text: str) -> str:
    """With one signature for each function, and each TypedDict closed."""
    objects = {one or other for one, other in _OBJECT.findall(text)}
    code = without_texts(text)
    made = [_HEAD]
    written = 0
    keywords: dict[str, str] = {}
    for found in _FUNCTION.finditer(code):
        end = end_of_bracket(code, found.end())
        if end is None:
            return text
        name, parameters = found[1], text[found.end() : end]
        line_before = code.rfind("\n", 0, max(found.start() - 1, 0)) + 1
        if code.startswith("@", line_before) and name not in keywords:
            # The overload by keywords. The one by a mapping comes next, and is made to say both.
            keywords[name] = parameters
            made.append(text[written:line_before])
            continue
        if name in keywords:
            written = found.start()
        made += [text[written : found.end()], _both(parameters, keywords.get(name), objects)]
        written = end
    body = "".join([*made, text[written:]])
    return _MADE_TYPED_DICT.sub(r"\1, closed=True)", _TYPED_DICT.sub(r"\1, closed=True):", body))


def _both(parameters: str, keywords: str | None, objects: set[str]) -> str:
    """Parameters for an input that is given as keywords, as one mapping, or as both."""
    unpacked = _UNPACKED.fullmatch(parameters)
    if unpacked is not None:
        return f"({_INPUT}: {unpacked[1]} = ..., /, **more: __Unpack[{unpacked[1]}])"
    mapping = _ONE_MAPPING.fullmatch(parameters)
    if mapping is None:
        return parameters
    if keywords is not None:
        return f"({_INPUT}: {mapping[1]} = ..., /, {keywords[1:-1]})"
    more = f"__Unpack[{mapping[1]}]" if mapping[1] in objects else "__Any"
    return f"({_INPUT}: {mapping[1]} = ..., /, **more: {more})"


@lru_cache(maxsize=_MOST_KEPT)
def _awaited(checkable: str, package: str) -> str:
    """The `aio` module: the same functions, declared as coroutine functions, with the package's types."""
    code = without_texts(checkable)
    types = [found[1] or found[2] or found[3] for found in _DECLARED.finditer(code)]
    lines = [_HEAD, *_IMPORTS.findall(checkable)]
    lines += [f"from {package} import {name}\n" for name in types]
    for found in _FUNCTION.finditer(code):
        colon = code.index(":", end_of_bracket(code, found.end()) or found.end())
        lines.append(f"async {checkable[found.start() : colon]}: ...\n")
    return "".join(lines)
