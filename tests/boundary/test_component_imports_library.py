"""Our declarations of Wasmtime's C API for components against those of the package that carries the library."""

from __future__ import annotations

import ctypes
from typing import Any, cast

import pytest
import wasmtime._bindings as package_bindings
import wasmtime._ffi as package_constants

from boundary.test_library import ADDRESS, LOADED, normalised, signature
from toolbridge.boundary import component_imports as components
from toolbridge.boundary import library

bindings: Any = package_bindings
constants: Any = package_constants


def declared() -> dict[str, Any]:
    """Every C function that the module declares, by its C name."""
    kind = cast("type[Any]", type(LOADED.wasm_config_new))
    functions = [value for value in vars(components).values() if isinstance(value, kind)]
    return {function.__name__: function for function in functions}


def test_the_functions_that_are_declared_are_found() -> None:
    names = declared().keys()
    assert len(names) >= 17
    assert {"wasmtime_component_func_call", "wasmtime_component_new", "wasm_byte_vec_new"} <= names


@pytest.mark.parametrize("name", sorted(declared()))
def test_a_function_is_declared_as_the_package_declares_it(name: str) -> None:
    assert signature(declared()[name]) == signature(getattr(bindings, f"_{name}"))


def test_the_callback_has_the_type_that_the_package_gives_it() -> None:
    theirs = bindings.wasmtime_component_func_callback_t
    ours: Any = components.ComponentFunction
    assert [normalised(kind) for kind in ours._argtypes_] == [normalised(kind) for kind in theirs._argtypes_]
    assert ctypes.sizeof(ours._restype_) == ctypes.sizeof(theirs._restype_)
    assert normalised(ours._argtypes_[0]) == ADDRESS


def test_a_value_is_laid_out_as_in_the_package() -> None:
    theirs = bindings.wasmtime_component_val_t
    ours: Any = components.ComponentValue
    assert ctypes.sizeof(ours) == ctypes.sizeof(theirs)
    assert ours.kind.offset == theirs.kind.offset
    assert ours.size.offset == theirs.of.offset == components._CONTENT
    union = bindings.wasmtime_component_valunion_t
    text = union.string.offset
    assert (ours.size.offset, ours.data.offset) == (
        theirs.of.offset + text + library.ByteVector.__dict__["size"].offset,
        theirs.of.offset + text + library.ByteVector.__dict__["data"].offset,
    )
    assert {union.u8.offset, union.u32.offset, union.s32.offset, union.u64.offset, union.s64.offset} == {0}


def test_a_record_s_entry_is_laid_out_as_in_the_package() -> None:
    theirs = bindings.wasmtime_component_valrecord_entry_t
    ours: Any = components.RecordEntry
    assert ctypes.sizeof(ours) == ctypes.sizeof(theirs)
    assert (ours.name.offset, ours.value.offset) == (theirs.name.offset, theirs.val.offset)


def test_the_structures_that_the_library_fills_in_fit_in_their_buffers() -> None:
    assert ctypes.sizeof(bindings.wasmtime_component_instance_t) <= ctypes.sizeof(components.InstanceBuffer)
    assert ctypes.sizeof(bindings.wasmtime_component_func_t) <= ctypes.sizeof(components.FunctionBuffer)


@pytest.mark.parametrize("name", ["U8", "U32", "S32", "U64", "S64", "STRING", "LIST", "RECORD"])
def test_the_numbers_that_name_kinds_are_those_of_the_library(name: str) -> None:
    assert getattr(components, name) == getattr(constants, f"WASMTIME_COMPONENT_{name}").value


def test_a_string_is_copied() -> None:
    value = components.ComponentValue()
    components.set_string(value, "grüß dich".encode())
    assert value.kind == components.STRING
    assert value.data is not None
    assert ctypes.string_at(value.data, value.size).decode() == "grüß dich"
    components.component_value_delete(ctypes.byref(value))
