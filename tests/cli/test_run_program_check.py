"""`toolbridge check`: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.projects import Project, weather

RIGHT = 'import { get_forecast } from "host:mcp-weather";\nget_forecast({ location: "Oslo" }).days.length'
WRONG = 'import { get_forecast } from "host:mcp-weather";\nget_forecast({ location: "Oslo" }).day.length'


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("project"))
    project.configure({"weather": weather()})
    project.approve("weather")
    return project


def test_nothing_wrong_is_said_and_exits_with_zero(project: Project) -> None:
    assert project.run("check", project.write(RIGHT, "right.ts")) == (0, "Nothing was found.\n", "")


def test_what_is_wrong_is_shown_with_its_line_and_stub_and_exits_with_one(project: Project) -> None:
    code, out, err = project.run("check", project.write(WRONG, "wrong.js"))
    assert (code, err) == (1, "")
    assert out.startswith(
        "line 2, column 36: Property 'day' does not exist on type 'GetForecastOutput'. Did you mean 'days'?\n"
    )
    assert "> 2 | get_forecast" in out
    assert "The stub says (mcp-weather.d.ts, line " in out
    assert out.endswith("\n1 problem.\n")


def test_json_is_one_object(project: Project) -> None:
    program = project.write("from host.mcp_weather import get_forcast\n", "wrong.py")
    code, out, err = project.run("check", "--json", program)
    report = json.loads(out)
    assert (code, err, report["ok"], report["checked"], report["warning"]) == (1, "", False, True, "")
    (problem,) = report["problems"]
    assert (problem["line"], problem["column"], problem["rule"]) == (1, 30, "import-not-found")
    assert "Did you mean: 'get_forecast'?" in problem["message"]


def test_a_program_that_can_not_be_read_is_shown_as_such(project: Project) -> None:
    code, out, _ = project.run("check", project.write("const a: = 1", "broken.ts"))
    assert code == 1
    assert out.startswith("SyntaxError: Type expected.\n  at line 1, column 10\n")


def test_run_checks_first_and_can_be_told_not_to(project: Project) -> None:
    program = project.write(WRONG, "run.js")
    code, out, err = project.run("run", program)
    assert (code, out) == (1, "")
    guide = (Path(__file__).resolve().parents[2] / "docs" / "check-programs.md").read_text(encoding="utf-8")
    assert f"```text\n{err}```" in guide
    code, out, err = project.run("run", "--no-check", program)
    assert (code, out) == (1, "")
    assert err.startswith("TypeError: ")
    assert "Calls already made" in err


@pytest.mark.parametrize("name", ["program.ts", "program.py"])
def test_a_program_of_a_server_that_is_not_approved_is_said_to_be_unchecked(tmp_path: Path, name: str) -> None:
    project = Project(tmp_path)
    project.configure({"weather": weather()})
    python = 'from host.mcp_weather import get_forecast\nget_forecast(location="Oslo")["day"]'
    code, out, err = project.run("check", project.write(python if name.endswith(".py") else WRONG, name))
    assert (code, out) == (4, "Nothing was checked.\n")
    assert "The tools of 'weather' are not known (not approved, disabled, or not reached)" in err
    assert "Run `toolbridge approve weather` if you trust it" in err
    code, out, _ = project.run("check", "--json", name)
    assert (code, json.loads(out)["checked"], json.loads(out)["problems"]) == (4, False, [])


def test_servers_of_which_nothing_is_known_are_named_beside_what_was_checked(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.configure({"weather": weather(), "other": weather(connectTimeout=61)})
    project.approve("weather")
    program = project.write('import { some } from "host:mcp-other";\n' + RIGHT + ";some(1)", "both.ts")
    code, out, err = project.run("check", program)
    assert (code, out) == (0, "Nothing was found.\n")
    assert "The tools of 'other' are not known" in err
    assert "calls of them were not checked" in err
