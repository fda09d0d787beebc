"""Rewrites a program for the checker, which infers too little of the original. The program that runs is never changed.

Edits keep a map of positions, so that findings are reported where they are in the original.
"""

from __future__ import annotations

import keyword
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import accumulate, islice
from typing import NamedTuple

from toolbridge.check.python.program import LogicalLine, Mistake, Program, TyFinding, UserFunction, mistake_at
from toolbridge.check.python.text import end_of_bracket, parts, rebound_names

# Edits, and the map of positions.


class Edit(NamedTuple):
    """Replaces a span of the program."""

    start: int
    end: int
    text: str
    order: int = 0
    """The order of edits at one index."""


class Rewriting:
    """The edited program as `text`, after the lines in `head`. Edits that overlap an earlier one are dropped."""

    def __init__(self, source: str, edits: Iterable[Edit], head: str = "") -> None:
        self.source = source
        self.head = head
        parts = [head]
        self._made = [0]
        """The start of each unchanged part, in the text and in the program."""
        self._source = [0]
        length, written = len(head), 0
        for edit in sorted(edits, key=lambda each: (each.start, each.end, each.order)):
            if edit.start < written:
                continue
            length += edit.start - written
            self._made += [length - (edit.start - written), length]
            self._source += [written, edit.start]
            parts += [source[written : edit.start], edit.text]
            length, written = length + len(edit.text), edit.end
        self._made.append(length)
        self._source.append(written)
        self.text = "".join([*parts, source[written:]])
        self._head = len(head)

    @cached_property
    def _line_starts(self) -> list[int]:
        return list(accumulate((len(line) + 1 for line in self.text.split("\n")), initial=0))

    @cached_property
    def _source_lines(self) -> list[int]:
        return list(accumulate((len(line) + 1 for line in self.source.split("\n")), initial=0))

    def position(self, index: int) -> tuple[int, int]:
        """Returns the line and column, from 1, of an index in the program."""
        line = bisect_right(self._source_lines, index)
        return line, index - self._source_lines[line - 1] + 1

    def source_index(self, line: int, column: int) -> int | None:
        """Returns the index in the program of a line and column in the text.

        None if it is before the program, or beyond the text.
        """
        if not 0 < line < len(self._line_starts):
            return None
        at = self._line_starts[line - 1] + column - 1
        if at < self._head:
            return None
        part = bisect_right(self._made, at) - 1
        limit = self._source[part + 1] if part + 1 < len(self._source) else at + self._source[part]
        return min(self._source[part] + at - self._made[part], limit)


def relocated(findings: Iterable[TyFinding], rewriting: Rewriting) -> Iterator[TyFinding]:
    """Yields findings in a rewritten program at their positions in the original, without those in added lines."""
    for each in findings:
        start = rewriting.source_index(each.line, each.column)
        end = rewriting.source_index(each.end_line, each.end_column)
        if start is not None and end is not None:
            yield TyFinding(*rewriting.position(start), each.rule, each.message, *rewriting.position(end))


# Results of user-defined functions. The checker infers the return type of a plain function, not of generators and
# coroutines; and a vague annotation (`-> list[dict]`) hides it. So a generator becomes a function that returns what it
# yields, a coroutine one that returns an awaitable, and vague annotations are dropped.

HELPERS = "_results_of"
"""A module for the checker, with the functions called below."""
HELPERS_STUB = """\
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
# A statement on a line of its own, or the only one after a colon.
_STATEMENT = re.compile(r"(?:(?:if|elif|for|while|else|try|finally|with)\b[^;]*?:[ \t]+)?(?=(?:yield|return)\b)")
_PLAIN = (
    "dict|list|tuple|Dict|List|Tuple|Any|object|str|int|float|bool|None|Optional|Union|typing|"
    "Mapping|Sequence|Iterable|Iterator|Generator|AsyncIterable|AsyncIterator|AsyncGenerator"
)
_SPECIFIC = re.compile(rf"\b(?!(?:{_PLAIN})\b)\w+")
_VAGUE = re.compile(r"\b(?:dict|list|Dict|List|Mapping)\b(?!\[)|\bAny\b|\bobject\b")


def is_vague(annotation: str) -> bool:
    """Returns whether an annotation hides the type of a tool's result: `list[dict]`, `dict[str, Any]`."""
    return _VAGUE.search(annotation) is not None and _SPECIFIC.search(annotation) is None


