"""Python read as text, and the lines of the Python stubs: where a function, a type or a field is declared."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache

from toolbridge.sandbox.typescript import StubLine

# Python source as text: string ends, matching brackets, rebound names. The host never parses a program: these are
# patterns and bracket counts, and callers treat doubt as "no".

# ReDoS guard: every kind of string also ends at the end of the text, so no alternative is retried.
_STRING_OR_COMMENT = re.compile(
    r'''"""[^"\\]*(?:(?:\\(?:.|\Z)|"(?!""))[^"\\]*)*(?:"""|\Z)|"[^"\\\n]*(?:\\(?:.|\Z)[^"\\\n]*)*(?:"|$)|\#[^\n]*'''
    r"""|'''[^'\\]*(?:(?:\\(?:.|\Z)|'(?!''))[^'\\]*)*(?:'''|\Z)|'[^'\\\n]*(?:\\(?:.|\Z)[^'\\\n]*)*(?:'|$)""",
    re.DOTALL | re.MULTILINE,
)
# A blanked string of several lines: quotes and spaces.
_LINES_OF_STRING = re.compile(r""" "[ \n]*"|'[ \n]*' """.strip())
_JOINED = re.compile(r"[()\[\]{}\n]|\\\n")
_FORMATTED = re.compile(r"(?<!\w)(?:[fF][rR]?|[rR][fF])\Z")
_FIELD = re.compile(r"(?<!\{)\{[^{}\n]+\}(?!\})")
_FARTHEST = 20_000
"""How far a matching bracket is searched: a program may be nothing but brackets."""
_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_OPENING.values())
_NAME = re.compile(r"[^\W\d]\w*")
_BINDINGS = (
    re.compile(r"\b(?:def|class|as|case)[ \t]+(\w+)"),
    re.compile(r"\b(?:for|del|import|global)[ \t]+([^\n:;=]*?)(?=\bin\b|[\n:;=]|$)"),
)
_ASSIGNMENT = re.compile(r"(?<![=!<>])=(?!=)")
_BEFORE_TARGETS = re.compile(r"[({]")
HOST_IMPORT = re.compile(r"^(?:from[ \t]+host\b[^\n(]*(?:\([^)]*\))?[^\n]*|import[ \t]+host\b[^\n]*)", re.MULTILINE)
"""A top-level import of host modules."""


def blank_strings(source: str) -> str:
    """Blanks strings and comments; every other character keeps its index."""

    def blank(found: re.Match[str]) -> str:
        text = found[0]
        spaces = "\n".join(" " * len(line) for line in text.split("\n")) if "\n" in text else " " * len(text)
        return spaces if text.startswith("#") or len(text) < 2 else text[0] + spaces[1:-1] + text[-1]

    return _STRING_OR_COMMENT.sub(blank, source)


def with_fstring_fields(source: str, code: str) -> str:
    """Returns `code` (with blanked strings) with the replacement fields of f-strings put back."""
    parts: list[str] = []
    written = 0
    for text in _STRING_OR_COMMENT.finditer(source):
        if not _FORMATTED.search(source, max(0, text.start() - 3), text.start()):
            continue
        for field in _FIELD.finditer(source, text.start(), text.end()):
            parts += [code[written : field.start()], blank_strings(field[0])]
            written = field.end()
    return "".join([*parts, code[written:]])


def join_lines(code: str) -> str:
    """Joins continuation lines with spaces: one line per statement. Needs blanked strings; keeps every index."""
    code = _LINES_OF_STRING.sub(lambda found: found[0].replace("\n", " "), code)
    depth = 0
    parts: list[str] = []
    written = 0
    for found in _JOINED.finditer(code):
        text = found[0]
        if text in _OPENING:
            depth += 1
        elif text in _CLOSING:
            depth = max(0, depth - 1)
        elif depth or text != "\n":
            parts += [code[written : found.start()], " " * len(text)]
            written = found.end()
    return "".join([*parts, code[written:]])


def end_of_bracket(code: str, at: int, farthest: int = _FARTHEST) -> int | None:
    """Returns the index after the bracket that matches the one at an index. Needs blanked strings.

    None if it is missing, or farther than `farthest`.
    """
    awaited: list[str] = []
    for index in range(at, min(len(code), at + farthest)):
        character = code[index]
        if character in _OPENING:
            awaited.append(_OPENING[character])
        elif character in _CLOSING:
            if not awaited or awaited.pop() != character:
                return None
            if not awaited:
                return index + 1
    return None


