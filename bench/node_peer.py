"""A peer's script in a Node process of its own: it waits, measures a batch when told to, and answers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.measure import Batch


class NodePeer:
    """Lives as long as the benchmarks do, so that its batches can take turns with ours."""

    def __init__(self, script: Path, packages: Path, *arguments: str) -> None:
        self.packages = packages
        self._process = subprocess.Popen(
            ["node", str(script), str(packages), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._read()  # ready

    def batch(self, work: str, times: int) -> Batch:
        """A contender: `work` is the name of a function in the script. Node's own clock measures."""

        def run() -> float:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps({"work": work, "times": times}) + "\n")
            self._process.stdin.flush()
            return float(self._read()["seconds"])

        return run

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"Node ended with code {self._process.wait()}")
        return json.loads(line)

    def __enter__(self) -> NodePeer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
