"""Which modules there are: what a model asks first, before it looks into one of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Protocol, TypeAlias, cast

from toolbridge.trust.text.sanitise import for_error
from toolbridge_codegen.catalog import Catalog, ModuleSpec, ToolSpec, module_specifier, plain_schema, python_module
from toolbridge_codegen.derive.tools import build_module
from toolbridge_codegen.emit.compact import CUT, emit_compact, first_sentence
from toolbridge_codegen.escaping import brief_json, clean_line, clean_text, is_object, one_line
from toolbridge_codegen.model import (
    Declaration,
    FunctionModel,
    ModuleModel,
    NamedType,
    ObjectType,
    Property,
    TypeNode,
    UnionType,
)
from toolbridge_codegen.read.kinds import Bounds
from toolbridge_codegen.read.notes import NO_DOCS
from toolbridge_codegen.stubs import Errors
from toolbridge_codegen.stubs import Language as StubLanguage

# The parameters of a module's functions, one by one: for a reader who wants facts rather than a stub.


MOST_PARAMETERS = 200
_LONGEST_NAME = 100
_LONGEST_DESCRIPTION = 500
_DEFAULT = "default: "
_NO_INPUT = Declaration("", ObjectType((), None))
"""No type of a module has an empty name."""


_CUT = "…"
_DEEPEST = 20


def shown_schema(schema: object, most: int = 20_000) -> Any:
    """A server's JSON Schema for a reader: texts cleaned, bounded to about `most` characters, `…` where it is cut."""
    left = most

    def shown(value: object, depth: int) -> Any:
        nonlocal left
        left -= 8
        if left <= 0 or depth > _DEEPEST:
            return _CUT
        value = plain_schema(value)
        if isinstance(value, dict):
            members: dict[str, Any] = {}
            for key, each in cast("dict[Any, Any]", value).items():
                if left <= 0:
                    members[_CUT] = _CUT
                    break
                name = clean_line(str(key), limit=_LONGEST_NAME)
                left -= len(name)
                members[name] = shown(each, depth + 1)
            return members
        if isinstance(value, list | tuple):
            items: list[Any] = []
            for each in cast("Sequence[Any]", value):
                items.append(shown(each, depth + 1))
                if left <= 0:
                    break
            return items
        if value is None or isinstance(value, bool | int | float):
            return value
        text = clean_line(str(value), limit=_LONGEST_DESCRIPTION)
        left -= len(text)
        return text

    return shown(schema, 0)


@dataclass(frozen=True, slots=True)
class ParameterInfo:
    """One property of a function's input."""

    name: str
    """Cleaned: where the real name holds what can't be seen, it is in the stub, escaped."""
    type: str
    """In the language that was asked for, cut where it is long."""
    required: bool
    default: str | None
    """JSON, cut where it is long; None if its schema names none."""
    description: str
    notes: tuple[str, ...]
    """What the type can't say: `format: date-time`, `minimum: 1`."""

    def as_json(self) -> dict[str, Any]:
        """For a model or a program to read."""
        return {**asdict(self), "notes": list(self.notes)}


def parameters_of(model: ModuleModel, language: StubLanguage) -> Mapping[str, tuple[ParameterInfo, ...]]:
    """Identifier → parameters, for every function of a module."""
    by_name = {declaration.name: declaration.type for declaration in model.declarations}
    properties = {
        function.tool.identifier: _properties(function.input, by_name)[:MOST_PARAMETERS] for function in model.functions
    }
    every = [(function, known) for function in model.functions for known in properties[function.tool.identifier]]
    texts = iter(_type_texts(model, every, language))
    return {
        function.tool.identifier: tuple(
            _parameter(function, known, next(texts)) for known in properties[function.tool.identifier]
        )
        for function in model.functions
    }


