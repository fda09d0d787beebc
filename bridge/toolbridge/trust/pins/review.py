"""SECURITY: the prompt that shows a person a server's tools before they are pinned (T14).

Models read more than descriptions: names, types and descriptions of parameters. The prompt leaves out only the dialect
of a schema, and whether it is closed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from toolbridge.config.server_config import ServerConfig
from toolbridge.errors import advised
from toolbridge.trust.approval.approver import Terminal
from toolbridge.trust.audit.detector import Finding, counted
from toolbridge.trust.pins.admission import FirstListing
from toolbridge.trust.pins.definition import PinnedTool, pin_of
from toolbridge.trust.pins.lock_file import PinnedServer
from toolbridge.trust.sanitise import visible, word, wrapped
from toolbridge_codegen.catalog import ToolDefinition, one_per_name
from toolbridge_codegen.escaping import characters_read

_LONGEST_NAME = 300
_MOST_NAMES = 8
_INDENT = "      "
_HINTS = {
    "readOnlyHint": "read-only",
    "destructiveHint": "destructive",
    "idempotentHint": "idempotent",
    "openWorldHint": "open world",
}
_DIALECT = re.compile(r"https?://json-schema\.org/[\w./-]*#?")
_PLAIN_TITLE = re.compile(r"[A-Za-z0-9 _-]*")
_TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_IN_ORDER = ("anyOf", "oneOf", "allOf", "prefixItems")
_INNER = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")

_Part: TypeAlias = tuple[str, list[str], str]


_MOST_PARAGRAPHS = 60


def tool_lines(tool: ToolDefinition, width: int, *, problem: str = "") -> list[str]:
    """Returns the whole definition of a tool as lines; with a `problem` only the name and why it can't be pinned.

    Raises:
        UnpinnableError: it can't be pinned, and no problem is given.
    """
    if problem:
        return [_name(tool.name), *_indented(f"can't be pinned, and so not be called: it {problem}".split(), width)]
    pin = pin_of(tool)
    return [*_head(pin, width), *_schema_lines(pin, width)]


def folded_tool_lines(tool: ToolDefinition, width: int) -> tuple[list[str], int]:
    """Returns a definition with parameters and results folded, and the number of folded lines.

    Raises:
        UnpinnableError: it can't be pinned.
    """
    pin = pin_of(tool)
    folded = len(_schema_lines(pin, width))
    names = list(_mapping(pin.fields["inputSchema"].get("properties")) or ())
    shown = ", ".join(word(name)[:_LONGEST_NAME] for name in names[:_MOST_NAMES])
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    note = f"- folded: {_line_count(folded)} about {shown or 'what it takes and gives'}{more}"
    return [*_head(pin, width), *(_indented(note.split(), width) if folded else [])], folded


def text_lines(text: str, width: int) -> list[str]:
    """Returns the lines of a text, as far as models read it: a person accepts exactly what is shown."""
    read = text[: characters_read()]
    paragraphs = [line for line in read.split("\n") if line.strip()]
    # Line by line, unless there are so many that the rest would leave the screen.
    parts = paragraphs if len(paragraphs) <= _MOST_PARAGRAPHS else [read]
    lines = [line for part in parts for line in _indented(_words(part.strip()), width)]
    more = _left_out(text)
    return [*lines, f"{_INDENT}{more}"] if more else lines


def _name(name: str) -> str:
    return f"  {visible(name)[:_LONGEST_NAME]}"


def _head(pin: PinnedTool, width: int) -> list[str]:
    """Returns the lines of a definition but its schemas: name, description, and what it says of itself."""
    title = pin.fields.get("title", "")
    facts = [f"title {_value(title)}"] if title and not _says_no_more(title, pin.name) else []
    for key, value in pin.fields.get("annotations", {}).items():
        known = _HINTS.get(key)
        if known is not None and isinstance(value, bool):
            facts.append(known if value else f"not {known}")
        elif not (key == "title" and value == title):
            facts.append(f"{word(key)} {_value(value)}")
    claims = _indented(f"(by its own account: {', '.join(facts)})".split(" "), width) if facts else []
    return [_name(pin.name), *text_lines(pin.fields.get("description", ""), width), *claims]


def schema_lines(tool: ToolDefinition, width: int) -> list[str]:
    """Returns the parameters and results of a tool, place by place; raises UnpinnableError."""
    return _schema_lines(pin_of(tool), width)


def _schema_lines(pin: PinnedTool, width: int) -> list[str]:
    """Returns a line or more for each place in the parameters (`-`) and the results (`→`)."""
    lines: list[str] = []
    for mark, whole, field in (("-", "(input)", "inputSchema"), ("→", "(result)", "outputSchema")):
        parts = _parts(pin.fields[field], "", is_required=False) if field in pin.fields else ()
        for path, facts, text in parts:
            about = f" ({', '.join(facts)})" if facts else ""
            shown = [*f"{mark} {path or whole}{about}{':' if text else ''}".split(" "), *_words(text)]
            first, *rest = wrapped(shown, width - len(_INDENT) - 2)
            lines += [f"{_INDENT}{first}", *(f"{_INDENT}  {line}" for line in rest)]
    return lines


def _parts(schema: object, path: str, *, is_required: bool) -> Iterator[_Part]:
    """Yields each place in a schema: its path, its facts and its description."""
    found = _mapping(schema)
    if found is None:  # `true`, `false`, or no schema
        yield path, [_value(schema)], ""
        return
    kind, told = _kind(found)
    facts = [kind] if kind and (path or kind != "object") else []
    facts += ["required"] if is_required else []
    for key, value in found.items():
        if not (key in told or _has_parts(key, value) or _says_nothing(key, value, found, path)):
            facts.append(f"{word(key)} {_value(value)}")
    text = found.get("description")
    text = text if isinstance(text, str) else ""
    if path or facts or text:
        yield path, facts, text
    for place, inner, is_needed in _inner(found, path):
        if place[1] not in told:
            yield from _parts(inner, place[0], is_required=is_needed)


def _has_parts(key: str, value: object) -> bool:
    """Whether a keyword's value is shown as places of their own."""
    if key in _BY_NAME:
        return isinstance(value, dict)
    if key in _IN_ORDER:
        return isinstance(value, list)
    return key in _INNER and isinstance(value, (dict, list, bool))  # a bool has no words


