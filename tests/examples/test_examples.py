"""Every example, in each language, run by the command that its README gives, prints what its README says."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SECTION = re.compile(r"((?:^    \S[^\n]*\n)+)\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = [
    (command.strip(), output)
    for commands, output in SECTION.findall((EXAMPLES / "README.md").read_text(encoding="utf-8"))
    for command in commands.splitlines()
]


class Checkout:
    """A copy of the examples, where running them leaves its traces, and a user with nothing of their own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        shutil.copytree(EXAMPLES, directory / "examples", ignore=shutil.ignore_patterns("toolbridge.lock"))
        self._environ = {
            # `python` and `toolbridge` are those of this environment, as for a person who has activated it.
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "HOME": str(directory / "home"),
            "TOOLBRIDGE_STATE_DIR": str(directory / "state"),
            "TOOLBRIDGE_CONFIG_DIR": str(directory / "config"),
        }
        for name in ("TOOLBRIDGE_CACHE_DIR", "XDG_CACHE_HOME"):
            if name in os.environ:
                self._environ[name] = os.environ[name]
        # Only for the compiled engine, which takes seconds to make.
        self._environ.setdefault("XDG_CACHE_HOME", str(Path.home() / ".cache"))

    def run(self, command: str) -> tuple[int, str, str]:
        done = subprocess.run(
            shlex.split(command),
            cwd=self.directory,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """With both servers approved, by the digests that an approval without a terminal asks for."""
    checkout = Checkout(tmp_path_factory.mktemp("checkout"))
    for name in json.loads((EXAMPLES / "toolbridge.json").read_text(encoding="utf-8"))["mcpServers"]:
        command = f"toolbridge approve {name} --config examples/toolbridge.json"
        code, out, _ = checkout.run(command)
        assert code == 4
        (digest,) = set(re.findall(r"sha256:[0-9a-f]{64}", out))
        assert checkout.run(f"{command} --hash {digest} --yes") == (0, f"Approved {name}.\n", "")
    return checkout


def test_the_readme_shows_every_example_once() -> None:
    files = sorted(f"examples/{path.name}" for path in EXAMPLES.glob("0*"))
    *others, session = files
    assert len(others) == 12  # five in two languages, two of them in a third; the sixth's one file has both
    named = [re.findall(r"examples/0\S+", command)[0] for command, _ in SHOWN]
    assert sorted(named) == [*others, session, session]


@pytest.mark.parametrize(
    ("command", "output"), SHOWN, ids=[command.rpartition("examples/")[2].replace(" ", "_") for command, _ in SHOWN]
)
def test_an_example_prints_what_its_readme_says(checkout: Checkout, command: str, output: str) -> None:
    assert checkout.run(command) == (0, output, "")


def test_an_example_whose_servers_nobody_approved_says_how_to_approve_them(tmp_path: Path) -> None:
    code, out, err = Checkout(tmp_path).run(SHOWN[0][0])
    assert (code, out) == (1, "")
    assert err.startswith("ModuleError: Server 'atlas' is not approved: nobody approved it.")
    assert "`toolbridge approve atlas --config examples/toolbridge.json`" in err
    assert not (tmp_path / "examples" / "toolbridge.lock").exists()
