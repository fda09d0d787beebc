"""The audit log: every event on a line of its own, whatever happens to the file."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from observe.examples import CALL_ENDED, CALL_STARTED, ONE_RUN, RUN
from toolbridge import ConfigError
from toolbridge.events import CallStarted, Event, StateChanged
from toolbridge.observe.audit_log import AuditLog


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


def written(path: Path, *events: Event, arguments: bool = False) -> list[dict[str, Any]]:
    with AuditLog(path, arguments=arguments) as log:
        for event in events:
            log(event)
    return lines(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


def test_an_event_is_one_json_object_on_one_line(path: Path) -> None:
    (line,) = written(path, CALL_ENDED)
    time = line.pop("time")
    assert line == {
        "event": "call_ended",
        "run": RUN,
        "call": 1,
        "server": "weather",
        "tool": "get_forecast",
        "outcome": "ok",
        "seconds": 0.041235,
        "request_bytes": 31,
        "reply_bytes": 187,
    }
    assert len(time) == len("2026-01-31T12:34:56.789Z")
    assert time.endswith("Z")


def test_every_type_of_event_is_written(path: Path) -> None:
    assert [line["event"] for line in written(path, *ONE_RUN)] == [
        "run_started",
        "server_registered",
        "server_collided",
        "server_ignored",
        "state_changed",
        "tools_changed",
        "state_changed",
        "call_started",
        "decision_made",
        "call_progressed",
        "call_ended",
        "run_ended",
    ]


@pytest.mark.parametrize("umask", [0, 0o022])
def test_a_new_file_is_for_its_owner_only(path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        written(path, CALL_ENDED)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_arguments_are_written_only_on_request(path: Path) -> None:
    call = dataclasses.replace(CALL_STARTED, arguments='{"location":"Oslo"}')
    assert "arguments" not in written(path, call)[0]
    assert written(path, call, arguments=True)[1]["arguments"] == '{"location":"Oslo"}'


def test_a_file_that_is_there_is_appended_to(path: Path) -> None:
    written(path, CALL_STARTED)
    assert [line["event"] for line in written(path, CALL_ENDED)] == ["call_started", "call_ended"]


def test_nothing_a_server_says_makes_a_line_or_moves_a_terminal(path: Path) -> None:
    hostile = 'x"}\n{"event":"run_ended"}\r\x1b[2J\x7f\x9b\u202e\u2028\ud800\x00'
    (line,) = written(path, CallStarted(RUN, 1, "weather", hostile))
    assert line["tool"] == hostile
    raw = path.read_bytes()
    assert raw.count(b"\n") == 1
    assert all(0x20 <= byte < 0x7F for byte in raw[:-1])


def test_a_long_text_is_cut(path: Path) -> None:
    (line,) = written(path, StateChanged("weather", "error", "x" * 1_000_000))
    assert line["error"] == "x" * 999 + "…"


def test_a_line_that_somebody_left_unfinished_costs_no_other(path: Path) -> None:
    path.touch(0o600)
    path.write_text('{"event":"call_st')
    with AuditLog(path) as log:
        log(CALL_ENDED)
    first, second = path.read_text().splitlines()
    assert first == '{"event":"call_st'
    assert json.loads(second)["event"] == "call_ended"


def test_processes_and_threads_may_share_a_file(path: Path) -> None:
    program = f"""