def _inner(schema: Mapping[str, Any], path: str) -> Iterator[tuple[tuple[str, str], object, bool]]:
    """Yields the inner schemas: path and keyword, schema, and whether it is required."""
    listed = schema.get("required")
    required = cast("list[object]", listed) if isinstance(listed, list) else []
    for key, value in schema.items():
        below = f"{path}.{key}" if path else key
        if not _has_parts(key, value) or isinstance(value, bool):
            continue
        if key in _BY_NAME:
            before = (f"{path}." if path else "") if key == "properties" else f"{below}."
            for name, inner in value.items():
                yield (f"{before}{word(name)}", key), inner, key == "properties" and name in required
        elif isinstance(value, list):
            for place, inner in enumerate(cast("list[object]", value)):
                yield (f"{below}[{place}]", key), inner, False
        else:
            yield (f"{path}[]" if key == "items" else below, key), value, False


def _kind(schema: Mapping[str, Any], *, is_inner: bool = False) -> tuple[str, set[str]]:
    """Returns `string`, `array of string`, `"a" | "b"` or nothing; and the keywords that this covers."""
    given = schema.get("type")
    plain = {"type"} if given in _TYPES else set[str]()
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return " | ".join(_value(each) for each in schema["enum"]), {"enum"} | plain
    if "const" in schema:
        return _value(schema["const"]), {"const"} | plain
    if not is_inner:
        several = _kind_of_several(schema)
        if several is not None:
            return several
    if isinstance(given, str):
        return visible(given), {"type"}
    if isinstance(given, list) and given and all(each in _TYPES for each in cast("list[object]", given)):
        return " | ".join(cast("list[str]", given)), {"type"}
    reference = schema.get("$ref")
    return (visible(reference), {"$ref"}) if isinstance(reference, str) else ("", set())