def start_of_bracket_around(code: str, at: int) -> int | None:
    """Returns the index of the innermost bracket open at an index. Needs blanked strings.

    None if there is none within 20,000 characters.
    """
    depth = 0
    for index in range(at - 1, max(-1, at - _FARTHEST), -1):
        if code[index] in _CLOSING:
            depth += 1
        elif code[index] in _OPENING:
            if depth == 0:
                return index
            depth -= 1
    return None


def parts(code: str, opening: int, end: int) -> Iterator[tuple[int, int]]:
    """Yields the spans between the commas of a bracket from `opening` to `end`; none for an empty bracket."""
    depth, start = 0, opening + 1
    for at in range(opening + 1, min(end - 1, opening + _FARTHEST)):
        if code[at] in "([{":
            depth += 1
        elif code[at] in ")]}":
            depth -= 1
        elif code[at] == "," and depth == 0:
            yield start, at
            start = at + 1
    if code[start : end - 1].strip():
        yield start, end - 1


def split_outside(text: str, separator: str) -> list[str]:
    """Splits at separators outside of brackets and strings. `#` begins no comment."""
    code = blank_strings(text.replace("#", " "))
    depth = 0
    parts: list[str] = []
    start = index = 0
    while index < len(code):
        if code[index] in _OPENING:
            depth += 1
        elif code[index] in _CLOSING:
            depth -= 1
        elif depth == 0 and code.startswith(separator, index):
            parts.append(text[start:index])
            start = index = index + len(separator)
            continue
        index += 1
    return [*parts, text[start:]]


def rebound_names(code: str) -> set[str]:
    """Returns names that a program may define, assign or delete, apart from host imports.

    Rather too many: keyword arguments are among them. Needs blanked strings.
    """
    own = HOST_IMPORT.sub("", code)
    bound = [found for pattern in _BINDINGS for found in pattern.findall(own)]
    for line in own.split("\n"):
        # Targets of plain, annotated and augmented assignments; keyword arguments look the same.
        bound += [_BEFORE_TARGETS.split(target)[-1] for target in _ASSIGNMENT.split(line)[:-1]]
    return {name for text in bound for name in _NAME.findall(text)}


# The stubs rewritten for the checker. A tool accepts its input as keywords, as one mapping, or as both
# (docs/write-programs-python.md). The model's stubs show only the form that suits a tool, to be short. With both in
# one signature, the checker also checks inputs that are dictionary literals. `aio` functions are declared as coroutine
# functions, so that messages name them.

_MOST_KEPT = 32
# A TypedDict in the stubs is closed: an object with other keys is a plain dictionary there.
_TYPED_DICT = re.compile(r"^(class \w+\(_*TypedDict(?:, total=False)?)\):", re.MULTILINE)
_MADE_TYPED_DICT = re.compile(r"^(\}(?:, total=False)?)\)$", re.MULTILINE)
_PLAIN_DEF = re.compile(r"^def (\w+)(?=\()", re.MULTILINE)
_OBJECT = re.compile(r"^(?:class (\w+)\(_*TypedDict|(\w+) = _*TypedDict\()", re.MULTILINE)
_DECLARED = re.compile(r"^(?:class (\w+)\(|(\w+) = _*TypedDict\(|(\w+): _*TypeAlias = )", re.MULTILINE)
_IMPORTS = re.compile(r"^from (?:builtins|collections\.abc|typing) import [^\n]*\n", re.MULTILINE)
_UNPACKED = re.compile(r"\(\*\*input: _*Unpack\[(\w+)\]\)")
_ONE_MAPPING = re.compile(r"\(input: (.*?)( = \.\.\.)?, /\)", re.DOTALL)
_INPUT_NAME = "__input"
_HEAD = "from typing import Any as __Any, Unpack as __Unpack\n"


def checkable_stubs(stubs: Mapping[str, str]) -> dict[str, str]:
    """Returns the stubs rewritten for the checker, by file name; `aio` modules are made anew."""
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
    """Gives every function one signature, and closes every TypedDict; unchanged if a bracket is open.

    Keeps the last 32 results (LRU).
    """
    objects = {one or other for one, other in _OBJECT.findall(text)}
    code = blank_strings(text)
    made = [_HEAD]
    written = 0
    keywords: dict[str, str] = {}
    for found in _PLAIN_DEF.finditer(code):
        end = end_of_bracket(code, found.end())
        if end is None:
            return text
        name, parameters = found[1], text[found.end() : end]
        line_before = code.rfind("\n", 0, max(found.start() - 1, 0)) + 1
        if code.startswith("@", line_before) and name not in keywords:
            # Drops the overload by keywords: the one by mapping, which follows, gets both.
            keywords[name] = parameters
            made.append(text[written:line_before])
            continue
        if name in keywords:
            written = found.start()
        made += [text[written : found.end()], _combined_parameters(parameters, keywords.get(name), objects)]
        written = end
    body = "".join([*made, text[written:]])
    return _MADE_TYPED_DICT.sub(r"\1, closed=True)", _TYPED_DICT.sub(r"\1, closed=True):", body))


