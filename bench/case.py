"""What every benchmark gets, and the yardstick that several measure against."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from bench.node_peer import NodePeer
from bench.peer_packages import Missing, native_quickjs, node_packages
from bench.report import Finding

SPAWN = "python -c pass"
MOST = "the most it may be"
NODE_PEER = "quickjs-emscripten on Node"
NATIVE_PEER = "quickjs-ng from PyPI (native)"

_PEER_SCRIPT = Path(__file__).parent / "cases" / "peers" / "quickjs_emscripten.mjs"


def spawn_python() -> None:
    """The yardstick: a new process of the interpreter that runs this."""
    subprocess.run([sys.executable, "-c", "pass"], check=True)


@dataclass
class Bench:
    """The settings of one run of the benchmarks, and the peers that could be installed."""

    quick: bool = False
    _open: ExitStack = field(default_factory=ExitStack)

    def rounds(self, usual: int) -> int:
        """How many rounds to measure."""
        return max(3, usual // 5) if self.quick else usual

    @cached_property
    def native(self) -> Any | Missing:
        """The module `quickjs`, or why there is none."""
        return native_quickjs()

    @cached_property
    def node(self) -> NodePeer | Missing:
        """quickjs-emscripten in a Node process that lives until the end, or why there is none."""
        return self.node_peer(_PEER_SCRIPT, "quickjs-emscripten")

    def node_peer(self, script: Path, package: str, *arguments: str) -> NodePeer | Missing:
        """A script that needs a package, in a Node process that lives until the end, or why there is none."""
        packages = node_packages(package)
        if isinstance(packages, Missing):
            return packages
        try:
            return self._open.enter_context(NodePeer(script, packages, *arguments))
        except (OSError, RuntimeError) as error:
            return Missing(f"Node did not start it: {error}")

    def close(self) -> None:
        """Ends the peers' processes."""
        self._open.close()


Case = Callable[[Bench], Iterable[Finding]]
"""A benchmark gives its findings one by one: those before a breakdown are kept."""
