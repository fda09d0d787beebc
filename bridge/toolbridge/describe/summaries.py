"""What tools and modules are for, in a line: their servers' words, cleaned and bounded."""

from __future__ import annotations

from toolbridge_codegen.catalog import ModuleSpec, ToolSpec
from toolbridge_codegen.emit_compact import CUT, first_sentence
from toolbridge_codegen.quoting import one_line
from toolbridge_codegen.sanitise import clean_line, clean_text

_LONGEST_NAME = 100
_LONGEST_SUMMARY = 100


def summary_of(tool: ToolSpec) -> str:
    """What a tool is for, in its server's words: the first sentence, cleaned and bounded."""
    text = clean_text(tool.definition.description) or clean_text(tool.definition.title)
    return one_line(first_sentence(text))


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
