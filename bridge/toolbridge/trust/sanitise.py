"""SECURITY: the only place where foreign text is made harmless."""

from __future__ import annotations

import re

# C0 and C1 controls except tab and newline, and what turns text around or hides it on a terminal.
_NOT_FOR_A_TERMINAL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def for_terminal(text: str) -> str:
    """Text that a terminal shows and never obeys: control characters are written out (`\\x1b`)."""
    return _NOT_FOR_A_TERMINAL.sub(_written_out, text.replace("\r\n", "\n"))


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
