"""SECURITY: the canonical form and digest of a tool's definition, and its diff against the pin, for people (T11).

The diff quotes text from the server, inert and bounded: for a terminal or a review, never for a model.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any, cast

from toolbridge_codegen.catalog import ToolDefinition
from toolbridge_codegen.escaping import HIDDEN, written_out

# Canonical form: member order is irrelevant, and `1.0` is `1`; `true` is not `1`, so `==` never compares definitions.


MOST_DEPTH = 200
"""Deeper definitions are unpinnable: not every JSON parser could read the lock."""

FIELDS = ("title", "description", "inputSchema", "outputSchema", "annotations")
"""The pinned fields besides the name, in the order of a diff."""


class UnpinnableError(ValueError):
    """A definition has no exact form in JSON."""


@dataclass(frozen=True, slots=True)
class PinnedTool:
    """A tool's definition in canonical form, without empty fields."""

    name: str
    fields: Mapping[str, Any]
    digest: str
    """`sha256:…` over name and fields."""


def pin_of(tool: ToolDefinition) -> PinnedTool:
    """Returns the canonical form of a definition, with its digest.

    Raises:
        UnpinnableError: it is nested too deeply, or holds what JSON can't.
    """
    fields: dict[str, Any] = {"inputSchema": tool.input_schema}
    if tool.title:
        fields["title"] = tool.title
    if tool.description:
        fields["description"] = tool.description
    if tool.output_schema is not None:
        fields["outputSchema"] = tool.output_schema
    if tool.annotations:
        fields["annotations"] = tool.annotations
    return pin_of_fields(tool.name, fields)