def _combined_parameters(parameters: str, keywords: str | None, objects: set[str]) -> str:
    """Returns parameters that accept keywords, one mapping, or both.

    `keywords` are those of an overload; `objects` the names of TypedDicts.
    """
    unpacked = _UNPACKED.fullmatch(parameters)
    if unpacked is not None:
        return f"({_INPUT_NAME}: {unpacked[1]} = ..., /, **more: __Unpack[{unpacked[1]}])"
    mapping = _ONE_MAPPING.fullmatch(parameters)
    if mapping is None:
        return parameters
    if keywords is not None:
        return f"({_INPUT_NAME}: {mapping[1]} = ..., /, {keywords[1:-1]})"
    more = f"__Unpack[{mapping[1]}]" if mapping[1] in objects else "__Any"
    return f"({_INPUT_NAME}: {mapping[1]} = ..., /, **more: {more})"


@lru_cache(maxsize=_MOST_KEPT)
def _awaited(checkable: str, package: str) -> str:
    """Returns the `aio` module: the package's functions as coroutine functions, with its types.

    Keeps the last 32 results (LRU).
    """
    code = blank_strings(checkable)
    types = [found[1] or found[2] or found[3] for found in _DECLARED.finditer(code)]
    lines = [_HEAD, *_IMPORTS.findall(checkable)]
    lines += [f"from {package} import {name}\n" for name in types]
    for found in _PLAIN_DEF.finditer(code):
        colon = code.index(":", end_of_bracket(code, found.end()) or found.end())
        lines.append(f"async {checkable[found.start() : colon]}: ...\n")
    return "".join(lines)


_FUNCTION = re.compile(r"^(?:async )?def (\w+)\(", re.MULTILINE)
_INPUT = re.compile(r"\((?:\*\*input: _*Unpack\[|input: )(\w+)[\],) ]")
_MARKED = re.compile(r": _*(Required|NotRequired)\[")
_TYPE = re.compile(r"class (\w+)\(|(\w+)(?: = _*TypedDict|: _*TypeAlias =)")
_WORD = re.compile(r"[^\W\d]\w*")
_LITERALS = re.compile(r"""Literal\[((?:[^\]"]|"[^"]*")*)\]""")
_NAMED = re.compile(r"(\w+)\s*:")


