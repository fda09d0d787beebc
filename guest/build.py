"""Builds the guest images from registry packages: `python guest/build.py [--force]`.

Run by `make guest` and by the wheel's build hook (hatch_build.py). A rebuild with nothing changed does nothing. Fetched
packages are pinned by version and hash, and never committed. The same inputs give the same bytes
(except for Python: see tests/guest/test_reproducible_build.py).
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module, metadata
from pathlib import Path
from typing import Protocol, cast

GUEST = Path(__file__).resolve().parent
if str(GUEST) not in sys.path:
    sys.path.insert(0, str(GUEST))

IMAGES = GUEST / "toolbridge_guest" / "images"
NOTICES = GUEST / "toolbridge_guest" / "licences"
CACHE = GUEST / ".build"
RECIPES = {"javascript": "js.recipe", "python": "python.recipe", "typescript": "typescript.recipe"}
# TypeScript's image is made with JavaScript's compiled engine.
CHAINS = (("javascript", "typescript"), ("python",))
# Images that may be missing, and the consequence.
OPTIONAL = {
    "python": "only programs in Python can't be run",
    "typescript": "only programs in TypeScript can't be run, and JavaScript is not checked before it runs",
}


class BuildError(Exception):
    """A step of the build failed; the message says which and what to do."""


class Recipe(Protocol):
    """Makes one image."""

    def inputs(self) -> list[Path]:
        """The project's own files that the image depends on."""
        ...

    def make(self, workshop: Workshop) -> bytes:
        """Builds the image and returns its bytes."""
        ...


