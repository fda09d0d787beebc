"""`toolbridge approve`, `revoke`, `enable` and `disable` as real processes, at a real terminal and without one."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from toolbridge.config.config import load_config
from toolbridge.servers.lifecycle import prepare
from toolbridge.trust.approval.approver import ApprovalRequest
from toolbridge.trust.approval.approvers import PROCESS_WARNING, REMOTE_WARNING
from toolbridge.trust.approval.store import ApprovalStore

WEATHER = Path(__file__).resolve().parents[2] / "bridge" / "toolbridge" / "demo" / "weather.py"
COMMAND = [sys.executable, "-c", "from toolbridge.cli import main; main()"]

CALL_THEM = "let programs call them? [y/N]"
"""The end of the second question, about the tools."""


class Home:
    """A user with a home, a project, and a terminal if one is wanted."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.project = directory / "project"
        self.project.mkdir()
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "TOOLBRIDGE_CACHE_DIR": str(directory / "cache"),
            "TOOLBRIDGE_CONFIG_DIR": str(directory / "config"),
            "TOOLBRIDGE_STATE_DIR": str(directory / "state"),
        }
        self.store = directory / "state" / "approvals" / "approved-mcp.json"

    def configure(self, **servers: dict[str, Any]) -> None:
        (self.project / "toolbridge.json").write_text(json.dumps({"mcpServers": servers}))

    def run(self, *words: str, cwd: Path | None = None, stdin: str = "") -> tuple[int, str, str]:
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=cwd or self.project,
            env=self.environ,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout, done.stderr

    def type(self, *words: str, answers: Mapping[str, str], before: str = "") -> tuple[int, str]:
        """Run a command at a terminal of 80 columns: type each answer once its words are on the screen."""
        import pty
        import termios

        near, far = pty.openpty()
        termios.tcsetwinsize(far, (24, 80))
        os.write(near, before.encode())
        shown, waiting = b"", dict(answers)
        with subprocess.Popen(
            [*COMMAND, *words], cwd=self.project, env=self.environ, stdin=far, stdout=far, stderr=far
        ) as process:
            os.close(far)
            until = time.monotonic() + 60
            while time.monotonic() < until:
                if not select.select([near], [], [], 1)[0]:
                    continue
                try:
                    piece = os.read(near, 65_536)
                except OSError:  # the other side is closed
                    break
                if not piece:
                    break
                shown += piece
                for question in [each for each in waiting if each.encode() in shown]:
                    os.write(near, waiting.pop(question).encode())
            code = process.wait(30)
        os.close(near)
        text = shown.decode().replace("\r\n", "\n")
        assert "Traceback" not in text
        return code, text

    def _request(self, name: str) -> ApprovalRequest:
        server = load_config(directory=self.project, environ=self.environ).servers[name]
        return prepare(server, self.environ)[0]

    def digest(self, name: str) -> str:
        return self._request(name).digest

    def standing(self, name: str) -> str:
        return ApprovalStore(self.store.parent).answer(self._request(name)).standing


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.configure(weather={"command": sys.executable, "args": [str(WEATHER)], "env": {"KEY": "hunter2hunter2"}})
    return home


# ---- with a terminal


def test_a_person_is_asked_and_a_yes_starts_the_server_and_shows_its_tools(home: Home) -> None:
    code, shown = home.type("approve", "weather", answers={"[y/N]": "y\n", CALL_THEM: "y\n"})
    assert code == 0
    assert PROCESS_WARNING in shown
    assert "KEY=***" in shown
    assert "hunter2" not in shown
    assert "Approved weather.\n" in shown
    assert "offers 7 tools:" in shown
    assert "\n  get_forecast\n      Get the weather forecast for a location." in shown
    assert "The audit found nothing" in shown
    assert "7 tools of weather can be called." in shown
    assert home.standing("weather") == "approved"
    code, shown = home.type("approve", "weather", answers={})
    assert (code, "[y/N]" in shown, "approved already" in shown) == (0, False, True)


def test_tools_that_a_person_does_not_want_are_not_pinned_and_can_not_be_called(home: Home) -> None:
    code, shown = home.type("approve", "weather", answers={"[y/N]": "y\n", CALL_THEM: "n\n"})
    assert code == 0
    assert "0 tools of weather can be called." in shown
    assert "7 tools are refused by you and hidden (" in shown
    assert "`toolbridge approve weather` shows it, and asks." in shown
    assert not (home.project / "toolbridge.lock").exists()


