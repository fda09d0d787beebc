"""The size of stubs, compared with the listings that they replace."""

from __future__ import annotations

from typing import Literal

import pytest

from codegen import corpus
from toolbridge_codegen.catalog import build_catalog
from toolbridge_codegen.stubs import generate

SHARED_FILES = {"bridge.d.ts", "host/bridge.pyi", "host/__init__.pyi"}
"""What every program gets once, whatever its servers."""


@pytest.mark.parametrize(
    ("language", "detail", "most"),
    [
        ("typescript", "full", 0.60),
        ("python", "full", 0.62),  # the aio module included, and an alias for each output without a schema
        ("typescript", "compact", 0.25),
        ("python", "compact", 0.25),
    ],
)
def test_stubs_of_real_servers_are_small(
    language: Literal["typescript", "python"], detail: Literal["full", "compact"], most: float
) -> None:
    real = corpus.real_listings()
    catalog = build_catalog(item.listing for item in real)
    files = generate(catalog, language=language, detail=detail).files
    written = sum(len(text) for name, text in files.items() if name not in SHARED_FILES)
    raw = sum(item.raw_characters for item in real)
    assert written <= most * raw, f"{language} {detail}: {written / raw:.1%} of {raw} characters"
