"""Small programs that run in a process of their own, for what can't be measured in a busy one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]


def probe(name: str, *arguments: str) -> Any:
    """What the probe of that name prints as JSON."""
    command = [sys.executable, "-m", f"bench.probes.{name}", *arguments]
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=True)
    return json.loads(done.stdout)
