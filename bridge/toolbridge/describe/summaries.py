"""What tools and modules are for, in a line: their servers' words, cleaned and bounded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolbridge.trust.sanitise import for_error
from toolbridge_codegen.catalog import ModuleSpec, ToolSpec, plain_schema
from toolbridge_codegen.emit_compact import CUT, first_sentence
from toolbridge_codegen.json_values import is_object
from toolbridge_codegen.quoting import one_line
from toolbridge_codegen.sanitise import clean_line, clean_text

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
