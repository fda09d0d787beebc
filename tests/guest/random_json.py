"""Random JSON texts, in every form that a number, a string or a space may have; and texts that are almost JSON."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable

_NAMES: tuple[str, ...] = (
    "id", "name", "price", "", "0", "1", "7", "07", "-1", "4294967294", "4294967295", "2147483648", "1.5", "1e3",
    "__proto__", "constructor", "toString", "length", "ok", "error", "handles", "\u00e9", "\u00c3\u00a9", "\u20ac",
    "\U0001f600", "a\\", 'a"b', 'a":"b', "a\n", "\x7f", "\x00", "a rather long name of a member, longer than eight",
)  # fmt: skip
_CHARACTERS: tuple[str, ...] = (
    *"abcdefgh,:[]{} /", '"', "\\", "\b", "\f", "\n", "\r", "\t", "\x00", "\x1f", "\x7f", "\x80", "\u00e9", "\u00ff",
    "\u0100", "\u20ac", "\u2028", "\ud7ff", "\ue000", "\ufeff", "\uffff", "\U0001f600", "\U0010ffff",
)  # fmt: skip
_SHORT = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_HALVES = ("\\ud800", "\\uDBFF", "\\udc00", "\\uDFFF", "\\ud83d\\ude00", "\\ude00\\ud83d")
_KNOWN = """
    0 -0 -0.0 0.0 0e0 -0E-5 1 -1 1.0 1E5 1e+5 1e-5 0.1 -0.3 1e22 1e23 1e-22 1e-23 9007199254740991 9007199254740992
    9007199254740993 -9007199254740993 9007199254740993.0 9007199254740995e-3 2147483647 2147483648 -2147483648
    -2147483649 4294967295 9999999999999999999 10000000000000000000 18446744073709551615 18446744073709551616
    123456789012345678901234567890 1e308 1.7976931348623157e308 1.7976931348623159e308 1e309 -1e999 5e-324
    2.4703282292062327e-324 2.4703282292062328e-324 2.2250738585072011e-308 2.2250738585072014e-308 1e-400
    0.1e-99999999999999999999 1e99999999999999999999 1e00000000000000000000000001 1e-00000000000000000000000001
    0.000000000000000000000000000000000000000001 7.2057594037927933e16 72057594037927945 72057594037927945e0
    1801439850948198.5 4503599627370496.5 4503599627370497.5 9007199254740993e1 8.5 1152921504606846977
    8.000000000000001e64 1e64 1e65 1e-64 1e-65 9999999999999999999e64 1e-83 0.30000000000000004 1448997445238699
    6.02214076e23
"""
NUMBERS = (*_KNOWN.split(), "0." + "3" * 400, "3" * 400, "1" + "0" * 400 + "e-400")


class RandomJson:
    """Generates texts from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def text(self, depth: int = 4) -> str:
        """One value."""
        kind = self.random.randrange(8 if depth else 5)
        if kind == 0:
            return self.random.choice(("true", "false", "null"))
        if kind in (1, 2):
            return self.number()
        if kind in (3, 4):
            return self.string(self.random.choice(_CHARACTERS) for _ in range(self.random.randrange(30)))
        if kind == 5:
            return self._list([self.text(depth - 1) for _ in range(self.random.randrange(6))], "[", "]")
        if kind == 6:
            names = [self.random.choice(_NAMES) for _ in range(self.random.randrange(7))]
            return self._object(names, depth)
        return self._records(depth)

    def number(self) -> str:
        """A number: well-known, written by hand, or the shortest or longest form of some double."""
        kind = self.random.randrange(4)
        if kind == 0:
            return self.random.choice(NUMBERS)
        if kind == 1:
            return self._digits()
        double: float = struct.unpack("<d", self.random.randbytes(8))[0]
        if double - double != 0.0:
            return "1.5"
        if kind == 2:
            double = self.random.uniform(-1000, 1000)
        return self.random.choice((repr, lambda value: f"{value:.17e}", lambda value: f"{value:.3e}"))(double)

    def _digits(self) -> str:
        pick = self.random
        text = pick.choice(("", "-")) + str(pick.randrange(10 ** pick.randrange(1, 24)))
        if pick.random() < 0.6:
            text += "." + "".join(pick.choice("0123456789") for _ in range(pick.randrange(1, 22)))
        if pick.random() < 0.4:
            text += pick.choice("eE") + pick.choice(("", "+", "-")) + str(pick.randrange(pick.choice((3, 30, 90, 400))))
        return text

    def string(self, characters: Iterable[str]) -> str:
        """A string whose characters are written as they are, or escaped in one of the ways that there are."""
        written: list[str] = []
        for character in characters:
            must = character in '"\\' or character < " "
            kind = self.random.randrange(10)
            if character in _SHORT and (kind < 5 or character in '"\\'):
                written.append(_SHORT[character])
            elif must or kind == 5:
                units = character.encode("utf-16-be")
                written += [f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2)]
            else:
                written.append(character)
            if kind == 9 and self.random.random() < 0.1:
                written.append(self.random.choice(_HALVES))
        return '"' + "".join(written) + '"'

    def almost(self) -> str:
        """A text with one mistake, or none."""
        text = self.text(3)
        at, kind = self.random.randrange(len(text) + 1), self.random.randrange(4)
        if kind == 0:
            return text[: at + 1]
        if kind == 1:
            return text[:at] + text[at + 1 :] or "-"
        inserted = self.random.choice([*'[]{}",:\\-+.eE0 1tn/\x00\n\x0b\x0c', "\\u12", "tru", "\u00a0", "NaN", "//"])
        return text[:at] + inserted + text[at + (kind == 2) :]

    def _records(self, depth: int) -> str:
        """Objects with the same members, or nearly: some are missing, more, or in another order."""
        names = self.random.sample(_NAMES, self.random.randrange(1, 7))
        records: list[str] = []
        for _ in range(self.random.randrange(8)):
            own, kind = list(names), self.random.randrange(8)
            if kind == 0:
                del own[self.random.randrange(len(own))]
            elif kind == 1:
                own.insert(self.random.randrange(len(own) + 1), self.random.choice(_NAMES))
            elif kind == 2:
                self.random.shuffle(own)
            records.append(self._object(own, min(depth - 1, 2)))
        return self._list(records, "[", "]")

    def _object(self, names: list[str], depth: int) -> str:
        is_plain = self.random.random() < 0.7
        written = [f'"{name}"' if is_plain and _stands_for_itself(name) else self.string(name) for name in names]
        members = [f"{name}{self._space()}:{self._space()}{self.text(max(depth - 1, 0))}" for name in written]
        return self._list(members, "{", "}")

    def _list(self, items: list[str], opening: str, closing: str) -> str:
        inner = ",".join(f"{self._space()}{item}{self._space()}" for item in items) or self._space()
        return opening + inner + closing

    def _space(self) -> str:
        return "" if self.random.random() < 0.9 else self.random.choice((" ", "\n", "\r\n", "\t", "  "))


def _stands_for_itself(name: str) -> bool:
    return name.isascii() and name.isprintable() and '"' not in name and "\\" not in name
