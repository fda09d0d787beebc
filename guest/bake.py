"""Bakes an initialised instance into a new module: its memory becomes the data section.

Instantiating the baked module gives an engine that is already initialised, by copy-on-write,
instead of initialising one for every run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

PAGE = 4096
WASM_PAGE = 65536
MAGIC = b"\0asm\1\0\0\0"

TYPE_I32, TYPE_I64 = 0x7F, 0x7E
EXPORT_GLOBAL = 3
SECTION_MEMORY, SECTION_GLOBAL, SECTION_EXPORT, SECTION_START = 5, 6, 7, 8
SECTION_DATA, SECTION_DATA_COUNT, SECTION_CUSTOM = 11, 12, 0
OP_I32_CONST, OP_I64_CONST, OP_F32_CONST, OP_F64_CONST, OP_END = 0x41, 0x42, 0x43, 0x44, 0x0B
OP_GLOBAL_GET, OP_REF_NULL, OP_REF_FUNC = 0x23, 0xD0, 0xD2


class Global(NamedTuple):
    """One entry of the global section, with its encoded initialiser."""

    type: int
    mutable: int
    initialiser: bytes


def read_unsigned(data: bytes, at: int) -> tuple[int, int]:
    """Reads an unsigned LEB128 number; returns it and the position after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def unsigned(value: int) -> bytes:
    """Encodes `value` as unsigned LEB128."""
    out = bytearray()
    while True:
        byte = value & 0x7F
        value >>= 7
        if not value:
            out.append(byte)
            return bytes(out)
        out.append(byte | 0x80)


def signed(value: int) -> bytes:
    """Encodes `value` as signed LEB128."""
    out = bytearray()
    while True:
        byte = value & 0x7F
        value >>= 7
        if (value == 0 and not byte & 0x40) or (value == -1 and byte & 0x40):
            out.append(byte)
            return bytes(out)
        out.append(byte | 0x80)


def sections(module: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields id and content of the module's sections in order; raises ValueError if it isn't a WebAssembly module."""
    if module[:8] != MAGIC:
        raise ValueError("not a WebAssembly module")
    at = 8
    while at < len(module):
        section = module[at]
        length, at = read_unsigned(module, at + 1)
        yield section, module[at : at + length]
        at += length


def _end_of_initialiser(data: bytes, at: int) -> int:
    """Returns the position after a global's initialiser; raises ValueError for an operator that isn't constant."""
    while data[at] != OP_END:
        operator = data[at]
        at += 1
        if operator in (OP_I32_CONST, OP_I64_CONST, OP_GLOBAL_GET, OP_REF_NULL, OP_REF_FUNC):
            _, at = read_unsigned(data, at)
        elif operator == OP_F32_CONST:
            at += 4
        elif operator == OP_F64_CONST:
            at += 8
        else:
            raise ValueError(f"unknown operator {operator:#x} in a global's initialiser")
    return at + 1


def _globals(module: bytes) -> list[Global]:
    """Reads the global section."""
    found: list[Global] = []
    for section, data in sections(module):
        if section == SECTION_GLOBAL:
            count, at = read_unsigned(data, 0)
            for _ in range(count):
                end = _end_of_initialiser(data, at + 2)
                found.append(Global(data[at], data[at + 1], data[at + 2 : end]))
                at = end
    return found


class Export(NamedTuple):
    """One entry of the export section."""

    name: str
    kind: int
    position: int


def exports(module: bytes) -> list[Export]:
    """Reads the export section."""
    found: list[Export] = []
    for section, data in sections(module):
        if section == SECTION_EXPORT:
            count, at = read_unsigned(data, 0)
            for _ in range(count):
                length, at = read_unsigned(data, at)
                name = data[at : at + length].decode()
                kind = data[at + length]
                position, at = read_unsigned(data, at + length + 1)
                found.append(Export(name, kind, position))
    return found


def _non_zero_span(memory: bytes) -> tuple[int, int]:
    """Returns the page-aligned span from the first to the last nonzero byte; (0, 0) if there is none."""
    zero = bytes(PAGE)
    used = [at for at in range(0, len(memory), PAGE) if memory[at : at + PAGE] != zero]
    return (used[0], used[-1] + PAGE) if used else (0, 0)


def _encode_globals(entries: list[Global], names: Mapping[int, str], values: Mapping[str, int]) -> bytes:
    """Encodes the global section, mutable globals initialised to `values` (by name; `names` has it by index)."""
    out = bytearray(unsigned(len(entries)))
    for index, entry in enumerate(entries):
        initialiser = entry.initialiser
        if entry.mutable:
            operator = {TYPE_I32: OP_I32_CONST, TYPE_I64: OP_I64_CONST}[entry.type]
            initialiser = bytes([operator]) + signed(values[names[index]]) + bytes([OP_END])
        out += bytes([entry.type, entry.mutable]) + initialiser
    return bytes(out)


def _encode_exports(kept: list[Export]) -> bytes:
    """Encodes an export section with these exports."""
    out = bytearray(unsigned(len(kept)))
    for export in kept:
        name = export.name.encode()
        out += unsigned(len(name)) + name + bytes([export.kind]) + unsigned(export.position)
    return bytes(out)


def _encode_memory(section: bytes, size: int) -> bytes:
    """Returns the memory section with `size` bytes as its minimum; raises ValueError unless it has one memory."""
    count, at = read_unsigned(section, 0)
    if count != 1:
        raise ValueError(f"expected one memory, found {count}")
    _, after_minimum = read_unsigned(section, at + 1)
    return unsigned(1) + section[at : at + 1] + unsigned(size // WASM_PAGE) + section[after_minimum:]


def _encode_data(memory: bytes) -> bytes:
    """Encodes all of memory as one data segment, so that copy-on-write applies to all of it."""
    start, end = _non_zero_span(memory)
    offset = start if start < 1 << 31 else start - (1 << 32)
    segment = bytes([0, OP_I32_CONST]) + signed(offset) + bytes([OP_END])
    return unsigned(1) + segment + unsigned(end - start) + memory[start:end]


def bake(module: bytes, memory: bytes, global_value: Callable[[str], int], keep_exports: frozenset[str]) -> bytes:
    """Returns a module whose fresh instance has this memory and these values of its mutable globals.

    The baked module exports `keep_exports` only.

    Raises:
        ValueError: a mutable global of `module` is not exported.
    """
    exported = exports(module)
    names = {export.position: export.name for export in exported if export.kind == EXPORT_GLOBAL}
    entries = _globals(module)
    for index, entry in enumerate(entries):
        if entry.mutable and index not in names:
            raise ValueError(f"mutable global {index} is not exported, so its value can't be baked")
    values = {name: global_value(name) for name in names.values()}

    replaced = {
        SECTION_GLOBAL: _encode_globals(entries, names, values),
        SECTION_EXPORT: _encode_exports([export for export in exported if export.name in keep_exports]),
        SECTION_DATA_COUNT: unsigned(1),
        SECTION_DATA: _encode_data(memory),
    }
    out = bytearray(MAGIC)
    for section, data in sections(module):
        if section in (SECTION_START, SECTION_CUSTOM):
            continue
        content = _encode_memory(data, len(memory)) if section == SECTION_MEMORY else replaced.get(section, data)
        out.append(section)
        out += unsigned(len(content)) + content
    return bytes(out)
