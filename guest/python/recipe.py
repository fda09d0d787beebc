"""Recipe of the Python image: fetch componentize-py, which brings CPython, and give it our runner."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

from python.immortal import make_immortal

if TYPE_CHECKING:
    from build import Workshop

HERE = Path(__file__).parent
WORLD = "guest"
ENTRY = "toolbridge_entry"
PACKAGE = "_toolbridge"
_ENTRY_SOURCE = f"from {PACKAGE}.runner import WitWorld\n"
_SCRIPT = "import sys; from componentize_py import script; sys.exit(script())"


def inputs() -> list[Path]:
    """Lists the project's own files that the image depends on."""
    return sorted(path for path in HERE.rglob("*") if path.suffix in {".py", ".wit", ".txt"})


def make(workshop: Workshop) -> bytes:
    """Builds the image and returns its bytes; fetches packages and takes about a minute. Raises BuildError."""
    with workshop.step("fetch the builder"):
        packages = workshop.install(HERE / "builder.txt")
    with workshop.step("put the runner together"):
        build = workshop.fresh_directory("python")
        runner = build / "runner"
        shutil.copytree(HERE / PACKAGE, runner / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
        (runner / f"{ENTRY}.py").write_text(_ENTRY_SOURCE, encoding="utf-8")
        shutil.copytree(packages / "tzdata" / "zoneinfo", runner / "tzdata" / "zoneinfo")
    with workshop.step("link and initialise (about half a minute)"):
        image = build / "image.wasm"
        workshop.command(
            [
                *(sys.executable, "-c", _SCRIPT, "-d", HERE / "guest.wit", "-w", WORLD),
                *("componentize", ENTRY, "-p", runner, "-o", image),
            ],
            environment=_clean_environment(packages, build),
        )
    workshop.notice("componentize-py", *sorted(packages.glob("componentize_py-*/**/LICENSE*")))
    workshop.notice("cpython", _cpython_licence())
    workshop.notice("tzdata", *sorted(packages.glob("tzdata-*/**/LICENSE*")))
    with workshop.step("make its objects immortal"):
        data, _ = make_immortal(image.read_bytes())
    return data


def _cpython_licence() -> Path | str:
    """Returns the licence of CPython in the image, the same as that of the Python that builds it: a file or text."""
    licence = Path(sysconfig.get_path("stdlib")) / "LICENSE.txt"
    if licence.is_file():
        return licence
    return f"CPython is under the PSF License Agreement: https://docs.python.org/3/license.html\n\n{sys.copyright}"


def _clean_environment(packages: Path, build: Path) -> dict[str, str]:
    """Returns an environment that hides the user's own packages, which would be put on the guest's path.

    Makes an empty directory in `build` for it.
    """
    empty = build / "no-packages"
    (empty / "lib").mkdir(parents=True)
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "TEMP", "TMP", "TMPDIR") if name in os.environ}
    return {**kept, "PYTHONPATH": str(packages), "VIRTUAL_ENV": str(empty), "PATH": str(empty)}
