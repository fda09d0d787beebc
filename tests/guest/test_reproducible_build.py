"""Reproducible builds: a second build of an image, in a cache of its own, gives the same bytes as the one in the tree.

Not of the Python image: componentize-py initialises CPython with the system's clock and random numbers, so the hash
seed differs, and much with it (https://github.com/bytecodealliance/componentize-py/issues/247).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import cast

import pytest

import build as guest_build
from build import CACHE, IMAGES, RECIPES, Recipe, Workshop

# Fetched packages are shared, as is the compiler's C library, which is built from them; our code is compiled anew.
SHARED = ("builder-*", "compiler-*", "engine-*", "packages-*", "zig-libc")


@pytest.fixture(scope="module")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    cache = tmp_path_factory.mktemp("cache")
    for pattern in SHARED:
        for path in CACHE.glob(pattern):
            (cache / path.name).symlink_to(path)
    run_command = Workshop.command
    nice = shutil.which("nice")
    assert nice is not None

    def run_niced(
        workshop: Workshop, arguments: Sequence[str | Path], environment: Mapping[str, str] | None = None
    ) -> None:
        run_command(workshop, [nice, "-n", "10", *arguments], environment)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guest_build, "CACHE", cache)
        patch.setattr(guest_build, "NOTICES", tmp_path_factory.mktemp("licences"))
        patch.setattr(Workshop, "command", run_niced)
        yield


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("_own_cache")
@pytest.mark.parametrize("language", [language for language in RECIPES if language != "python"])
def test_two_builds_of_an_image_are_equal_byte_by_byte(language: str) -> None:
    recipe = cast(Recipe, import_module(RECIPES[language]))
    image, manifest = IMAGES / f"{language}.wasm", IMAGES / f"{language}.json"
    assert guest_build._is_current(image, manifest, guest_build._stamp(recipe)), "out of date: run `make guest`"
    made = recipe.make(Workshop(language))
    kept = image.read_bytes()
    # A comparison of the bytes themselves would print megabytes.
    assert (len(made), made == kept) == (len(kept), True)
