"""The pairs that a program gives to `parallel`, as calls that the checker can judge.

`parallel([(get_issue, {"id": 1})])` calls get_issue with that input, but no type says so: the pairs of a list may all
be different. So each is also written as a call, in a function that is never called, before the program. Whatever is
not written out in the dictionary is a parameter there, of which nothing is known.
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

# A program with spans written otherwise for the checker, and where each place of that text is in the program.


class Edit(NamedTuple):
    """What stands in place of a part of the program."""

    start: int
    end: int
    text: str
    order: int = 0
    """Among edits at one place: the lower comes first."""


class Rewriting:
    """A text made of the program's. Edits that overlap an earlier one are left out."""

    def __init__(self, source: str, edits: Iterable[Edit], head: str = "") -> None:
        self.source = source
        self.head = head
        parts = [head]
        self._made = [0]
        """Where each unchanged part begins in the text, and in the program."""
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
        """The line and column of a place in the program."""
        line = bisect_right(self._source_lines, index)
        return line, index - self._source_lines[line - 1] + 1

    def source_index(self, line: int, column: int) -> int | None:
        """The place in the program of a line and column of the text; None if it is before the program."""
        if not 0 < line < len(self._line_starts):
            return None
        at = self._line_starts[line - 1] + column - 1
        if at < self._head:
            return None
        part = bisect_right(self._made, at) - 1
        limit = self._source[part + 1] if part + 1 < len(self._source) else at + self._source[part]
        return min(self._source[part] + at - self._made[part], limit)


def relocated(findings: Iterable[TyFinding], rewriting: Rewriting) -> Iterator[TyFinding]:
    """Findings about a rewritten program, where they are in the program; not those about lines before it."""
    for each in findings:
        start = rewriting.source_index(each.line, each.column)
        end = rewriting.source_index(each.end_line, each.end_column)
        if start is not None and end is not None:
            yield TyFinding(*rewriting.position(start), each.rule, each.message, *rewriting.position(end))


# What a program's own functions give, written so that the checker can tell.
#
# It infers what a plain function returns, and nothing of generators and coroutines; and an annotation that says
# little (`-> list[dict]`) hides what a function returns. So a generator is shown to it as a function that returns
# what it yields, a coroutine as one that returns an awaitable, and annotations that say little are left out. The
# program that runs is never changed.


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
_SPECIFIC = re.compile(rf"\b(?!(?:{_PLAIN})\b)\w+")
_VAGUE = re.compile(r"\b(?:dict|list|Dict|List|Mapping)\b(?!\[)|\bAny\b|\bobject\b")


def is_vague(annotation: str) -> bool:
    """Whether an annotation leaves open what a tool's result in it has: `list[dict]`, `dict[str, Any]`."""
    return _VAGUE.search(annotation) is not None and _SPECIFIC.search(annotation) is None


def result_edits(program: Program) -> Iterator[Edit]:
    """The edits for a program's functions."""
    code = program.code
    for each in program.functions:
        if each.is_decorated or (each.returned and not is_vague(code[slice(*each.returned)].removeprefix("->"))):
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


def _statement(line: LogicalLine, word: str) -> int | None:
    """Where in a line the only statement begins that begins with a word; None if it is not the only one."""
    found = _STATEMENT.match(line.text)
    is_alone = found is not None and ";" not in line.text and len(re.findall(rf"\b{word}\b", line.text)) == 1
    return (
        line.start + found.end() if found is not None and is_alone and line.text.startswith(word, found.end()) else None
    )


def _generator(program: Program, function: UserFunction) -> Iterator[Edit]:
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


def _coroutine(program: Program, function: UserFunction) -> Iterator[Edit]:
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


# Collections that a program fills and goes through, written so that the checker can tell what is in them.
#
# It infers what is in a dictionary that is filled by assignments, and nothing of one that is filled as
# `groups[key].append(row)` or `groups.setdefault(key, []).append(row)`; and of `filter` with a function without
# annotations, nothing either. The program that runs is never changed.


_DEFINED = re.compile(
    r"(\w+)[ \t]*(:[^=]*?)?[ \t]*=[ \t]*((?:collections\.)?defaultdict\((?:list|set)\)|\{[ \t]*\}|dict\(\))\Z"
)
_FILTER = re.compile(r"(?<![\w.])filter(?=\()")
_ADDED = re.compile(r"\.(append|add)\(")
_MOST = 100


def collection_edits(program: Program) -> Iterator[Edit]:
    """The edits for dictionaries of lists and sets, and for `filter`."""
    code = program.code
    filled: set[str] = set()
    for line in islice(program.logical_lines, _MOST * 10):
        edits = list(_addition(line, code))
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
            yield Edit(*found.span(), f"{RESULTS}.filtered")


def _addition(line: LogicalLine, code: str) -> Iterator[Edit]:
    """`groups[key].append(row)` as `groups[key] = [row]`."""
    start = re.match(r"\w+", line.text)
    if start is None:
        return
    opening = line.start + start.end()
    default = re.compile(r"\.setdefault\(").match(code, opening)
    end = (
        end_of_bracket(code, default.end() - 1 if default else opening)
        if default or code[opening : opening + 1] == "["
        else None
    )
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


