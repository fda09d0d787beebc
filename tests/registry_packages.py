"""Packages that tests take from npm and PyPI, pinned, installed once into a directory that git ignores.

Where a registry can't be reached, tests that need a package are skipped with that reason.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path

import pytest

from toolbridge.files import file_lock

_ROOT = Path(__file__).resolve().parent.parent / ".packages"

NODE_PACKAGES = (
    "typescript@5.9.3",
    "json-schema-to-typescript@16.0.0",
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-gitlab@2025.4.25",
    "@modelcontextprotocol/server-memory@2026.8.31",
)

PYTHON_SERVERS = ("mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19")
# This server needs the first version of the SDK, and so an environment of its own.
SQLITE_SERVER = ("mcp-server-sqlite==2025.4.25", "mcp<2")


@cache
def node_modules() -> Path:
    """The directory with all of `NODE_PACKAGES`, installed at first use."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    directory = _ROOT / "node"
    wanted = "\n".join(NODE_PACKAGES)
    _install_once(
        directory,
        wanted,
        [
            npm,
            "install",
            "--no-save",
            "--no-package-lock",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            *NODE_PACKAGES,
        ],
    )
    return directory / "node_modules"


@cache
def python_servers() -> Path:
    """The directory with the commands of all of `PYTHON_SERVERS`."""
    return _python_environment("python", PYTHON_SERVERS)


@cache
def sqlite_server() -> Path:
    """The directory with the command of `SQLITE_SERVER`."""
    return _python_environment("python-sqlite", SQLITE_SERVER)


def _python_environment(name: str, packages: tuple[str, ...]) -> Path:
    directory = _ROOT / name
    programs = directory / ("Scripts" if os.name == "nt" else "bin")
    with _alone(name):
        if not programs.exists():
            venv.create(directory, with_pip=True)
    pip = [str(programs / Path(sys.executable).name), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _install_once(directory, "\n".join(packages), [*pip, *packages])
    return programs


def _install_once(directory: Path, wanted: str, command: list[str]) -> None:
    with _alone(directory.name):
        directory.mkdir(parents=True, exist_ok=True)
        stamp = directory / ".installed"
        if stamp.exists() and stamp.read_text() == wanted:
            return
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, timeout=600)
        if done.returncode:
            pytest.skip(f"packages could not be installed: {done.stderr.strip()[-300:]}")
        stamp.write_text(wanted)


def _alone(name: str) -> AbstractContextManager[None]:
    """Tests run in several processes: one of them installs, the others wait."""
    return file_lock(_ROOT / "locks" / name, seconds=900)
