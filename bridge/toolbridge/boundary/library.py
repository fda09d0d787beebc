"""The part of Wasmtime's C library that we call, and nothing else.

The `wasmtime` package carries the library; importing the package declares its whole C API, which
takes longer than everything else in a cold start together, and its host functions keep exceptions
in one process-wide variable. So we load the library it ships and declare some fifty functions.
`tests/boundary/test_library.py` holds every declaration against the package's own.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Callable
from ctypes import c_bool, c_char_p, c_int64, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p
from typing import Any

from toolbridge.errors import EngineError

WASMTIME_VERSION = "50.0.1"

_NAMES = {"linux": "_libwasmtime.so", "darwin": "_libwasmtime.dylib"}
_MACHINES = {"arm64": "aarch64"}


def _library_path() -> str:
    """Returns the path of the wasmtime package's library; raises EngineError if it has none for this platform."""
    spec = importlib.util.find_spec("wasmtime")
    if spec is None or spec.origin is None:
        raise EngineError("load", f"the wasmtime package is not installed; install wasmtime=={WASMTIME_VERSION}")
    machine = _MACHINES.get(os.uname().machine, os.uname().machine)
    directory = os.path.dirname(spec.origin)
    path = os.path.join(directory, f"{sys.platform}-{machine}", _NAMES.get(sys.platform, ""))
    if not os.path.isfile(path):
        raise EngineError("load", f"the wasmtime package has no library for {sys.platform} on {machine}")
    return path


LIBRARY_PATH = _library_path()
_library = ctypes.CDLL(LIBRARY_PATH)

# Opaque pointers, out-parameters and structures are all passed as addresses.
Address = c_void_p
OutAddress = ctypes.POINTER(c_void_p)
Finalizer = ctypes.CFUNCTYPE(None, c_void_p)
NO_FINALIZER = ctypes.cast(0, Finalizer)

# (data, caller, slots of 16 bytes that hold arguments and then results, how many) → trap or 0
HostFunction = ctypes.CFUNCTYPE(c_size_t, c_void_p, c_void_p, ctypes.POINTER(c_uint32), c_size_t)
# The same for a function of the library itself: it returns nothing, so None is what "no trap" looks like.
LibraryFunction = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p, c_size_t)
# (context, data, out: ticks until the next call, out: kind of update) → error or 0
EpochCallback = ctypes.CFUNCTYPE(c_size_t, c_void_p, c_void_p, ctypes.POINTER(c_uint64), ctypes.POINTER(c_uint8))


class Value(ctypes.Structure):
    """wasmtime_val_t, as far as integers need it"""

    _fields_ = (("kind", c_uint8), ("number", c_uint64), ("_rest", c_uint64 * 2))
    kind: int
    number: int


class ByteVector(ctypes.Structure):
    """wasm_byte_vec_t"""

    _fields_ = (("size", c_size_t), ("data", c_void_p))
    size: int
    data: int | None