# TypeQueries to the checker: what type has the value at a place? It is given the program again, with `reveal_type`.


_ASK = "_whole_type_of"
_HEAD = f"from typing import reveal_type as {_ASK}\n"
_MOST_COPIES = 3
_REVEALED = re.compile(r"Revealed type: `(.*)`", re.DOTALL)


class Span(NamedTuple):
    """Where a value stands in the program."""

    start: int
    end: int


class TypeQueries:
    """The program again, with questions about values. None of a copy's is part of another."""

    def __init__(self, source: str, edits: Iterable[Edit], before: str, spans: Iterable[Span]) -> None:
        known = list(edits)
        self._copies = [
            (group, Rewriting(source, [*known, *_asked(group)], _HEAD + before)) for group in _apart(set(spans))
        ]
        self.files = {f"asked_{number}.py": copy.text for number, (_, copy) in enumerate(self._copies)}
        """What the checker is to be given; nothing if there is nothing to ask."""

    def types(self, answers: Mapping[str, list[TyFinding]]) -> dict[Span, str]:
        """The types that the checker answered."""
        types: dict[Span, str] = {}
        for name, (group, copy) in zip(self.files, self._copies, strict=True):
            starts = {place.start: place for place in group}
            for answer in answers.get(name, []):
                revealed = _REVEALED.search(answer.message)
                at = copy.source_index(answer.line, answer.column) if revealed else None
                place = _at(at, starts, copy.source) if at is not None else None
                if place is not None and revealed is not None:
                    types.setdefault(place, revealed[1])
        return types


def _at(at: int, starts: Mapping[int, Span], source: str) -> Span | None:
    """The place that begins at an index: the checker doesn't count the brackets around a value to it."""
    while at not in starts and at > 0 and source[at - 1] in "( \t\n":
        at -= 1
    return starts.get(at)


def _asked(spans: Iterable[Span]) -> list[Edit]:
    edits: list[Edit] = []
    for place in spans:
        edits += [Edit(place.start, place.start, f"{_ASK}(("), Edit(place.end, place.end, "))")]
    return edits


def _apart(spans: Iterable[Span]) -> list[list[Span]]:
    """Groups in which no place overlaps another: asking about a part may change what is known of the whole."""
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
    """An input in the program, and the call that was made of it."""

    line: int
    """Where the input stands in the program."""
    column: int
    head: str
    """What stands before it in the call."""
    text: str


class PairCalls:
    """The calls that `parallel` will make, as far as they are written out."""

    def __init__(self, program: Program) -> None:
        self._pairs = list(_pairs(program))
        self.text = "".join(f"{pair.head}{pair.text})\n" for pair in self._pairs)
        """Lines for the checker, to stand before the program."""

    def relocated(self, finding: TyFinding) -> TyFinding | None:
        """A finding about a line of the text, where it is in the program; None if it is about nothing there."""
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
    code, source = program.code, program.source
    renewed = rebound_names(code)
    if "parallel" in renewed or "bridge" not in source:
        return []
    found: list[_Pair] = []
    for start, stop in _places(code):
        for pair in islice(_PAIR.finditer(code, start, stop), _MOST_PAIRS):
            root, name = pair[1].partition(".")[0], pair[2]
            if root in renewed or program.stubs.function(name) is None:
                continue
            end = end_of_bracket(code, pair.end())
            if end is not None and _END_OF_PAIR.match(code, end):
                found.append(_pair(source, pair.end(), end, pair[1], len(found)))
    return found


def _places(code: str) -> Iterator[tuple[int, int]]:
    """Where pairs may stand: in a call of parallel, and where the list is made that it is given by name."""
    for call in islice(_PARALLEL.finditer(code), _MOST_CALLS):
        yield call.end(), end_of_bracket(code, call.end()) or call.end()
        named = _GIVEN.match(code, call.end())
        if named is not None:
            made = re.compile(rf"(?<![\w.]){named[1]}[ \t]*(?:\+?=[ \t]*(?=\[)|\.append(?=\())")
            for place in islice(made.finditer(code), _MOST_CALLS):
                yield place.end(), end_of_bracket(code, place.end()) or place.end()


def _pair(source: str, start: int, end: int, function: str, number: int) -> _Pair:
    text = source[start:end]
    unknown = {name for name in _NAME.findall(text) if not keyword.iskeyword(name)} - {function.partition(".")[0]}
    head = f"def __pair_{number}({', '.join(sorted(unknown))}): {function}("
    line_start = source.rfind("\n", 0, start) + 1
    return _Pair(source.count("\n", 0, start) + 1, start - line_start + 1, head, text)


def classify_parallel(finding: TyFinding, program: Program) -> Mistake | None:
    """What `parallel` is given besides its pairs: the checker says only that something is wrong with it."""
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
