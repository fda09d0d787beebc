"""The guest images that toolbridge runs: built by guest/build.py, carried by the wheel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

_IMAGES = Path(__file__).parent / "images"


class GuestImage(NamedTuple):
    """A built image: where it is, and the SHA-256 of what it should contain."""

    language: str
    path: Path
    sha256: str


def guest_image(language: str) -> GuestImage | None:
    """The image for a language; None when it has not been built.

    Raises:
        ValueError: the image's manifest is damaged.
    """
    try:
        manifest = json.loads((_IMAGES / f"{language}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    digest = manifest["sha256"]
    if not isinstance(digest, str) or len(digest) != 64:
        raise ValueError("the manifest has no sha256")
    return GuestImage(language, _IMAGES / f"{language}.wasm", digest)


__all__ = ["GuestImage", "guest_image"]
