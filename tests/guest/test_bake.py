"""Baking: an initialised instance becomes a module whose fresh instance is the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import wasmtime
from hypothesis import given
from hypothesis import strategies as st

from bake import bake, exports, read_unsigned, sections, signed, unsigned

MODULE = """
(module
  (global $counter (export "counter") (mut i32) (i32.const 1))
  (global $large (export "large") (mut i64) (i64.const 1))
  (global $fixed i32 (i32.const -7))
  (memory (export "memory") 1 4)
  (data (i32.const 8192) "hello")
  (func (export "prepare")
    (global.set $counter (i32.const -123456))
    (global.set $large (i64.const 0x7fffffffffffffff))
    (drop (memory.grow (i32.const 1)))
    (i32.store8 (i32.const 8192) (i32.const 106))
    (i32.store8 (i32.const 70000) (i32.const 42)))
  (func (export "counter_now") (result i32) (global.get $counter))
  (func (export "large_now") (result i64) (global.get $large))
  (func (export "fixed_now") (result i32) (global.get $fixed)))
"""
KEPT = frozenset({"memory", "counter_now", "large_now", "fixed_now"})


class Running:
    """An instance of a module without imports."""

    def __init__(self, module: bytes) -> None:
        engine = wasmtime.Engine()
        self.store = wasmtime.Store(engine)
        self.instance = wasmtime.Instance(self.store, wasmtime.Module(engine, module), [])
        self.exports = self.instance.exports(self.store)

    def call(self, name: str) -> object:
        function = self.exports[name]
        assert isinstance(function, wasmtime.Func)
        return function(self.store)

    def global_value(self, name: str) -> int:
        value = self.exports[name]
        assert isinstance(value, wasmtime.Global)
        return int(value.value(self.store))

    def memory(self) -> bytes:
        memory = self.exports["memory"]
        assert isinstance(memory, wasmtime.Memory)
        return bytes(memory.read(self.store))


def compiled(text: str) -> bytes:
    return bytes(wasmtime.wat2wasm(text))


def baked(text: str, keep: frozenset[str] = KEPT, prepare: str = "prepare") -> tuple[bytes, Running]:
    """The baked module and its prepared instance."""
    raw = compiled(text)
    running = Running(raw)
    running.call(prepare)
    return bake(raw, running.memory(), running.global_value, keep), running


def test_a_fresh_instance_of_the_baked_module_is_already_prepared() -> None:
    image, prepared = baked(MODULE)
    fresh = Running(image)
    assert fresh.memory() == prepared.memory()
    assert fresh.memory()[8192:8197] == b"jello"
    assert (fresh.call("counter_now"), fresh.call("large_now"), fresh.call("fixed_now")) == (-123456, 2**63 - 1, -7)


def test_the_baked_module_exports_only_the_kept_names() -> None:
    image, _ = baked(MODULE)
    assert {export.name for export in exports(image)} == KEPT


def test_memory_that_grew_is_the_least_and_the_most_stays() -> None:
    image, _ = baked(MODULE)
    memory_type = wasmtime.Module(wasmtime.Engine(), image).exports[0].type
    assert isinstance(memory_type, wasmtime.MemoryType)
    assert (memory_type.limits.min, memory_type.limits.max) == (2, 4)


def test_zeros_at_both_ends_of_memory_take_no_room_in_the_image() -> None:
    image, _ = baked(MODULE)
    assert len(image) < 70000 + 4096
    assert len(image) - len(compiled(MODULE)) < 70000 - 8192 + 2 * 4096


def test_a_start_function_is_left_out_so_that_it_does_not_run_again() -> None:
    text = """(module (global $n (export "n") (mut i32) (i32.const 0))
      (memory (export "memory") 1) (data (i32.const 0) "x")
      (func $go (global.set $n (i32.add (global.get $n) (i32.const 1)))) (start $go)
      (func (export "prepare")) (func (export "now") (result i32) (global.get $n)))"""
    image, _ = baked(text, frozenset({"memory", "now"}))
    assert Running(image).call("now") == 1


def test_custom_sections_are_left_out() -> None:
    raw = compiled(MODULE) + bytes([0]) + unsigned(5) + b"\x04name"
    image = bake(raw, bytes(65536), lambda _: 0, KEPT)
    assert 0 not in [section for section, _ in sections(image)]


def test_memory_that_is_all_zeros_is_baked_too() -> None:
    image = bake(compiled(MODULE), bytes(65536), lambda _: 0, KEPT)
    assert Running(image).memory() == bytes(65536)


def test_a_mutable_global_that_is_not_exported_is_refused() -> None:
    text = '(module (global (mut i32) (i32.const 1)) (memory (export "memory") 1) (data (i32.const 0) "x"))'
    with pytest.raises(ValueError, match=r"^mutable global 0 is not exported, so its value can't be baked$"):
        bake(compiled(text), bytes(65536), lambda _: 0, KEPT)


def test_two_memories_are_refused() -> None:
    text = '(module (memory (export "memory") 1) (memory 1) (data (i32.const 0) "x"))'
    with pytest.raises(ValueError, match=r"^expected one memory, found 2$"):
        bake(compiled(text), bytes(65536), lambda _: 0, KEPT)


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^not a WebAssembly module$"):
        list(sections(b"\x7fELF\1\0\0\0"))


def test_baking_the_same_twice_gives_the_same_bytes() -> None:
    assert baked(MODULE)[0] == baked(MODULE)[0]


# ---- LEB128


def read_signed(data: bytes) -> int:
    """An independent implementation, from the specification."""
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
    return value - (1 << shift) if data[-1] & 0x40 else value


@given(value=st.integers(0, 2**64 - 1), before=st.binary(max_size=3), after=st.binary(max_size=3))
def test_an_unsigned_number_is_read_back(value: int, before: bytes, after: bytes) -> None:
    encoded = unsigned(value)
    assert read_unsigned(before + encoded + after, len(before)) == (value, len(before) + len(encoded))


@given(value=st.integers(-(2**63), 2**63 - 1))
def test_a_signed_number_is_read_back(value: int) -> None:
    assert read_signed(signed(value)) == value


@pytest.mark.parametrize(
    ("encode", "value", "expected"),
    [
        (unsigned, 0, b"\x00"),
        (unsigned, 127, b"\x7f"),
        (unsigned, 128, b"\x80\x01"),
        (unsigned, 624485, b"\xe5\x8e\x26"),
        (signed, 0, b"\x00"),
        (signed, -1, b"\x7f"),
        (signed, 63, b"\x3f"),
        (signed, 64, b"\xc0\x00"),
        (signed, -64, b"\x40"),
        (signed, -123456, b"\xc0\xbb\x78"),
    ],
)
def test_numbers_have_their_shortest_form(encode: Callable[[int], bytes], value: int, expected: bytes) -> None:
    assert encode(value) == expected


@given(value=st.integers(0, 2**32 - 1))
def test_an_unsigned_number_of_32_bits_takes_five_bytes_at_most(value: int) -> None:
    assert 1 <= len(unsigned(value)) <= 5
