"""Reads the instructions of a WebAssembly module: enough to say which there are."""

from __future__ import annotations

from collections.abc import Iterator

from bake import read_unsigned, sections

SECTION_CODE, SECTION_GLOBAL = 10, 6
_PREFIX = 0xFC

# How many LEB128 numbers follow an instruction; what isn't here has none, or is read below.
_NUMBERS = {
    **dict.fromkeys(
        (0x0C, 0x0D, 0x10, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x3F, 0x40, 0x41, 0x42, 0xD0, 0xD2), 1
    ),
    **dict.fromkeys((0x02, 0x03, 0x04), 1),  # the type of a block: one number, too
    0x11: 2,
    **dict.fromkeys(range(0x28, 0x3F), 2),
}
_PREFIXED_NUMBERS = {**dict.fromkeys(range(8), 0), 8: 2, 9: 1, 10: 2, 11: 1, 12: 2, 13: 1, 14: 2, 15: 1, 16: 1, 17: 1}
_CONSTANTS = {0x43: 4, 0x44: 8}
_BRANCH_TABLE, _SELECT_TYPED = 0x0E, 0x1C

TABLE_CHANGES = frozenset({(0x26, 0), (_PREFIX, 12), (_PREFIX, 14), (_PREFIX, 15), (_PREFIX, 17)})
"""table.set, table.init, table.copy, table.grow, table.fill."""


def _skip(data: bytes, at: int, count: int) -> int:
    for _ in range(count):
        while data[at] & 0x80:
            at += 1
        at += 1
    return at


def instructions(module: bytes) -> Iterator[tuple[int, int]]:
    """Every instruction's code, and the second code of those that have one."""
    code = next(content for section, content in sections(module) if section == SECTION_CODE)
    functions, at = read_unsigned(code, 0)
    for _ in range(functions):
        size, at = read_unsigned(code, at)
        end = at + size
        groups, at = read_unsigned(code, at)
        for _ in range(groups):  # of local variables: how many, and of which type
            at = _skip(code, at, 1) + 1
        while at < end:
            at, found = _instruction(code, at)
            yield found
        assert at == end, "an instruction reaches beyond its function"


def _instruction(code: bytes, at: int) -> tuple[int, tuple[int, int]]:
    opcode, at = code[at], at + 1
    if opcode == _PREFIX:
        second, at = read_unsigned(code, at)
        return _skip(code, at, _PREFIXED_NUMBERS[second]), (opcode, second)
    if opcode in _CONSTANTS:
        return at + _CONSTANTS[opcode], (opcode, 0)
    if opcode in (_BRANCH_TABLE, _SELECT_TYPED):
        count, at = read_unsigned(code, at)
        return _skip(code, at, count + (opcode == _BRANCH_TABLE)), (opcode, 0)
    assert opcode <= 0xD2, f"an instruction of another extension: {opcode:#x}"
    return _skip(code, at, _NUMBERS.get(opcode, 0)), (opcode, 0)
