"""One warm call passes few files, few times, in the order that docs/ARCHITECTURE.md draws."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from walk import Visit, Walk

WALK = Path(__file__).parent / "walk.py"
ARCHITECTURE = Path(__file__).parent.parent / "docs" / "ARCHITECTURE.md"
_STEP = re.compile(r"^\d+\. `([\w/]+\.py)` ", re.MULTILINE)


@cache
def walk_of(kind: str) -> Walk:
    """Traced in a process of its own, as its profile hook is global."""
    command = [sys.executable, str(WALK), kind, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return Walk([Visit(file, tuple(functions)) for file, functions in json.loads(done.stdout)])


@pytest.mark.parametrize("language", ["javascript", "typescript", "python"])
def test_a_warm_run_stays_within_the_ceilings(language: str) -> None:
    walk = walk_of(language)
    assert len(walk.files) <= 26, walk
    assert len(walk.visits) <= 180, walk
    assert walk.most_visited[1] <= 20, walk


def test_a_served_run_stays_within_the_ceiling() -> None:
    walk = walk_of("served")
    assert len(walk.files) <= 40, walk.files


def test_the_architecture_draws_the_walk() -> None:
    drawn = _STEP.findall(ARCHITECTURE.read_text("utf-8"))
    assert drawn == walk_of("javascript").files
