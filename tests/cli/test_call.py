"""`toolbridge call`: one call from a shell, and `run --session`: several programs in one guest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cli.projects import Project, weather
from toolbridge.cli.call import _arguments, _pair  # pyright: ignore[reportPrivateUsage]
from toolbridge_codegen.catalog import ServerListing, ToolDefinition, ToolSpec, build_catalog


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """With a server that is approved, one tool of which is denied, and one that is not."""
    project = Project(tmp_path_factory.mktemp("call"))
    project.configure({"weather": weather(), "other": weather()}, permissions={"deny": ["mcp__weather__picture"]})
    project.approve("weather")
    return project


def test_a_value_is_read_by_the_type_of_its_parameter(project: Project) -> None:
    code, out, err = project.run("call", "weather.get_forecast", "location=Oslo", "days=2")
    assert (code, err) == (0, "")
    assert (json.loads(out)["location"], len(json.loads(out)["days"])) == ("Oslo", 2)
    same = project.run("call", "weather.get_forecast", "--json", '{"location": "Oslo"}', "days=2")
    assert same == (0, out, "")


def test_a_text_is_printed_as_it_is_and_with_json_as_json(project: Project) -> None:
    code, out, err = project.run("call", "weather.big", "size=5")
    assert (code, len(out), err) == (0, len("12345\n"), "")
    assert project.run("call", "weather.big", "--json", '{"size": 5}') == (0, f'"{out.strip()}"\n', "")


FAILURES: list[tuple[list[str], int, str]] = [
    (["weather.get_forecast", "days=2"], 1, 'missing property "location"'),
    (["weather.get_forecast", "location=Oslo", "days=two"], 1, "expected integer"),
    (["weather.fail", "message=-no"], 1, "-no"),
    (["weather.picture"], 1, "denied"),
    (["weather.get_forecst"], 2, "did you mean 'get_forecast'?"),
    (["weathr.get_forecast"], 2, "Did you mean 'weather'?"),
    (["weather"], 2, "SERVER.TOOL"),
    (["weather.get_forecast", "Oslo"], 2, "KEY=VALUE"),
    (["weather.get_forecast", "location=Oslo", "--timout=3"], 2, "'--timout=3' is no option"),
    (["weather.get_forecast", "days:=[1"], 2, "not JSON"),
    (["weather.get_forecast", "days:=99999999999999999999"], 2, "too large"),
    (["weather.slow", "seconds=60", "--timeout", "1"], 3, "may have taken effect"),
    (["other.list_stations"], 4, "toolbridge approve other"),
]


@pytest.mark.parametrize(("words", "expected", "text"), FAILURES, ids=[" ".join(words) for words, _, _ in FAILURES])
def test_what_goes_wrong_has_its_exit_code_for_people_and_programs(
    project: Project, words: list[str], expected: int, text: str
) -> None:
    code, out, err = project.run("call", *words)
    assert (code, out) == (expected, "")
    assert text in err
    code, out, _ = project.run("call", *words, "--json", "{}")
    assert code == expected
    assert json.loads(out)["error"]["kind"]


def test_a_call_is_in_the_audit_log(project: Project) -> None:
    assert project.run("call", "weather.big", "size=1", "--audit-log", "calls.jsonl")[0] == 0
    assert '"tool": "big"' in (project.directory / "calls.jsonl").read_text(encoding="utf-8")


SCHEMA: dict[str, Any] = {
    "type": "object",
    "$defs": {"Count": {"type": "integer"}},
    "properties": {
        "text": {"type": "string"},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "level": {"enum": ["1", "2"]},
        "count": {"$ref": "#/$defs/Count"},
        "ratio": {"type": ["number", "null"]},
        "sure": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "counts": {"type": "array", "items": {"$ref": "#/$defs/Count"}},
        "filter": {"type": "object"},
        "any": {},
        "loop": {"$ref": "#/properties/loop"},
    },
}


def tool(schema: Any = SCHEMA) -> ToolSpec:
    (module,) = build_catalog([ServerListing("s", (ToolDefinition("t", schema),))]).modules
    return module.tools[0]


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["text=5"], {"text": "5"}),
        (["text=a=b"], {"text": "a=b"}),
        (["maybe=null"], {"maybe": "null"}),
        (["maybe:=null"], {"maybe": None}),
        (["level=1"], {"level": "1"}),
        (["count=5", "ratio=0.5", "sure=true"], {"count": 5, "ratio": 0.5, "sure": True}),
        (["count=five"], {"count": "five"}),  # the validator says that it is no integer
        (["tags=a"], {"tags": ["a"]}),
        (["tags=a", "tags=b"], {"tags": ["a", "b"]}),
        (['tags=["a","b"]'], {"tags": ["a", "b"]}),
        (["counts=1", "counts=2"], {"counts": [1, 2]}),
        (['filter={"a": 1}'], {"filter": {"a": 1}}),
        (["any=5", "unknown=x"], {"any": 5, "unknown": "x"}),
        (["loop=NaN"], {"loop": "NaN"}),
    ],
)
def test_words_become_what_the_schema_says(words: list[str], value: dict[str, Any]) -> None:
    assert _arguments(tool(), [_pair(word) for word in words]) == value


WIDE: dict[str, Any] = {"anyOf": []}
WIDE["anyOf"] += [WIDE] * 1000


@pytest.mark.parametrize(
    "hostile",
    [
        5,
        {"type": 5},
        {"type": [5, None]},
        {"enum": 5},
        {"anyOf": 5, "oneOf": {"a": 1}},
        {"$ref": "#/" + "a/" * 9000},
        WIDE,
    ],
    ids=range(7),
)
def test_a_schema_that_is_none_costs_the_type_only(hostile: Any) -> None:
    assert _arguments(tool({"properties": {"a": hostile}}), [_pair("a=5")]) == {"a": 5}
    assert _arguments(tool({"properties": hostile}), [_pair("a=x")]) == {"a": "x"}


def test_programs_of_a_session_share_one_guest(project: Project) -> None:
    project.write("x = 1", "first.py")
    project.write("x + 1", "second.py")
    project.write("nothing_of_this_name", "wrong.py")
    files = ("first.py", "second.py")
    code, out, err = project.run("run", "--session", "sums", *files, "--audit-log", "session.jsonl")
    assert (code, out, err) == (0, "2\n", "")
    log = [json.loads(line) for line in (project.directory / "session.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [each["session"] for each in log if "session" in each] == ["sums", "sums"]
    code, out, err = project.run("run", "--session", "sums", "first.py", "wrong.py", "second.py")
    assert (code, out) == (1, "")
    assert err.startswith("wrong.py:\nNameError")
    code, out, _ = project.run("run", "--session", "sums", *files, "--json")
    assert [each["value"] for each in json.loads(out)["results"]] == [None, 2]
    assert project.run("run", *files)[0] == 2
    assert project.run("run", "--session", "sums", "first.py", project.write("1", "a.js"))[0] == 2
