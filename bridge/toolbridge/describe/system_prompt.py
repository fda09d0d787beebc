"""The section of a system prompt that tells a model how to write code here, and which modules there are.

The modules are described in one of three forms, from rich to poor:

    full      the complete stubs
    compact   one line for each tool
    search    one line for each module, and how to find out more

`auto` is the richest one that fits a budget.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from toolbridge.describe.modules import ModuleSummary, ServerStatusLike, list_modules
from toolbridge.describe.prompt_texts import HOW_TO_SEARCH, how_to_write
from toolbridge.describe.signatures import GuestLanguage, stub_language
from toolbridge.describe.token_count import count_tokens
from toolbridge_codegen.build import build_module
from toolbridge_codegen.catalog import Catalog, ModuleSpec
from toolbridge_codegen.emit_compact import emit_compact
from toolbridge_codegen.model import ModuleModel
from toolbridge_codegen.stubs import Errors
from toolbridge_codegen.stubs import Language as StubLanguage

WrittenForm: TypeAlias = Literal["full", "compact", "search"]
PromptForm: TypeAlias = Literal["auto"] | WrittenForm

DEFAULT_BUDGET = 4_000
"""Tokens."""
_LEAST_PER_TOOL = 4
"""Tokens of the shortest line that a tool can have: `f(): any`."""
_BACKTICKS = re.compile("`+")


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    """A section of a system prompt, and what it costs."""

    text: str
    form: WrittenForm
    tokens: int
    """An estimate: every model counts in its own way."""
    characters: int

    def as_json(self) -> dict[str, Any]:
        """For a program to read."""
        return {"text": self.text, "form": self.form, "tokens": self.tokens, "characters": self.characters}


def system_prompt(
    catalog: Catalog,
    *,
    language: GuestLanguage = "typescript",
    budget: int | None = None,
    form: PromptForm = "auto",
    known: Iterable[ServerStatusLike] = (),
    how_to_search: str = HOW_TO_SEARCH,
    errors: Errors = "raise",
) -> SystemPrompt:
    """Describe a catalog to a model.

    `budget` is in tokens, None for the default. It chooses the form, and how many modules the search form lists; the
    full and compact forms, where they are asked for by name, are whole. What tells how to write code is always there.

    Raises:
        ValueError: there is no such language or form.
    """
    if form not in ("auto", *get_args(WrittenForm)):
        raise ValueError(f"{form!r} is none of auto, {', '.join(get_args(WrittenForm))}")
    most = DEFAULT_BUDGET if budget is None else budget
    writer = _Writer(
        catalog,
        list_modules(catalog, known),
        language=language,
        errors=errors,
        how_to_search=how_to_search,
    )
    if form == "search" or not catalog.modules:
        return writer.search(most)
    if form == "auto":
        return writer.richest(most)
    written = writer.full(None) if form == "full" else writer.compact(None)
    assert written is not None  # without a limit everything fits
    return written


class _Writer:
    """Writes the forms for one catalog. The types of a module are made once, for all of them."""

    def __init__(
        self,
        catalog: Catalog,
        modules: Sequence[ModuleSummary],
        *,
        language: GuestLanguage,
        errors: Errors,
        how_to_search: str,
    ) -> None:
        self._catalog = catalog
        self._modules = modules
        self._language: StubLanguage = stub_language(language)
        self._errors: Errors = errors
        self._how_to_search = how_to_search
        self._start = how_to_write(language, errors)
        self._models: dict[str, ModuleModel] = {}

    def richest(self, budget: int) -> SystemPrompt:
        # The compact form first: where it is too long, the full one is too, and that takes longer to find out.
        compact = self.compact(budget)
        return (compact and self.full(budget)) or compact or self.search(budget)

    def full(self, budget: int | None) -> SystemPrompt | None:
        return self._stubs("full", "## Modules\n", self._full_stub, budget)

    def compact(self, budget: int | None) -> SystemPrompt | None:
        heading = f"## Modules\n\nOne line for each tool; `…` stands for what is left out. {self._how_to_search}\n"
        return self._stubs("compact", heading, self._compact_stub, budget)

    def search(self, budget: int) -> SystemPrompt:
        if not self._modules:
            return _prompt("search", f"{self._start}\n## Modules\n\nThere are none now.\n")
        guide = f"Their tools are not listed here: look before you write. {self._how_to_search}"
        start = f"{self._start}\n## Modules\n\n{guide}\n\n"
        room = budget - count_tokens(start)
        for with_summary in (True, False):
            lines = [self._line(module, with_summary=with_summary) for module in self._modules]
            if sum(map(count_tokens, lines)) <= room:
                return _prompt("search", start + "".join(lines))
        return _prompt("search", start + self._as_many_as_fit(room))

    def _stubs(
        self, form: WrittenForm, heading: str, write: Callable[[ModuleModel], str], budget: int | None
    ) -> SystemPrompt | None:
        """The modules' stubs, or nothing as soon as it is certain that they don't fit."""
        room = None if budget is None else budget - count_tokens(self._start + heading)
        if room is not None and len(self._catalog.tools) * _LEAST_PER_TOOL > room:
            return None
        texts: list[str] = []
        for module in self._catalog.modules:
            text = write(self._model(module))
            texts.append(text)
            if room is not None:
                room -= count_tokens(text)
                if room < 0:
                    return None
        listed = {module.server for module in self._catalog.modules}
        others = [self._line(module, with_summary=False) for module in self._modules if module.server not in listed]
        block = _fenced("\n".join(texts), self._language)
        prompt = _prompt(form, f"{self._start}\n{heading}\n{block}" + "".join(["\n", *others] if others else []))
        return prompt if budget is None or prompt.tokens <= budget else None

    def _model(self, module: ModuleSpec) -> ModuleModel:
        model = self._models.get(module.server)
        if model is None:
            model, _ = build_module(module)
            self._models[module.server] = model
        return model

    def _compact_stub(self, model: ModuleModel) -> str:
        return emit_compact(model, self._language, errors=self._errors)

    def _full_stub(self, model: ModuleModel) -> str:
        if self._language == "python":
            from toolbridge_codegen.emit_pyi import emit_pyi

            return f"# {model.spec.python_module}\n{emit_pyi(model, errors=self._errors)}"
        from toolbridge_codegen.emit_dts import emit_dts

        text = emit_dts(model, errors=self._errors)
        # Without the twin whose functions return promises: it is told of once, for all modules.
        # No text of a server's can be mistaken for it: in a stub, only what is ours starts at a line's first column.
        return text[: text.rindex("\ndeclare module ") + 1]

    def _line(self, module: ModuleSummary, *, with_summary: bool) -> str:
        name = module.python_module if self._language == "python" else module.specifier
        if module.tools is None:
            count = "tools not known before it is first used"
        else:
            count = "1 tool" if module.tools == 1 else f"{module.tools:,} tools"
        return f"- `{name}` ({count}){': ' + module.summary if with_summary and module.summary else ''}\n"

    def _as_many_as_fit(self, room: int) -> str:
        left = len(self._modules)
        lines: list[str] = []
        room -= count_tokens(_more(left))
        for module in self._modules:
            line = self._line(module, with_summary=False)
            room -= count_tokens(line)
            if room < 0:
                break
            lines.append(line)
            left -= 1
        return "".join(lines) + _more(left)


def _more(modules: int) -> str:
    return f"- … and {modules:,} more module{'' if modules == 1 else 's'}\n"


def _fenced(text: str, language: StubLanguage) -> str:
    """A code block that nothing inside it can end: SECURITY: the fence is longer than any that a server wrote."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}{fence}\n"


def _prompt(form: WrittenForm, text: str) -> SystemPrompt:
    return SystemPrompt(text, form, count_tokens(text), len(text))
