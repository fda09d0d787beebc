"""pyeryx, another CPython in WebAssembly, in a process of a Python that it has a wheel for; it waits for orders."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from bench.debian_python import debian_python
from bench.node_peer import NodePeer
from bench.peer_packages import CACHE, Missing, _install

VERSION = "0.11.0"
_SCRIPT = Path(__file__).parent / "cases" / "peers" / "eryx_peer.py"
_PYTHONS = ("python3.14", "python3.13", "python3.12")


class PythonPeer(NodePeer):
    """The same protocol, spoken by a Python script."""

    def __init__(self, python: str, packages: Path) -> None:
        self.packages = packages
        self._process = subprocess.Popen(
            [python, str(_SCRIPT), str(packages)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._read()  # ready


def eryx_peer() -> PythonPeer | Missing:
    """The peer, or why there is none."""
    python = _usable_python()
    if isinstance(python, Missing):
        return Missing(f"pyeryx needs Python 3.12 or later, and there is none: {python.reason}")
    directory = CACHE / f"pyeryx-{VERSION}"
    if not (directory / "eryx").is_dir():
        # By this Python's pip, because the other one may have none; the wheel is for 3.12 and every later one.
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        wanted = ["--only-binary", ":all:", "--python-version", "3.12", "--target", str(directory)]
        failure = _install([*command, *wanted, f"pyeryx=={VERSION}"])
        if failure is not None:
            return failure
    try:
        return PythonPeer(python, directory)
    except (OSError, RuntimeError) as error:
        return Missing(f"it did not start: {error}")


def _usable_python() -> str | Missing:
    """This one, another that is installed, or one that is fetched for the purpose."""
    if sys.version_info >= (3, 12):
        return sys.executable
    for name in _PYTHONS:
        path = shutil.which(name)
        if path and subprocess.run([path, "-c", "pass"], capture_output=True, check=False).returncode == 0:
            return path
    return debian_python()
