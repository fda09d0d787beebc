"""Determinism: the same bytes in another order, process, hash seed, or from the cache."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest

from codegen import corpus
from toolbridge_codegen.catalog import ServerListing, build_catalog
from toolbridge_codegen.stubs import generate

_IN_ANOTHER_PROCESS = """
import random, sys
sys.path.insert(0, sys.argv[1])
from codegen.test_stubs_determinism import fingerprint, listings, shuffled
print(fingerprint(shuffled(listings(), random.Random(sys.argv[2]))))
"""


def listings() -> tuple[ServerListing, ...]:
    """Our own corpus and, where there are any, real servers."""
    try:
        real = tuple(item.listing for item in corpus.real_listings())
    except pytest.skip.Exception:
        real = ()
    return (*corpus.corpus_listings(), *real)


def shuffled(given: Sequence[ServerListing], source: random.Random) -> list[ServerListing]:
    """The same listings in another order, with their tools in another order."""
    mixed = [replace(listing, tools=tuple(source.sample(listing.tools, len(listing.tools)))) for listing in given]
    source.shuffle(mixed)
    return mixed


@cache
def expected() -> str:
    """Of the listings as they are."""
    return fingerprint(listings())


def fingerprint(given: Sequence[ServerListing]) -> str:
    """Of every file in every language and detail, with its diagnostics."""
    digest = hashlib.sha256()
    catalog = build_catalog(given)
    for language in ("typescript", "python"):
        for detail in ("full", "compact"):
            stubs = generate(catalog, language=language, detail=detail)
            digest.update(ascii([*stubs.files.items(), stubs.manifest, stubs.diagnostics]).encode())
    return digest.hexdigest()


def test_a_second_run_gives_the_same_bytes() -> None:
    assert fingerprint(listings()) == expected()


@pytest.mark.parametrize("seed", range(2))
def test_the_order_of_a_listing_does_not_matter(seed: int) -> None:
    assert fingerprint(shuffled(listings(), random.Random(seed))) == expected()


def test_other_processes_with_other_hash_seeds_give_the_same_bytes() -> None:
    tests = str(corpus.ROOT / "tests")
    for seed in ("0", "4242"):
        done = subprocess.run(
            [sys.executable, "-c", _IN_ANOTHER_PROCESS, tests, seed],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.stdout.strip() == expected(), done.stderr[-2000:]