def _properties(node: TypeNode, by_name: Mapping[str, TypeNode]) -> list[Property]:
    """The properties of an input; of one that is a union, those of all its members."""
    members = _objects(node, by_name)
    if len(members) == 1:
        return list(members[0].properties)
    merged: dict[str, list[Property]] = {}
    for member in members:
        for known in member.properties:
            merged.setdefault(known.name, []).append(known)
    return [
        replace(
            same[0],
            type=same[0].type if len(same) == 1 else UnionType(tuple(known.type for known in same)),
            required=len(same) == len(members) and all(known.required for known in same),
        )
        for same in merged.values()
    ]


def _objects(node: TypeNode, by_name: Mapping[str, TypeNode]) -> list[ObjectType]:
    found: list[ObjectType] = []
    seen: set[str] = set()
    waiting = [node]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, NamedType) and node.name not in seen:
            seen.add(node.name)
            waiting.append(by_name[node.name])
        elif isinstance(node, UnionType):
            waiting += node.members
        elif isinstance(node, ObjectType):
            found.append(node)
    return found


def _type_texts(
    model: ModuleModel, every: Iterable[tuple[FunctionModel, Property]], language: StubLanguage
) -> list[str]:
    """The types as compact stubs write them: each as the result of a function without parameters."""
    nothing = NamedType(_NO_INPUT.name)
    functions = tuple(
        replace(function, input=nothing, input_required=False, output=known.type, docs=NO_DOCS)
        for function, known in every
    )
    asked = replace(model, declarations=(*model.declarations, _NO_INPUT), functions=functions)
    arrow = "() -> " if language == "python" else "(): "
    return [line.partition(arrow)[2] for line in emit_compact(asked, language).splitlines()[1:]]


def _parameter(function: FunctionModel, known: Property, type_text: str) -> ParameterInfo:
    noted = [note for note in known.docs.notes if note.startswith(_DEFAULT)]
    return ParameterInfo(
        name=clean_line(known.name, limit=_LONGEST_NAME),
        type=type_text,
        required=known.required,
        default=_default(function, known.name) or next((note.removeprefix(_DEFAULT) for note in noted), None),
        description=clean_line(known.docs.description, limit=_LONGEST_DESCRIPTION),
        notes=tuple(note for note in known.docs.notes if note not in noted),
    )


def _default(function: FunctionModel, name: str) -> str | None:
    """The default that the schema itself names: the model leaves it out where the description has it."""
    schema = plain_schema(function.tool.definition.input_schema)
    properties = schema.get("properties") if is_object(schema) else None
    known = properties.get(name) if is_object(properties) else None
    return brief_json(known["default"]) if is_object(known) and "default" in known else None


# How a tool is called, on one line, in the language that a program is written in.


GuestLanguage: TypeAlias = Literal["javascript", "typescript", "python"]
"""What guest code is written in. JavaScript's functions are described in TypeScript's words."""


_BOUNDS = Bounds(nodes=5_000, seconds=0.5)
"""Tighter than for stubs: signatures are written while somebody waits, and show a few dozen parts at most."""


def stub_language(language: GuestLanguage) -> StubLanguage:
    """The language of the stubs that a program in this language is written against.

    Raises:
        ValueError: there is no such language.
    """
    if language not in ("javascript", "typescript", "python"):
        raise ValueError(f"{language!r} is none of javascript, typescript, python")
    return "python" if language == "python" else "typescript"


def signature_of(module: ModuleSpec, tool: ToolSpec, language: StubLanguage, *, errors: Errors = "raise") -> str:
    """How a tool is called, on one line of bounded length: `get_forecast(input: { location: string }): any`."""
    silent = replace(tool, definition=replace(tool.definition, description="", title=""))
    model, _ = build_module(replace(module, tools=(silent,), instructions=""), bounds=_BOUNDS)
    return emit_compact(model, language, errors=errors).splitlines()[1]


# What tools and modules are for, in a line: their servers' words, cleaned and bounded.


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
    """What a tool is for, in its server's words: the first sentence, cleaned and bounded. A deprecated one says so."""
    text = clean_text(tool.definition.description) or clean_text(tool.definition.title)
    summary = one_line(first_sentence(text))
    return summary if "deprecated" in summary.lower() or not is_deprecated(tool) else f"Deprecated. {summary}".strip()