class PythonStubs:
    """Looks up declarations in the stubs, whose layout is our own: no parser is needed."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = {name: text.split("\n") for name, text in files.items()}

    def functions(self, module: str) -> list[str]:
        """Returns the names of a module's functions, without duplicates from overloads; none if it is unknown."""
        lines = self._files.get(_stub_file(module)) or self._files.get(_stub_file(module.removesuffix(".aio"))) or []
        return list(dict.fromkeys(found[1] for line in lines if (found := _FUNCTION.match(line))))

    @cached_property
    def function_names(self) -> set[str]:
        """The names of all functions."""
        return {found[1] for lines in self._files.values() for line in lines if (found := _FUNCTION.match(line))}

    def function(self, name: str, module: str = "") -> StubLine | None:
        """Returns the first line that declares a function, of any module or of this one; None without one."""
        if name not in self.function_names:
            return None
        wanted = None if not module else _stub_file(module.removesuffix(".aio"))
        return next(self._lines(re.compile(rf"^(?:async )?def {name}\("), wanted), None)

    def type(self, name: str) -> StubLine | None:
        """Returns the first line that declares an object type of this name; None without one."""
        if not name.isidentifier():
            return None
        return next(self._lines(_declaration_pattern(name)), None)

    def fields(self, name: str) -> list[str]:
        """Returns the names of a type's fields; none if the stubs don't declare it."""
        declared = self.type(name)
        return [] if declared is None else [field for field, _ in self._field_lines(declared)]

    def lack(self, names: Iterable[str], key: str) -> bool:
        """Returns whether all of these are types of the stubs, and none has this field. True for no names."""
        declared = [list(self._lines(_declaration_pattern(name))) if name.isidentifier() else [] for name in names]
        return all(declared) and not any(self.field(each, key) for found in declared for each in found)

    def field(self, declared: StubLine, name: str) -> StubLine | None:
        """Returns the line of the field of this name in the type that a line declares; None without one."""
        return next((line for field, line in self._field_lines(declared) if field == name), None)

    def fields_named(self, name: str) -> list[StubLine]:
        """Returns the lines of all fields of this name, of any type."""
        pattern = re.compile(rf"""\s+["']?{re.escape(name)}["']?\s*:""")
        return [StubLine(line.file, line.line, line.text.strip()) for line in self._lines(pattern)]

    @cached_property
    def literals(self) -> list[set[str]]:
        """The constants of each literal type, in the checker's notation."""
        found = {text for lines in self._files.values() for line in lines for text in _LITERALS.findall(line)}
        return [{each.strip() for each in split_outside(text, ",")} for text in found]

    def parameters(self, function: StubLine) -> list[str]:
        """Returns the names of a function's parameters: the fields of its input type, or its keywords."""
        declared = self._input_type(function)
        if declared is not None:
            return [field for field, _ in self._field_lines(declared)]
        inside = function.text.partition("(")[2].rpartition(")")[0]
        return [each for each in _NAMED.findall(inside) if each != "input"]

    def parameter(self, function: StubLine, name: str) -> StubLine | None:
        """Returns the line of a parameter in a function's input type; None without such a type or field."""
        declared = self._input_type(function)
        return None if declared is None else self.field(declared, name)

    def is_required(self, function: StubLine, name: str) -> bool:
        """Returns whether a function has this parameter, and requires it."""
        declared = self._input_type(function)
        if declared is not None:
            return self.is_required_field(declared, name)
        inside = function.text.partition("(")[2].rpartition(") -> ")[0]
        written = (each.strip() for each in split_outside(inside, ","))
        return any(each.startswith(f"{name}: ") and not each.endswith(" = ...") for each in written)

    def is_required_field(self, declared: StubLine, name: str) -> bool:
        """Returns whether a type has this field, and requires it."""
        body = self._field_lines(declared)
        line = next((line for field, line in body if field == name), None)
        if line is None:
            return False
        if marked := _MARKED.search(line.text):
            return marked[1] == "Required"
        last = body[-1][1].line  # the next line ends a TypedDict in functional syntax
        return not any("total=False" in each for each in (declared.text, *self._files[declared.file][last : last + 1]))

    def types(self, module: str) -> set[str]:
        """Returns the names of a module's types, aliases among them; none if it is unknown."""
        lines = self._files.get(_stub_file(module.removesuffix(".aio")), ())
        return {found[1] or found[2] for line in lines if (found := _TYPE.match(line))}

    def result_field(self, key: str, kind: str, functions: Iterable[str]) -> StubLine | None:
        """Returns the field of this name and type in what these functions return, at any depth.

        None unless there is exactly one.
        """
        found = {
            line
            for name in self._returned(functions)
            if (declared := self.type(name)) and (line := self.field(declared, key)) and _is_declared_as(line, kind)
        }
        return found.pop() if len(found) == 1 else None

    def _returned(self, functions: Iterable[str]) -> set[str]:
        """Returns the names in functions' return types, and in the fields of these types."""
        seen: set[str] = set()
        waiting = [line.text.rpartition(" -> ")[2] for name in functions if (line := self.function(name))]
        while waiting:
            for name in set(_WORD.findall(blank_strings(waiting.pop()))) - seen:
                seen.add(name)
                declared = self.type(name)
                waiting += [] if declared is None else [line.text for _, line in self._field_lines(declared)]
        return seen

    def _input_type(self, function: StubLine) -> StubLine | None:
        """Returns the line that declares a function's input type, in the same file; None without one."""
        found = _INPUT.search(function.text)
        return next(self._lines(_declaration_pattern(found[1]), function.file), None) if found else None

    def _lines(self, pattern: re.Pattern[str], file: str | None = None) -> Iterator[StubLine]:
        """Yields the lines that match at their start, of one file or of all."""
        for name, lines in self._files.items():
            for number, line in enumerate(lines, 1) if file in (None, name) else ():
                if pattern.match(line):
                    yield StubLine(name, number, line)

    def _field_lines(self, declared: StubLine) -> list[tuple[str, StubLine]]:
        """Returns the fields below a type's declaration (`class X(…` or `X = TypedDict(…`): names and lines."""
        found: list[tuple[str, StubLine]] = []
        for number, line in enumerate(self._files[declared.file][declared.line :], declared.line + 1):
            if not line.startswith(" "):
                break
            named = re.match(r"""\s+["']?([^"':]+)["']?\s*:""", line)
            if named:
                found.append((named[1], StubLine(declared.file, number, line.strip())))
        return found


def _declaration_pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"^(?:class {name}\(|{name} = _*TypedDict\()")


def _is_declared_as(field: StubLine, kind: str) -> bool:
    return re.search(rf": (?:\w+\[)?{re.escape(kind)}\b", field.text) is not None


def _stub_file(module: str) -> str:
    folder = module.replace(".", "/")
    return f"{folder}.pyi" if module == "host.bridge" else f"{folder}/__init__.pyi"