def _kind_of_several(schema: Mapping[str, Any]) -> tuple[str, set[str]] | None:
    """Returns the kind of a schema whose parts are simple kinds, with the keywords that it covers; else None."""
    for key in ("items", "anyOf", "oneOf"):
        value: object = schema.get(key)
        is_array = key == "items"
        if is_array and schema.get("type") != "array":
            continue
        listed: list[object] = cast("list[object]", value) if isinstance(value, list) and not is_array else []
        listed += [value] if is_array else []
        members = [_mapping(each) for each in listed]
        kinds = [(*_kind(each, is_inner=True), each) for each in members if each is not None]
        if kinds and len(kinds) == len(members) and all(kind and told >= set(each) for kind, told, each in kinds):
            joined = " | ".join(kind for kind, _, _ in kinds)
            return (f"array of {joined}", {"type", key}) if is_array else (joined, {key})
    return None


def _says_nothing(key: str, value: object, schema: Mapping[str, Any], path: str) -> bool:
    """Whether a keyword needs no mention: a known dialect, a title like the name, or what is shown elsewhere."""
    if key == "$schema":
        return isinstance(value, str) and _DIALECT.fullmatch(value) is not None
    if key == "required":  # said of each of them, if it is there
        properties = _mapping(schema.get("properties")) or {}
        each_of: list[object] = cast("list[object]", value) if isinstance(value, list) else [None]
        return all(isinstance(each, str) and each in properties for each in each_of)
    if key == "description":
        return isinstance(value, str)  # shown by itself
    return key == "title" and isinstance(value, str) and _says_no_more(value, path.rpartition(".")[2])


def _says_no_more(title: str, name: str) -> bool:
    """Whether a title is only the name in other letters, as generators make it."""
    plain = _PLAIN_TITLE.fullmatch(title) and _PLAIN_TITLE.fullmatch(name)
    return bool(plain) and _bare(title) == _bare(name)


def _bare(text: str) -> str:
    return re.sub("[ _-]", "", text).lower()


def _value(value: object) -> str:
    """Returns a value as JSON on one line, inert, and cut where models read no further."""
    text = json.dumps(value, ensure_ascii=False)
    more = len(text) - characters_read()
    return f"{visible(text[: characters_read()])}… and {more:,} more characters" if more > 0 else visible(text)


def _words(text: str) -> list[str]:
    words = visible(text[: characters_read()]).split()  # models are given one space where there are many
    return [*words, *_left_out(text).split()]


def _left_out(text: str) -> str:
    more = len(text) - characters_read()
    return f"… and {more:,} more characters, which no model is given" if more > 0 else ""


def _line_count(lines: int) -> str:
    return "1 line" if lines == 1 else f"{lines} lines"


def _mapping(value: object) -> Mapping[str, Any] | None:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


def _indented(words: list[str], width: int) -> list[str]:
    return [f"{_INDENT}{line}" for line in wrapped(words, width - len(_INDENT))]


# SECURITY: the second stage of approval, after that of the command: the tools of a running server, before their use.


MOST_LINES = 120
"""Of a whole listing; in a longer one, parameters and results are folded."""
_MOST_FINDINGS = 30


def tools_prompt(first: FirstListing, *, width: int = 80, shows_all: bool = False, how: str = "") -> str:
    """Returns a listing with its findings, for a person; `how` tells how to see folded lines. Runs the audit.

    Long listings are folded unless `shows_all`; tools with findings never are.
    """
    server, tools = first.server.name, one_per_name(first.tools)
    lines: list[str] = []
    if first.instructions:
        lines += [f"Server {server!r} tells models about itself:", "", *text_lines(first.instructions, width), ""]
    lines += [f"Server {server!r} offers {_counted(len(tools), 'tool')}:", ""]
    listed, folded = _listed(first, width, shows_all=shows_all)
    if folded:
        note = f"Folded are {_counted(folded, 'line')} about parameters and results: {how or how_to_see_all(server)}."
        listed += ["", *wrapped(note.split(), width)]
    return "\n".join([*lines, *listed, "", *finding_lines(first.findings, width)])


def is_folded(first: FirstListing, *, width: int = 80) -> bool:
    """Whether the prompt folds lines."""
    return _listed(first, width, shows_all=False)[1] > 0


def how_to_see_all(server: str) -> str:
    """The advice for folded lines outside of a terminal."""
    return f"{advised(f'lock {server}')} shows all of it at a terminal"


