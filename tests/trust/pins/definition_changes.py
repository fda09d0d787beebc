"""Every way in which one field of a real tool's definition can change, and ways of writing it that change nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

from codegen import corpus
from toolbridge_codegen.catalog import ToolDefinition


def real_tools() -> list[ToolDefinition]:
    """The tools of all real servers."""
    return [tool for real in corpus.real_listings() for tool in real.listing.tools]


def changed_definitions(tool: ToolDefinition) -> Iterator[tuple[str, ToolDefinition]]:
    """The tool with one thing changed: each text, and each place in its schemas and annotations."""
    yield "name", replace(tool, name=tool.name + "_")
    for field in ("title", "description"):
        for kind, text in changed_texts(getattr(tool, field)):
            yield f"{field} {kind}", replace(tool, **{field: text})
    for field in ("input_schema", "output_schema", "annotations"):
        value = getattr(tool, field)
        if value is None:
            yield field, replace(tool, **{field: {}})
            continue
        for place, changed in changed_values(dict(value)):
            yield f"{field}{place}", replace(tool, **{field: changed})


def changed_texts(text: str) -> Iterator[tuple[str, str]]:
    """Texts that a person may take for the same."""
    yield "is longer", text + "."
    yield "has a space more", text + " "
    yield "has a hidden character", text[: len(text) // 2] + "\u200b" + text[len(text) // 2 :]
    yield "has a tag", text + "\U000e0041"
    if "a" in text:
        yield "has a look-alike", text.replace("a", "\u0430", 1)
    if text:
        yield "is gone", ""


def changed_values(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """A JSON value with one change somewhere in it."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        yield f"{place} has one more", {**members, "x-more": None}
        for key, member in members.items():
            rest = {other: item for other, item in members.items() if other != key}
            yield f"{place}/{key} is gone", rest
            yield f"{place}/{key} has another name", {**rest, key + "_": member}
            for where, changed in changed_values(member, f"{place}/{key}"):
                yield where, {**members, key: changed}
    elif isinstance(value, list):
        items = cast("list[Any]", value)
        yield f"{place} has one more", [*items, None]
        if items != items[::-1]:
            yield f"{place} is turned around", items[::-1]
        for index, item in enumerate(items):
            for where, changed in changed_values(item, f"{place}/{index}"):
                yield where, [*items[:index], changed, *items[index + 1 :]]
    else:
        yield f"{place} is another", another(value)


def another(value: Any) -> Any:
    """A scalar that is as near to this one as can be."""
    if isinstance(value, bool):
        return int(value)  # which Python takes for the same
    if isinstance(value, str):
        return value + "\u200b"
    if isinstance(value, (int, float)):
        return bool(value) if value in (0, 1) else value + 1
    return False


def rewritten(value: Any, chance: random.Random) -> Any:
    """The same JSON, as another program might write it: members in another order, whole numbers with a point."""
    if isinstance(value, dict):
        members = [(key, rewritten(item, chance)) for key, item in cast("dict[str, Any]", value).items()]
        chance.shuffle(members)
        return dict(members)
    if isinstance(value, list):
        return [rewritten(item, chance) for item in cast("list[Any]", value)]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
        return float(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def rewritten_tool(tool: ToolDefinition, chance: random.Random) -> ToolDefinition:
    """The same tool."""
    return replace(
        tool,
        input_schema=rewritten(dict(tool.input_schema), chance),
        output_schema=None if tool.output_schema is None else rewritten(dict(tool.output_schema), chance),
        annotations=rewritten(dict(tool.annotations), chance),
    )
