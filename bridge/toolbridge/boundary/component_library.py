"""The part of Wasmtime's C library for components: the Python guest is one, the JavaScript guest isn't.

Apart from `library.py`, so that a run in JavaScript doesn't pay for these declarations.
`tests/boundary/test_component_library.py` holds every one of them against the package's own.
"""

from __future__ import annotations

import ctypes
from ctypes import c_bool, c_char_p, c_size_t, c_uint8, c_uint64, c_void_p
from typing import Any

from toolbridge.boundary.library import Address, ByteVector, Finalizer, OutAddress, _declare

U8, U32, S32, U64, S64, STRING, LIST, RECORD = 2, 6, 5, 8, 7, 12, 13, 14


class ComponentValue(ctypes.Structure):
    """wasmtime_component_val_t, as far as numbers, strings, lists and records need it"""

    # A number is in `size`, at `_CONTENT`; a string, list or record has a size and the address of its content.
    _fields_ = (("kind", c_uint8), ("size", c_uint64), ("data", c_void_p), ("_rest", c_uint64))
    kind: int
    size: int
    data: int | None


class RecordEntry(ctypes.Structure):
    """wasmtime_component_valrecord_entry_t"""

    _fields_ = (("name", ByteVector), ("value", ComponentValue))
    name: ByteVector
    value: ComponentValue


Values = ctypes.POINTER(ComponentValue)
# (data, context, type, arguments, how many, results, how many) → error or 0
ComponentFunction = ctypes.CFUNCTYPE(c_size_t, c_void_p, c_void_p, c_void_p, Values, c_size_t, Values, c_size_t)
# The structures that the library fills in, used by address only.
InstanceBuffer = c_uint64 * 2
FunctionBuffer = c_uint64 * 4

byte_vector_new = _declare("wasm_byte_vec_new", None, Address, c_size_t, c_char_p)

# ---- components
component_new = _declare("wasmtime_component_new", Address, Address, c_char_p, c_size_t, OutAddress)
component_serialize = _declare("wasmtime_component_serialize", Address, Address, ctypes.POINTER(ByteVector))
component_deserialize_file = _declare("wasmtime_component_deserialize_file", Address, Address, c_char_p, OutAddress)
component_get_export_index = _declare(
    "wasmtime_component_get_export_index", Address, Address, Address, c_char_p, c_size_t
)

# ---- linking
component_linker_new = _declare("wasmtime_component_linker_new", Address, Address)
component_linker_root = _declare("wasmtime_component_linker_root", Address, Address)
component_linker_instantiate = _declare(
    "wasmtime_component_linker_instantiate", Address, Address, Address, Address, Address
)
component_linker_define_unknown_imports_as_traps = _declare(
    "wasmtime_component_linker_define_unknown_imports_as_traps", Address, Address, Address
)
linker_instance_add_instance = _declare(
    "wasmtime_component_linker_instance_add_instance", Address, Address, c_char_p, c_size_t, OutAddress
)
linker_instance_add_func = _declare(
    "wasmtime_component_linker_instance_add_func",
    *(Address, Address, c_char_p, c_size_t, ComponentFunction, c_void_p, Finalizer),
)
linker_instance_delete = _declare("wasmtime_component_linker_instance_delete", None, Address)

# ---- instances
component_instance_get_func = _declare(
    "wasmtime_component_instance_get_func", c_bool, Address, Address, Address, Address
)
component_func_call = _declare(
    "wasmtime_component_func_call", Address, Address, Address, Values, c_size_t, Values, c_size_t
)

# ---- values
component_value_delete = _declare("wasmtime_component_val_delete", None, Values)
component_list_new = _declare("wasmtime_component_vallist_new_uninit", None, Address, c_size_t)
component_record_new = _declare("wasmtime_component_valrecord_new_uninit", None, Address, c_size_t)

_CONTENT = 8


def content_address(value: Any) -> int:
    """Where a value's own vector is."""
    return ctypes.addressof(value) + _CONTENT


def set_string(value: Any, text: bytes) -> None:
    """Makes a value a string: UTF-8, copied."""
    value.kind = STRING
    byte_vector_new(ctypes.addressof(value) + _CONTENT, len(text), text)


def fill_byte_list(value: Any, data: bytes) -> None:
    """Makes the elements of a list that is as long as `data` its bytes."""
    each = ctypes.sizeof(ComponentValue)
    elements = bytearray(each * len(data))
    elements[::each] = bytes((U8,)) * len(data)
    elements[_CONTENT::each] = data
    ctypes.memmove(value.data, bytes(elements), len(elements))
