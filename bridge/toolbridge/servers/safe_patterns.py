"""SECURITY: a server's regular expressions, run only where the work is known beforehand to be small (T16).

An expression is taken if all the ways in which it can fail are few: nothing repeated inside an endless repetition, no
look-around, no back-references. How often it can be tried then grows with a known power of the text's length, and a
text that is too long for that is not looked at. Whatever is refused here is left for the server to check.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

_LONGEST_PATTERN = 300
_LONGEST_TEXT = 10_000
_MOST_WAYS = 1_000
_MOST_WORK = 1_000_000

# What means something else in JavaScript, or is an extension on either side.
_OTHER_MEANING = re.compile(r"\\[AZazkpPc]|\\[xuN]\{|\(\?(?!:)|\[\^?\]|\{,")
_TOKEN = re.compile(r"\\.|.", re.DOTALL)
_ANYTHING = re.compile(r"\[(?:\\s\\S|\\S\\s)\]")
# ECMA-262: WhiteSpace and LineTerminator, which have U+FEFF and neither U+0085 nor U+001C to U+001F.
_LINE_ENDS = r"\n\r\u2028\u2029"
_SPACES = rf"\t\v\f{_LINE_ENDS} \xa0\u1680\u2000-\u200a\u202f\u205f\u3000\ufeff"
_OUTSIDE = {"\\s": f"[{_SPACES}]", "\\S": f"[^{_SPACES}]", ".": f"[^{_LINE_ENDS}]", "$": r"\Z"}
_INSIDE = {"\\s": _SPACES, "[": r"\["}

_parser: Any = getattr(re, "_parser")  # noqa: B009  # the way to a syntax tree that the library itself takes


class _RefusedError(Exception):
    """This expression is not run."""


@dataclass(frozen=True, slots=True)
class SafePattern:
    """An expression that may be run on texts up to a length."""

    expression: re.Pattern[str]
    longest: int

    def refuses(self, text: str) -> bool:
        """Whether the text surely doesn't match. One that is too long to tell is not refused."""
        return len(text) <= self.longest and self.expression.search(text) is None


@lru_cache(maxsize=1024)
def safe_pattern(pattern: str) -> SafePattern | None:
    """The expression, if it may be run; None if it may not, or if it is none that Python understands as meant."""
    if len(pattern) > _LONGEST_PATTERN or _OTHER_MEANING.search(pattern):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            meant = _in_python(pattern)
            tree = _parser.parse(meant, re.ASCII)
            ways, degree = _cost(tree)
            if not _is_anchored(tree):
                degree += 1
            expression = re.compile(meant, re.ASCII)
    except (_RefusedError, re.error, RecursionError, OverflowError, ValueError, MemoryError):
        return None
    longest = _LONGEST_TEXT
    while longest and ways * longest**degree > _MOST_WORK:
        longest = longest * 9 // 10
    return SafePattern(expression, longest) if longest >= 16 else None


def _in_python(pattern: str) -> str:
    """An expression of ECMA-262 as one of Python's, for `re.ASCII`: `\\d`, `\\w` and `\\b` are the same then.

    `$` is the end of the text alone, `.` stops at each of four line ends, and white space is Unicode's.
    """
    written: list[str] = []
    is_inside = False
    for piece in cast("list[str]", _TOKEN.findall(_ANYTHING.sub(r"[\\w\\W]", pattern))):
        if is_inside and piece == "\\S":
            raise _RefusedError  # Python has no class of what is not in a list, and more
        written.append((_INSIDE if is_inside else _OUTSIDE).get(piece, piece))
        is_inside = piece != "]" if is_inside else piece == "["
    return "".join(written)


def _is_anchored(tree: Any) -> bool:
    return len(tree) > 0 and str(tree[0][0]) == "AT" and str(tree[0][1]) == "AT_BEGINNING"


def _cost(tree: Any) -> tuple[int, int]:
    """In how many ways a sequence can be tried at one place: a factor, and a power of the text's length."""
    ways, degree = 1, 0
    for operator, argument in tree:
        more, power = _cost_of(str(operator), argument)
        ways, degree = ways * more, degree + power
        if ways > _MOST_WAYS:
            raise _RefusedError
    return ways, degree


def _cost_of(operator: str, argument: Any) -> tuple[int, int]:
    match operator:
        case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN" | "AT":
            return 1, 0
        case "SUBPATTERN":
            return _cost(argument[3])
        case "BRANCH":
            costs = [_cost(branch) for branch in argument[1]]
            return sum(ways for ways, _ in costs), max(degree for _, degree in costs)
        case "MAX_REPEAT" | "MIN_REPEAT":
            return _cost_of_repeat(*argument)
        case _:
            raise _RefusedError


def _cost_of_repeat(least: int, most: Any, body: Any) -> tuple[int, int]:
    ways, degree = _cost(body)
    if degree:
        raise _RefusedError
    if int(most) > _MOST_WAYS:
        # Endless, or as good as that: only of what can be tried in one way.
        if ways > 1 or _may_be_empty(body):
            raise _RefusedError
        return 1, 1
    if ways > 1 and int(most) * (ways - 1).bit_length() > 10:
        raise _RefusedError
    return (int(most) - int(least) + 1) * ways ** int(most), 0


def _may_be_empty(body: Any) -> bool:
    return int(body.getwidth()[0]) == 0
