"""TypeScript stubs without their comments: what a server says of its tools declares nothing, whatever it looks like."""

from __future__ import annotations

import re

# A text comes before a comment: it may have one's signs in it.
_TEXT_OR_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|(//[^\n]*|/\*.*?\*/)', re.DOTALL)
_CHARACTER = re.compile(r"[^\n]")


def without_comments(stub: str) -> str:
    """The stub with blanks where its comments were, so that everything else keeps its line and its column."""
    return _TEXT_OR_COMMENT.sub(lambda found: _CHARACTER.sub(" ", found[0]) if found[1] else found[0], stub)
