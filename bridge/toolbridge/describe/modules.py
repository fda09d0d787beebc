"""The modules of a catalog, one line each, with the summaries and signatures of their tools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Protocol, TypeAlias

from toolbridge.trust.sanitise import for_error
from toolbridge_codegen.catalog import Catalog, ModuleSpec, ToolSpec, module_specifier, plain_schema, python_module
from toolbridge_codegen.derive.tools import build_module
from toolbridge_codegen.emit.compact import CUT, emit_compact, first_sentence
from toolbridge_codegen.escaping import clean_line, clean_text, is_object, one_line
from toolbridge_codegen.read.kinds import Bounds
from toolbridge_codegen.stubs import Errors
from toolbridge_codegen.stubs import Language as StubLanguage

# ── signatures ───────────────────────────────────────────────────────────────────────────────────────────────────────

GuestLanguage: TypeAlias = Literal["javascript", "typescript", "python"]
"""The languages of guest programs. JavaScript's functions are described in TypeScript."""

_BOUNDS = Bounds(nodes=5_000, seconds=0.5)
"""Tighter than for stubs: a caller waits for a signature, which shows a few dozen types at most."""


def stub_language(language: GuestLanguage) -> StubLanguage:
    """Returns the stub language for a guest language: JavaScript is described in TypeScript.

    Raises:
        ValueError: there is no such language.
    """
    if language not in ("javascript", "typescript", "python"):
        raise ValueError(f"{language!r} is none of javascript, typescript, python")
    return "python" if language == "python" else "typescript"


def signature_of(module: ModuleSpec, tool: ToolSpec, language: StubLanguage, *, errors: Errors = "raise") -> str:
    """Writes a tool's signature on one bounded line: `get_forecast(input: { location: string }): any`."""
    silent = replace(tool, definition=replace(tool.definition, description="", title=""))
    model, _ = build_module(replace(module, tools=(silent,), instructions=""), bounds=_BOUNDS)
    return emit_compact(model, language, errors=errors).splitlines()[1]


# ── summaries: text from servers, sanitised and bounded ──────────────────────────────────────────────────────────────

_LONGEST_NAME = 100
_LONGEST_SUMMARY = 100
_LONGEST_READ = 2_000
# A sentence or bracket that opens with the word as a label, or a sentence that says it of this tool. "Deprecated
# packages are listed" does neither.
_DEPRECATION = re.compile(
    r"""(?:^|[.!?;:\n([{*_~`|-])\s{0,3}
        (?:DEPRECATED\b|deprecated\s{0,3}(?:[]:.,;!)}*_~`|–—-]|$|in\ fav|since\b|as\ of\b|use\b))
    |\bthis\ (?:tool|function|method|command|endpoint|operation|api)\ (?:is|was|has\ been)\ (?:now\ )?deprecated\b""",
    re.VERBOSE | re.MULTILINE,
)
_REPLACEMENT = re.compile(
    r"\b(?:use|prefer|see|call|(?:replaced|superseded) (?:by|with)|favou?r of|(?:migrate|switch|renamed|moved) to)"
    r"\s{1,3}(?:the\s{1,3})?[^\w\s]{0,3}([\w.:-]{1,100})",
    re.IGNORECASE,
)


def summary_of(tool: ToolSpec) -> str:
    """Returns the first sentence of a tool's description, else of its title, sanitised and bounded.

    Begins with `Deprecated.` if the tool is deprecated and the sentence does not say so.
    """
    text = clean_text(tool.definition.description) or clean_text(tool.definition.title)
    summary = one_line(first_sentence(text))
    return summary if "deprecated" in summary.lower() or not is_deprecated(tool) else f"Deprecated. {summary}".strip()


def is_deprecated(tool: ToolSpec) -> bool:
    """Returns whether a tool's annotations, schema, title or description mark it as deprecated."""
    definition = tool.definition
    schema = plain_schema(definition.input_schema)
    if definition.annotations.get("deprecated") is True or (is_object(schema) and schema.get("deprecated") is True):
        return True
    texts = (definition.title[:_LONGEST_NAME], definition.description[:_LONGEST_READ])
    # A sentence may begin with the word in lower case: there, the punctuation after it decides.
    return any(_DEPRECATION.search(each) or _DEPRECATION.search(each.lower()) for each in texts)


