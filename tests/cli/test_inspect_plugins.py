"""A real plugin, built and installed: listed, routed by a task, approved, and called."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli import projects, test_serve
from cli.projects import Project

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "plugin"
TASK = "Summarise the shared notes, please"
SECRET = "/secret/place/notes.txt"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the example is installed: built as a wheel, in an environment of its own that has all of this one."""
    directory = tmp_path_factory.mktemp("plugin")
    source, wheels, environment = directory / "source", directory / "wheels", directory / "environment"
    venv.create(environment, symlinks=True)
    (site,) = environment.glob("lib/python*/site-packages")
    this = sysconfig.get_path("purelib")
    (site / "this_environment.pth").write_text(f"import site; site.addsitedir({this!r})\n", encoding="utf-8")
    shutil.copytree(EXAMPLE, source)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(wheels), str(source)]
    subprocess.run([*pip, *build], check=True, capture_output=True)
    (wheel,) = wheels.iterdir()
    subprocess.run(
        [*pip, "install", "--no-deps", "--no-index", "--target", str(site), str(wheel)], check=True, capture_output=True
    )
    return site


@pytest.fixture
def project(tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    command = [str(site.parents[2] / "bin" / "python"), *projects.COMMAND[1:]]
    for module in (projects, test_serve):
        monkeypatch.setattr(module, "COMMAND", command)
    made.environ["ACME_NOTES"] = SECRET
    made.configure({"own": {"command": "own-server", "env": {"TOKEN": "${TOKEN}", "KEY": "hunter2"}}})
    return made


def test_the_example_is_listed(project: Project) -> None:
    code, out, err = project.run("plugins")
    assert (code, err) == (0, "")
    header, row = out.splitlines()
    assert header.split() == ["PLUGIN", "PACKAGE", "SERVER", "CAPABILITIES", "KEYWORDS", "COMMAND"]
    assert re.match(r"acme +acme-notes 0\.1\.0 +acme__notes +notes, read +shared notes, meeting ", row)
    code, out, _ = project.run("plugins", "--json")
    (plugin,) = json.loads(out)
    assert plugin["servers"][0]["envRequired"] == ["ACME_NOTES"]
    assert (code, plugin["problems"], plugin["refusal"]) == (0, [], "")
    code, out, _ = project.run("list", "--json")
    assert [(each["name"], each["origin"]["kind"]) for each in json.loads(out)] == [
        ("acme__notes", "plugin"),
        ("own", "project"),
    ]


def test_a_denied_plugin_offers_nothing(project: Project) -> None:
    project.configure({}, plugins={"deny": ["acme"]})
    code, out, err = project.run("plugins")
    assert (code, out, err) == (0, "acme: not imported: it is in 'plugins.deny' of the configuration.\n", "")
    code, out, err = project.run("run", "--task", TASK, "--dry-run")
    assert json.loads(out)["mcpServers"] == {}
    assert json.loads(out)["ignored"][0]["reason"] == "it is in 'plugins.deny' of the configuration"
    code, _, err = project.run("approve", "acme__notes")
    assert (code, err.splitlines()[0]) == (
        2,
        "Plugin 'acme' is not imported: it is in 'plugins.deny' of the configuration.",
    )


def test_a_dry_run_shows_the_merged_configuration_why_and_no_secret(project: Project) -> None:
    """T35: references stay references."""
    project.environ["TOKEN"] = "hunter3"
    code, out, err = project.run("run", "--task", TASK, "--dry-run")
    assert (code, err) == (0, "")
    shown = json.loads(out)
    assert shown["mcpServers"]["own"]["env"] == {"TOKEN": "${TOKEN}", "KEY": "***"}
    assert shown["mcpServers"]["acme__notes"]["args"] == ["-m", "acme_notes.server"]
    assert shown["mcpServers"]["acme__notes"]["envRequired"] == ["ACME_NOTES"]
    assert {name: why["reason"] for name, why in shown["why"].items()} == {
        "acme__notes": "the task mentions 'shared notes'",
        "own": "it is configured",
    }
    assert shown["why"]["acme__notes"]["origin"] == "plugin (acme)"
    assert not re.search(r"hunter|/secret/", out)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--task", "something else"], ["own"]),
        (["--capability", "notes"], ["acme__notes", "own"]),
        (["--server", "acme__notes"], ["acme__notes"]),
        (["--server", "own", "--task", TASK], ["acme__notes", "own"]),
        ([], ["own"]),
    ],
)
def test_what_is_attached_follows_the_options(project: Project, words: list[str], expected: list[str]) -> None:
    code, out, err = project.run("run", *words, "--dry-run")
    assert (code, err, sorted(json.loads(out)["mcpServers"])) == (0, "", expected)


