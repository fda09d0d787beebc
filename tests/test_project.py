"""Files that describe the project agree with the code: version, lock, supported Pythons, workflows."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from toolbridge import __version__

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKED = dict(
    re.findall(r"^([a-z0-9-]+)==([^ ]+)", (ROOT / "requirements-dev.lock").read_text(encoding="utf-8"), re.MULTILINE)
)
CLASSIFIED = [
    word.rsplit(" ", 1)[1]
    for word in PROJECT["project"]["classifiers"]
    if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", word)
]


def test_the_version_is_written_in_one_place() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "bridge/toolbridge/__init__.py"
    assert version("toolbridge") == __version__


def test_the_lock_of_the_development_environment_satisfies_every_requirement() -> None:
    for text in [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["dev"]]:
        requirement = Requirement(text)
        assert requirement.specifier.contains(LOCKED[requirement.name]), text


def test_every_package_of_the_lock_has_hashes() -> None:
    for entry in re.split(r"\n(?=[a-z])", (ROOT / "requirements-dev.lock").read_text(encoding="utf-8"))[1:]:
        assert "--hash=sha256:" in entry, entry


def test_nox_and_ci_name_the_supported_pythons() -> None:
    assert CLASSIFIED[0] == PROJECT["project"]["requires-python"].removeprefix(">=")
    nox = re.search(r"^PYTHONS = (\[.*\])$", (ROOT / "noxfile.py").read_text(encoding="utf-8"), re.MULTILINE)
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    matrix = re.search(r"^ +python: (\[.*\])$", workflow, re.MULTILINE)
    assert nox is not None
    assert matrix is not None
    for found in (nox, matrix):
        assert re.findall(r'"([\d.]+)"', found[1]) == CLASSIFIED


def test_workflows_pin_actions_and_grant_no_write_permission_by_default() -> None:
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        text = path.read_text(encoding="utf-8")
        uses = re.findall(r"uses: (\S+)", text)
        assert uses
        assert all(re.search(r"@(v\d|release/v\d)", action) for action in uses), path
        assert re.search(r"^permissions:\n  contents: read$", text, re.MULTILINE), path


def test_workflows_run_make_targets_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        assert set(re.findall(r"run: make ([a-z-]+)", path.read_text(encoding="utf-8"))) <= targets


def test_the_map_of_the_tree_names_every_package() -> None:
    table = (ROOT / ".github/CONTRIBUTING.md").read_text(encoding="utf-8").split("## Map")[1].split("\n## ")[0]
    packages = {path.parent.name for path in (ROOT / "bridge/toolbridge").glob("*/__init__.py")} - {"demo"}
    named = {name.rsplit("/", 1)[-1] for name in re.findall(r"`([\w/]+)`", table)}
    assert packages - named == set()
