"""Files as they are found: missing, unreadable, too long, no JSON, and never quoted."""

from __future__ import annotations

import contextlib
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolbridge.config.read_file import MOST_BYTES, read_object
from toolbridge.errors import ConfigError

SECRET = "sk-planted-51f0c2"


def problem_of(path: Path, content: bytes | str) -> ConfigError:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(ConfigError) as caught:
        read_object(str(path))
    assert caught.value.file == str(path)
    return caught.value


def test_a_json_object_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"mcpServers": {"é": {}}}', encoding="utf-8")
    assert read_object(str(path)) == {"mcpServers": {"é": {}}}


def test_the_mark_that_windows_editors_put_first_is_no_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"\xef\xbb\xbf{}")
    assert read_object(str(path)) == {}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "latin-1"])
def test_another_encoding_is_named_or_refused(tmp_path: Path, encoding: str) -> None:
    error = problem_of(tmp_path / "a.json", '{\n"é": "é"}'.encode(encoding))
    assert error.problem in ("is not UTF-8 but UTF-16.", "is not UTF-8: see line 2.") or "not JSON" in error.problem


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.json: there is no such file\."):
        read_object(str(tmp_path / "nowhere.json"))


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is a directory\."):
        read_object(str(tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_an_unreadable_file_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("{}")
    path.chmod(0)
    with pytest.raises(ConfigError, match=r"can't be opened: Permission denied\."):
        read_object(str(path))


def test_a_loop_of_links_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.symlink_to(path)
    with pytest.raises(ConfigError, match="can't be opened"):
        read_object(str(path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match=r"is not a regular file\."):
        read_object(str(tmp_path / "pipe"))


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no such device here")
def test_a_device_is_not_read() -> None:
    with pytest.raises(ConfigError, match=r"is not a regular file\."):
        read_object("/dev/zero")


def test_a_file_of_fifty_megabytes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with path.open("wb") as file:
        file.truncate(50_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(ConfigError, match=r"has 50,000,000 bytes; at most 1,000,000 are read\."):
            read_object(str(path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000


def test_a_file_of_just_the_most_bytes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"{}".ljust(MOST_BYTES))
    assert read_object(str(path)) == {}
    assert "1,000,001 bytes" in problem_of(path, b"{}".ljust(MOST_BYTES + 1)).problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty."),
        (" \n ", "is empty."),
        ("[]", "expected an object, found a list."),
        ("null", "expected an object, found null."),
        ('"text"', "expected an object, found text."),
        ('{\n  "a": 1,\n  "b" 2\n}', "at line 3, column 7."),
        ('{"a": NaN}', "is not JSON: NaN is not a JSON number."),
        ('{"a": -Infinity}', "is not JSON: -Infinity is not a JSON number."),
        ('{"a": ' + "9" * 5000 + "}", "has a number that is too long."),
        ('{"a": 1}{"b": 2}', "at line 1, column 9."),
        ("{'a': 1}", "at line 1, column 2."),
    ],
)
def test_what_is_not_a_json_object_says_where(tmp_path: Path, text: str, problem: str) -> None:
    assert problem in problem_of(tmp_path / "a.json", text).problem


def test_comments_are_only_for_vs_code_and_jsonc(tmp_path: Path) -> None:
    text = '{ // here\n "a": [1,],}'
    error = problem_of(tmp_path / "a.json", text)
    assert "line 1, column 3" in error.problem
    assert error.fix == "Remove the comment, or name the file *.jsonc."
    (tmp_path / ".vscode").mkdir()
    for path in (tmp_path / ".vscode" / "mcp.json", tmp_path / "a.jsonc"):
        path.write_text(text)
        assert read_object(str(path)) == {"a": [1]}


def test_a_comment_that_is_not_closed_is_found(tmp_path: Path) -> None:
    error = problem_of(tmp_path / "a.jsonc", '{\n "a": 1 /* open\n}')
    assert ("line 2, column 9" in error.problem, error.fix) == (True, "Close the comment.")


def test_positions_are_those_of_the_file_with_its_comments(tmp_path: Path) -> None:
    error = problem_of(tmp_path / "a.jsonc", '{ /* one\n two */ // three\n  "a": /* four */ oops }')
    assert "line 3, column 19" in error.problem


@pytest.mark.parametrize(
    ("text", "server", "field"),
    [
        ('{"mcpServers": {}, "mcpServers": {}}', None, "mcpServers"),
        ('{"mcpServers": {"a": {}, "b": {}, "a": {}}}', None, "mcpServers.a"),
        ('{"mcpServers": {"a": {"command": "x", "command": "y"}}}', "a", "command"),
        ('{"servers": {"a": {"env": {"X": "1", "X": "2"}}}}', "a", "env.X"),
        ('{"inputs": [{"id": 1, "id": 2}]}', None, "inputs[0].id"),
        ('{"a": 1, "\\u0061": 2}', None, "a"),
    ],
)
def test_a_key_that_is_written_twice_is_named_with_its_place(
    tmp_path: Path, text: str, server: str | None, field: str
) -> None:
    error = problem_of(tmp_path / "a.json", text)
    assert (error.problem, error.server, error.field) == ("is written twice in the same object.", server, field)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, '{"a":' * 100 + "1" + "}" * 100])
def test_towers_of_brackets_are_refused(tmp_path: Path, text: str) -> None:
    assert problem_of(tmp_path / "a.json", text).problem == "is nested too deeply."


@pytest.mark.parametrize(
    "text",
    [
        f'{{"env": "{SECRET}"',
        f'{{"env": {SECRET}}}',
        f'{{"env": "{SECRET}\n"}}',
        f'{{"env": "{SECRET}", "env": "{SECRET}"}}',
        f'"{SECRET}"',
        f'{{"env": "{SECRET}"}}'.encode() + b"\xff",
        f'{{"a": "\\q{SECRET}"}}',
        f"{{/* {SECRET}",
    ],
)
def test_nothing_of_a_broken_file_is_in_the_error_or_in_what_led_to_it(tmp_path: Path, text: str | bytes) -> None:
    error: BaseException | None = problem_of(tmp_path / "a.json", text)
    while error is not None:
        assert SECRET not in repr(vars(error)) + repr(error) + str(error) + repr(getattr(error, "doc", ""))
        error = error.__cause__ or error.__context__


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=200) | st.text(alphabet='{}[]",:/*\\ \nab1.e-', max_size=60).map(str.encode), st.booleans())
def test_no_file_raises_anything_but_a_config_error(tmp_path: Path, content: bytes, with_comments: bool) -> None:
    path = tmp_path / ("a.jsonc" if with_comments else "a.json")
    path.write_bytes(content)
    with contextlib.suppress(ConfigError):
        assert isinstance(read_object(str(path)), dict)