import sys
from observe.examples import CALL_ENDED
from toolbridge.observe.audit_log import AuditLog
with AuditLog({str(path)!r}) as log:
    for _ in range(2_000):
        log(CALL_ENDED)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    children = [subprocess.Popen([sys.executable, "-c", program], env=environment) for _ in range(2)]
    with AuditLog(path) as log:
        threads = [threading.Thread(target=lambda: [log(CALL_STARTED) for _ in range(1_000)]) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [child.wait(60) for child in children] == [0, 0]
    assert sorted(line["event"] for line in lines(path)) == ["call_ended"] * 4_000 + ["call_started"] * 2_000


def test_a_rotated_file_is_left_alone_and_a_new_one_begun(path: Path) -> None:
    with AuditLog(path) as log:
        log(CALL_STARTED)
        old = path.rename(path.with_suffix(".1"))
        log(CALL_ENDED)
    assert [line["event"] for line in lines(old)] == ["call_started"]
    assert [line["event"] for line in lines(path)] == ["call_ended"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_truncated_file_is_gone_on_with_at_its_beginning(path: Path) -> None:
    with AuditLog(path) as log:
        log(CALL_STARTED)
        os.truncate(path, 0)
        log(CALL_ENDED)
    assert [line["event"] for line in lines(path)] == ["call_ended"]


def test_a_directory_that_vanishes_costs_lines_and_no_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    directory = tmp_path / "logs"
    directory.mkdir()
    path = directory / "audit.jsonl"
    with AuditLog(path) as log:
        log(CALL_STARTED)
        directory.rename(tmp_path / "away")
        for _ in range(3):
            log(CALL_ENDED)
        assert len(caplog.records) == 1
        assert "loses lines: No such file or directory" in caplog.text
        (tmp_path / "away").rename(directory)
        log(CALL_STARTED)
        log(CALL_ENDED)
    entries = [(line["event"], line.get("lines")) for line in lines(path)]
    assert entries == [("call_started", None), ("lines_lost", 3), ("call_started", None), ("call_ended", None)]


def test_a_link_put_in_its_place_is_not_followed(tmp_path: Path, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    victim = tmp_path / "victim"
    victim.touch(0o600)
    with AuditLog(path) as log:
        path.unlink()
        path.symlink_to(victim)
        log(CALL_ENDED)
    assert victim.read_bytes() == b""
    assert "symbolic link" in caplog.text
    assert "lost its last 1 lines" in caplog.text


@pytest.fixture
def small_files() -> Generator[None]:
    """No file can grow past 500 bytes: what a full disk does, in the middle of a line."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)


def test_a_full_disk_costs_lines_and_no_run(path: Path, small_files: None, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="toolbridge")
    with AuditLog(path) as log:
        for _ in range(10):
            log(CALL_ENDED)
        assert path.stat().st_size == 500
        warnings = [record for record in caplog.records if "loses lines" in record.getMessage()]
        assert len(warnings) == 1
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        assert soft == 500
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        log(CALL_STARTED)
    whole = path.read_text().splitlines()
    torn = [line for line in whole if not line.endswith("}")]
    assert len(torn) == 1
    kept = [json.loads(line) for line in whole if line.endswith("}")]
    ended = [line for line in kept if line["event"] == "call_ended"]
    assert [line["event"] for line in kept[len(ended) :]] == ["lines_lost", "call_started"]
    assert kept[-2]["lines"] == 10 - len(ended)


def test_after_closing_nothing_is_written(path: Path) -> None:
    log = AuditLog(path)
    log.close()
    # The next file that is opened gets the number of the one that was closed.
    with path.with_name("other").open("w") as other:
        assert other.fileno() == log._descriptor
        log(CALL_ENDED)
        log.close()
        other.write("intact")
    assert path.with_name("other").read_text() == "intact"
    assert lines(path) == []


def test_children_do_not_inherit_the_file(path: Path) -> None:
    with AuditLog(path) as log:
        assert not os.get_inheritable(log._descriptor)


def a_link(path: Path) -> None:
    target = path.with_name("target")
    target.touch(0o600)
    path.symlink_to(target)


def a_second_name(path: Path) -> None:
    path.touch(0o600)
    path.with_name("other").hardlink_to(path)


def writable_for_others(path: Path) -> None:
    path.touch()
    path.chmod(0o620)


@pytest.mark.parametrize(
    ("prepare", "problem"),
    [
        (a_link, "it is a symbolic link"),
        (a_second_name, "it has a second name"),
        (writable_for_others, "others can write to it"),
        (Path.mkdir, "Is a directory"),
        (os.mkfifo, "it is not a regular file"),
    ],
)
def test_a_file_that_is_not_ours_alone_is_refused(path: Path, prepare: Any, problem: str) -> None:
    prepare(path)
    open_before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    with pytest.raises(ConfigError) as caught:
        AuditLog(path)
    assert str(caught.value).startswith(f"{path}: The audit log can't be used: {problem}")
    assert "Name a regular file of your own" in str(caught.value)
    assert not open_before or len(os.listdir("/proc/self/fd")) == open_before


def test_a_file_of_another_user_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.touch(0o600)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(ConfigError, match="it belongs to another user"):
        AuditLog(path)


@pytest.mark.parametrize("name", ["missing/audit.jsonl", "null\0.jsonl"])
def test_a_path_that_cannot_be_is_an_error_for_reading(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="The audit log can't be used: "):
        AuditLog(f"{tmp_path}/{name}")


def test_a_file_that_its_owner_lets_others_read_is_taken(path: Path) -> None:
    path.touch()
    path.chmod(0o644)
    assert len(written(path, CALL_ENDED)) == 1


def test_the_working_directory_may_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with AuditLog("audit.jsonl") as log:
        monkeypatch.chdir("/")
        log(CALL_ENDED)
    assert len(lines(tmp_path / "audit.jsonl")) == 1