def _declare(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """Returns the library's function of this name, with its C types declared."""
    function = getattr(_library, name)
    function.restype = result
    function.argtypes = arguments
    return function


# ---- engine
config_new = _declare("wasm_config_new", Address)
config_epoch_interruption_set = _declare("wasmtime_config_epoch_interruption_set", None, Address, c_bool)
config_max_wasm_stack_set = _declare("wasmtime_config_max_wasm_stack_set", None, Address, c_size_t)
config_async_stack_size_set = _declare("wasmtime_config_async_stack_size_set", None, Address, c_size_t)
config_cranelift_opt_level_set = _declare("wasmtime_config_cranelift_opt_level_set", None, Address, c_uint8)
config_wasm_threads_set = _declare("wasmtime_config_wasm_threads_set", None, Address, c_bool)
config_wasm_tail_call_set = _declare("wasmtime_config_wasm_tail_call_set", None, Address, c_bool)
config_wasm_function_references_set = _declare("wasmtime_config_wasm_function_references_set", None, Address, c_bool)
config_wasm_gc_set = _declare("wasmtime_config_wasm_gc_set", None, Address, c_bool)
config_wasm_exceptions_set = _declare("wasmtime_config_wasm_exceptions_set", None, Address, c_bool)
config_wasm_simd_set = _declare("wasmtime_config_wasm_simd_set", None, Address, c_bool)
config_wasm_relaxed_simd_set = _declare("wasmtime_config_wasm_relaxed_simd_set", None, Address, c_bool)
config_wasm_multi_memory_set = _declare("wasmtime_config_wasm_multi_memory_set", None, Address, c_bool)
config_wasm_memory64_set = _declare("wasmtime_config_wasm_memory64_set", None, Address, c_bool)
config_memory_may_move_set = _declare("wasmtime_config_memory_may_move_set", None, Address, c_bool)
engine_new_with_config = _declare("wasm_engine_new_with_config", Address, Address)
engine_increment_epoch = _declare("wasmtime_engine_increment_epoch", None, Address)

# ---- modules
module_new = _declare("wasmtime_module_new", Address, Address, c_char_p, c_size_t, OutAddress)
module_serialize = _declare("wasmtime_module_serialize", Address, Address, ctypes.POINTER(ByteVector))
module_deserialize_file = _declare("wasmtime_module_deserialize_file", Address, Address, c_char_p, OutAddress)
byte_vector_delete = _declare("wasm_byte_vec_delete", None, ctypes.POINTER(ByteVector))

# ---- linking
valtype_new = _declare("wasm_valtype_new", Address, c_uint8)
valtype_vector_new = _declare("wasm_valtype_vec_new", None, ctypes.POINTER(ByteVector), c_size_t, OutAddress)
functype_new = _declare("wasm_functype_new", Address, ctypes.POINTER(ByteVector), ctypes.POINTER(ByteVector))
functype_delete = _declare("wasm_functype_delete", None, Address)
linker_new = _declare("wasmtime_linker_new", Address, Address)
linker_define_func_unchecked = _declare(
    "wasmtime_linker_define_func_unchecked",
    *(Address, Address, c_char_p, c_size_t, c_char_p, c_size_t, Address, HostFunction, c_void_p, Finalizer),
)
linker_instantiate_pre = _declare("wasmtime_linker_instantiate_pre", Address, Address, Address, OutAddress)

# ---- stores and instances
store_new = _declare("wasmtime_store_new", Address, Address, c_void_p, Finalizer)
store_context = _declare("wasmtime_store_context", Address, Address)
store_limiter = _declare("wasmtime_store_limiter", None, Address, c_int64, c_int64, c_int64, c_int64, c_int64)
store_delete = _declare("wasmtime_store_delete", None, Address)
store_epoch_deadline_callback = _declare(
    "wasmtime_store_epoch_deadline_callback", None, Address, EpochCallback, c_void_p, Finalizer
)
context_set_epoch_deadline = _declare("wasmtime_context_set_epoch_deadline", None, Address, c_uint64)
instance_pre_instantiate = _declare("wasmtime_instance_pre_instantiate", Address, Address, Address, Address, OutAddress)
instance_export_get = _declare("wasmtime_instance_export_get", c_bool, Address, Address, c_char_p, c_size_t, Address)
func_call_unchecked = _declare("wasmtime_func_call_unchecked", Address, Address, Address, Address, c_size_t, OutAddress)
func_call_async = _declare(
    "wasmtime_func_call_async",
    *(Address, Address, Address, Address, c_size_t, Address, c_size_t, OutAddress, OutAddress),
)
call_future_poll = _declare("wasmtime_call_future_poll", c_bool, Address)
call_future_delete = _declare("wasmtime_call_future_delete", None, Address)
# Declared as the package does; in truth it returns nothing, so the result must not be looked at.
context_epoch_deadline_async_yield_and_update = _declare(
    "wasmtime_context_epoch_deadline_async_yield_and_update", Address, Address, c_uint64
)
memory_data = _declare("wasmtime_memory_data", Address, Address, Address)
memory_data_size = _declare("wasmtime_memory_data_size", c_size_t, Address, Address)

# ---- traps and errors
trap_new = _declare("wasmtime_trap_new", Address, c_char_p, c_size_t)
trap_code = _declare("wasmtime_trap_code", c_bool, Address, ctypes.POINTER(c_uint8))
trap_message = _declare("wasm_trap_message", None, Address, ctypes.POINTER(ByteVector))
trap_delete = _declare("wasm_trap_delete", None, Address)
error_new = _declare("wasmtime_error_new", Address, c_char_p)
error_message = _declare("wasmtime_error_message", None, Address, ctypes.POINTER(ByteVector))
error_delete = _declare("wasmtime_error_delete", None, Address)


def take_bytes(vector: ByteVector) -> bytes:
    """Copies a byte vector's content, and frees the vector."""
    content = ctypes.string_at(vector.data, vector.size) if vector.data else b""
    byte_vector_delete(ctypes.byref(vector))
    return content


def take_error(error: int) -> str:
    """Returns an error's message, and frees the error."""
    message = ByteVector()
    error_message(error, ctypes.byref(message))
    error_delete(error)
    return take_bytes(message).decode("utf-8", "replace")


def check(error: int | None, doing: str) -> None:
    """Raises an EngineError, and frees the error, if the library returned one; `doing` says what failed."""
    if error:
        raise EngineError(doing, take_error(error))