def replacements_of(tool: ToolSpec) -> list[str]:
    """Finds words in a tool's description that may name its replacement: `Use read_text_file instead.`; unsanitised."""
    return _REPLACEMENT.findall(tool.definition.description[:_LONGEST_READ])


def count_of_tools(count: int | None) -> str:
    """Formats a number of tools: `1 tool`, `7 tools`."""
    return "1 tool" if count == 1 else f"{count} tools"


def filter_lines(facts: Mapping[str, Any]) -> list[str]:
    """Writes a server's `allowTools` (an empty list exposes no tool) and `denyTools`, a line each."""
    allowed, denied = facts["allowTools"], facts["denyTools"]
    lines = [] if allowed is None else [f"allowTools {for_error(', '.join(allowed), limit=1000) or 'none'}"]
    return [*lines, f"denyTools  {for_error(', '.join(denied), limit=1000)}"] if denied else lines


def shown_name(name: str) -> str:
    """Sanitises a tool's original name, and truncates it to 100 characters."""
    return clean_line(name, limit=_LONGEST_NAME)


def module_summary(module: ModuleSpec) -> str:
    """Returns the first sentence of a server's instructions, else its only tool's summary, else names of its tools."""
    for line in clean_text(module.instructions).splitlines():
        # Headings and fragments say less than the names of the tools.
        sentence = "" if line.startswith("#") else one_line(first_sentence(line))
        if len(sentence) > 20:
            return sentence
    if len(module.tools) == 1 and (summary := summary_of(module.tools[0])):
        return f"{module.tools[0].identifier}: {summary}"
    return _some_names([tool.identifier for tool in module.tools])


def _some_names(names: list[str]) -> str:
    """Joins as many names as fit, spread over the whole list: neighbours are often alike."""
    count = len(names)
    while count > 1:
        chosen = [names[index * len(names) // count] for index in range(count)]
        text = ", ".join(chosen) + (f", {CUT}" if count < len(names) else "")
        if len(text) <= _LONGEST_SUMMARY:
            return text
        count = min(count - 1, _LONGEST_SUMMARY // 3)
    return names[0] + (f", {CUT}" if len(names) > 1 else "") if names else ""


# ── the list of modules ──────────────────────────────────────────────────────────────────────────────────────────────


class ServerStatusLike(Protocol):
    """The part of a server's status that a module list needs (`toolbridge.ServerStatus` is one)."""

    @property
    def name(self) -> str:
        """The server's name."""
        ...

    @property
    def display_name(self) -> str:
        """Its name in the configuration."""
        ...

    @property
    def state(self) -> str:
        """`idle`, `connected`, `error`, …"""
        ...

    @property
    def tools(self) -> int | None:
        """The number of exposed tools; None before the first listing."""
        ...


@dataclass(frozen=True, slots=True)
class ModuleSummary:
    """One server's module, in a line."""

    specifier: str
    python_module: str
    server: str
    display_name: str
    tools: int | None
    """The number of functions; None before the first listing: the first import connects the server."""
    summary: str
    """From the server's instructions, or the names of its tools: the server's text, sanitised."""
    state: str | None
    """The state of the server, if known."""

    def as_json(self) -> dict[str, Any]:
        """Returns the summary as JSON, for a model or a program."""
        facts = asdict(self)
        return {"module": facts.pop("specifier"), **facts}


def list_modules(catalog: Catalog, known: Iterable[ServerStatusLike] = ()) -> tuple[ModuleSummary, ...]:
    """Lists all modules, sorted by server: those of the catalog, and those of `known` servers without a listing."""
    status = {each.name: each for each in known}
    found = [
        ModuleSummary(
            specifier=module.specifier,
            python_module=module.python_module,
            server=module.server,
            display_name=shown_name(module.display_name) or module.server,
            tools=len(module.tools),
            summary=module_summary(module),
            state=status[module.server].state if module.server in status else None,
        )
        for module in catalog.modules
    ]
    listed = {module.server for module in catalog.modules}
    found += [
        ModuleSummary(
            specifier=module_specifier(each.name),
            python_module=python_module(each.name),
            server=each.name,
            display_name=shown_name(each.display_name) or each.name,
            tools=each.tools,
            summary="",
            state=each.state,
        )
        for each in status.values()
        if each.name not in listed
    ]
    return tuple(sorted(found, key=lambda module: module.server))
