"""What a program's own functions give, written so that the checker can tell.

It infers what a plain function returns, and nothing of generators and coroutines; and an annotation that says little
(`-> list[dict]`) hides what a function returns. So a generator is shown to it as a function that returns what it
yields, a coroutine as one that returns an awaitable, and annotations that say little are left out. The program that
runs is never changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolbridge.check.python_functions import Line, OwnFunction
from toolbridge.check.python_program import Program
from toolbridge.check.python_rewriting import Edit

RESULTS = "_results_of"
"""A module for the checker, with the functions that are called below."""
RESULTS_STUB = """\
from types import CoroutineType
from typing import Any, AsyncGenerator, Callable, Generator, Iterable, Iterator
def generator[T](values: list[T]) -> Generator[T, Any, Any]: ...
def async_generator[T](values: list[T]) -> AsyncGenerator[T, Any]: ...
def coroutine[T](value: T) -> CoroutineType[Any, Any, T]: ...
def item[T](values: Iterable[T]) -> T: ...
either: bool
def filtered[T](function: Callable[[T], Any] | None, values: Iterable[T]) -> Iterator[T]: ...
"""
_VALUES = "_values_of_this"
_YIELD = re.compile(r"(?<![\w.])yield\b")
_YIELDED = re.compile(r"yield\b(?:[ \t]+from\b)?[ \t]*")
_RETURN = re.compile(r"\breturn\b[ \t]*")
# A statement of its own line, or the only one after a colon.
_STATEMENT = re.compile(r"(?:(?:if|elif|for|while|else|try|finally|with)\b[^;]*?:[ \t]+)?(?=(?:yield|return)\b)")
_PLAIN = (
    "dict|list|tuple|Dict|List|Tuple|Any|object|str|int|float|bool|None|Optional|Union|typing|"
    "Mapping|Sequence|Iterable|Iterator|Generator|AsyncIterable|AsyncIterator|AsyncGenerator"
)
_SAYS_MORE = re.compile(rf"\b(?!(?:{_PLAIN})\b)\w+")
_OF_UNKNOWN = re.compile(r"\b(?:dict|list|Dict|List|Mapping)\b(?!\[)|\bAny\b|\bobject\b")


def says_little(annotation: str) -> bool:
    """Whether an annotation leaves open what a tool's result in it has: `list[dict]`, `dict[str, Any]`."""
    return _OF_UNKNOWN.search(annotation) is not None and _SAYS_MORE.search(annotation) is None


def own_results(program: Program) -> Iterator[Edit]:
    """The edits for a program's functions."""
    code = program.code
    for each in program.functions:
        if each.is_decorated or (each.returned and not says_little(code[slice(*each.returned)].removeprefix("->"))):
            continue
        yields = [line for line in each.lines if _YIELD.search(line.text)]
        if any(_statement(line, "yield") is None for line in yields):
            continue  # what is sent to it, or more than a statement
        if any(_RETURN.search(line.text) and _statement(line, "return") is None for line in each.lines):
            continue
        if yields:
            yield from _generator(program, each)
        elif each.is_async:
            yield from _coroutine(program, each)
        if each.returned:
            yield Edit(*each.returned, "")


def _statement(line: Line, word: str) -> int | None:
    """Where in a line the only statement begins that begins with a word; None if it is not the only one."""
    found = _STATEMENT.match(line.text)
    is_alone = found is not None and ";" not in line.text and len(re.findall(rf"\b{word}\b", line.text)) == 1
    return (
        line.start + found.end() if found is not None and is_alone and line.text.startswith(word, found.end()) else None
    )


def _generator(program: Program, function: OwnFunction) -> Iterator[Edit]:
    code = program.code
    kind = "async_generator" if function.is_async else "generator"
    result = f"return {RESULTS}.{kind}({_VALUES})"
    first = function.lines[0]
    indent = program.indent(first)
    yield Edit(function.start, code.index("def", function.start), "")
    yield Edit(first.start, first.start, f"{_VALUES} = []\n{indent}", -1)
    for line in function.lines:
        at = _statement(line, "yield")
        if at is not None and (found := _YIELDED.match(code, at)):
            method = "extend" if "from" in found[0] else "append"
            value = "" if found.end() < line.end else "None"
            yield Edit(at, found.end(), f"{_VALUES}.{method}(({value}", -1)
            yield Edit(line.end, line.end, "))", 1)
        at = _statement(line, "return")
        if at is not None:
            yield Edit(at, line.end, result)
    yield Edit(function.end, function.end, f"\n{indent}{result}", 2)


def _coroutine(program: Program, function: OwnFunction) -> Iterator[Edit]:
    code = program.code
    indent = program.indent(function.lines[0])
    yield Edit(function.start, code.index("def", function.start), "")
    for line in function.lines:
        at = _statement(line, "return")
        found = None if at is None else _RETURN.match(code, at)
        if at is not None and found is not None:
            value = "" if found.end() < line.end else "None"
            yield Edit(at, found.end(), f"return {RESULTS}.coroutine(({value}", -1)
            yield Edit(line.end, line.end, "))", 1)
    yield Edit(function.end, function.end, f"\n{indent}return {RESULTS}.coroutine(None)", 2)