def is_deprecated(tool: ToolSpec) -> bool:
    """Whether a tool's annotations, schema, title or description mark it as deprecated."""
    definition = tool.definition
    schema = plain_schema(definition.input_schema)
    if definition.annotations.get("deprecated") is True or (is_object(schema) and schema.get("deprecated") is True):
        return True
    texts = (definition.title[:_LONGEST_NAME], definition.description[:_LONGEST_READ])
    # In small letters a sentence may just begin with the word: there, what follows it decides.
    return any(_DEPRECATION.search(each) or _DEPRECATION.search(each.lower()) for each in texts)


def replacements_of(tool: ToolSpec) -> list[str]:
    """Words of a deprecated tool's description that may name its replacement: `Use read_text_file instead.`"""
    return _REPLACEMENT.findall(tool.definition.description[:_LONGEST_READ])


def count_of_tools(count: int | None) -> str:
    """`1 tool`, `7 tools`."""
    return "1 tool" if count == 1 else f"{count} tools"


def filter_lines(facts: Mapping[str, Any]) -> list[str]:
    """What is said of a server's `allowTools`, of which an empty one exposes nothing, and of its `denyTools`."""
    allowed, denied = facts["allowTools"], facts["denyTools"]
    lines = [] if allowed is None else [f"allowTools {for_error(', '.join(allowed), limit=1000) or 'none'}"]
    return [*lines, f"denyTools  {for_error(', '.join(denied), limit=1000)}"] if denied else lines


def shown_name(name: str) -> str:
    """A tool's original name for a reader: the exact one may hold anything."""
    return clean_line(name, limit=_LONGEST_NAME)


def module_summary(module: ModuleSpec) -> str:
    """What a module is for: the first sentence of its server's instructions, else what its tools are."""
    for line in clean_text(module.instructions).splitlines():
        # A heading, or a word or two, says less than the tools do.
        sentence = "" if line.startswith("#") else one_line(first_sentence(line))
        if len(sentence) > 20:
            return sentence
    if len(module.tools) == 1 and (summary := summary_of(module.tools[0])):
        return f"{module.tools[0].identifier}: {summary}"
    return _some_names([tool.identifier for tool in module.tools])