@pytest.mark.parametrize("answer", ["\n", "n\n", "yess\n", "\x04"])
def test_any_other_answer_is_a_no(home: Home, answer: str) -> None:
    code, shown = home.type("approve", "weather", answers={"[y/N]": answer})
    assert code == 4
    assert "Not approved." in shown
    assert not home.store.exists()


def test_what_was_typed_before_the_question_is_no_answer(home: Home) -> None:
    code, shown = home.type("approve", "weather", answers={"[y/N]": "n\n"}, before="y\ny\ny\n")
    assert code == 4
    assert "Not approved." in shown
    assert not home.store.exists()


def test_ctrl_c_at_the_question_is_a_no(home: Home) -> None:
    """The pseudo-terminal is not the process's own, so the signal is sent rather than typed."""
    import pty
    import signal

    near, far = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "approve", "weather"], cwd=home.project, env=home.environ, stdin=far, stdout=far, stderr=far
    ) as process:
        os.close(far)
        shown = b""
        while b"[y/N]" not in shown:
            shown += os.read(near, 65_536)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    os.close(near)
    assert not home.store.exists()


def test_another_command_asks_as_well_and_remembers(home: Home) -> None:
    code, shown = home.type("info", "weather", "--connect", answers={"[y/N]": "y\n", CALL_THEM: "y\n"})
    assert code == 0
    assert PROCESS_WARNING in shown
    assert "weather: connected" in shown
    assert home.run("info", "weather", "--connect")[0] == 0


@pytest.mark.parametrize(
    "words", [("list",), ("list", "--connect"), ("doctor",), ("stubs", "--connect"), ("info", "weather")]
)
def test_commands_about_all_servers_ask_nothing(home: Home, words: tuple[str, ...]) -> None:
    _, shown = home.type(*words, answers={})
    assert "[y/N]" not in shown
    assert home.standing("weather") == "unknown"


def test_a_file_that_is_changed_while_the_question_is_asked_changes_nothing(home: Home, tmp_path: Path) -> None:
    """T23: what was shown is what is approved and started."""
    canary = tmp_path / "started"
    import pty

    near, far = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "approve", "weather"], cwd=home.project, env=home.environ, stdin=far, stdout=far, stderr=far
    ) as process:
        os.close(far)
        shown = b""
        while b"[y/N]" not in shown:
            shown += os.read(near, 65_536)
        home.configure(weather={"command": "touch", "args": [str(canary)]})
        os.write(near, b"y\n")
        answered = False
        while True:
            try:
                piece = os.read(near, 65_536)
            except OSError:
                break
            if not piece:
                break
            shown += piece
            if CALL_THEM.encode() in shown and not answered:
                answered = True
                os.write(near, b"y\n")
        assert process.wait(30) == 0
    os.close(near)
    assert b"7 tools of weather can be called" in shown
    assert not canary.exists()
    assert home.standing("weather") == "changed"


# ---- without one


def test_without_a_terminal_all_is_shown_and_nothing_is_approved(home: Home) -> None:
    code, shown, errors = home.run("approve", "weather", stdin="y\ny\n")
    assert code == 4
    assert PROCESS_WARNING in shown
    digest = home.digest("weather")
    assert errors == (
        "Not approved: nobody can be asked here. Run `toolbridge approve weather` if you trust it, or unattended: "
        f"`toolbridge approve weather --hash {digest} --yes`.\n"
    )
    assert not home.store.exists()


def test_the_command_that_is_printed_approves_exactly_that(home: Home) -> None:
    _, _, errors = home.run("approve", "weather")
    found = re.search(r"`toolbridge (approve weather --hash \S+ --yes)`", errors)
    assert found is not None
    assert home.run(*found[1].split()) == (0, "Approved weather.\n", "")
    assert home.standing("weather") == "approved"


def test_yes_goes_only_with_the_exact_digest(home: Home) -> None:
    digest = home.digest("weather")
    assert home.run("approve", "weather", "--yes")[0] == 2
    for wrong in ("", "sha256:", digest[:-1], digest + "0", "sha256:" + "0" * 64, "*"):
        code, _, errors = home.run("approve", "weather", "--hash", wrong, "--yes")
        assert code == 4
        assert digest in errors
    assert not home.store.exists()


def test_a_digest_without_yes_still_asks(home: Home) -> None:
    code, _, errors = home.run("approve", "weather", "--hash", home.digest("weather"))
    assert code == 4
    assert "nobody can be asked" in errors


def test_approving_with_yes_starts_nothing(home: Home, tmp_path: Path) -> None:
    canary = tmp_path / "started"
    home.configure(trap={"command": "touch", "args": [str(canary)]})
    assert home.run("approve", "trap", "--hash", home.digest("trap"), "--yes")[0] == 0
    assert not canary.exists()


