"""The tree stays one that a stranger can walk: few files, none long, and one meaning for each name."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_FILES = 200
MOST_GUEST_FILES = 15
MOST_LINES = 500

FILE_TWINS = {
    "pins.py": "the public module, and the room's main file that it re-exports",
    "plugins.py": "the public module, and the file that it re-exports",
}
"""Files of one name in different packages, by design, and why."""
CLASS_TWINS: dict[str, str] = {}
"""Classes of one name in different packages, by design, and why."""


@cache
def sources() -> list[Path]:
    """Every source file of the bridge and of the code generator."""
    files = [path for folder in ("bridge", "codegen") for path in (ROOT / folder).rglob("*.py*")]
    return sorted(path for path in files if path.suffix in (".py", ".pyi"))


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_there_are_few_files() -> None:
    assert len(sources()) <= MOST_FILES
    compiler = [path for path in (ROOT / "guest/typescript").iterdir() if path.suffix in (".js", ".ts", ".py")]
    assert len(compiler) <= MOST_GUEST_FILES


def test_no_file_is_long() -> None:
    guest = [path for path in (ROOT / "guest").rglob("*") if path.suffix in (".js", ".py", ".c", ".rs", ".ts")]
    ours = [path for path in guest if not {".build", "node_modules", "vendor"} & set(path.parts)]
    lengths = {shown(path): len(path.read_text(encoding="utf-8").splitlines()) for path in [*sources(), *ours]}
    assert {path: lines for path, lines in lengths.items() if lines > MOST_LINES} == {}


def test_no_two_packages_have_a_file_of_one_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in sources():
        if path.stem not in ("__init__", "__main__"):
            places[path.name].append(shown(path))
    twins = {name: files for name, files in places.items() if len(files) > 1}
    assert {name: files for name, files in twins.items() if name not in FILE_TWINS} == {}
    assert set(FILE_TWINS) <= set(twins)


def test_no_two_packages_have_a_class_of_one_name() -> None:
    places: dict[str, set[str]] = defaultdict(set)
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].add(shown(path.parent))
    twins = {name: sorted(packages) for name, packages in places.items() if len(packages) > 1}
    assert {name: packages for name, packages in twins.items() if name not in CLASS_TWINS} == {}
    assert set(CLASS_TWINS) <= set(twins)