def result_edits(program: Program) -> Iterator[Edit]:
    """Yields edits that reveal what user-defined functions return.

    Skips decorated and precisely annotated ones, and those with a `yield` or `return` that is not alone in its line.
    """
    code = program.code
    for each in program.functions:
        if each.is_decorated or (each.returned and not is_vague(code[slice(*each.returned)].removeprefix("->"))):
            continue
        yields = [line for line in each.lines if _YIELD.search(line.text)]
        if any(_statement_start(line, "yield") is None for line in yields):
            continue  # `yield` as an expression, or among several statements
        if any(_RETURN.search(line.text) and _statement_start(line, "return") is None for line in each.lines):
            continue
        if yields:
            yield from _generator_edits(program, each)
        elif each.is_async:
            yield from _coroutine_edits(program, each)
        if each.returned:
            yield Edit(*each.returned, "")


def _statement_start(line: LogicalLine, word: str) -> int | None:
    """Returns the index of a line's only `yield` or `return` statement; None if it is not alone."""
    found = _STATEMENT.match(line.text)
    is_alone = ";" not in line.text and len(re.findall(rf"\b{word}\b", line.text)) == 1
    is_statement = found is not None and is_alone and line.text.startswith(word, found.end())
    return line.start + found.end() if found is not None and is_statement else None


def _generator_edits(program: Program, function: UserFunction) -> Iterator[Edit]:
    """Yields edits that make a generator a function that returns a generator of the values' type."""
    code = program.code
    kind = "async_generator" if function.is_async else "generator"
    result = f"return {HELPERS}.{kind}({_VALUES})"
    first = function.lines[0]
    indent = program.indent(first)
    yield Edit(function.start, code.index("def", function.start), "")
    yield Edit(first.start, first.start, f"{_VALUES} = []\n{indent}", -1)
    for line in function.lines:
        at = _statement_start(line, "yield")
        if at is not None and (found := _YIELDED.match(code, at)):
            method = "extend" if "from" in found[0] else "append"
            value = "" if found.end() < line.end else "None"
            yield Edit(at, found.end(), f"{_VALUES}.{method}(({value}", -1)
            yield Edit(line.end, line.end, "))", 1)
        at = _statement_start(line, "return")
        if at is not None:
            yield Edit(at, line.end, result)
    yield Edit(function.end, function.end, f"\n{indent}{result}", 2)


def _coroutine_edits(program: Program, function: UserFunction) -> Iterator[Edit]:
    """Yields edits that make a coroutine function a plain one that returns an awaitable."""
    code = program.code
    indent = program.indent(function.lines[0])
    yield Edit(function.start, code.index("def", function.start), "")
    for line in function.lines:
        at = _statement_start(line, "return")
        found = None if at is None else _RETURN.match(code, at)
        if at is not None and found is not None:
            value = "" if found.end() < line.end else "None"
            yield Edit(at, found.end(), f"return {HELPERS}.coroutine(({value}", -1)
            yield Edit(line.end, line.end, "))", 1)
    yield Edit(function.end, function.end, f"\n{indent}return {HELPERS}.coroutine(None)", 2)


# Collections. The checker infers a dictionary's values from assignments, not from `groups[key].append(row)` or
# `groups.setdefault(key, []).append(row)`; and nothing of `filter` with an unannotated function.

_DEFINED = re.compile(
    r"(\w+)[ \t]*(:[^=]*?)?[ \t]*=[ \t]*((?:collections\.)?defaultdict\((?:list|set)\)|\{[ \t]*\}|dict\(\))\Z"
)
_FILTER = re.compile(r"(?<![\w.])filter(?=\()")
_ADDED = re.compile(r"\.(append|add)\(")
_MOST = 100


def collection_edits(program: Program) -> Iterator[Edit]:
    """Yields edits that reveal the contents of dictionaries of lists or sets, and of `filter`."""
    code = program.code
    filled: set[str] = set()
    for line in islice(program.logical_lines, _MOST * 10):
        edits = list(_addition_edits(line, code))
        if edits:
            filled.add(re.match(r"\w+", line.text)[0])  # type: ignore[index]
            yield from edits
    for line in program.logical_lines if filled else ():
        defined = _DEFINED.match(line.text)
        if defined is not None and defined[1] in filled:
            says = defined[2] or ""
            if says and (is_vague(says[1:]) or "defaultdict" in says):
                yield Edit(line.start + defined.start(2), line.start + defined.end(2), "")
            yield Edit(line.start + defined.start(3), line.start + defined.end(3), "{}")
    if "filter" not in program.rebound_names:
        for found in islice(_FILTER.finditer(code), _MOST):
            yield Edit(*found.span(), f"{HELPERS}.filtered")


