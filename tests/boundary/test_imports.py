"""What the guest image imports is exactly what the host offers, and what it exports is all that we use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from bake import exports, read_unsigned, sections
from toolbridge.boundary import imports
from toolbridge.boundary.imports import I32, I64, IMPORT_MODULE, IMPORTS, LEAVE, set_current_run
from toolbridge.boundary.run_state import RunState
from toolbridge_guest import guest_image

SECTION_TYPE, SECTION_IMPORT, SECTION_START = 1, 2, 8
KIND_FUNCTION, KIND_MEMORY = 0, 2
VALUE_TYPES = {0x7F: I32, 0x7E: I64}


@pytest.fixture(scope="module")
def image() -> bytes:
    found = guest_image("javascript")
    assert found is not None
    return Path(found.path).read_bytes()


def value_types(data: bytes, at: int) -> tuple[tuple[int, ...], int]:
    count, at = read_unsigned(data, at)
    return tuple(VALUE_TYPES.get(byte, -1) for byte in data[at : at + count]), at + count


def function_types(image: bytes) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    found: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for section, data in sections(image):
        if section == SECTION_TYPE:
            count, at = read_unsigned(data, 0)
            for _ in range(count):
                assert data[at] == 0x60
                parameters, at = value_types(data, at + 1)
                results, at = value_types(data, at)
                found.append((parameters, results))
    return found


def imported(image: bytes) -> Iterator[tuple[bytes, bytes, int, int]]:
    """Module, name, kind and type of each import."""
    for section, data in sections(image):
        if section == SECTION_IMPORT:
            count, at = read_unsigned(data, 0)
            for _ in range(count):
                length, at = read_unsigned(data, at)
                module, at = data[at : at + length], at + length
                length, at = read_unsigned(data, at)
                name, at = data[at : at + length], at + length
                kind = data[at]
                index, at = read_unsigned(data, at + 1)
                yield module, name, kind, index


def test_the_image_imports_exactly_what_the_host_offers(image: bytes) -> None:
    types = function_types(image)
    found = {(module, name, kind, types[index]) for module, name, kind, index in imported(image)}
    offered = {(IMPORT_MODULE, item.name, KIND_FUNCTION, (item.parameters, item.results)) for item in IMPORTS}
    assert found == offered | {(IMPORT_MODULE, LEAVE, KIND_FUNCTION, ((), ()))}


def test_the_image_exports_its_memory_and_its_runs_only(image: bytes) -> None:
    assert {(export.name, export.kind) for export in exports(image)} == {
        ("memory", KIND_MEMORY),
        ("run", KIND_FUNCTION),
        ("inbox", KIND_FUNCTION),
        ("run_inbox", KIND_FUNCTION),
    }


def test_the_image_has_no_start_function(image: bytes) -> None:
    assert SECTION_START not in {section for section, _ in sections(image)}


def test_the_imports_are_these_and_no_others() -> None:
    signatures = {item.name: (item.parameters, item.results) for item in IMPORTS}
    assert signatures == {
        b"call": ((I32, I32, I32, I32), (I32,)),
        b"start": ((I32, I32), (I32,)),
        b"wait": ((I64, I32, I32), (I32,)),
        b"take": ((I32, I32), (I32,)),
        b"log": ((I32, I32, I32), ()),
        b"now": ((I32,), (I64,)),
    }


@pytest.mark.parametrize("item", IMPORTS, ids=lambda item: item.name.decode())
def test_an_import_that_is_called_outside_of_a_run_traps_instead_of_raising(item: imports.Import) -> None:
    from toolbridge.boundary import library

    set_current_run(None)
    slots = [0] * 64
    trap = imports.import_callback(item)(0, 0, slots, 4)
    assert trap
    library.trap_delete(trap)
    assert slots == [0] * 64


@pytest.mark.parametrize("item", IMPORTS, ids=lambda item: item.name.decode())
def test_an_import_whose_run_fails_in_an_unexpected_way_traps_and_says_so(item: imports.Import) -> None:
    from toolbridge.boundary import library

    class BrokenRun:
        """Stands in for a run's state: every method of it fails."""

        def __init__(self) -> None:
            self.endings: list[tuple[str, str]] = []

        def end(self, kind: str, message: str) -> None:
            self.endings.append((kind, message))

        def end_for(self, error: BaseException) -> None:
            RunState.end_for(cast("RunState", self), error)

        def __getattr__(self, name: str) -> object:
            raise SystemExit("unexpected")

    run = BrokenRun()
    set_current_run(run)  # pyright: ignore[reportArgumentType]
    try:
        trap = imports.import_callback(item)(0, 0, [0] * 64, 4)
    finally:
        set_current_run(None)
    assert trap
    library.trap_delete(trap)
    assert run.endings == [("crashed", "A host function failed: SystemExit.")]


@pytest.mark.parametrize(
    ("low", "high", "value"),
    [
        (0, 0, 0),
        (1, 0, 1),
        (0, 1, 2**32),
        (0xFFFFFFFF, 0xFFFFFFFF, -1),
        (0, 0x80000000, -(2**63)),
        (0xFFFFFFFF, 0x7FFFFFFF, 2**63 - 1),
    ],
)
def test_a_64_bit_argument_is_read_as_signed(low: int, high: int, value: int) -> None:
    assert imports._signed64([low, high]) == value
