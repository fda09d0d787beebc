"""Packages from npm, which only the TypeScript image needs: pinned, and optional with a warning."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

import build as guest_build
from build import BuildError, Workshop
from typescript.recipe import PATCHES, library_texts, patched, without_comments


def archive(text: str) -> bytes:
    """An npm package with one file."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as packed:
        entry = tarfile.TarInfo("package/index.js")
        entry.size = len(text.encode())
        packed.addfile(entry, io.BytesIO(text.encode()))
    return data.getvalue()


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A local registry, the only one that `npm pack` uses."""
    packages = tmp_path / "registry"
    packages.mkdir()
    monkeypatch.setattr(guest_build, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(guest_build.shutil, "which", lambda name: f"/bin/{name}")  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]

    def command(workshop: Workshop, arguments: Sequence[str | Path]) -> None:
        words = [str(argument) for argument in arguments]
        assert words[:2] == ["/bin/npm", "pack"]
        source = packages / words[-1]
        if not source.exists():
            raise BuildError("npm ended with exit code 1.")
        (Path(words[words.index("--pack-destination") + 1]) / "package.tgz").write_bytes(source.read_bytes())

    monkeypatch.setattr(Workshop, "command", command)
    return packages


def pinned(registry: Path, data: bytes) -> Path:
    integrity = base64.b64encode(hashlib.sha512(data).digest()).decode()
    file = registry.parent / "packages.txt"
    file.write_text(f"# why\nsome@1.2.3 sha512-{integrity}\n", encoding="utf-8")
    return file


def test_a_package_is_unpacked_and_fetched_once(registry: Path) -> None:
    data = archive("1")
    (registry / "some@1.2.3").write_bytes(data)
    file = pinned(registry, data)
    found = Workshop("typescript").unpack_npm(file)
    assert (found["some"] / "index.js").read_text(encoding="utf-8") == "1"
    (registry / "some@1.2.3").unlink()
    assert Workshop("typescript").unpack_npm(file) == found


def test_a_package_that_differs_from_its_pin_is_refused(registry: Path) -> None:
    (registry / "some@1.2.3").write_bytes(archive("2"))
    with pytest.raises(BuildError, match=r"some@1\.2\.3 differs from its pin"):
        Workshop("typescript").unpack_npm(pinned(registry, archive("1")))


def test_a_failed_fetch_of_a_package_gives_advice(registry: Path) -> None:
    with pytest.raises(BuildError, match="check that `npm pack` works"):
        Workshop("typescript").unpack_npm(pinned(registry, b""))


def test_without_npm_the_image_is_left_out_and_the_reason_is_told(
    registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guest_build.shutil, "which", lambda name: None)  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
    with pytest.raises(BuildError, match="npm, which is not installed here"):
        Workshop("typescript").unpack_npm(pinned(registry, b""))

    def build(language: str, *, force: bool = False) -> Path:
        raise BuildError("npm is not installed here.")

    monkeypatch.setattr(guest_build, "IMAGES", registry.parent / "images")
    monkeypatch.setattr(guest_build, "build", build)
    problem = guest_build.build_if_possible("typescript")
    assert problem.endswith("only programs in TypeScript can't be run, and JavaScript is not checked before it runs.")


def test_a_patch_without_its_anchor_fails_the_build() -> None:
    with pytest.raises(ValueError, match="0 anchors"):
        patched("something else")
    assert patched("\n".join(patch.before for patch in PATCHES)) == "\n".join(patch.after for patch in PATCHES)


def test_the_library_is_one_file_but_for_modules(tmp_path: Path) -> None:
    texts = {
        "esnext": '/// <reference lib="es5" />\n/// <reference lib="esnext.iterator" />\ninterface B {}',
        "es5": "/** Doc. */\ninterface A {\n  // why\n  x: 1;\n}",
        "esnext.iterator": "export {};\ndeclare global {}",
    }
    for name, text in texts.items():
        (tmp_path / f"lib.{name}.d.ts").write_text(text, encoding="utf-8")
    library = library_texts(tmp_path, "declare var ours: 1;")
    assert library.keys() == {"library.d.ts", "library.esnext.iterator.d.ts"}
    assert library["library.d.ts"].index("interface A") < library["library.d.ts"].index("interface B")
    assert library["library.d.ts"].endswith("declare var ours: 1;")


def test_comments_are_removed_and_declarations_stay() -> None:
    assert without_comments("/** a\n * b */\ninterface A {\n\n  // c\n  x: 1;\n}").strip() == "interface A {\nx: 1;\n}"