def _addition_edits(line: LogicalLine, code: str) -> Iterator[Edit]:
    """Yields edits that make `groups[key].append(row)` `groups[key] = [row]`; none for other lines."""
    start = re.match(r"\w+", line.text)
    if start is None:
        return
    opening = line.start + start.end()
    default = re.compile(r"\.setdefault\(").match(code, opening)
    if not default and code[opening : opening + 1] != "[":
        return
    end = end_of_bracket(code, default.end() - 1 if default else opening)
    added = _ADDED.match(code, end) if end is not None else None
    closed = end_of_bracket(code, added.end() - 1) if added else None
    if end is None or added is None or closed is None or closed != line.end:
        return
    before, after = ("[(", ")]") if added[1] == "append" else ("{(", ")}")
    if default:
        empty = re.compile(r",\s*(?:\[\]|set\(\))\s*\)\Z").search(code, default.end(), end)
        if empty is None:
            return
        yield Edit(*default.span(), "[")
        yield Edit(empty.start(), added.end(), f"] = {before}")
    else:
        yield Edit(end, added.end(), f" = {before}")
    yield Edit(closed - 1, closed, after)


# Type queries: the checker reveals the types of values in a second pass, with `reveal_type` around them.

_ASK = "_whole_type_of"
_HEAD = f"from typing import reveal_type as {_ASK}\n"
_MOST_COPIES = 3
_REVEALED = re.compile(r"Revealed type: `(.*)`", re.DOTALL)


class Span(NamedTuple):
    """The span of a value in the program."""

    start: int
    end: int


class TypeQueries:
    """Copies of the program with `reveal_type` around some values; no two of a copy's overlap.

    `edits` are those of the program itself, and `before` the text to stand before it.
    """

    def __init__(self, source: str, edits: Iterable[Edit], before: str, spans: Iterable[Span]) -> None:
        known = list(edits)
        self._copies = [
            (group, Rewriting(source, [*known, *_query_edits(group)], _HEAD + before))
            for group in _disjoint_groups(set(spans))
        ]
        self.files = {f"asked_{number}.py": copy.text for number, (_, copy) in enumerate(self._copies)}
        """The copies for the checker, by file name."""

    def types(self, answers: Mapping[str, list[TyFinding]]) -> dict[Span, str]:
        """Returns the types revealed by the checker's answers, by span; spans without an answer are left out."""
        types: dict[Span, str] = {}
        for name, (group, copy) in zip(self.files, self._copies, strict=True):
            starts = {place.start: place for place in group}
            for answer in answers.get(name, []):
                revealed = _REVEALED.search(answer.message)
                at = copy.source_index(answer.line, answer.column) if revealed else None
                place = _span_at(at, starts, copy.source) if at is not None else None
                if place is not None and revealed is not None:
                    types.setdefault(place, revealed[1])
        return types


def _span_at(at: int, starts: Mapping[int, Span], source: str) -> Span | None:
    """Returns the span that begins at an index, past opening brackets, which the checker doesn't count."""
    while at not in starts and at > 0 and source[at - 1] in "( \t\n":
        at -= 1
    return starts.get(at)


def _query_edits(spans: Iterable[Span]) -> list[Edit]:
    """Returns edits that put `reveal_type` around some spans."""
    edits: list[Edit] = []
    for place in spans:
        edits += [Edit(place.start, place.start, f"{_ASK}(("), Edit(place.end, place.end, "))")]
    return edits


def _disjoint_groups(spans: Iterable[Span]) -> list[list[Span]]:
    """Returns up to three groups of spans that don't overlap: a query of a part may narrow the whole.

    Spans that fit none are dropped.
    """
    separate: list[list[Span]] = []
    for place in sorted(spans):
        group = next((each for each in separate if each[-1].end <= place.start), None)
        if group is not None:
            group.append(place)
        elif len(separate) < _MOST_COPIES:
            separate.append([place])
    return separate


_PARALLEL = re.compile(r"\bparallel\s*(?=\()")
_PAIR = re.compile(r"\(\s*((?:\w+\.)*(\w+))\s*,\s*(?=\{)")
_END_OF_PAIR = re.compile(r"\s*,?\s*\)")
_GIVEN = re.compile(r"\(\s*([^\W\d]\w*)\s*[,)]")
_NAME = re.compile(r"[^\W\d]\w*")
_OPTION = re.compile(r"\s*(\w+)[ \t]*=(?!=)[ \t]*(.*?)\s*\Z", re.DOTALL)
_OPTIONS = {"limit": re.compile(r"\d+"), "errors": re.compile(r"""["'](?:throw|collect)["']""")}
_WRITTEN = re.compile(r"""["'][^"']*["']|\d+|\{.*|\[.*""", re.DOTALL)
_MOST_CALLS = 10
_MOST_PAIRS = 20
_ABOUT_INPUTS = {"missing-typed-dict-key", "unknown-typed-dict-constructor-key", "invalid-argument-type"}


