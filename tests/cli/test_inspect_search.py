"""`toolbridge search` as a real process."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from cli.projects import Project, weather


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose server has been asked for its tools; a second one never was."""
    project = Project(tmp_path_factory.mktemp("known"))
    project.environ["TOOLBRIDGE_CACHE_DIR"] = str(project.directory.parent / "cache")
    project.configure({"weather": weather(), "other": weather()})
    project.approve("weather")
    code, _, err = project.run("search", "forecast", "--connect")
    assert (code, "`toolbridge approve other`" in err) == (0, True)
    return project


def test_the_best_match_comes_first_with_its_module_signature_and_summary(known: Project) -> None:
    code, out, err = known.run("search", "weather", "tomorrow", "forecast")
    first, summary = out.split("\n")[:2]
    assert code == 0
    assert first.startswith("host:mcp-weather  get_forecast(input: { location: string; days?: number }): {")
    assert summary == "    Get the weather forecast for a location"
    assert err == "Not approved, so their tools are not known: `toolbridge approve other`.\n"


def test_no_more_tools_are_shown_than_asked_for(known: Project) -> None:
    _, out, _ = known.run("search", "weather", "--limit", "2", "--json")
    assert len(json.loads(out)["hits"]) == 2


def test_json_is_one_object_with_the_hits_and_who_was_never_asked(known: Project) -> None:
    code, out, err = known.run("search", "pictures", "--json")
    found = json.loads(out)
    assert (code, err, found["neverAsked"]) == (0, "", ["other"])
    assert found["hits"][0]["tool"] == "picture"


def test_nothing_found_is_said_and_exits_with_one(known: Project) -> None:
    code, out, err = known.run("search", "xylophone")
    assert (code, out) == (1, "")
    assert "No tool matches.\n" in err


def test_nothing_is_started_without_approval(tmp_path: Path) -> None:
    project = Project(tmp_path)
    canary = tmp_path / "started"
    project.configure({"trap": {"command": "touch", "args": [str(canary)]}})
    for words in (["search", "anything"], ["search", "anything", "--connect"]):
        code, out, err = project.run(*words)
        assert (code, out) == (1, "")
        assert "Not approved, so their tools are not known: `toolbridge approve trap`." in err
    assert not canary.exists()


def test_whose_tools_are_not_known_and_why_is_said_by_every_command_that_looks_for_them(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.environ["TOOLBRIDGE_CACHE_DIR"] = str(tmp_path / "cache")
    project.configure(
        {"dead": {"command": sys.executable, "args": ["-c", "raise SystemExit('no licence')"]}, "late": weather()}
    )
    for words in (["search", "x"], ["audit"], ["stubs"]):
        assert "`toolbridge approve dead late`" in project.run(*words)[2]
    project.approve("dead", "late")
    for words in (["search", "x"], ["audit"], ["stubs"]):
        assert "Never asked for their tools: dead, late. Use --connect." in project.run(*words)[2]
    for words in (["search", "x", "--connect"], ["audit", "dead", "--connect"], ["stubs", "--connect"]):
        err = project.run(*words)[2]
        assert err.count("no licence") == 1
        assert "Use --connect" not in err


@pytest.mark.parametrize("words", [["search"], ["search", "x", "--limit", "0"], ["search", "x", "--limit", "many"]])
def test_wrong_usage_exits_with_two(tmp_path: Path, words: list[str]) -> None:
    code, out, err = Project(tmp_path).run(*words)
    assert (code, out) == (2, "")
    assert err != ""


def test_tools_of_servers_that_are_not_approved_are_marked(known: Project) -> None:
    assert json.loads(known.run("search", "forecast", "--json")[1])["hits"][0]["approval"] == "approved"
    assert "[" not in known.run("search", "forecast", "--limit", "1")[1].split("\n")[2]
    known.run("revoke", "weather")
    assert "    [its approval was revoked: `toolbridge approve weather`]\n" in known.run("search", "forecast")[1]
    assert json.loads(known.run("search", "forecast", "--json")[1])["hits"][0]["approval"] == "revoked"
    Path(known.environ["TOOLBRIDGE_STATE_DIR"], "approvals", "approved-mcp.json").write_text("{", encoding="utf-8")
    assert (
        "    [its approval can't be told: `toolbridge info weather` says why]\n" in known.run("search", "forecast")[1]
    )
