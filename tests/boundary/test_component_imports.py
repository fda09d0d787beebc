"""What a component may call: exactly what is listed, answered with the run's own clock and random numbers."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any, cast

import pytest
import wasmtime
from wasmtime import component as wasmtime_components

from toolbridge.boundary import component_imports, library
from toolbridge.boundary import component_imports as components
from toolbridge.boundary.component_imports import FIRST, IMPORTS, ComponentExchange, room_for
from toolbridge.boundary.host_call import HostSide
from toolbridge.boundary.imports import set_current_run
from toolbridge.boundary.run_state import OutOfBoundsError, RunOver, RunState
from toolbridge.boundary.run_time import Ticks
from toolbridge.errors import EngineError
from toolbridge.limits import Limits
from toolbridge.sandbox.component_instance import ComponentImage, ComponentInstance
from toolbridge.sandbox.engine import _component, shared_engine
from toolbridge_guest import guest_image

OURS = {"call", "start", "wait", "take", "log", "now"}


def test_the_list_of_what_is_granted_is_as_short_as_it_was_reviewed() -> None:
    granted = {(interface.partition("@")[0], name) for interface, functions in IMPORTS.items() for name in functions}
    assert granted == {
        *(("", name) for name in OURS),
        ("wasi:clocks/monotonic-clock", "now"),
        ("wasi:clocks/monotonic-clock", "resolution"),
        ("wasi:clocks/wall-clock", "now"),
        ("wasi:clocks/wall-clock", "resolution"),
        ("wasi:random/random", "get-random-bytes"),
        ("wasi:random/random", "get-random-u64"),
        ("wasi:cli/environment", "get-environment"),
        ("wasi:cli/environment", "get-arguments"),
        ("wasi:filesystem/preopens", "get-directories"),
    }


def test_the_system_s_own_wasi_is_linked_nowhere() -> None:
    for folder in ("boundary", "sandbox"):
        for path in (Path(component_imports.__file__).parents[1] / folder).glob("*.py"):
            assert "add_wasi" not in path.read_text(encoding="utf-8"), path
            assert "set_wasi" not in path.read_text(encoding="utf-8"), path


def test_the_versions_of_what_is_granted_are_those_of_the_image() -> None:
    image = guest_image("python")
    assert image is not None
    config = wasmtime.Config()
    wasmtime._ffi.wasmtime_config_strategy_set(config.ptr(), 2)  # pyright: ignore  # Winch: it is only looked at
    engine = wasmtime.Engine(config)
    package: Any = wasmtime_components
    component = package.Component.from_file(engine, image.path)
    imported = set(component.type.imports(engine))
    assert {interface for interface in IMPORTS if interface} <= imported
    assert {name for name in imported if ":" not in name} == OURS


# ---- components of our own


def image_of(wat: str) -> ComponentImage:
    engine = shared_engine()
    code = wasmtime.wat2wasm(wat)
    component = ctypes.c_void_p()
    error = _component().compile(engine.pointer, bytes(code), len(code), ctypes.byref(component))
    assert not error
    assert component.value is not None
    return ComponentImage(engine.pointer, component.value)


def test_a_component_that_doesn_t_export_run_is_refused() -> None:
    with pytest.raises(EngineError, match="doesn't export run"):
        image_of("(component)")


def test_memory_beyond_the_limit_is_refused_at_the_start() -> None:
    engine = shared_engine()
    image = image_of(
        """(component
             (core module $m (memory 2048)
               (func (export "run") (result i32) i32.const 0))
             (core instance $i (instantiate $m))
             (func (export "run") (result u32) (canon lift (core func $i "run"))))"""
    )
    with pytest.raises(EngineError, match="instantiate the guest"):
        ComponentInstance(engine.pointer, image, 64 * 2**20)


# ---- the exchange


def test_only_what_was_passed_can_be_read() -> None:
    exchange = ComponentExchange()
    text = ctypes.create_string_buffer(b"hello")
    assert exchange.receive(ctypes.addressof(text), 5) == 5
    assert exchange.read(FIRST, 5) == b"hello"
    assert exchange.read(FIRST + 1, 3) == b"ell"
    assert exchange.read(FIRST, 0) == b""
    for pointer, length in ((FIRST, 6), (FIRST + 5, 1), (0, 1), (-1, 1), (FIRST, -1), (2**62, 1)):
        with pytest.raises(OutOfBoundsError):
            exchange.read(pointer, length)


def test_an_empty_text_has_no_address() -> None:
    exchange = ComponentExchange()
    assert exchange.receive(None, 0) == 0
    assert exchange.read(FIRST, 0) == b""


@pytest.mark.parametrize("text", ["x" * 1000, "é" * 1000, "x" * 1000 + "語", "x" * 1000 + "🎉"])
def test_the_room_for_a_frame_is_that_of_its_copy_and_of_the_text_made_from_it(text: str) -> None:
    frame = text.encode()
    made = sys.getsizeof(text) - sys.getsizeof("")
    assert len(frame) + made <= room_for(frame) + 100 <= 2 * len(frame) + made + 200


def test_random_bytes_follow_from_the_frame_and_never_repeat() -> None:
    one, other = ComponentExchange(), ComponentExchange()
    one.begin(b"frame")
    other.begin(b"frame")
    first = one.random(40)
    assert first == other.random(40)
    assert one.random(40) != first
    other.begin(b"another frame")
    assert other.random(40) != first
    assert len({bytes(one.random(32)) for _ in range(1000)}) == 1000


# ---- the host functions themselves


def state() -> RunState:
    return RunState(
        limits=Limits(),
        host=HostSide({}),
        scheduler=cast("Any", None),
        ticks=Ticks(0.005),
        clock=lambda: 1024.25,
        frame=b"",
    )


def value(kind: int = 0, size: int = 0) -> components.ComponentValue:
    made = components.ComponentValue()
    made.kind, made.size = kind, size
    return made


def test_more_random_bytes_than_anybody_needs_end_the_run() -> None:
    run = state()
    run.memory = ComponentExchange()
    with pytest.raises(RunOver):
        component_imports._random_bytes(run, [value(components.U64, 2**62)], [value()])
    assert run.ending is not None
    assert run.ending.kind == "limit"


@pytest.mark.parametrize("length", [0, 1, 300])
def test_random_bytes_are_a_list_of_bytes(length: int) -> None:
    run, expected, result = state(), ComponentExchange(), value()
    run.memory = ComponentExchange()
    component_imports._random_bytes(run, [value(components.U64, length)], [result])
    assert (result.kind, result.size) == (components.LIST, length)
    elements = ctypes.cast(result.data or 0, components.Values)[:length]
    assert {each.kind for each in elements} <= {components.U8}
    assert bytes(each.size for each in elements) == expected.random(length)
    components.component_value_delete(ctypes.byref(result))


def test_the_wall_clock_is_the_granted_one() -> None:
    result = value()
    component_imports._wall_clock(state(), [], [result])
    assert (result.kind, result.size) == (components.RECORD, 2)
    entries = ctypes.cast(result.data or 0, ctypes.POINTER(components.RecordEntry))
    found = {ctypes.string_at(each.name.data or 0, each.name.size): each.value.size for each in entries[:2]}
    assert found == {b"seconds": 1024, b"nanoseconds": 250_000_000}
    components.component_value_delete(ctypes.byref(result))


def call_guarded(answer: Any, run: RunState | None) -> int:
    before = set_current_run(run)
    try:
        error: int = component_imports._guarded(answer)(None, None, None, None, 0, None, 0)
    finally:
        set_current_run(before)
    if error:
        library.error_delete(error)
    return error


def test_a_host_function_that_fails_ends_the_guest_and_raises_nothing() -> None:
    def fail(*_: Any) -> None:
        raise KeyboardInterrupt

    run = state()
    assert call_guarded(fail, run)
    assert run.ending is not None
    assert (run.ending.kind, run.ending.message) == ("crashed", "A host function failed: KeyboardInterrupt.")


def test_an_address_out_of_bounds_is_a_breach_of_the_protocol() -> None:
    def reach(*_: Any) -> None:
        ComponentExchange().read(FIRST, 10)

    run = state()
    assert call_guarded(reach, run)
    assert run.ending is not None
    assert run.ending.kind == "protocol"


def test_a_call_outside_any_run_ends_the_guest() -> None:
    def answer(*_: Any) -> None:
        pass

    assert call_guarded(answer, None)
    assert not call_guarded(answer, state())
