"""Fetches what others made, for comparison only: pinned, into bench/.cache, and never a must."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BENCH = Path(__file__).resolve().parent
CACHE = _BENCH / ".cache"
_NODE_VERSIONS = {
    "quickjs-emscripten": "0.32.0",
    "json-schema-to-typescript": "16.0.0",
    "typescript": "5.9.3",
    "@modelcontextprotocol/server-everything": "2026.8.31",
}
_SECONDS_TO_INSTALL = 180


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a peer can't be measured here."""

    reason: str


def node_packages(package: str) -> Path | Missing:
    """The directory whose node_modules has the package."""
    version = _NODE_VERSIONS[package]
    directory = CACHE / "npm"
    manifest = directory / "node_modules" / package / "package.json"
    if shutil.which("node") is None:
        return Missing("Node is not installed")
    if manifest.is_file() and json.loads(manifest.read_text("utf-8")).get("version") == version:
        return directory
    npm = shutil.which("npm")
    if npm is None:
        return Missing("npm is not installed")
    directory.mkdir(parents=True, exist_ok=True)
    command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(directory)]
    failure = _install([*command, f"{package}@{version}"])
    return failure or directory


def native_quickjs() -> Any | Missing:
    """The module `quickjs` from PyPI's quickjs-ng: the dependency group `bench`, or a copy of our own."""
    directory = CACHE / "venv-packages"
    module = _imported(directory)
    if module is None:
        project = tomllib.loads((_BENCH.parent / "pyproject.toml").read_text("utf-8"))
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        failure = _install([*command, "--target", str(directory), *project["dependency-groups"]["bench"]])
        if failure is not None:
            return failure
        module = _imported(directory)
    return module if module is not None else Missing("quickjs-ng was installed and still can't be imported")


def _imported(directory: Path) -> Any | None:
    if str(directory) not in sys.path:
        sys.path.append(str(directory))
    importlib.invalidate_caches()
    try:
        return importlib.import_module("quickjs")
    except ImportError:
        return None


def _install(command: list[str], directory: Path | None = None) -> Missing | None:
    """None when it worked. What the installer said last is the reason when it didn't."""
    try:
        done = subprocess.run(
            command, cwd=directory, capture_output=True, text=True, timeout=_SECONDS_TO_INSTALL, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Missing(f"could not be installed: {error}")
    if done.returncode == 0:
        return None
    said = [line for line in done.stderr.splitlines() if "error" in line.lower() and "log of this run" not in line]
    return Missing(f"could not be installed: {said[-1] if said else f'exit code {done.returncode}'}")
