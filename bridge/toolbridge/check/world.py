"""What a program is checked against: the stubs of the modules that it names, and how earlier programs left things."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_WORD = re.compile(r"[^\W\d][\w$]*")
_MOST_CONTEXT = 200_000
ANYTHING = "_anything"
"""Python: a module of which nothing is known, for names that no longer mean what was imported."""
_IMPORT_WORDS = {"from", "import", "as", ANYTHING}


@dataclass(frozen=True, slots=True)
class World:
    """Stubs, and modules without any: of servers that could not be asked, which a run will say more about."""

    stubs: Mapping[str, str]
    """File name → text, in the language of the program."""
    modules: tuple[str, ...] = ()
    """Every specifier there is, for a misspelt one."""
    untyped: tuple[str, ...] = ()
    """Specifiers of modules about which nothing is known."""


class SessionNames:
    """What the programs of a session have declared so far."""

    def __init__(self) -> None:
        self.declared: dict[str, str] = {}
        """JavaScript and TypeScript: name → its type."""
        self.words: set[str] = set()
        """Every word of earlier programs: a name among them may have been defined."""
        self.imports: list[str] = []
        """Python: what earlier programs imported of the host, and the names to which they gave a new meaning since."""

    @property
    def mentions(self) -> str:
        """Text that names the modules which earlier programs imported."""
        return "\n".join([*self.imports, *self.declared.values()])

    def is_used_in(self, source: str) -> bool:
        """Whether a program uses what an earlier one imported of the host."""
        typed = {name for name, kind in self.declared.items() if kind.startswith("typeof import(")}
        for text in self.imports:
            typed.update(_WORD.findall(text))
        return bool(typed) and not typed.isdisjoint(_WORD.findall(source))

    def add(self, source: str, language: str, names: Iterable[tuple[str, str]]) -> None:
        """A program was run, which declares these names."""
        self.declared.update(names)
        self.words.update(_WORD.findall(source[:_MOST_CONTEXT]))
        if language == "python":
            self._add_imports(source[:_MOST_CONTEXT])

    def _add_imports(self, source: str) -> None:
        """Later lines count: a name may be imported, defined anew, and imported again."""
        from toolbridge.check.python_text import HOST_IMPORT, new_meanings, without_texts

        code = without_texts(source)
        found = [text.strip() for text in HOST_IMPORT.findall(code)]
        kept = [text for text in self.imports if text not in found]
        renewed = new_meanings(code)
        if not any(text.endswith("*") for text in (*kept, *found)):
            renewed &= {name for text in (*kept, *found) for name in _WORD.findall(text)}
        changed = [f"from {ANYTHING} import {name}" for name in sorted(renewed - _IMPORT_WORDS)]
        self.imports = [*(text for text in kept if text not in changed), *found, *changed]
