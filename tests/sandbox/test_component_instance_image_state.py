"""What a guest has besides its memory: nothing that lasts. `sandbox/instance_module.py` relies on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bake import read_unsigned, sections
from sandbox.wasm_code import SECTION_GLOBAL, TABLE_CHANGES, instructions
from toolbridge_guest import guest_image

MUTABLE = 1


@pytest.fixture(scope="module")
def image() -> bytes:
    found = guest_image("javascript")
    assert found is not None
    return Path(found.path).read_bytes()


def test_the_stack_pointer_is_the_only_mutable_global(image: bytes) -> None:
    (content,) = (content for section, content in sections(image) if section == SECTION_GLOBAL)
    count, at = read_unsigned(content, 0)
    assert (count, content[at + 1]) == (1, MUTABLE)


def test_no_code_changes_a_table(image: bytes) -> None:
    found = set(instructions(image))
    assert len(found) > 100
    assert found & TABLE_CHANGES == set()