def test_a_server_that_can_not_be_prepared_is_an_error_that_says_why(home: Home) -> None:
    home.configure(gone={"command": "no-such-program"}, unset={"command": "env", "env": {"A": "${NOT_SET}"}})
    code, _, errors = home.run("approve", "gone")
    assert (code, "no program 'no-such-program'" in errors) == (4, True)
    code, _, errors = home.run("approve", "unset")
    assert (code, "'NOT_SET' is not set" in errors) == (4, True)
    assert home.run("approve", "nothing")[0] == 2


def test_a_file_given_with_config_is_named_in_the_command(home: Home) -> None:
    (home.project / "other file.json").write_text(json.dumps({"mcpServers": {"web": {"url": "https://example.com/m"}}}))
    _, shown, errors = home.run("approve", "web", "--config", "other file.json")
    assert REMOTE_WARNING in shown
    assert "`toolbridge approve web --config 'other file.json' --hash sha256:" in errors


def test_revoking_asks_again(home: Home) -> None:
    home.run("approve", "weather", "--hash", home.digest("weather"), "--yes")
    code, shown, _ = home.run("revoke", "weather")
    assert (code, shown) == (0, f"Revoked weather of project ({home.project / 'toolbridge.json'}).\n")
    assert home.standing("weather") == "revoked"
    assert home.run("info", "weather", "--connect")[0] == 4
    code, _, errors = home.run("revoke", "weather")
    assert (code, errors) == (4, "There is no approval of 'weather'.\n")


@pytest.mark.parametrize("content", ['{"mcpServers": {}}', "{", None])
def test_a_server_whose_configuration_is_gone_or_broken_can_be_revoked(home: Home, content: str | None) -> None:
    home.run("approve", "weather", "--hash", home.digest("weather"), "--yes")
    file = home.project / "toolbridge.json"
    kept = file.read_text()
    file.unlink() if content is None else file.write_text(content)
    assert home.run("revoke", "weather")[0] == 0
    file.write_text(kept)
    assert home.standing("weather") == "revoked"


def test_a_disabled_server_is_not_started_though_it_is_approved(home: Home, tmp_path: Path) -> None:
    canary = tmp_path / "started"
    home.configure(trap={"command": "touch", "args": [str(canary)]})
    before = (home.project / "toolbridge.json").read_bytes()
    home.run("approve", "trap", "--hash", home.digest("trap"), "--yes")
    assert home.run("disable", "trap")[:2] == (0, "Disabled trap.\n")
    for words in (("info", "trap", "--connect"), ("list", "--connect"), ("doctor",), ("stubs", "--connect")):
        home.run(*words)
    assert not canary.exists()
    assert "trap: disabled" in home.run("info", "trap")[1]
    assert json.loads(home.run("list", "--json")[1])[0]["enabled"] is False
    assert (home.project / "toolbridge.json").read_bytes() == before
    assert home.run("enable", "trap")[:2] == (0, "Enabled trap.\n")
    home.run("info", "trap", "--connect")
    assert canary.exists()


def test_enabling_approves_nothing(home: Home, tmp_path: Path) -> None:
    canary = tmp_path / "started"
    home.configure(trap={"command": "touch", "args": [str(canary)], "enabled": False})
    home.run("enable", "trap")
    home.run("info", "trap", "--connect")
    assert not canary.exists()
    assert home.standing("trap") == "unknown"


@pytest.mark.parametrize(
    "words",
    [
        ("list", "--connect"),
        ("info", "weather", "--connect"),
        ("doctor",),
        ("approve", "weather"),
        ("revoke", "weather"),
        ("disable", "weather"),
    ],
)
def test_a_damaged_store_is_named_and_left_alone(home: Home, words: tuple[str, ...]) -> None:
    home.run("approve", "weather", "--hash", home.digest("weather"), "--yes")
    home.store.write_bytes(home.store.read_bytes()[:100])
    _, shown, errors = home.run(*words)
    assert "approved-mcp.json can't be used: the file is damaged" in shown + errors
    assert home.store.stat().st_size == 100


def test_no_secret_is_in_what_is_shown_or_kept(home: Home) -> None:
    home.run("approve", "weather", "--hash", home.digest("weather"), "--yes")
    outputs = [home.run(*words) for words in (("approve", "weather"), ("info", "weather"), ("list",), ("doctor",))]
    kept = [path.read_bytes() for path in (home.directory / "state").rglob("*") if path.is_file()]
    assert "hunter2" not in str(outputs) + str(kept)