class Workshop:
    """A recipe's tools: steps that show progress, fetched packages, scratch space."""

    def __init__(self, image: str) -> None:
        self.image = image

    @contextlib.contextmanager
    def step(self, title: str) -> Generator[None]:
        """Reports a step's progress on stderr; turns an exception in it into a BuildError that names the step."""
        place, began = f"guest/{self.image}: {title}", time.monotonic()
        print(f"{place} …", file=sys.stderr, flush=True)
        try:
            yield
        except BuildError as error:
            raise BuildError(f"guest/{self.image}: step '{title}' failed.\n{error}") from error
        except Exception as error:
            raise BuildError(f"guest/{self.image}: step '{title}' failed: {type(error).__name__}: {error}") from error
        print(f"{place}: {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)

    def command(self, arguments: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> None:
        """Runs a command and waits for it; raises BuildError with its output if it fails."""
        environment = dict(os.environ if environment is None else environment)
        environment["ZIG_GLOBAL_CACHE_DIR"] = str(CACHE / "zig-libc")
        environment["ZIG_LOCAL_CACHE_DIR"] = str(CACHE / "zig-objects")
        words = [str(argument) for argument in arguments]
        done = subprocess.run(
            words,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        if done.returncode:
            output = (done.stdout + done.stderr).strip()[-4000:]
            raise BuildError(f"{output}\n{Path(words[0]).name} ended with exit code {done.returncode}.")

    def pip(self, *arguments: str | Path) -> None:
        """Runs pip with the user's own index configuration; raises BuildError if it fails."""
        try:
            self.command([sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments])
        except BuildError as error:
            raise BuildError(
                f"{error}\nA package could not be fetched. Check that `{sys.executable} -m pip download` reaches "
                "your package index (network, proxy, PIP_INDEX_URL), then run the build again."
            ) from error

    def install(self, requirements: Path) -> Path:
        """Fetches the pinned packages of a requirements file, once per platform, and returns their directory.

        Raises:
            BuildError: they can't be fetched.
        """
        target = CACHE / f"{requirements.stem}-{_digest([requirements])[:16]}-{platform.system()}-{platform.machine()}"
        if not target.exists():
            with _scratch() as scratch:
                self.pip(
                    *("install", "--no-deps", "--no-compile", "--require-hashes", "--only-binary", ":all:"),
                    *("--target", scratch, "--requirement", requirements),
                )
                _move_into_place(scratch, target)
        return target

    def unpack_sdist(self, requirements: Path, package: str) -> Path:
        """Fetches the source distribution of a hash-pinned package, once, and returns its unpacked directory.

        Raises:
            BuildError: it can't be fetched, or has an unexpected layout.
        """
        target = CACHE / f"{requirements.stem}-{_digest([requirements])[:16]}"
        if not target.exists():
            with _scratch() as scratch:
                self.pip(
                    *("download", "--no-deps", "--require-hashes", "--no-binary", package),
                    *("--dest", scratch, "--requirement", requirements),
                )
                archives = list(scratch.glob("*.tar.gz"))
                if len(archives) != 1:
                    raise BuildError(f"expected one source archive of {package}, found {len(archives)}")
                unpacked = scratch / "unpacked"
                with tarfile.open(archives[0]) as archive:
                    archive.extractall(unpacked, filter="data")
                _move_into_place(unpacked, target)
        roots = list(target.iterdir())
        if len(roots) != 1:
            raise BuildError(f"the source archive of {package} has an unexpected layout: delete {target} and try again")
        return roots[0]

    def unpack_npm(self, packages: Path) -> dict[str, Path]:
        """Fetches the packages of a file of `name@version integrity` lines, once: name → unpacked directory.

        Raises:
            BuildError: npm is missing or fails, or a package differs from its pin.
        """
        target = CACHE / f"{packages.stem}-{_digest([packages])[:16]}"
        pinned = [line.split() for line in packages.read_text(encoding="utf-8").splitlines() if line[:1] not in "#"]
        if not target.exists():
            with _scratch() as scratch:
                for package, integrity in pinned:
                    self._npm_pack(package, integrity, scratch)
                _move_into_place(scratch, target)
        return {package.rpartition("@")[0]: target / package / "package" for package, _ in pinned}

    def _npm_pack(self, package: str, integrity: str, scratch: Path) -> None:
        """Fetches an npm package, verifies its integrity, and unpacks it into a directory of `scratch`.

        Raises:
            BuildError: npm is missing or fails, or the package differs from its pin.
        """
        npm = shutil.which("npm")
        if npm is None:
            raise BuildError(f"{package} comes with npm, which is not installed here.")
        with tempfile.TemporaryDirectory(dir=scratch) as fetched:
            try:
                self.command([npm, "pack", "--silent", "--pack-destination", fetched, package])
            except BuildError as error:
                raise BuildError(f"{error}\n{package} could not be fetched: check that `npm pack` works.") from error
            (archive,) = Path(fetched).glob("*.tgz")
            algorithm, _, expected = integrity.partition("-")
            found = base64.b64encode(hashlib.new(algorithm, archive.read_bytes()).digest()).decode()
            if found != expected:
                raise BuildError(f"{package} differs from its pin: its {algorithm} is {found}, not {expected}.")
            with tarfile.open(archive) as unpacked:
                unpacked.extractall(scratch / package, filter="data")

    def kept_file(self, name: str, file: str, inputs: Sequence[Path]) -> Path:
        """Returns the path of a file made from these inputs and kept between builds; it may not exist yet."""
        return CACHE / f"{name}-{_digest(inputs)[:16]}" / file

    def fresh_directory(self, name: str) -> Path:
        """Creates an empty scratch directory of this name, deleting the last build's."""
        directory = CACHE / name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        return directory

    def notice(self, name: str, *sources: Path | str) -> None:
        """Writes a licence notice beside the images, from files or texts."""
        NOTICES.mkdir(parents=True, exist_ok=True)
        texts = [source.read_text(encoding="utf-8") if isinstance(source, Path) else source for source in sources]
        (NOTICES / f"{name}.txt").write_text("\n\n".join(text.strip() for text in texts) + "\n", encoding="utf-8")


@contextlib.contextmanager
def _scratch() -> Generator[Path]:
    """Makes a temporary directory in the cache; deletes it at the end of the context."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, ignore_cleanup_errors=True) as scratch:
        yield Path(scratch)


def _move_into_place(source: Path, target: Path) -> None:
    """Renames atomically; a concurrent build that was faster wins."""
    try:
        source.rename(target)
    except OSError:
        if not target.exists():
            raise


def _digest(paths: Sequence[Path]) -> str:
    """Reads these files and returns the SHA-256 of their names and contents."""
    digest = hashlib.sha256()
    for path in paths:
        content = path.read_bytes()
        digest.update(f"{path.name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _stamp(recipe: Recipe) -> str:
    """Returns a digest of all inputs: changes whenever the image would."""
    own = [GUEST / "build.py", GUEST / "bake.py"]
    wasmtime = metadata.version("wasmtime")
    return hashlib.sha256(f"{_digest([*own, *recipe.inputs()])} wasmtime {wasmtime}".encode()).hexdigest()


def _is_current(image: Path, manifest: Path, stamp: str) -> bool:
    """Returns whether an image is there, and its manifest has this stamp and the image's size."""
    try:
        found = json.loads(manifest.read_text(encoding="utf-8"))
        return found["stamp"] == stamp and found["bytes"] == image.stat().st_size
    except (OSError, ValueError, KeyError, TypeError):
        return False


def build(language: str, *, force: bool = False) -> Path:
    """Builds one image unless it is up to date, blocking for minutes; writes image and manifest, returns its path.

    Raises:
        BuildError: a step failed.
    """
    recipe = cast(Recipe, import_module(RECIPES[language]))
    image, manifest = IMAGES / f"{language}.wasm", IMAGES / f"{language}.json"
    stamp = _stamp(recipe)
    if not force and _is_current(image, manifest, stamp):
        return image
    data = recipe.make(Workshop(language))
    IMAGES.mkdir(parents=True, exist_ok=True)
    facts = {"language": language, "sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data), "stamp": stamp}
    for path, content in ((image, data), (manifest, json.dumps(facts, indent=1).encode() + b"\n")):
        beside = path.with_name(path.name + ".new")
        beside.write_bytes(content)
        beside.replace(path)
    print(f"guest/{language}: {len(data) / 1e6:.1f} MB, sha256 {facts['sha256']}", file=sys.stderr)
    return image


def build_if_possible(language: str, *, force: bool = False) -> str:
    """Builds an optional image; returns a warning, and removes an outdated image, if that fails."""
    try:
        build(language, force=force)
    except BuildError as error:
        for suffix in ("json", "wasm"):
            (IMAGES / f"{language}.{suffix}").unlink(missing_ok=True)
        return f"{error}\nEverything else is built: {OPTIONAL[language]}."
    return ""


def build_all(*, force: bool = False) -> list[str]:
    """Builds every image, independent ones in parallel; returns warnings about optional ones.

    Raises:
        BuildError: an essential one can't be built.
    """

    def build_one(language: str) -> str:
        """Builds an image; returns a warning if an optional one can't be built, else an empty text."""
        if language in OPTIONAL:
            return build_if_possible(language, force=force)
        build(language, force=force)
        return ""

    def build_chain(languages: Sequence[str]) -> list[str]:
        return [build_one(language) for language in languages]

    for recipe in RECIPES.values():
        import_module(recipe)  # before the threads start: importing isn't safe in two at once
    chains = [[language for language in chain if language in RECIPES] for chain in CHAINS]
    with ThreadPoolExecutor() as threads:
        problems = [problem for found in threads.map(build_chain, chains) for problem in found]
    return [problem for problem in problems if problem]


def main() -> int:
    """Runs the build's command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Build the guest images from registry packages.")
    parser.add_argument("languages", nargs="*", metavar="LANGUAGE", help=f"of {', '.join(RECIPES)}; default: all")
    parser.add_argument("--force", action="store_true", help="build even when nothing has changed")
    options = parser.parse_args()
    unknown = set(options.languages) - set(RECIPES)
    if unknown:
        parser.error(f"no such image: {', '.join(sorted(unknown))}")
    try:
        for language in options.languages:
            build(language, force=options.force)
        for problem in [] if options.languages else build_all(force=options.force):
            print(f"warning: {problem}", file=sys.stderr)
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
