"""The guest images that toolbridge runs: built by guest/build.py, carried by the wheel."""

from __future__ import annotations

import json
import os
from typing import NamedTuple

_IMAGES = os.path.join(os.path.dirname(__file__), "images")


class GuestImage(NamedTuple):
    """A built image: its path, and the SHA-256 of its expected content."""

    language: str
    path: str
    sha256: str


def guest_image(language: str) -> GuestImage | None:
    """Reads the manifest of a language's image; returns None if it has not been built. Doesn't read the image.

    Raises:
        ValueError, KeyError, TypeError: the image's manifest is damaged.
    """
    try:
        with open(os.path.join(_IMAGES, f"{language}.json"), encoding="utf-8") as file:
            manifest = json.load(file)
    except FileNotFoundError:
        return None
    digest = manifest["sha256"]
    if not isinstance(digest, str) or len(digest) != 64:
        raise ValueError("the manifest has no sha256")
    return GuestImage(language, os.path.join(_IMAGES, f"{language}.wasm"), digest)


__all__ = ["GuestImage", "guest_image"]
