"""Clients of other makers, from npm, pinned; skipped where no registry can be reached."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from registry_packages import _ROOT, _install_once

CONFORMANCE = "0.2.0-alpha.12"
PACKAGES = (
    f"@modelcontextprotocol/conformance@{CONFORMANCE}",
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/client@2.4.0",
)
_LEAST_NODE = 22
_NODE = "22.23.3"
"""From npm as well, where the machine's own is older than the suite wants."""


@cache
def client_modules() -> Path:
    """The directory with all of them."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    directory = _ROOT / "clients"
    packages = PACKAGES if _own_node() else (*PACKAGES, f"{_node_package()}@{_NODE}")
    words = ["install", "--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", *packages]
    _install_once(directory, "\n".join(packages), [npm, *words])
    return directory / "node_modules"


def node() -> str:
    """A node that is new enough."""
    own = _own_node()
    if own is not None:
        return own
    program = client_modules() / _node_package() / "bin" / "node"
    if not program.exists():
        pytest.skip(f"node is older than {_LEAST_NODE}, and npm has none for this machine")
    return str(program)


@cache
def _own_node() -> str | None:
    program = shutil.which("node")
    if program is None:
        return None
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    return program if said[1:].split(".")[0].isdigit() and int(said[1:].split(".")[0]) >= _LEAST_NODE else None


def _node_package() -> str:
    system = {"linux": "linux", "darwin": "darwin", "win32": "win"}.get(sys.platform, sys.platform)
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(platform.machine().lower(), platform.machine())
    return f"node-{system}-{machine}"