def found_prompt(first: FirstListing, *, width: int = 80) -> str:
    """Returns the parts of a listing with findings, and the findings; empty without any. Runs the audit."""
    places = {finding.place for finding in first.findings}
    found = {finding.tool for finding in first.findings if finding.place not in first.about}
    if not places:
        return ""
    lines = text_lines(first.instructions, width) if None in found else []
    for place, text in first.about.items():
        lines += [f"{place}:", *text_lines(text, width)] if place in places else []
    for tool in first.tools:
        lines += tool_lines(tool, width) if tool.name in found else []
    return "\n".join([*lines, "", *finding_lines(first.findings, width)])


def pinned_listing(server: ServerConfig, pinned: PinnedServer) -> FirstListing:
    """Returns the pins of a server as a listing, without names of other tools and further texts."""
    tools = tuple(
        ToolDefinition(
            name,
            pin.fields["inputSchema"],
            title=pin.fields.get("title", ""),
            description=pin.fields.get("description", ""),
            output_schema=pin.fields.get("outputSchema"),
            annotations=pin.fields.get("annotations", {}),
        )
        for name, pin in pinned.tools.items()
    )
    return FirstListing(server, tools, pinned.instructions)


def _listed(first: FirstListing, width: int, *, shows_all: bool) -> tuple[list[str], int]:
    """Returns the lines of all tools, and the number of folded ones: tools with findings are never folded."""
    tools = one_per_name(first.tools)  # those that are pinned
    whole = {tool.name: tool_lines(tool, width, problem=first.unpinnable.get(tool.name, "")) for tool in tools}
    if shows_all or sum(map(len, whole.values())) <= MOST_LINES:
        return [line for lines in whole.values() for line in lines], 0
    found = {finding.tool for finding in first.findings}
    shown: list[str] = []
    folded = 0
    for tool in tools:
        if tool.name in found or tool.name in first.unpinnable:
            shown += whole[tool.name]
            continue
        lines, left_out = folded_tool_lines(tool, width)
        shown += lines
        folded += left_out
    return shown, folded


class TerminalAcceptance:
    """Asks the person at the terminal about undecided tools; for `LockPins(accept=…)`."""

    def __init__(self, terminal: Terminal | None = None) -> None:
        self._terminal = terminal or Terminal()

    @property
    def can_ask(self) -> bool:
        """Whether there is a terminal."""
        return self._terminal.is_there

    async def __call__(self, first: FirstListing) -> bool | None:
        """Shows the listing, asks, and waits for a line. Only a yes accepts; None if the terminal goes away."""
        width = self._terminal.columns
        which, them = ("this tool", "it") if len(first.tools) == 1 else ("these tools", "them")
        question = f"Pin {which}, and let programs call {them}?"
        text = tools_prompt(first, width=width, how="answer `a` to see all of it")
        if is_folded(first, width=width):
            line = await self._terminal.ask(text, f"{question} [y/N, a: show all] ")
            if line.strip().lower() not in ("a", "all"):
                return is_agreed(line)
            text = tools_prompt(first, width=width, shows_all=True)
        return is_agreed(await self._terminal.ask(text, f"{question} [y/N] "))


def is_agreed(line: str) -> bool | None:
    """The answer to `[y/N]`: an empty line is a no, the end of input None."""
    return line.strip().lower() in ("y", "yes") if line else None


def finding_lines(findings: Sequence[Finding], width: int) -> list[str]:
    """Returns the findings as lines, in the given order; if there are too many, the number of the rest."""
    if not findings:
        return ["The audit found nothing that looks like an attack, which proves nothing."]
    lines = [f"The audit found {counted(findings)}:"]
    for finding in findings[:_MOST_FINDINGS]:
        lines.append(f"  {finding.severity.upper().ljust(6)} {finding.place} [{finding.rule}]")
        lines += [f"      {line}" for line in wrapped(f"It {finding.why}: {finding.excerpt}".split(" "), width - 6)]
    if len(findings) > _MOST_FINDINGS:
        lines.append(f"  … and {len(findings) - _MOST_FINDINGS} more: {advised('audit')} lists them")
    return lines


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
