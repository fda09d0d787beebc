"""Lines of the Python stubs: where a function, a type or one of its fields stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property

from toolbridge.check.python_text import split_outside, without_texts
from toolbridge.sandbox.compiler import StubLine

_FUNCTION = re.compile(r"^(?:async )?def (\w+)\(", re.MULTILINE)
_INPUT = re.compile(r"\((?:\*\*input: _*Unpack\[|input: )(\w+)[\],) ]")
_MARKED = re.compile(r": _*(Required|NotRequired)\[")
_TYPE = re.compile(r"class (\w+)\(|(\w+)(?: = _*TypedDict|: _*TypeAlias =)")
_WORD = re.compile(r"[^\W\d]\w*")
_LITERALS = re.compile(r"""Literal\[((?:[^\]"]|"[^"]*")*)\]""")
_NAMED = re.compile(r"(\w+)\s*:")


class PythonStubs:
    """The stubs that a program is checked against. Their form is our own: no parser is needed."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = {name: text.split("\n") for name, text in files.items()}

    def functions(self, module: str) -> list[str]:
        """The names of a module's functions, each once: one may have several overloads."""
        lines = self._files.get(_file(module)) or self._files.get(_file(module.removesuffix(".aio"))) or []
        return list(dict.fromkeys(found[1] for line in lines if (found := _FUNCTION.match(line))))

    @cached_property
    def function_names(self) -> set[str]:
        """The names of all functions."""
        return {found[1] for lines in self._files.values() for line in lines if (found := _FUNCTION.match(line))}

    def function(self, name: str, module: str = "") -> StubLine | None:
        """Where a function of any module, or of this one, is declared."""
        if name not in self.function_names:
            return None
        wanted = None if not module else _file(module.removesuffix(".aio"))
        return self._find(re.compile(rf"^(?:async )?def {name}\("), wanted)

    def type(self, name: str) -> StubLine | None:
        """Where a type is declared."""
        if not name.isidentifier():
            return None
        return self._find(_declaration(name), None)

    def fields(self, name: str) -> list[str]:
        """The fields of a type."""
        declared = self.type(name)
        return [] if declared is None else [field for field, _ in self._body(declared)]

    def lack(self, names: Iterable[str], key: str) -> bool:
        """Whether these are all types of the stubs, and none of such a name has this field."""
        declared = [self._all(_declaration(name)) if name.isidentifier() else [] for name in names]
        return all(declared) and not any(self.field(each, key) for found in declared for each in found)

    def field(self, declared: StubLine, name: str) -> StubLine | None:
        """The line of a type's field."""
        return next((line for field, line in self._body(declared) if field == name), None)

    def has_field(self, name: str) -> bool:
        """Whether any type has a field of this name."""
        return bool(self.fields_named(name))

    def fields_named(self, name: str) -> list[StubLine]:
        """The lines of all fields of this name."""
        own = re.compile(rf"""\s+["']?{re.escape(name)}["']?\s*:""")
        return [
            StubLine(file, number, line.strip())
            for file, lines in self._files.items()
            for number, line in enumerate(lines, 1)
            if own.match(line)
        ]

    @cached_property
    def literals(self) -> list[set[str]]:
        """The constants that stand together in one type, as they are written."""
        found = {text for lines in self._files.values() for line in lines for text in _LITERALS.findall(line)}
        return [{each.strip() for each in split_outside(text, ",")} for text in found]

    def parameters(self, function: StubLine) -> list[str]:
        """What a function may be given."""
        declared = self._input(function)
        if declared is not None:
            return [field for field, _ in self._body(declared)]
        inside = function.text.partition("(")[2].rpartition(")")[0]
        return [each for each in _NAMED.findall(inside) if each != "input"]

    def parameter(self, function: StubLine, name: str) -> StubLine | None:
        """The line that declares one parameter of a function."""
        declared = self._input(function)
        return None if declared is None else self.field(declared, name)

    def is_required(self, function: StubLine, name: str) -> bool:
        """Whether a function can't be called without a parameter."""
        declared = self._input(function)
        if declared is not None:
            return self.is_required_field(declared, name)
        inside = function.text.partition("(")[2].rpartition(") -> ")[0]
        written = (each.strip() for each in split_outside(inside, ","))
        return any(each.startswith(f"{name}: ") and not each.endswith(" = ...") for each in written)

    def is_required_field(self, declared: StubLine, name: str) -> bool:
        """Whether an object can't be without a field."""
        body = self._body(declared)
        line = next((line for field, line in body if field == name), None)
        if line is None:
            return False
        if marked := _MARKED.search(line.text):
            return marked[1] == "Required"
        last = body[-1][1].line  # the next line ends a TypedDict that is made by a call
        return not any("total=False" in each for each in (declared.text, *self._files[declared.file][last : last + 1]))

    def types(self, module: str) -> set[str]:
        """The names of a module's types."""
        lines = self._files.get(_file(module.removesuffix(".aio")), ())
        return {found[1] or found[2] for line in lines if (found := _TYPE.match(line))}

    def result_field(self, key: str, kind: str, functions: Iterable[str]) -> StubLine | None:
        """The field of this name and type in what these functions return; None if there are several, or none."""
        found = {
            line
            for name in self._returned(functions)
            if (declared := self.type(name)) and (line := self.field(declared, key)) and _is_declared_as(line, kind)
        }
        return found.pop() if len(found) == 1 else None

    def _returned(self, functions: Iterable[str]) -> set[str]:
        """The names in the results of functions, and in the types that these name."""
        seen: set[str] = set()
        waiting = [line.text.rpartition(" -> ")[2] for name in functions if (line := self.function(name))]
        while waiting:
            for name in set(_WORD.findall(without_texts(waiting.pop()))) - seen:
                seen.add(name)
                declared = self.type(name)
                waiting += [] if declared is None else [line.text for _, line in self._body(declared)]
        return seen

    def _input(self, function: StubLine) -> StubLine | None:
        found = _INPUT.search(function.text)
        return self._find(_declaration(found[1]), function.file) if found else None

    def _all(self, pattern: re.Pattern[str]) -> list[StubLine]:
        return [
            StubLine(name, number, line)
            for name, lines in self._files.items()
            for number, line in enumerate(lines, 1)
            if pattern.match(line)
        ]

    def _find(self, pattern: re.Pattern[str], file: str | None) -> StubLine | None:
        for name, lines in self._files.items():
            if file is not None and name != file:
                continue
            for number, line in enumerate(lines, 1):
                if pattern.match(line):
                    return StubLine(name, number, line)
        return None

    def _body(self, declared: StubLine) -> list[tuple[str, StubLine]]:
        found: list[tuple[str, StubLine]] = []
        for number, line in enumerate(self._files[declared.file][declared.line :], declared.line + 1):
            if not line.startswith(" "):
                break
            named = re.match(r"""\s+["']?([^"':]+)["']?\s*:""", line)
            if named:
                found.append((named[1], StubLine(declared.file, number, line.strip())))
        return found


def _declaration(name: str) -> re.Pattern[str]:
    return re.compile(rf"^(?:class {name}\(|{name} = _*TypedDict\()")


def _is_declared_as(field: StubLine, kind: str) -> bool:
    return re.search(rf": (?:\w+\[)?{re.escape(kind)}\b", field.text) is not None


def _file(module: str) -> str:
    folder = module.replace(".", "/")
    return f"{folder}.pyi" if module == "host.bridge" else f"{folder}/__init__.pyi"
