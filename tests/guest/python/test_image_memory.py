"""The image's memory: using its objects doesn't write to them."""

from __future__ import annotations

import random
import struct

import pytest
import wasmtime

from python._toolbridge.image_memory import MARK
from python.immortal import make_immortal
from toolbridge import Sandbox
from toolbridge.boundary.component_imports import ComponentExchange

IMMORTAL = 5 << 28
KIND, OTHER = 0x200008, 0x200100
LIST_AT, OBJECTS_AT = 0x1000, 0x300000


def escaped(content: bytes) -> str:
    return "".join(f"\\{byte:02x}" for byte in content)


def image(objects: list[tuple[int, int]], listed: list[tuple[int, int]], *, lists: int = 1) -> bytes:
    """A component whose memory has objects (reference count, type), and a list of former ones."""
    words = [number for pair in listed for number in pair]
    text = MARK * 2 + struct.pack(f"<I{len(words)}I", len(words), *words)
    memory = b"".join(struct.pack("<II", *each) for each in objects)
    data = [(LIST_AT + 0x1000 * number, text) for number in range(lists)] + [(OBJECTS_AT, memory)]
    segments = "".join(f'(data (i32.const {at}) "{escaped(content)}")' for at, content in data)
    return bytes(wasmtime.wat2wasm(f"(component (core module (func)) (core module (memory 64) {segments}))"))


def words_of(made: bytes, original: bytes, objects: list[tuple[int, int]]) -> tuple[int, ...]:
    """Reads the objects' memory in the resulting image."""
    memory = b"".join(struct.pack("<II", *each) for each in objects)
    at = original.index(memory)
    return struct.unpack_from(f"<{2 * len(objects)}I", made, at)


def test_an_object_that_is_there_becomes_immortal_and_nothing_else_changes() -> None:
    objects = [(3, KIND), (1, OTHER), (0x77, 0x78)]
    before = image(objects, [(OBJECTS_AT, KIND), (OBJECTS_AT + 8, OTHER)])
    made, count = make_immortal(before)
    assert words_of(made, before, objects) == (IMMORTAL, KIND, IMMORTAL, OTHER, 0x77, 0x78)
    assert count == 2
    assert len(made) == len(before)


@pytest.mark.parametrize(
    ("now", "why"),
    [
        ((0, KIND), "it has ended"),
        ((0x390000, KIND), "it is free, and the next free place is there"),
        ((7 << 28, KIND), "it is immortal already"),
        ((2, OTHER), "something else lies there"),
    ],
)
def test_what_is_no_longer_there_stays_as_it_is(now: tuple[int, int], why: str) -> None:
    before = image([now], [(OBJECTS_AT, KIND), (OBJECTS_AT + 0x1000, KIND), (8, KIND)])
    made, count = make_immortal(before)
    assert words_of(made, before, [now]) == now, why
    assert count == 0


def test_the_list_itself_is_gone() -> None:
    made, _ = make_immortal(image([(3, KIND)], [(OBJECTS_AT, KIND)]))
    assert MARK not in made


@pytest.mark.parametrize("lists", [0, 2])
def test_an_image_without_its_one_list_is_refused(lists: int) -> None:
    with pytest.raises(ValueError, match="expected one list"):
        make_immortal(image([(3, KIND)], [(OBJECTS_AT, KIND)], lists=lists))


# ---- the image that was built


def test_references_to_objects_of_the_image_are_not_counted(sandbox: Sandbox) -> None:
    source = """
import json, random, sys
used = [json, json.dumps, json.dumps.__code__, json.JSONEncoder, json.__dict__, json.dumps.__code__.co_consts]
[all(map(sys._is_immortal, used)), sys._is_immortal(object()), sys._is_immortal(used)]
"""
    assert sandbox.run_sync(source, language="python").value == [True, False, False]


def test_a_short_run_asks_for_no_random_bytes(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def zeros(_exchange: ComponentExchange, length: int) -> bytes:
        asked.append(length)
        return bytes(length)

    monkeypatch.setattr(ComponentExchange, "random", zeros)
    assert sandbox.run_sync("1 + 1", language="python").value == 2
    assert asked == []
    assert sandbox.run_sync("import os\nos.urandom(5).hex()", language="python").value == "00" * 5
    assert asked == [5]


def test_a_program_s_own_seed_is_kept_to(sandbox: Sandbox) -> None:
    source = "import random\nrandom.seed(7)\n[random.random(), random.seed == random._inst.seed]"
    assert sandbox.run_sync(source, language="python").value == [random.Random(7).random(), True]


def test_a_program_s_seed_out_of_nothing_is_a_new_one(sandbox: Sandbox) -> None:
    source = "import random\nfirst = random.random()\nrandom.seed()\n[first, random.random()]"
    first, second = (sandbox.run_sync(source, language="python", seed=b"s" * 32).value for _ in range(2))
    assert first == second
    assert first[0] != first[1]
