"""What a comment says of a tool or property, in whichever language: not yet escaped for it."""

from __future__ import annotations

from toolbridge_codegen.catalog import ToolSpec
from toolbridge_codegen.model import Docs
from toolbridge_codegen.quoting import one_line, py_string

_LONGEST_TOOL_NAME = 100


def comment_text(docs: Docs, tool: ToolSpec | None = None) -> str:
    """The description, then in parentheses what the types can't say.

    For a tool, that begins with the name that its server knows it by, where its function is called otherwise.
    """
    notes = [one_line(note) for note in docs.notes]
    if tool is not None and tool.name != tool.identifier:
        cut = tool.name[:_LONGEST_TOOL_NAME]
        notes.insert(0, f"tool {py_string(cut)}{'' if cut == tool.name else '…'}")
    if not notes:
        return docs.description
    return f"{docs.description} ({'; '.join(notes)})".lstrip()
