"""Whether a text that a program gives for a number may be a long number in digits, which the host repairs.

Only an identifier of a tool's result is one: there, a server may say that it is a text, and elsewhere that it takes a
number. A text that the program makes itself, or a result's field with another name, is not.
"""

from __future__ import annotations

import re

from toolbridge.check.python_program import Program

_MADE_HERE = re.compile(
    r"""[rbuf]{0,2}["']|str\(|repr\(|format\(|.*["']\.(?:join|format)\(|.*["']\s*%"""
    r"""|.*\.(?:strip|lower|upper|title|isoformat|strftime|replace|format|zfill|removeprefix|removesuffix)\([^()]*\)\Z""",
    re.IGNORECASE | re.DOTALL,
)
_LAST_WORD = re.compile(r"""(?:^|[.\s(])(\w+)\s*\Z|(?:\[|\.get\()\s*["']([^"'\n]*)["']\s*[\])]\Z""")
_INDEXED = re.compile(r"(\w+)\[[^\[\]\"']*\]\Z")
_IDENTIFIER = re.compile(
    r"(?:^|_|\b)(?:u?u?ids?|numbers?|num|nr|no|keys?|refs?|references?|codes?|tokens?|cursor|sha|pk)\Z|[a-z](?:Ids?|Key|Number)\Z"
    r"|\A(?:\w{1,2}|values?|items?|entry|element|each|arg|text|word|part|match|result|target|current|it|one)\Z",
    re.IGNORECASE,
)
_DEEPEST = 2
_MOST_ASSIGNMENTS = 8


def may_be_digits(text: str, program: Program, depth: int = 0) -> bool:
    """Whether an expression may be a number in digits."""
    text = text.strip()
    if not program.is_readable:
        return True
    if _MADE_HERE.match(text):
        return False
    indexed = _INDEXED.search(text)
    word = _LAST_WORD.search(text) if indexed is None else indexed
    if word is None or depth >= _DEEPEST:
        return True
    name = word[1] or (word[2] if indexed is None else "")
    if _IDENTIFIER.search(name):
        return True
    if word[1] is None or indexed is not None or name != text:
        return word[1] is not None and indexed is None
    return _may_variable_be(name, program, depth)


def _may_variable_be(name: str, program: Program, depth: int) -> bool:
    """A variable may be whatever one of its assignments may be; a parameter, anything."""
    assigned = re.findall(rf"(?<![\w.]){name}[ \t]*(?::[^=\n]*)?=(?!=)([^\n#]*)", program.source)
    looped = re.findall(rf"\bfor[ \t]+{name}[ \t]+in[ \t]+([^\n:#]*?)(?:\)|\]|\}}|:|\bif\b|$)", program.source)
    if len(assigned) + len(looped) > _MOST_ASSIGNMENTS:
        return True
    is_parameter = re.search(rf"\bdef\b[^\n]*[(,][ \t]*{name}\b", program.code) is not None
    return is_parameter or any(may_be_digits(each, program, depth + 1) for each in (*assigned, *looped))