def _some_names(names: list[str]) -> str:
    """As many names as there is room for, spread over the whole list: neighbours in it are often alike."""
    count = len(names)
    while count > 1:
        chosen = [names[index * len(names) // count] for index in range(count)]
        text = ", ".join(chosen) + (f", {CUT}" if count < len(names) else "")
        if len(text) <= _LONGEST_SUMMARY:
            return text
        count = min(count - 1, _LONGEST_SUMMARY // 3)
    return names[0] + (f", {CUT}" if len(names) > 1 else "") if names else ""


# All about one module: its functions, their parameters, and the stub that describes them exactly.


_LONGEST_DIAGNOSTIC = 300
_LONGEST_STUB = 200_000
"""Characters. A longer one is no help to anybody: the compact form stands in for it."""

_CLAIMS = {
    ("readOnlyHint", True): "read-only",
    ("readOnlyHint", False): "changes something",
    ("destructiveHint", True): "may delete or overwrite",
    ("destructiveHint", False): "only adds, never deletes or overwrites",
    ("idempotentHint", True): "safe to repeat",
    ("openWorldHint", True): "reaches beyond its own data",
}
"""What annotations say in words. A server writes them about itself, and nothing checks them."""


@dataclass(frozen=True, slots=True)
class FunctionInfo:
    """One tool as a function."""

    identifier: str
    tool: str
    """Its original name, exactly: hostile text. `as_json` has it cleaned."""
    signature: str
    summary: str
    description: str
    """The server's words, cleaned, at most 2,000 characters."""
    parameters: tuple[ParameterInfo, ...]
    notes: tuple[str, ...]
    """What its server claims of it, and whether it is called otherwise here."""

    def as_json(self) -> dict[str, Any]:
        """For a model or a program to read."""
        return {
            **asdict(self),
            "tool": shown_name(self.tool),
            "notes": list(self.notes),
            "parameters": self._parameters,
        }

    @property
    def _parameters(self) -> list[dict[str, Any]]:
        return [parameter.as_json() for parameter in self.parameters]


@dataclass(frozen=True, slots=True)
class ModuleInfo:
    """One server's module."""

    specifier: str
    python_module: str
    server: str
    display_name: str
    summary: str
    instructions: str
    """The server's words, cleaned, at most 1,000 characters."""
    functions: tuple[FunctionInfo, ...]
    renamed: Mapping[str, str]
    """Identifier → original name, of the tools whose own names are no identifiers, or taken."""
    stub: str
    """`.d.ts` or `.pyi`; the compact form where that would be too long."""
    diagnostics: tuple[str, ...]
    """What the types can't say, tool by tool."""

    def as_json(self) -> dict[str, Any]:
        """For a model or a program to read."""
        return {
            "module": self.specifier,
            "python_module": self.python_module,
            "server": self.server,
            "display_name": self.display_name,
            "summary": self.summary,
            "instructions": self.instructions,
            "functions": [function.as_json() for function in self.functions],
            "renamed": {identifier: shown_name(name) for identifier, name in self.renamed.items()},
            "stub": self.stub,
            "diagnostics": list(self.diagnostics),
        }


def module_info(
    catalog: Catalog,
    specifier: str,
    *,
    language: GuestLanguage = "typescript",
    errors: Errors = "raise",
) -> ModuleInfo | None:
    """Everything about one module, by its specifier, Python name, server's name, or one of its tools' full names.

    None if there is none.

    Raises:
        ValueError: there is no such language.
    """
    written = stub_language(language)
    module = next(
        (each for each in catalog.modules if specifier in (each.specifier, each.python_module, each.server)), None
    )
    if module is None and (tool := catalog.named(specifier)) is not None:
        module = catalog.module(module_specifier(tool.server))
    if module is None:
        return None
    model, diagnostics = build_module(module)
    compact = emit_compact(_without_descriptions(model), written, errors=errors).splitlines()[1:]
    return ModuleInfo(
        specifier=module.specifier,
        python_module=module.python_module,
        server=module.server,
        display_name=shown_name(module.display_name) or module.server,
        summary=module_summary(module),
        instructions=model.docs.description,
        functions=tuple(_functions(model, compact, written)),
        renamed={tool.identifier: tool.name for tool in module.tools if tool.identifier != tool.name},
        stub=_stub(model, written, errors),
        diagnostics=tuple(
            clean_line(f"{shown_name(item.tool)} {item.path}: {item.message}", limit=_LONGEST_DIAGNOSTIC)
            for item in diagnostics
        ),
    )


def _without_descriptions(model: ModuleModel) -> ModuleModel:
    return replace(model, functions=tuple(replace(function, docs=NO_DOCS) for function in model.functions))


def _functions(model: ModuleModel, signatures: list[str], language: StubLanguage) -> Iterator[FunctionInfo]:
    parameters = parameters_of(model, language)
    for function, signature in zip(model.functions, signatures, strict=True):
        yield FunctionInfo(
            identifier=function.tool.identifier,
            tool=function.tool.name,
            signature=signature,
            summary=summary_of(function.tool),
            description=function.docs.description,
            parameters=parameters[function.tool.identifier],
            notes=tuple(_notes(function.tool, parameters[function.tool.identifier])),
        )


def _notes(tool: ToolSpec, parameters: Sequence[ParameterInfo]) -> Iterator[str]:
    if tool.name != tool.identifier:
        yield f"its server calls it {shown_name(tool.name)!r}"
    for claim in claims_of(tool):
        yield f"its server claims: {claim}"
    if len(parameters) == MOST_PARAMETERS:
        yield f"only the first {MOST_PARAMETERS} parameters are listed; the stub has all"


def claims_of(tool: ToolSpec) -> tuple[str, ...]:
    """What a server's annotations say of a tool, as far as they are what they should be."""
    annotations = tool.definition.annotations
    # By identity: 1 and "true" are not what the specification has, and equal neither.
    return tuple(words for (hint, value), words in _CLAIMS.items() if annotations.get(hint) is value)


def _stub(model: ModuleModel, language: StubLanguage, errors: Errors) -> str:
    if language == "python":
        from toolbridge_codegen.emit.pyi import emit_pyi

        text = emit_pyi(model, errors=errors)
    else:
        from toolbridge_codegen.emit.dts import emit_dts

        text = emit_dts(model, errors=errors)
    if len(text) <= _LONGEST_STUB:
        return text
    return cut_lines(emit_compact(model, language, errors=errors), _LONGEST_STUB, language)


def cut_lines(text: str, limit: int, language: StubLanguage) -> str:
    """As many whole lines as fit, and how many more there are."""
    if len(text) <= limit:
        return text
    lines = text.splitlines(keepends=True)
    kept: list[str] = []
    room = limit
    for line in lines:
        room -= len(line)
        if room < 0:
            break
        kept.append(line)
    mark = "#" if language == "python" else "//"
    return "".join(kept) + f"{mark} … and {len(lines) - len(kept)} more\n"


__all__ = ["FunctionInfo", "ModuleInfo", "ModuleSummary", "ServerStatusLike", "list_modules", "module_info"]


class ServerStatusLike(Protocol):
    """What is asked of a configured server's status (`toolbridge.ServerStatus` is one)."""

    @property
    def name(self) -> str:
        """The server's name."""
        ...

    @property
    def display_name(self) -> str:
        """What it is called in its configuration."""
        ...

    @property
    def state(self) -> str:
        """`idle`, `connected`, `error`, …"""
        ...

    @property
    def tools(self) -> int | None:
        """How many tools it exposes; None when it was never asked."""
        ...


@dataclass(frozen=True, slots=True)
class ModuleSummary:
    """One server's module, in a line."""

    specifier: str
    python_module: str
    server: str
    display_name: str
    tools: int | None
    """None when the server was never asked: it is when the module is first imported."""
    summary: str
    """From the server's instructions, or the names of its tools. The server's words, cleaned."""
    state: str | None
    """The state of the server, where it is known."""

    def as_json(self) -> dict[str, Any]:
        """For a model or a program to read."""
        return {
            "module": self.specifier,
            "python_module": self.python_module,
            "server": self.server,
            "display_name": self.display_name,
            "tools": self.tools,
            "summary": self.summary,
            "state": self.state,
        }


def list_modules(catalog: Catalog, known: Iterable[ServerStatusLike] = ()) -> tuple[ModuleSummary, ...]:
    """Every module, sorted by server: those of the catalog, and those of servers whose tools are not known yet."""
    status = {each.name: each for each in known}
    found = [_from_catalog(module, status.get(module.server)) for module in catalog.modules]
    listed = {module.server for module in catalog.modules}
    found += [_from_status(each) for each in status.values() if each.name not in listed]
    return tuple(sorted(found, key=lambda module: module.server))


def _from_catalog(module: ModuleSpec, status: ServerStatusLike | None) -> ModuleSummary:
    return ModuleSummary(
        specifier=module.specifier,
        python_module=module.python_module,
        server=module.server,
        display_name=shown_name(module.display_name) or module.server,
        tools=len(module.tools),
        summary=module_summary(module),
        state=None if status is None else status.state,
    )


def _from_status(status: ServerStatusLike) -> ModuleSummary:
    return ModuleSummary(
        specifier=module_specifier(status.name),
        python_module=python_module(status.name),
        server=status.name,
        display_name=shown_name(status.display_name) or status.name,
        tools=status.tools,
        summary="",
        state=status.state,
    )
