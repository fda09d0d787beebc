"""`toolbridge run` of programs that call servers: what is asked, shown and refused, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cli.projects import Project, weather
from toolbridge import Limits, ToolbridgeError
from toolbridge.cli import run_with_servers
from toolbridge.cli.server_options import ServerChoice

FORECAST = 'require("host:mcp-weather").get_forecast({ location: "Oslo", days: 1 }).location'
SLOW = 'require("host:mcp-weather").slow({ seconds: 60 })'
QUESTION = r"\[y/N\] $"
ALLOW = r"\[N\]o: $"


@pytest.fixture(scope="module")
def approved(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with a server that is approved, one that ends at once, and rules for some tools."""
    project = Project(tmp_path_factory.mktemp("approved"))
    rules = {"ask": ["mcp__weather__list_stations", "mcp__weather__get_alerts"], "deny": ["mcp__weather__big"]}
    dying = {"command": sys.executable, "args": ["-c", "raise SystemExit('out of order')"]}
    project.configure({"weather": weather(), "dying": dying}, permissions=rules)
    project.approve("weather", "dying")
    assert project.run("lock", "--update", "weather")[0] == 0
    return project


@pytest.fixture
def fresh(tmp_path: Path) -> Project:
    """A project whose server nobody has approved."""
    project = Project(tmp_path)
    project.configure({"weather": weather()})
    return project