def test_unknown_names_are_usage_errors(project: Project) -> None:
    code, _, err = project.run("run", "--server", "acme__other", "--dry-run")
    assert (code, err) == (2, "Error: No server 'acme__other' is configured. Known servers: acme__notes, own.\n")
    code, _, err = project.run("run", "--server", "nosuch__x", "--dry-run")
    assert (code, err.splitlines()[0]) == (2, "No plugin 'nosuch' is installed.")
    code, _, err = project.run("run", "--task", "x")
    assert (code, "Missing argument 'FILE'." in err) == (2, True)


def test_its_server_is_approved_by_itself_and_called_for_its_task(project: Project, tmp_path: Path) -> None:
    """T25: nothing of a plugin is started before its own approval, and it gets the one variable that it names."""
    notes = tmp_path / "notes.txt"
    notes.write_text("buy tea\nsell cake\nTea at four\n", encoding="utf-8")
    project.environ["ACME_NOTES"] = str(notes)
    project.configure({})
    (program,) = re.findall(r"```javascript\n(.*?)```", (EXAMPLE / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    project.write(program)
    code, _, err = project.run("run", "--task", TASK, "program.js")
    assert code == 1
    assert "toolbridge approve acme__notes" in err
    project.approve("acme__notes")
    code, out, err = project.run("run", "--task", TASK, "program.js")
    assert (code, json.loads(out), err) == (0, ["buy tea", "Tea at four"], "")
    code, out, err = project.run("run", "program.js")  # without its task it is not there
    assert (code, out) == (1, "")
    assert 'There is no module "host:mcp-acme__notes"' in err
    _find_by_name(project)
    _served(project)
    assert project.run("revoke", "acme__notes")[0] == 0


def _find_by_name(project: Project) -> None:
    code, out, _ = project.run("stubs", "--server", "acme__notes")
    assert (code, 'declare module "host:mcp-acme__notes"' in out) == (0, True)
    assert "acme__notes" not in project.run("search", "notes")[1]
    for words in (["--server", "acme__notes"], ["--task", TASK], ["--capability", "read"]):
        code, out, err = project.run("search", *words, "find")
        assert (code, err, out.startswith("host:mcp-acme__notes  ")) == (0, "", True)


def _served(project: Project) -> None:
    """An MCP client reaches a plugin's server too."""
    program = 'require("host:mcp-acme__notes").find_notes({ word: "sell" })'
    for words in (["--server", "acme__notes"], ["--task", TASK]):
        with test_serve.Served(project, *words) as served:
            served.begin()
            served.send("tools/call", {"name": "run_code", "arguments": {"code": program}}, 2)
            assert served.answer_to(2)["result"]["structuredContent"]["value"] == ["sell cake"]


@contextmanager
def another_plugin(site: Path, source: str) -> Generator[None]:
    """A plugin `other` beside the example, whose module has this source."""
    package, module = site / "other-1.dist-info", site / "other_plugin.py"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n", encoding="utf-8")
    (package / "entry_points.txt").write_text("[toolbridge.plugins]\nother = other_plugin\n", encoding="utf-8")
    module.write_text(source, encoding="utf-8")
    try:
        yield
    finally:
        shutil.rmtree(package)
        module.unlink()


def test_a_plugin_that_hangs_holds_up_nobody_who_does_not_ask_for_it(project: Project, site: Path) -> None:
    """Only the plugin whose server is named is asked."""
    with another_plugin(site, "import os; os._exit(77)\n"):  # worse than hanging, and seen at once
        assert project.run("info", "acme__notes")[0] == 0
        assert project.run("approve", "nosuch__x")[0] == 2
        assert project.run("run", "--server", "acme__notes", "--dry-run")[0] == 0
        assert project.run("list")[0] == 77


def test_a_person_is_told_for_which_plugin_a_command_waits(project: Project, site: Path) -> None:
    slow = (
        "import time; time.sleep(2)\nfrom toolbridge import hookimpl\n@hookimpl\ndef provide_mcp_servers(): return []\n"
    )
    with another_plugin(site, slow):
        code, shown = project.at_terminal("list", command=projects.COMMAND)
        assert (code, shown.count("Waiting for plugins to answer, for up to 10 s")) == (0, 1)
        assert re.search(r"\): other$", shown, re.MULTILINE)
        assert project.run("list")[2] == ""


def test_what_is_wrong_with_a_plugin_is_listed_once(project: Project, site: Path) -> None:
    with another_plugin(site, "raise ValueError('broken')\n"):
        code, out, err = project.run("plugins")
        assert (code, err) == (0, "")
        assert out.endswith("\nother: other is not used: it raised ValueError: broken\n")
        assert "it raised ValueError: broken" in project.run("list")[2]


def test_a_package_whose_entry_points_can_not_be_read_costs_nobody_else_theirs(project: Project, site: Path) -> None:
    with another_plugin(site, ""):
        (site / "other-1.dist-info" / "entry_points.txt").write_bytes(b"\xff\xfe[toolbridge.plugins]")
        code, out, err = project.run("plugins", "--json")
        assert (code, [plugin["name"] for plugin in json.loads(out)]) == (0, ["acme"])
        assert err == "The entry points of the package 'other' can't be read: UnicodeDecodeError\n"
        (site / "other-1.dist-info" / "entry_points.txt").write_text("[toolbridge.plugins]\nother = no module\n")
        (site / "other-1.dist-info" / "METADATA").write_text("")
        assert "other: other is not used: its entry point is 'no module'" in project.run("plugins")[1]


def test_with_all_switched_off_nothing_is_said_of_what_is_installed(project: Project) -> None:
    project.configure({}, gateway=False)
    code, out, err = project.run("plugins")
    assert (code, out, "no plugin is asked" in err) == (0, "", True)


def test_a_profile_is_chosen_on_the_command_line(project: Project) -> None:
    profiles = {"a": {"servers": ["one"]}, "b": {"servers": ["two"], "overrides": {"two": {"args": ["x"]}}}}
    project.configure({"one": {"command": "1"}, "two": {"command": "2"}, "zero": {"command": "0"}}, profiles=profiles)

    def shown(*words: str) -> list[str]:
        code, out, err = project.run("list", "--json", *words)
        assert (code, err) == (0, "")
        return [each["name"] for each in json.loads(out) if each["origin"]["kind"] == "project"]

    assert shown() == ["zero"]
    assert shown("--profile", "a") == ["one", "zero"]
    assert shown("--profile", "a", "--profile", "b") == ["one", "two", "zero"]
    code, out, _ = project.run("run", "--profile", "b", "--dry-run")
    assert (code, json.loads(out)["mcpServers"]["two"]["args"]) == (0, ["x"])
    assert json.loads(out)["why"]["two"]["reason"] == "the profile 'b' has it"
    code, _, err = project.run("info", "two")
    assert (code, "add --profile b" in err) == (2, True)
    code, _, err = project.run("list", "--profile", "c")
    assert (code, "there is no profile 'c'. Known profiles: a, b." in err) == (2, True)