class _Pair(NamedTuple):
    """A literal input in the program, and the call made of it."""

    line: int
    """The line of the input in the program."""
    column: int
    head: str
    """The text before it in the call."""
    text: str


class PairCalls:
    """The pairs given to `parallel`, as calls.

    No type relates a pair's tool to its input. So `parallel([(get_issue, {"id": 1})])` also becomes a call of get_issue
    with that input, in a function before the program; names in the input become its parameters, of type unknown.
    """

    def __init__(self, program: Program) -> None:
        self._pairs = list(_pairs(program))
        self.text = "".join(f"{pair.head}{pair.text})\n" for pair in self._pairs)
        """The calls, to stand before the program."""

    def relocated(self, finding: TyFinding) -> TyFinding | None:
        """Returns a finding about an input in the text at its position in the program; None for any other."""
        first = 1
        for pair in self._pairs:
            lines = pair.text.count("\n") + 1
            if first <= finding.line < first + lines:
                line = finding.line - first
                column = finding.column if line else finding.column - len(pair.head) + pair.column - 1
                is_inside = line > 0 or finding.column > len(pair.head)
                known = is_inside and finding.rule in _ABOUT_INPUTS
                return finding._replace(line=line + pair.line, column=column, end_line=0) if known else None
            first += lines
        return None


def _pairs(program: Program) -> list[_Pair]:
    """Returns the pairs of `parallel` as calls; none if the program rebinds it. Tools must be in the stubs."""
    code, source = program.code, program.source
    renewed = rebound_names(code)
    if "parallel" in renewed or "bridge" not in source:
        return []
    found: list[_Pair] = []
    for start, stop in _pair_spans(code):
        for pair in islice(_PAIR.finditer(code, start, stop), _MOST_PAIRS):
            root, name = pair[1].partition(".")[0], pair[2]
            if root in renewed or program.stubs.function(name) is None:
                continue
            end = end_of_bracket(code, pair.end())
            if end is not None and _END_OF_PAIR.match(code, end):
                found.append(_pair_call(source, pair.end(), end, pair[1], len(found)))
    return found


def _pair_spans(code: str) -> Iterator[tuple[int, int]]:
    """Yields spans that may contain pairs: a call's brackets, and the list passed to it by name."""
    for call in islice(_PARALLEL.finditer(code), _MOST_CALLS):
        yield call.end(), end_of_bracket(code, call.end()) or call.end()
        named = _GIVEN.match(code, call.end())
        if named is not None:
            made = re.compile(rf"(?<![\w.]){named[1]}[ \t]*(?:\+?=[ \t]*(?=\[)|\.append(?=\())")
            for place in islice(made.finditer(code), _MOST_CALLS):
                yield place.end(), end_of_bracket(code, place.end()) or place.end()


def _pair_call(source: str, start: int, end: int, function: str, number: int) -> _Pair:
    """Returns the call of `function` with the input in a span, in a function whose number makes its name."""
    text = source[start:end]
    unknown = {name for name in _NAME.findall(text) if not keyword.iskeyword(name)} - {function.partition(".")[0]}
    head = f"def __pair_{number}({', '.join(sorted(unknown))}): {function}("
    line_start = source.rfind("\n", 0, start) + 1
    return _Pair(source.count("\n", 0, start) + 1, start - line_start + 1, head, text)


def classify_parallel(finding: TyFinding, program: Program) -> Mistake | None:
    """Classifies an overload mismatch of `parallel` by its options, of which the checker says nothing.

    None if its options are right, or it may be another function.
    """
    opening = program.code.find("(", program.at(finding))
    end = end_of_bracket(program.code, opening) if opening >= 0 else None
    if "`parallel`" not in finding.message or not program.is_small or program.defines("parallel") or end is None:
        return None
    for start, stop in parts(program.code, opening, end):
        given = _OPTION.match(program.source, start, stop)
        if given is None:
            continue
        place = TyFinding(*program.position(given.start(1)), finding.rule, "")
        stub = program.stubs.function("parallel")
        if given[1] not in _OPTIONS:
            return mistake_at(
                place, stub, f"`parallel` has no parameter `{given[1]}`. It takes: {', '.join(_OPTIONS)}."
            )
        if not _OPTIONS[given[1]].fullmatch(given[2]) and _WRITTEN.fullmatch(given[2]):
            return mistake_at(place, stub, f"Wrong argument for `{given[1]}` of `parallel`: {given[2]}.")
    return None