def servers_of(process: int) -> list[int]:
    """The children of a process."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            if int(fields[1]) == process and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def wait_for(file: Path, text: str) -> None:
    """Until a log has this text in it."""
    deadline = time.monotonic() + 60
    while not (file.exists() and text in file.read_text(encoding="utf-8")):
        assert time.monotonic() < deadline, file.read_text(encoding="utf-8") if file.exists() else "no log"
        time.sleep(0.02)


# ---- results


def test_a_program_calls_an_approved_server(approved: Project) -> None:
    assert approved.run("run", approved.write(FORECAST)) == (0, "Oslo\n", "")


def test_a_python_program_calls_an_approved_server(approved: Project) -> None:
    program = "from host.mcp_weather import get_forecast\nget_forecast(location='Oslo', days=1)['location']"
    assert approved.run("run", approved.write(program, "program.py")) == (0, "Oslo\n", "")


def test_json_has_the_calls_and_whose_words_are_in_the_result(approved: Project) -> None:
    code, out, err = approved.run("run", approved.write(FORECAST), "--json")
    assert (code, err, out.count("\n")) == (0, "", 1)
    result: dict[str, Any] = json.loads(out)
    assert (result["ok"], result["value"], result["servers"]) == (True, "Oslo", ["weather"])
    calls = [(call["server"], call["tool"], call["outcome"]) for call in result["calls"]]
    assert calls == [("weather", "get_forecast", "ok")]


def test_the_audit_log_has_every_call_and_no_arguments(approved: Project) -> None:
    log = approved.directory / "audit.jsonl"
    assert approved.run("run", approved.write(FORECAST), "--audit-log", str(log))[0] == 0
    text = log.read_text(encoding="utf-8")
    events = [json.loads(line) for line in text.splitlines()]
    ended = [(event["server"], event["tool"], event["outcome"]) for event in events if event["event"] == "call_ended"]
    assert ended == [("weather", "get_forecast", "ok")]
    assert [event["event"] for event in events].count("run_started") == 1
    assert "Oslo" not in text


def test_an_audit_log_that_can_not_be_written_is_an_error_before_anything_starts(approved: Project) -> None:
    code, out, err = approved.run("run", approved.write(FORECAST), "--audit-log", "no/such/directory/log")
    assert (code, out) == (2, "")
    assert "The audit log can't be used" in err


# ---- which servers


def test_only_the_servers_that_are_named_are_offered(approved: Project) -> None:
    code, out, err = approved.run("run", approved.write(FORECAST), "--server", "dying")
    assert (code, out) == (1, "")
    assert err.startswith('Type error: There is no module "host:mcp-weather". There is: "host:mcp-dying"')


def test_an_unknown_server_is_an_error_that_names_the_known_ones(approved: Project) -> None:
    assert approved.run("run", approved.write(FORECAST), "--server", "wether") == (
        2,
        "",
        "Error: No server 'wether' is configured. Did you mean 'weather'? Known servers: dying, weather.\n",
    )


def test_rules_that_do_nothing_are_told_and_a_misspelt_deny_lets_nothing_through(fresh: Project) -> None:
    """Whoever runs the program believes that the rule protects something."""
    rules = {"deny": ["mcp__weather__get_forcast", "mcp__wether__*", "mcp__weather__big"]}
    labelled = {**weather(), "labels": ["external:get_forcast"]}
    fresh.configure({"weather": labelled}, permissions=rules)
    fresh.approve("weather")
    code, out, err = fresh.run("run", fresh.write(FORECAST))
    assert (code, out) == (1, "")
    denied = "the pattern 'mcp__weather__get_forcast' under permissions.deny of the project's file matches no tool"
    assert f"mcp__weather__get_forecast is denied: {denied}, and is one letter away from this one" in err
    told = [line for line in err.splitlines() if line.startswith("Warning: ")]
    assert len(told) == 3
    assert sum("get_forcast" in line for line in told) == 2
    assert sum("mcp__wether__*" in line for line in told) == 1


def test_a_module_of_no_configured_server_is_answered_with_the_nearest(approved: Project) -> None:
    code, out, err = approved.run("run", approved.write('import { get_forecast } from "host:mcp-wether"; 1'))
    assert (code, out) == (1, "")
    assert 'There is no module "host:mcp-wether". Did you mean "host:mcp-weather"?' in err


def test_a_server_that_ends_at_once_is_explained_to_the_person_and_fails_the_import(approved: Project) -> None:
    code, out, err = approved.run("run", approved.write('import { x } from "host:mcp-dying"; x()'))
    assert (code, out) == (1, "")
    assert "ModuleError: Server 'dying' " in err
    assert "out of order" in err


def test_a_broken_configuration_is_an_error_with_every_problem(fresh: Project) -> None:
    fresh.configure({"weather": {"comand": "python"}})
    code, out, err = fresh.run("run", fresh.write(FORECAST))
    assert (code, out) == (2, "")
    assert "server 'weather': field 'comand': unknown key. Did you mean 'command'?" in err


def test_a_program_without_modules_does_not_care_for_a_broken_configuration(fresh: Project) -> None:
    fresh.configure({"weather": {"comand": "python"}})
    assert fresh.run("run", fresh.write("1 + 1")) == (0, "2\n", "")
    python = fresh.write("import statistics\nstatistics.mean([1, 3])", "program.py")
    assert fresh.run("run", python) == (0, "2\n", "")


def test_where_mcp_is_switched_off_there_are_no_modules_and_it_is_said_why(fresh: Project) -> None:
    fresh.configure({"weather": weather()}, gateway=False)
    code, out, err = fresh.run("run", fresh.write(FORECAST), "--server", "weather")
    assert (code, out) == (1, "")
    assert err.startswith("MCP is switched off in ")
    assert err.count("switched off") == 1
    assert 'There is no module "host:mcp-weather"' in err


# ---- approval


def test_without_a_terminal_a_server_that_nobody_approved_is_refused_with_the_command_to_use(fresh: Project) -> None:
    code, out, err = fresh.run("run", fresh.write(FORECAST))
    assert (code, out) == (1, "")
    assert err.startswith("ModuleError: Server 'weather' is not approved: nobody approved it. Run `toolbridge approve")


def test_at_a_terminal_both_questions_are_asked_and_a_yes_is_remembered(fresh: Project) -> None:
    program = fresh.write(FORECAST)
    code, shown = fresh.at_terminal("run", program, answers=[(QUESTION, "y\n"), (QUESTION, "y\n")])
    assert code == 0
    start, _, tools = shown.partition("NOT sandboxed? [y/N]")
    assert "Approve to start the MCP server weather?" in start
    assert "Server 'weather' offers" in tools
    assert "get_forecast" in tools
    assert shown.endswith("Oslo\n")
    assert fresh.run("run", program) == (0, "Oslo\n", "")


def test_at_a_terminal_a_no_is_asked_for_once(fresh: Project) -> None:
    code, shown = fresh.at_terminal("run", fresh.write(FORECAST), answers=[(QUESTION, "n\n")])
    assert code == 1
    assert shown.count("Approve to start the MCP server weather?") == 1
    assert "ModuleError: Server 'weather' is not approved: you said no" in shown


def test_at_a_terminal_tools_that_are_not_wanted_are_not_pinned_and_not_there(fresh: Project) -> None:
    code, shown = fresh.at_terminal("run", fresh.write(FORECAST), answers=[(QUESTION, "y\n"), (QUESTION, "n\n")])
    assert code == 1
    assert not shown.endswith("Oslo\n")
    assert not (fresh.directory / "toolbridge.lock").exists()


def test_a_tool_that_is_new_is_said_to_be_hidden_and_how_to_accept_it(approved: Project) -> None:
    lock = approved.directory / "toolbridge.lock"
    whole = lock.read_text(encoding="utf-8")
    pins = json.loads(whole)
    pins["servers"]["weather"]["tools"].pop("list_stations")
    lock.write_text(json.dumps(pins), encoding="utf-8")
    try:
        code, out, err = approved.run("run", approved.write(FORECAST))
    finally:
        lock.write_text(whole, encoding="utf-8")
    assert (code, out) == (0, "Oslo\n")
    assert err == (
        "Warning: Server 'weather': new tool is hidden until accepted ('list_stations'): see `toolbridge lock --check "
        "weather`, accept with `toolbridge lock --update weather`.\n"
    )


def test_an_interrupt_at_the_question_starts_nothing(fresh: Project) -> None:
    code, shown = fresh.at_terminal("run", fresh.write(FORECAST), answers=[(QUESTION, "\x03")])
    assert code == 130
    assert shown.rstrip().endswith("Interrupted.")
    assert fresh.run("run", fresh.write(FORECAST))[0] == 1


# ---- permissions


@pytest.mark.parametrize(("answer", "code", "end"), [("y", 0, "3\n"), ("n", 1, ""), ("", 1, ""), ("yesterday", 1, "")])
def test_a_call_that_must_be_asked_about_is_made_after_a_yes_only(
    approved: Project, answer: str, code: int, end: str
) -> None:
    program = approved.write('require("host:mcp-weather").list_stations().length')
    exit_code, shown = approved.at_terminal("run", program, answers=[(ALLOW, f"{answer}\n")])
    assert exit_code == code
    assert "Server 'weather': list_stations {}" in shown
    assert shown.endswith(end) if code == 0 else "ToolDeniedError: " in shown


def test_questions_about_calls_under_way_at_once_come_one_after_the_other(approved: Project) -> None:
    program = approved.write("""
        import { list_stations, get_alerts } from "host:mcp-weather";
        import { parallel } from "host:bridge";
        parallel([[list_stations, {}], [get_alerts, { location: "Oslo" }]]).length
    """)
    code, shown = approved.at_terminal("run", program, answers=[(ALLOW, "y\n"), (ALLOW, "y\n")])
    assert (code, shown.count("Allow this call?")) == (0, 2)
    # The second is shown only after the first is answered.
    first, second = (part.index("Server 'weather'") for part in shown.split("Allow this call?")[:2])
    assert first >= 0
    assert second >= 0


def test_always_is_asked_once_for_a_tool(approved: Project) -> None:
    program = approved.write("""
        import { list_stations } from "host:mcp-weather";
        list_stations().length + list_stations().length
    """)
    code, shown = approved.at_terminal("run", program, answers=[(ALLOW, "a\n")])
    assert (code, shown.count("Allow this call?")) == (0, 1)
    assert shown.endswith("6\n")


def test_what_a_program_passes_is_shown_in_the_question_and_never_obeyed(approved: Project) -> None:
    hostile = r'require("host:mcp-weather").get_alerts({ location: "\x1b[2J\x1b]0;title\x07\u202e" })'
    code, shown = approved.at_terminal("run", approved.write(hostile), answers=[(ALLOW, "n\n")])
    assert code == 1
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_a_question_that_nobody_answers_ends_with_the_run(approved: Project) -> None:
    program = approved.write('require("host:mcp-weather").list_stations().length')
    # A person has minutes, which this test has not.
    script = (
        "import toolbridge.cli.run_program as run; from toolbridge import Limits\n"
        "run.Limits = lambda: Limits(ask_seconds=0.5)\n"
        "from toolbridge.cli import main; main()"
    )
    code, shown = approved.at_terminal("run", program, "--timeout", "1", command=[sys.executable, "-c", script])
    assert code == 3
    assert "[N]o: \nThe run took longer than 1 s.\n" in shown


def test_without_a_terminal_a_call_that_must_be_asked_about_is_denied(approved: Project) -> None:
    code, out, err = approved.run("run", approved.write('require("host:mcp-weather").list_stations().length'))
    assert (code, out) == (1, "")
    assert "Nobody can be asked" in err


def test_a_call_that_is_denied_is_not_asked_about(approved: Project) -> None:
    code, shown = approved.at_terminal("run", approved.write('require("host:mcp-weather").big({ size: 5 })'))
    assert code == 1
    assert "Allow this call?" not in shown
    assert "mcp__weather__big is denied" in shown


# ---- progress


def test_a_terminal_shows_what_is_waited_for_and_a_pipe_does_not(approved: Project) -> None:
    program = approved.write('require("host:mcp-weather").slow({ seconds: 1 })')
    code, shown = approved.at_terminal("run", program)
    assert code == 0
    assert "connecting to weather … " in shown
    assert "weather.slow … " in shown
    # The line is erased before the result is shown.
    assert shown.endswith(" \rWaited 1 s\n")
    assert approved.run("run", program) == (0, "Waited 1 s\n", "")


# ---- ends that nobody planned


@pytest.mark.skipif(not Path("/proc").exists(), reason="counts processes by /proc")
@pytest.mark.parametrize(("number", "code", "words"), [(signal.SIGINT, 130, "Interrupted."), (signal.SIGTERM, 143, "")])
def test_a_signal_in_the_middle_of_a_call_ends_the_servers_too(
    approved: Project, tmp_path: Path, number: int, code: int, words: str
) -> None:
    log = tmp_path / "log"
    process = approved.start("run", approved.write(SLOW), "--audit-log", str(log))
    wait_for(log, '"call_started"')
    children = servers_of(process.pid)
    assert children
    process.send_signal(number)
    out, err = process.communicate(timeout=90)
    assert (process.returncode, out, err.strip()) == (code, "", words)
    assert [child for child in children if Path(f"/proc/{child}").exists()] == []
    # The log is whole: what began has ended.
    events = [json.loads(line)["event"] for line in log.read_text(encoding="utf-8").splitlines()]
    assert (events.count("call_ended"), events.count("run_ended")) == (1, 1)


def test_an_interrupt_at_a_terminal_in_the_middle_of_a_call_shows_no_traceback(approved: Project) -> None:
    code, shown = approved.at_terminal("run", approved.write(SLOW), answers=[(r"weather\.slow … ", "\x03")])
    assert code == 130
    assert shown.rstrip().endswith("Interrupted.")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_reader_that_has_gone_causes_no_traceback(approved: Project, stream: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        process = approved.start("run", approved.write(FORECAST), **{stream: writer})
        out, err = process.communicate(timeout=90)
    finally:
        os.close(writer)
    assert "Traceback" not in (out or "") + (err or "")
    assert process.returncode == (4 if stream == "stdout" else 0)


def test_how_long_a_call_may_take_is_the_configurations_and_not_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--timeout 300` with `callSeconds: 120`: a call of 100 s is neither too long for one nor for the other."""
    given: list[Limits] = []

    def open_runtime(_config: object, *, limits: Limits, **_: object) -> None:
        given.append(limits)
        raise ToolbridgeError("that is all")

    monkeypatch.setattr(run_with_servers, "open_runtime", open_runtime)
    file = tmp_path / "toolbridge.json"
    file.write_text('{"mcpServers": {}}', encoding="utf-8")
    with pytest.raises(ToolbridgeError, match="that is all"):
        run_with_servers.run_with_servers(
            "1", "javascript", Limits(wall_seconds=300), ServerChoice(str(file)), check=True, audit_log=None
        )
    assert given[0].call_seconds == 300
