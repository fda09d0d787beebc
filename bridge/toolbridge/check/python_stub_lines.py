"""Lines of the Python stubs: where a function, a type or one of its fields stands."""

from __future__ import annotations

import re
from collections.abc import Mapping

from toolbridge.sandbox.compiler import StubLine

_FUNCTION = re.compile(r"^(?:async )?def (\w+)\(", re.MULTILINE)
_INPUT = re.compile(r"Unpack\[(\w+)\]")
_NAMED = re.compile(r"(\w+)\s*:")


class PythonStubs:
    """The stubs that a program is checked against. Their form is our own: no parser is needed."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = {name: text.split("\n") for name, text in files.items()}

    def functions(self, module: str) -> list[str]:
        """The names of a module's functions."""
        lines = self._files.get(_file(module)) or self._files.get(_file(module.removesuffix(".aio"))) or []
        return [found[1] for line in lines if (found := _FUNCTION.match(line))]

    def function(self, name: str, module: str = "") -> StubLine | None:
        """Where a function of any module, or of this one, is declared."""
        if not name.isidentifier():
            return None
        wanted = None if not module else _file(module.removesuffix(".aio"))
        return self._find(re.compile(rf"^(?:async )?def {name}\("), wanted)

    def type(self, name: str) -> StubLine | None:
        """Where a type is declared."""
        if not name.isidentifier():
            return None
        return self._find(re.compile(rf"^(?:class {name}\(|{name} = TypedDict\()"), None)

    def fields(self, name: str) -> list[str]:
        """The fields of a type."""
        declared = self.type(name)
        return [] if declared is None else [field for field, _ in self._body(declared)]

    def field(self, declared: StubLine, name: str) -> StubLine | None:
        """The line of a type's field."""
        return next((line for field, line in self._body(declared) if field == name), None)

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

    def _input(self, function: StubLine) -> StubLine | None:
        found = _INPUT.search(function.text)
        return self._find(re.compile(rf"^class {found[1]}\("), function.file) if found else None

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


def _file(module: str) -> str:
    folder = module.replace(".", "/")
    return f"{folder}.pyi" if module == "host.bridge" else f"{folder}/__init__.pyi"
