"""`toolbridge stubs` as a real process: what it prints and writes, and what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.projects import Project, weather

COMMAND = [sys.executable, "-c", "from toolbridge.cli import main; main()", "stubs"]
FORECAST: dict[str, Any] = {
    "name": "get_forecast",
    "description": "Get the weather forecast. With details.",
    "inputSchema": {
        "type": "object",
        "properties": {"location": {"type": "string", "description": "City"}, "days": {"type": "integer"}},
        "required": ["location"],
    },
}


def stubs(*words: str | Path, data: str = "", directory: Path | None = None) -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    done = subprocess.run(
        [*COMMAND, *map(str, words)], input=data.encode(), capture_output=True, timeout=60, check=False, cwd=directory
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture
def listing(tmp_path: Path) -> Path:
    path = tmp_path / "weather.json"
    path.write_text(json.dumps({"tools": [FORECAST]}))
    return path


# ---- printing


def test_typescript_is_printed_with_the_servers_module_first(listing: Path) -> None:
    code, out, err = stubs("--from", listing)
    assert (code, err) == (0, "")
    assert out.startswith('// ---- mcp-weather.d.ts\ndeclare module "host:mcp-weather" {\n')
    assert " type GetForecastOutput = any;\n" in out
    assert " export function get_forecast(input: GetForecastInput): GetForecastOutput;\n" in out
    assert '// ---- bridge.d.ts\ndeclare module "host:bridge" {\n' in out


def test_python_is_printed(listing: Path) -> None:
    code, out, err = stubs("--from", listing, "--language", "python")
    assert (code, err) == (0, "")
    assert out.startswith("# ---- host/mcp_weather/__init__.pyi\nfrom typing import Any")
    assert "\nGetForecastOutput: TypeAlias = Any\n" in out
    assert "def get_forecast(**input: Unpack[GetForecastInput]) -> GetForecastOutput:\n" in out


def test_read_to_the_letter_an_object_may_have_more_than_it_lists(listing: Path) -> None:
    code, out, err = stubs("--from", listing, "--reading", "literal")
    assert (code, err) == (0, "")
    assert "  days?: number;\n  [key: string]: any;\n }\n" in out
    _, out, _ = stubs("--from", listing, "--reading", "literal", "--language", "python")
    assert "def get_forecast(*, location: str, days: int = ..., **more: Any) -> GetForecastOutput:" in out


def test_compact_is_one_line_per_tool(listing: Path) -> None:
    line = "get_forecast(input: { location: string; days?: number }): any // Get the weather forecast"
    assert stubs("--from", listing, "--compact") == (0, f'// import from "host:mcp-weather"\n{line}\n', "")
    code, out, _ = stubs("--from", listing, "--compact", "--language", "python")
    assert (code, out.splitlines()[1].partition(" #")[0]) == (0, "get_forecast(location: str, days: int = ...) -> Any")


def test_models_are_python_classes(listing: Path) -> None:
    pytest.importorskip("datamodel_code_generator")
    code, out, err = stubs("--from", listing, "--models", "pydantic")
    assert (code, err) == (0, "")
    assert "class GetForecastInput(BaseModel):\n    location: str\n" in out


def test_json_is_everything_on_one_line(listing: Path) -> None:
    code, out, err = stubs("--from", listing, "--json")
    assert (code, err, out.count("\n")) == (0, "", 1)
    result = json.loads(out)
    assert sorted(result["files"]) == ["bridge.d.ts", "mcp-weather.d.ts"]
    assert result["manifest"] == {
        "host:mcp-weather": {
            "get_forecast": {"server": "weather", "tool": "get_forecast", "input_style": "keywords"},
        }
    }
    assert result["diagnostics"] == []


def test_what_types_can_not_say_is_told_on_stderr(tmp_path: Path) -> None:
    path = tmp_path / "weather.json"
    schema = {"type": "object", "properties": {"a": {"$ref": "https://example.com/a"}}}
    path.write_text(json.dumps([{"name": "f\u001b[0m\n", "inputSchema": schema}]))
    code, out, err = stubs("--from", path)
    assert code == 0
    assert "a?: unknown" in out
    assert err.startswith("weather: f\\x1b[0m /inputSchema/properties/a")
    assert err.count("\n") == 1
    assert json.loads(stubs("--from", path, "--json")[1])["diagnostics"][0]["server"] == "weather"


# ---- what a listing may look like


@pytest.mark.parametrize(
    "document",
    [
        {"tools": [FORECAST]},
        {"server": {"name": "Weather"}, "tools": [FORECAST]},
        [FORECAST],
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [FORECAST]}},
    ],
    ids=["answer", "with server", "list", "message"],
)
def test_a_listing_is_an_answer_or_its_list_of_tools(document: Any, listing: Path) -> None:
    expected = stubs("--from", listing)
    assert stubs("--from", "-", "--server", "weather", data=json.dumps(document)) == expected


def test_the_server_is_called_after_the_file_or_as_one_says(tmp_path: Path) -> None:
    path = tmp_path / "npm__My.Server.json"
    path.write_text(json.dumps([FORECAST]))
    assert 'declare module "host:mcp-npm_my_server" {' in stubs("--from", path)[1]
    assert 'declare module "host:mcp-other" {' in stubs("--from", path, "--server", "other")[1]


def test_a_bad_tool_costs_that_tool_only(tmp_path: Path) -> None:
    path = tmp_path / "weather.json"
    path.write_text(json.dumps([3, {"name": ""}, {"name": "n" * 5_000, "inputSchema": {}}, FORECAST]))
    code, out, err = stubs("--from", path)
    assert code == 0
    assert out.count("export function") == 3  # and both forms of parallel
    assert [line.partition(" is left out: it ")[0] for line in err.splitlines()] == [
        "Warning: tool #1",
        "Warning: tool #2",
        "Warning: tool #3",
    ]


@pytest.mark.parametrize("schema", [{"type": "array"}, True, False, 3, None])
def test_a_tool_whose_input_is_not_described_as_an_object_takes_any_and_that_is_said(
    tmp_path: Path, schema: Any
) -> None:
    path = tmp_path / "weather.json"
    path.write_text(json.dumps([{"name": "odd", "inputSchema": schema}]))
    code, out, err = stubs("--from", path)
    assert code == 0
    assert "export function odd(input?: { [key: string]: any }): OddOutput;" in out
    assert ("odd" in err, "nput" in err, err.count("\n")) == (True, True, 1)


def test_a_server_without_tools_has_an_empty_module(tmp_path: Path) -> None:
    path = tmp_path / "weather.json"
    path.write_text('{"tools": []}')
    code, out, err = stubs("--from", path)
    assert (code, err) == (0, "")
    assert 'declare module "host:mcp-weather" {\n}\n' in out


# ---- what is refused


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not JSON: Expecting value at line 1, column 1"),
        (b"{", "is not JSON: Expecting property name enclosed in double quotes at line 1, column 2"),
        (b"\xff\xfe{", "is not UTF-8 text"),
        (b"[" * 200_000, "is nested too deeply"),
        (b"[" + b"1" * 5000 + b"]", "has a number that is too long"),
        (b"3", 'is not a listing: expected {"tools": [...]}, as a server answers to tools/list'),
        (b"null", 'is not a listing: expected {"tools": [...]}, as a server answers to tools/list'),
        (b'{"tools": {}}', 'is not a listing: expected {"tools": [...]}, as a server answers to tools/list'),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_file_that_is_no_listing_is_explained_and_exits_with_two(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "weather.json"
    path.write_bytes(data)
    assert stubs("--from", path) == (2, "", f"Error: {path} {message}.\n")


def test_a_file_that_can_not_be_read_is_explained_and_exits_with_two(tmp_path: Path) -> None:
    missing = tmp_path / "weather.json"
    assert stubs("--from", missing) == (2, "", f"Error: There is no file {missing}.\n")
    assert stubs("--from", tmp_path, "--server", "a") == (
        2,
        "",
        f"Error: {tmp_path} is a directory: give a file with a listing.\n",
    )
    code, _, err = stubs("--from", "/dev/zero", "--server", "a")
    assert (code, err) == (2, "Error: /dev/zero is larger than 64 MiB, the most that a listing may be.\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--from", "-"], "Standard input has no name: give the server's with --server."),
        (["--from", "-", "--server", "a", "--server", "b"], "A file has the tools of one server: give --server once."),
        (["--from", "-", "--server", "A B"], "'A B' can't be the name of a server."),
        (["--from", "-", "--server", "bridge"], "'bridge' is a reserved name."),
        (["--from", "fetch.json"], "Give the server's name with --server."),
        (["--models", "pydantic", "--compact"], "--models makes Python classes"),
        (["--models", "pydantic", "--language", "typescript"], "--models makes Python classes"),
        (["--models", "attrs"], "'attrs' is not one of"),
        (["--config", "x.json"], "there is no such file"),
    ],
)
def test_wrong_usage_is_explained_and_exits_with_two(words: list[str], message: str) -> None:
    code, out, err = stubs(*words)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_a_configuration_without_servers_is_told_of_the_other_way(tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text('{"mcpServers": {}}')
    code, out, err = stubs("--config", tmp_path / "empty.json")
    assert (code, out) == (2, "")
    assert err == "Error: No servers are configured. Configure one, or give a saved listing with --from FILE.\n"


# ---- writing


def written(directory: Path) -> dict[str, str]:
    return {
        path.relative_to(directory).as_posix(): path.read_text()
        for path in directory.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


def test_files_are_written_below_a_directory_that_is_made(listing: Path, tmp_path: Path) -> None:
    code, out, err = stubs("--from", listing, "--language", "python", "--out", "a/b", directory=tmp_path)
    names = [
        "host/__init__.pyi",
        "host/bridge.pyi",
        "host/mcp_weather/__init__.pyi",
        "host/mcp_weather/aio.pyi",
    ]
    assert (code, err, out.splitlines()) == (0, "", [os.path.join("a", "b", name) for name in names])
    files = written(tmp_path / "a" / "b")
    assert sorted(files) == names
    assert files == json.loads(stubs("--from", listing, "--language", "python", "--json")[1])["files"]


def test_what_was_written_before_is_written_again(listing: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    stubs("--from", listing, "--out", out)
    stubs("--from", listing, "--out", out, "--language", "python")
    listing.write_text(json.dumps([{**FORECAST, "description": "New"}]))
    assert stubs("--from", listing, "--out", out)[0] == 0
    assert stubs("--from", listing, "--out", out, "--language", "python")[0] == 0
    assert "/** New */" in written(out)["mcp-weather.d.ts"]


def test_a_file_of_somebody_else_is_left_alone_and_nothing_is_written(listing: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mcp-weather.d.ts").write_text("mine")
    code, _, err = stubs("--from", listing, "--out", out)
    path = out / "mcp-weather.d.ts"
    message = f"Error: {path} was not written by toolbridge, or was changed. --force writes over it.\n"
    assert (code, err) == (2, message)
    assert written(out) == {"mcp-weather.d.ts": "mine"}
    assert stubs("--from", listing, "--out", out, "--force")[0] == 0
    assert "declare module" in written(out)["mcp-weather.d.ts"]


def test_a_file_that_was_changed_since_is_left_alone(listing: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    stubs("--from", listing, "--out", out)
    (out / "bridge.d.ts").write_text("changed")
    assert stubs("--from", listing, "--out", out)[0] == 2
    assert (out / "bridge.d.ts").read_text() == "changed"


def test_nothing_is_written_outside_the_directory(listing: Path, tmp_path: Path) -> None:
    outside, out = tmp_path / "outside", tmp_path / "out"
    outside.mkdir()
    out.mkdir()
    (out / "host").symlink_to(outside)
    code, _, err = stubs("--from", listing, "--language", "python", "--out", out, "--force")
    assert (code, "a link leads out of it" in err) == (2, True)
    assert not list(outside.iterdir())
    target = outside / "target"
    target.write_text("mine")
    (out / "mcp-weather.d.ts").symlink_to(target)
    assert stubs("--from", listing, "--out", out)[0] == 2
    assert stubs("--from", listing, "--out", out, "--force")[0] == 0
    assert target.read_text() == "mine"
    assert not (out / "mcp-weather.d.ts").is_symlink()


def test_a_place_that_is_no_directory_is_explained(listing: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, err = stubs("--from", listing, "--out", tmp_path / "file")
    assert (code, err) == (2, f"Error: {tmp_path / 'file'} can't be written: File exists.\n")
    (tmp_path / "out" / "bridge.d.ts").mkdir(parents=True)
    code, _, err = stubs("--from", listing, "--out", tmp_path / "out")
    assert (code, err) == (2, f"Error: {tmp_path / 'out' / 'bridge.d.ts'} is a directory.\n")


def test_a_damaged_record_makes_every_file_somebody_elses(listing: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    stubs("--from", listing, "--out", out)
    listing.write_text("[]")
    for damaged in ("[]", "{", "[" * 100_000):
        (out / ".toolbridge-stubs.json").write_text(damaged)
        assert stubs("--from", listing, "--out", out)[0] == 2


def test_a_file_says_what_tools_return_that_do_not(listing: Path, tmp_path: Path) -> None:
    schemas = tmp_path / "outputs.json"
    schemas.write_text('{"get_forecast": {"type": "array", "items": {"type": "number"}}, "get_forcast": {}}')
    code, out, err = stubs("--from", listing, "--output-schemas", schemas)
    assert (code, out.count("export function get_forecast(input: GetForecastInput): number[];")) == (0, 1)
    assert "get_forcast" in err
    assert "no such tool" in err
    code, _, err = stubs("--from", listing, "--output-schemas", tmp_path / "none.json")
    assert code != 0
    assert "none.json: there is no such file." in err
    assert "Traceback" not in err


# ---- failures that are returned


def test_that_failures_are_returned_can_be_said_of_a_saved_listing(listing: Path) -> None:
    failure = "{ error: string }"
    out = stubs("--from", listing, "--errors", "return")[1]
    assert f"export function get_forecast(input: GetForecastInput): GetForecastOutput | {failure};" in out
    assert f"days?: number }}): any | {failure} //" in stubs("--from", listing, "--errors", "return", "--compact")[1]
    code, _, err = stubs("--from", listing, "--errors", "return", "--models", "typeddict")
    assert (code, "--errors changes nothing there" in err) == (2, True)


def test_that_failures_are_returned_is_taken_from_the_configuration(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.environ["TOOLBRIDGE_CACHE_DIR"] = str(tmp_path / "cache")
    project.configure({"weather": weather()}, errors="return")
    project.approve("weather")
    code, out, _ = project.run("stubs", "--connect", "--server", "weather")
    assert code == 0
    assert "export function get_forecast(input: GetForecastInput): GetForecastOutput | { error: string };" in out
    assert "| { error: string }" not in project.run("stubs", "--server", "weather", "--errors", "raise")[1]
    assert project.run("search", "forecast")[1].split("\n")[0].endswith(" | { error: string }")


# ---- what is kept


def test_stubs_are_kept_where_a_runtime_keeps_them_and_used_again(listing: Path, tmp_path: Path) -> None:
    environ = {**os.environ, "TOOLBRIDGE_CACHE_DIR": str(tmp_path / "cache")}
    program = (
        "import sys\n"
        "from toolbridge.cli import main\n"
        "try:\n    main()\n"
        "finally:\n    print('toolbridge_codegen.emit.dts' in sys.modules, file=sys.stderr)\n"
    )

    def run() -> tuple[str, str]:
        """What is printed, and whether types were made for it."""
        words = [sys.executable, "-c", program, "stubs", "--from", str(listing)]
        done = subprocess.run(words, capture_output=True, timeout=60, check=True, env=environ, text=True)
        return done.stdout, done.stderr.strip()

    first, made = run()
    assert made == "True"
    assert len(list((tmp_path / "cache" / "stubs").iterdir())) == 1
    assert run() == (first, "False")


# ---- what models can't say


def test_what_models_can_not_say_is_told_as_for_stubs(tmp_path: Path) -> None:
    pytest.importorskip("datamodel_code_generator")
    path = tmp_path / "weather.json"
    schema = {"type": "object", "properties": {"a": {"$ref": "https://example.com/a"}}}
    path.write_text(json.dumps([{"name": "f", "inputSchema": schema}]))
    schemas = tmp_path / "outputs.json"
    schemas.write_text('{"g": {}}')
    words = ("--from", path, "--output-schemas", schemas)
    expected = stubs(*words)[2]
    assert ("is remote" in expected, "no such tool" in expected) == (True, True)
    assert stubs(*words, "--models", "typeddict")[2] == expected
    as_json = json.loads(stubs(*words, "--models", "typeddict", "--json")[1])
    assert as_json["problems"] == []
    assert as_json["diagnostics"] == json.loads(stubs(*words, "--json")[1])["diagnostics"]
