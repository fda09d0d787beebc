"""SECURITY: the one table of characters that a reader can't see, or that move what a reader sees.

Stubs, terminals, errors and the audit all use it: what one of them removes, the others show or report.
"""

from __future__ import annotations

import re

# Ranges of a character class, by what they do. Tab and line feed are text, and not among them.
CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
"""What a terminal obeys."""
DIRECTION = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""What turns text around, so that it reads otherwise than it is."""
TAGS = "\U000e0000-\U000e007f"
"""A second, invisible ASCII."""
SELECTORS = "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
"""Variation selectors: 259 of them, enough to write any byte behind a visible character."""
# Joiners, soft hyphens, fillers, blanks, marks of scripts and music that only steer how their neighbours are drawn,
# and what Unicode holds back for more of that kind.
_BLANK = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200d\u2028\u2029\u2060-\u2065\u206a-\u206f\u2800\u3164\ufeff"
    "\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U00016fe4\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    "\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
)
_SURROGATES = "\ud800-\udfff"

HIDDEN = re.compile(f"[{CONTROLS}{DIRECTION}{TAGS}{SELECTORS}{_BLANK}{_SURROGATES}]")
"""Any one of them."""

# A terminal's escape sequences: operating system commands and other strings with their end, then the rest.
ESCAPE_SEQUENCES = re.compile(
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f]{0,4096}(?:\x07|\x1b\\|\x9c)"
    r"|(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,16}[@-~]?"
    r"|\x1b[ -/]{0,16}[0-~]?"
)


def written_out(character: str) -> str:
    """A character that can't be seen, as a reader can see it: `\\x1b`, `\\u202e`, `\\U000e0041`."""
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