def pin_of_fields(name: str, fields: Mapping[str, Any]) -> PinnedTool:
    """Returns the canonical form of a name and fields, with its digest.

    Raises:
        UnpinnableError: they are nested too deeply, or hold what JSON can't.
    """
    try:
        name, plain = canonical_text(name), cast("dict[str, Any]", _canonical(fields, MOST_DEPTH))
        text = json.dumps({"name": name, **plain}, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except RecursionError:
        raise UnpinnableError("is nested too deeply") from None
    except UnpinnableError:
        raise
    except ValueError:  # Python writes no integers of thousands of digits
        raise UnpinnableError("has a number that is too long") from None
    digest = f"sha256:{hashlib.sha256(text.encode('ascii')).hexdigest()}"
    return PinnedTool(name, MappingProxyType(plain), digest)


def canonical_text(text: str) -> str:
    """Returns text as it comes back from JSON, where a pair of surrogates is one character."""
    if text.isascii():
        return str(text)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _canonical(value: object, depth: int) -> Any:
    """Returns a JSON value in canonical form, at most `depth` levels deep.

    Raises:
        UnpinnableError: it is deeper, or holds what JSON can't.
    """
    if depth < 0:
        raise UnpinnableError(f"is nested more than {MOST_DEPTH} levels deep")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return canonical_text(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _canonical_number(value)
    if isinstance(value, Mapping):
        return _canonical_object(cast("Mapping[object, object]", value), depth)
    if isinstance(value, (list, tuple)):
        return [_canonical(item, depth - 1) for item in cast("list[object] | tuple[object, ...]", value)]
    raise UnpinnableError(f"holds a value of type {type(value).__name__}, which is not JSON")


def _canonical_number(value: float) -> int | float:
    """Returns a whole number as an int, and another one as it is; raises UnpinnableError for infinities and NaN."""
    if not math.isfinite(value):
        raise UnpinnableError("has a number that is not finite")
    # By its decimal digits, so that 1e23 is the whole number that it was written as and not its nearest double.
    return int(Decimal(repr(value))) if value.is_integer() else value


def _canonical_object(value: Mapping[object, object], depth: int) -> dict[str, Any]:
    """Canonicalizes an object; raises UnpinnableError for a key that is not text, and for two keys of one form."""
    plain: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise UnpinnableError("has a member whose name is not text")
        plain[canonical_text(key)] = _canonical(item, depth - 1)
    if len(plain) != len(value):
        raise UnpinnableError("has two members of one name")
    return plain


MOST_TEXT = 100_000
"""Characters of one side of a field that the diff reads."""
MOST_COMPARED = 300
"""Lines of one side of a field that the diff compares; it counts the rest."""
MOST_LINES = 60
"""Lines shown of one field."""
MOST_CHARACTERS = 400
"""Shown of one line."""
_MOST_REMOVED = 15
"""Lines shown of one removed block."""
_CONTEXT_LINES = 2
_CONTEXT_CHARACTERS = 60
_END_CHARACTERS = 100
_MOST_NOTED = 6
_LITTLE_CHANGED = 40

# Long lines are compared sentence by sentence: one harmless change at their beginning must not hide another at the end.
_LONG_LINE = 160
_SENTENCE = re.compile(r".+?(?:[.!?;:。！？；](?:\s+|$|(?<=[。！？；]))|$)")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field that differs from its pin; None for an absent side."""

    field: str
    pinned: Any
    listed: Any


def field_changes(pinned: PinnedTool | None, listed: PinnedTool | None) -> tuple[FieldChange, ...]:
    """Returns the fields that differ, in the order of `FIELDS`; None stands for a tool that is not pinned or listed."""
    old: Mapping[str, Any] = {} if pinned is None else pinned.fields
    new: Mapping[str, Any] = {} if listed is None else listed.fields
    changes = [FieldChange(field, old.get(field), new.get(field)) for field in FIELDS]
    return tuple(change for change in changes if _exact(change.pinned) != _exact(change.listed))


def _exact(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def diff_text(changes: Sequence[FieldChange]) -> str:
    """Returns a diff for people, field by field: `-` is the pin, `+` the listing. Inert; the lines are bounded."""
    lines: list[str] = []
    for change in changes:
        lines += [f"{change.field}:", *_field_lines(change.pinned, change.listed)]
    return "\n".join(lines)


def text_diff(field: str, pinned: str, listed: str) -> str:
    """The diff of a text that belongs to no tool."""
    return diff_text([FieldChange(field, pinned or None, listed or None)])


def changed_fields(changes: Sequence[FieldChange]) -> str:
    """Names the changed fields, without any text of the server: `description and inputSchema`."""
    *most, last = [change.field for change in changes] or ["definition"]
    return f"{', '.join(most)} and {last}" if most else last


def visible(text: str) -> str:
    """Text with invisible characters escaped and backslashes doubled."""
    return _shown(text.replace("\\", "\\\\"))


def _shown(text: str) -> str:
    """Escapes invisible characters and trailing spaces; backslashes stay as they are."""
    if text.isascii() and text.isprintable() and not text.endswith(" "):
        return text
    text = HIDDEN.sub(lambda match: written_out(match[0]), text)
    text = "".join([each if each.isprintable() else written_out(each) for each in text])
    bare = text.rstrip(" ")
    return bare + "\\x20" * (len(text) - len(bare))


@dataclass(frozen=True, slots=True)
class _DiffLine:
    """A line of one side, and whether it is JSON, whose backslashes are escapes already."""

    text: str
    is_json: bool

    def shown(self, start: int = 0, end: int | None = None) -> str:
        part = self.text[start:end]
        return _shown(part) if self.is_json else visible(part)


def _text(value: Any) -> str:
    """Returns the text of a field's value: a string as it is, None as empty, everything else as indented JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)


def _lines(text: str, *, is_json: bool) -> list[_DiffLine]:
    return [_DiffLine(part, is_json) for line in text.split("\n") for part in _parts(line)] if text else []


def _parts(line: str) -> list[str]:
    return _SENTENCE.findall(line) or [line] if len(line) > _LONG_LINE else [line]


def _field_lines(pinned: Any, listed: Any) -> list[str]:
    """Returns the diff of one field; of a very long one, only from shortly before the first difference on."""
    is_json = not isinstance(listed if pinned is None else pinned, str)
    old, new = _text(pinned), _text(listed)
    longest = max(len(old), len(new))
    if longest <= MOST_TEXT:
        return _compared_lines(_lines(old, is_json=is_json), _lines(new, is_json=is_json))
    # Of a large field, the part after the first difference.
    begin = max(0, _shared_characters(old, new) - _CONTEXT_CHARACTERS)
    left_out = max(0, longest - begin - MOST_TEXT)
    old, new = old[begin : begin + MOST_TEXT], new[begin : begin + MOST_TEXT]
    return [
        *([f"    … {begin:,} characters are the same"] if begin else []),
        *_compared_lines(_lines(old, is_json=is_json), _lines(new, is_json=is_json)),
        *([f"    … {left_out:,} more characters are not compared here"] if left_out else []),
    ]


def _shared_characters(old: str, new: str) -> int:
    """Returns the length of the common beginning; compares by blocks, since the texts may be long."""
    step = 4096
    start = 0
    while start < min(len(old), len(new)) and old[start : start + step] == new[start : start + step]:
        start += step
    start = min(start, len(old), len(new))
    return start + _shared(old[start : start + step], new[start : start + step])


def _compared_lines(old: list[_DiffLine], new: list[_DiffLine]) -> list[str]:
    """Returns the diff of two lists of lines with a little context; what exceeds the bounds is counted."""
    # Comparing takes quadratic time: equal ends are left out.
    start = _shared(old, new)
    end = min(_shared(old[::-1], new[::-1]), len(old) - start, len(new) - start)
    before = max(0, start - _CONTEXT_LINES)
    old_middle, new_middle = old[start : len(old) - end], new[start : len(new) - end]
    left_out = max(0, len(old_middle) - MOST_COMPARED) + max(0, len(new_middle) - MOST_COMPARED)
    shown = ["    …"] if before else []
    shown += [_whole("    ", line) for line in old[before:start]]
    shown += _compared(old_middle[:MOST_COMPARED], new_middle[:MOST_COMPARED])
    if left_out:
        shown.append(f"    … {left_out:,} more lines are not compared here")
    else:
        after = old[len(old) - end :]
        shown += [_whole("    ", line) for line in after[:_CONTEXT_LINES]]
        shown += ["    …"] if len(after) > _CONTEXT_LINES else []
    if len(shown) > MOST_LINES:
        shown = [*shown[:MOST_LINES], f"    … {len(shown) - MOST_LINES:,} more lines of this diff are not shown"]
    return shown


def _shared(old: Sequence[object], new: Sequence[object]) -> int:
    """Returns the number of equal items at the beginning."""
    most = min(len(old), len(new))
    return next((place for place in range(most) if old[place] != new[place]), most)


def _compared(old: list[_DiffLine], new: list[_DiffLine]) -> list[str]:
    """Returns the diff of lines, in quadratic time: of a changed block the removed lines first, then the added ones."""
    shown: list[str] = []
    # Without `autojunk`: it would let frequent lines hide those between them.
    matcher = difflib.SequenceMatcher(None, [line.text for line in old], [line.text for line in new], autojunk=False)
    for kind, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if kind == "equal":
            same = old[old_start:old_end]
            if len(same) > 2 * _CONTEXT_LINES:
                shown += [_whole("    ", line) for line in same[:_CONTEXT_LINES]]
                shown += ["    …", *(_whole("    ", line) for line in same[-_CONTEXT_LINES:])]
            else:
                shown += [_whole("    ", line) for line in same]
            continue
        removed, added = old[old_start:old_end], new[new_start:new_end]
        pairs = [_pair(*each) for each in zip(removed, added, strict=False)]
        gone = [line for line, _, _ in pairs] + [_whole("  - ", line) for line in removed[len(pairs) :]]
        more = len(gone) - _MOST_REMOVED
        shown += [*gone[:_MOST_REMOVED], *([f"  - … ({more:,} more lines)"] if more > 0 else [])]
        for _, line, notes in pairs:
            shown += [line, *notes]
        for line in added[len(pairs) :]:
            shown += [_whole("  + ", line), *_notes(line.text[:MOST_CHARACTERS], "")]
    return shown


def _whole(mark: str, line: _DiffLine) -> str:
    rest = len(line.text) - MOST_CHARACTERS
    return mark + line.shown(0, MOST_CHARACTERS) + (f"… (and {rest:,} more characters)" if rest > 0 else "")


def _pair(old: _DiffLine, new: _DiffLine) -> tuple[str, str, list[str]]:
    """Shows two versions of a line, of long ones the part that differs; and notes on confusables."""
    start = _shared(old.text, new.text)
    end = min(_shared(old.text[::-1], new.text[::-1]), len(old.text) - start, len(new.text) - start)
    notes = _notes(
        new.text[max(0, start - _CONTEXT_CHARACTERS) :][:MOST_CHARACTERS], new.text[start : len(new.text) - end]
    )
    if max(len(old.text), len(new.text)) <= MOST_CHARACTERS:
        return _whole("  - ", old), _whole("  + ", new), notes
    return _window("  - ", old, start, end), _window("  + ", new, start, end), notes


def _window(mark: str, line: _DiffLine, start: int, end: int) -> str:
    """Shows of a long line what differs, from `start` to `end` characters before its end, with a little context."""
    begin, stop = max(0, start - _CONTEXT_CHARACTERS), len(line.text) - end
    last = min(stop, start + MOST_CHARACTERS)
    tail = min(len(line.text), last + _CONTEXT_CHARACTERS)
    head = f"{mark}{'…' if begin else ''}"
    if last + _END_CHARACTERS < stop:
        between = stop - _END_CHARACTERS - last
        end_part = line.shown(stop - _END_CHARACTERS, stop)
        return f"{head}{line.shown(begin, last)}… ({between:,} more characters changed) …{end_part}"
    if last < stop:
        tail = stop
    return f"{head}{line.shown(begin, tail)}{'…' if tail < len(line.text) else ''}"


def _notes(text: str, changed: str) -> list[str]:
    """Confusables (homoglyphs): returns a line that names them, or none.

    They are looked for in words that mix letters, and in the `changed` part of the text if it is short.
    """
    mixed = [word for word in _WORD.findall(text) if not word.isascii() and re.search("[A-Za-z]", word)]
    looked_at = "".join(mixed) + (changed if len(changed) <= _LITTLE_CHANGED else "")
    odd = sorted({each for each in looked_at if not each.isascii() and each.isprintable() and not HIDDEN.match(each)})
    odd = [each for each in odd if each in changed or not unicodedata.name(each, "").startswith("LATIN")]
    if not odd:
        return []
    named = [f"{each} is U+{ord(each):04X} {unicodedata.name(each, 'without a name')}" for each in odd[:_MOST_NOTED]]
    return [f"      ({'; '.join(named)})"]
