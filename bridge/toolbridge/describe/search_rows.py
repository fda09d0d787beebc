"""What is searched of a tool: its words, bounded, by the place they come from. Nothing of it is ever shown."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from itertools import islice

from toolbridge.describe.search_words import name_words, words
from toolbridge_codegen.catalog import ModuleSpec, ToolSpec, plain_schema
from toolbridge_codegen.json_values import is_list, is_object
from toolbridge_codegen.sanitise import clean_text

_LONGEST_NAME = 200
_LONGEST_DESCRIPTION = 1_000
"""What a tool is for is said at the beginning; what follows are its rules, and the words of other tools."""
_LONGEST_PARAMETERS = 1_500
_PARAMETERS = 60
_LEVELS = 3


@dataclass(frozen=True, slots=True)
class SearchRow:
    """One tool's words, with spaces or punctuation between them."""

    name: str
    title: str
    server: str
    description: str
    parameters: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The texts in the order of `WEIGHTS`."""
        return astuple(self)


WEIGHTS = (10.0, 5.0, 3.0, 2.0, 1.0)
"""How much a word counts in a tool's name, title, server, description and parameters."""


def search_row(module: ModuleSpec, tool: ToolSpec) -> SearchRow:
    """The words of one tool."""
    definition = tool.definition
    return SearchRow(
        name=name_words(definition.name[:_LONGEST_NAME]),
        title=_text_words(definition.title, _LONGEST_NAME),
        server=name_words(f"{module.server} {module.display_name[:_LONGEST_NAME]}"),
        description=_text_words(definition.description, _LONGEST_DESCRIPTION),
        parameters=_text_words(_parameter_text(plain_schema(definition.input_schema)), _LONGEST_PARAMETERS),
    )


def _text_words(text: str, limit: int) -> str:
    """A text whose words the index can tell apart by itself: the quick way for ASCII, which most of them are."""
    text = text[:limit]
    return text if text.isascii() else " ".join(words(clean_text(text)))


def _parameter_text(schema: object) -> str:
    """Names and descriptions of an input's properties, level by level, as far as there is room."""
    texts: list[str] = []
    room = _LONGEST_PARAMETERS
    level: list[object] = [schema]
    for _ in range(_LEVELS):
        deeper: list[object] = []
        for each in level:
            for name, known in _properties(each):
                text = f"{name_words(name[:_LONGEST_NAME])} {_description(known)}"
                texts.append(text)
                room -= len(text)
                deeper.append(known)
                if room <= 0 or len(texts) == _PARAMETERS:
                    return "\n".join(texts)
        level = deeper
    return "\n".join(texts)


def _properties(schema: object) -> list[tuple[str, object]]:
    """The properties of an object, of an array's items, or of the first of some choices."""
    for _ in range(_LEVELS):
        if not is_object(schema):
            return []
        properties = schema.get("properties")
        if is_object(properties):
            return list(islice(properties.items(), _PARAMETERS))
        choices = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
        schema = choices[0] if is_list(choices) and choices else schema.get("items")
    return []


def _description(schema: object) -> str:
    description = schema.get("description") if is_object(schema) else None
    return description[:_LONGEST_NAME] if isinstance(description, str) else ""
