"""Our declarations of Wasmtime's C API against those of the package that carries the library."""

from __future__ import annotations

import ctypes
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any, cast

import pytest
import wasmtime._bindings as package_bindings

from cases import each
from toolbridge.boundary import imports, library
from toolbridge.errors import EngineError
from toolbridge.sandbox import engine, instance

bindings: Any = package_bindings
LOADED: Any = library._library

# One name for every type that is passed the same way. `c_ulong` is `c_size_t` here; sizes are compared.
ADDRESS = "address"
CALLBACK = "callback"
FUNCTION_POINTER: Any = ctypes.CFUNCTYPE(None).__mro__[1]


def normalised(kind: Any) -> str | None:
    """How a type is passed: as an address, a callback, nothing, or a number of some size and sign."""
    if kind is None:
        return None
    if issubclass(kind, (ctypes._Pointer, ctypes.c_void_p, ctypes.c_char_p)):
        return ADDRESS
    if issubclass(kind, FUNCTION_POINTER):
        return CALLBACK
    if kind is ctypes.c_bool:
        return "bool"
    if issubclass(kind, ctypes._SimpleCData):
        simple = cast("type[ctypes._SimpleCData[int]]", kind)
        sign = "signed" if simple(-1).value < 0 else "unsigned"
        return f"{sign} {8 * ctypes.sizeof(simple)}"
    raise AssertionError(f"a type that no function of ours takes by value: {kind}")


def signature(function: Any) -> tuple[str | None, list[str | None]]:
    return normalised(function.restype), [normalised(kind) for kind in function.argtypes]


def declared() -> dict[str, Any]:
    """Every C function that the module declares, by its C name."""
    kind = cast("type[Any]", type(LOADED.wasm_config_new))
    functions = [value for value in vars(library).values() if isinstance(value, kind)]
    return {function.__name__: function for function in functions}


def test_the_functions_that_are_declared_are_found() -> None:
    names = declared().keys()
    assert len(names) > 40
    assert {"wasmtime_func_call_unchecked", "wasmtime_store_limiter", "wasm_trap_message"} <= names


@each("name", sorted(declared()))
def test_a_function_is_declared_as_the_package_declares_it(name: str) -> None:
    assert signature(declared()[name]) == signature(getattr(bindings, f"_{name}"))


def test_the_callbacks_have_the_types_that_the_package_gives_them() -> None:
    def of(callback: Any) -> tuple[str | None, list[str | None]]:
        # A callback returns an address as a number of its size: ctypes makes no pointers of what Python returns.
        result = normalised(callback._restype_)
        size = f"unsigned {8 * ctypes.sizeof(ctypes.c_size_t)}"
        return (ADDRESS if result == size else result), [normalised(kind) for kind in callback._argtypes_]

    define = bindings._wasmtime_linker_define_func_unchecked
    epoch = bindings._wasmtime_store_epoch_deadline_callback
    assert of(library.HostFunction) == of(library.LibraryFunction) == of(define.argtypes[6])
    assert of(library.Finalizer) == of(define.argtypes[8])
    assert of(library.EpochCallback) == of(epoch.argtypes[1])


def test_a_byte_vector_is_laid_out_as_in_the_package() -> None:
    theirs = bindings.wasm_byte_vec_t
    for ours, name in ((library.ByteVector.size, "size"), (library.ByteVector.data, "data")):
        field = getattr(theirs, name)
        assert (cast("Any", ours).offset, cast("Any", ours).size) == (field.offset, field.size)
    assert ctypes.sizeof(library.ByteVector) == ctypes.sizeof(theirs)


def test_the_structures_that_the_library_fills_in_fit_in_their_buffers() -> None:
    assert ctypes.sizeof(bindings.wasmtime_extern_t) <= ctypes.sizeof(instance._ExternBuffer)
    assert bindings.wasmtime_extern_t.of.offset == instance._EXTERN_PAYLOAD == 8
    assert ctypes.sizeof(bindings.wasmtime_instance_t) == ctypes.sizeof(instance._InstanceBuffer)


def test_a_value_is_laid_out_as_in_the_package() -> None:
    theirs = bindings.wasmtime_val_t
    assert ctypes.sizeof(library.Value) == ctypes.sizeof(theirs)
    assert cast("Any", library.Value.kind).offset == theirs.kind.offset
    assert cast("Any", library.Value.number).offset == theirs.of.offset


def test_an_argument_slot_is_as_large_as_the_imports_assume() -> None:
    slot = ctypes.sizeof(bindings.wasmtime_val_raw_t)
    assert slot == 16
    assert slot == imports._SLOT * ctypes.sizeof(ctypes.c_uint32)


def position(enumeration: Any, name: str) -> int:
    """A constant's number in C. Where C counts from 0, the package's own counts from 1."""
    return list(enumeration.__members__).index(name)


def test_the_numbers_that_name_things_are_those_of_the_library() -> None:
    trap_codes = bindings.wasmtime_trap_code_enum
    assert trap_codes.WASMTIME_TRAP_CODE_STACK_OVERFLOW.value == instance.STACK_OVERFLOW
    assert trap_codes.WASMTIME_TRAP_CODE_MEMORY_OUT_OF_BOUNDS.value == instance._OUT_OF_BOUNDS
    assert position(bindings.wasmtime_opt_level_enum, "WASMTIME_OPT_LEVEL_SPEED") == engine._OPTIMISE_FOR_SPEED
    assert position(bindings.wasm_valkind_enum, "WASM_I32") == imports.I32
    assert position(bindings.wasm_valkind_enum, "WASM_I64") == imports.I64


def test_the_version_is_the_one_installed_and_pinned(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    pin = f"wasmtime=={library.WASMTIME_VERSION}"
    assert metadata.version("wasmtime") == library.WASMTIME_VERSION
    assert [line for line in project["project"]["dependencies"] if line.startswith("wasmtime")] == [pin]
    assert [line for line in project["build-system"]["requires"] if line.startswith("wasmtime")] == [pin]


def test_an_error_of_the_library_becomes_an_engine_error_with_its_message() -> None:
    with pytest.raises(EngineError, match=r"^Wasmtime failed to do this: out of luck$"):
        library.check(library.error_new(b"out of luck"), "do this")


@pytest.mark.parametrize("nothing", [None, 0])
def test_no_error_is_no_error(nothing: int | None) -> None:
    library.check(nothing, "do this")
