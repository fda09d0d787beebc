"""Where decisions are kept: exact, private, never lost, and closed where anything is odd. More of it: threats T10."""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from toolbridge.config.config import Config
from toolbridge.config.server_config import Origin
from toolbridge.trust.approval.sealed_store import Records
from toolbridge.trust.approval.store import ApprovalStore, ApprovalStoreError, with_switches
from trust.approval.approval_requests import PROJECT, http, request, stdio


@pytest.fixture
def store(tmp_path: Path) -> ApprovalStore:
    return ApprovalStore(tmp_path / "approvals")


def test_without_a_file_nothing_is_approved_and_nothing_is_made(store: ApprovalStore) -> None:
    assert store.read() == Records()
    assert store.answer(request()).standing == "unknown"
    assert not os.path.exists(os.path.dirname(store.path))


def test_what_was_approved_is_approved_and_nothing_else(store: ApprovalStore) -> None:
    store.approve(request())
    assert store.answer(request()).standing == "approved"
    assert store.answer(request(name="other")).standing == "unknown"
    changed = store.answer(request(args=("-y", "evil")))
    assert (changed.standing, changed.changes) == ("changed", ("args",))


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_the_file_and_its_directory_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = ApprovalStore(tmp_path / "state" / "approvals")
        store.approve(request())
    finally:
        os.umask(before)
    directory = Path(store.path).parent
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {each.name: stat.S_IMODE(each.stat().st_mode) for each in directory.iterdir()} == {
        "approved-mcp.json": 0o600,
        "seal.key": 0o600,
        "lock": 0o600,
    }


def test_an_approval_replaces_the_one_before_it(store: ApprovalStore) -> None:
    store.approve(request())
    store.approve(request(args=("new",)))
    assert len(store.read().approvals) == 1
    assert store.answer(request()).standing == "changed"
    assert store.answer(request(args=("new",))).standing == "approved"


def test_a_server_without_a_directory_of_its_own_is_approved_in_one_directory_at_a_time(store: ApprovalStore) -> None:
    floating = stdio(cwd=None)
    store.approve(request(floating, directory="/srv/a"))
    elsewhere = store.answer(request(floating, directory="/srv/b"))
    assert (elsewhere.standing, elsewhere.changes) == ("changed", ("directory",))
    store.approve(request(floating, directory="/srv/b"))
    assert store.answer(request(floating, directory="/srv/a")).standing == "approved"
    assert store.answer(request(floating, directory="/srv/b")).standing == "approved"
    assert len(store.revoke("weather", PROJECT)) == 2
    assert store.answer(request(floating, directory="/srv/a")).standing == "revoked"


def test_revoking_takes_back_one_origin_or_all(store: ApprovalStore) -> None:
    user = Origin("user", "/home/me/config.json")
    store.approve(request())
    store.approve(request(origin=user))
    (revoked,) = store.revoke("weather", PROJECT)
    assert revoked.origin == PROJECT
    assert store.answer(request()).standing == "revoked"
    assert store.answer(request(origin=user)).standing == "approved"
    assert len(store.revoke("weather")) == 1
    assert store.revoke("weather") == ()
    store.approve(request())
    assert store.answer(request()).standing == "approved"


def test_a_switch_is_kept_beside_the_approval(store: ApprovalStore) -> None:
    store.approve(request())
    store.set_enabled(stdio(), False)
    answer = store.answer(request())
    assert (answer.standing, answer.disabled) == ("approved", True)
    store.set_enabled(stdio(), True)
    assert store.answer(request()).disabled is False


def test_a_switch_is_stronger_than_the_configuration_and_holds_for_one_origin(store: ApprovalStore) -> None:
    on, off = stdio("on"), stdio("off", enabled=False)
    store.set_enabled(on, False)
    store.set_enabled(off, True)
    switched = with_switches(Config({"on": on, "off": off, "web": http()}), store.read())
    assert [server.enabled for server in switched.servers.values()] == [False, True, True]
    moved = Config({"on": on.with_origin(Origin("user", "/x"))})
    assert with_switches(moved, store.read()).servers["on"].enabled is True


def test_no_value_is_kept(store: ApprovalStore) -> None:
    secret = "hunter2hunter2"
    store.approve(
        request(
            stdio("weather", "--token", secret, f"--api-key={secret}", f"postgres://me:{secret}@db/x", "--verbose"),
            env={"KEY": secret, "REF": "${TOKEN}", "MIXED": f"Bearer {secret} ${{TOKEN}}"},
        )
    )
    url = f"https://me:{secret}@example.com/mcp?key={secret}&x=1"
    store.approve(request(http(url=url, headers={"Authorization": f"Bearer {secret}"})))
    text = Path(store.path).read_text()
    assert secret not in text
    assert "${TOKEN}" in text
    assert "--verbose" in text
    assert "example.com/mcp" in text


def test_a_change_of_a_value_that_is_not_kept_is_seen_and_said(store: ApprovalStore) -> None:
    store.approve(request(env={"KEY": "hunter2hunter2"}))
    answer = store.answer(request(env={"KEY": "hunter3hunter3"}))
    assert (answer.standing, answer.changes) == ("changed", ("a value that is not shown",))


def test_a_path_that_is_no_utf_8_is_kept(store: ApprovalStore) -> None:
    odd = Origin("project", "/srv/\udcff/toolbridge.json")
    store.approve(request(origin=odd))
    assert store.answer(request(origin=odd)).standing == "approved"


def test_megabytes_of_arguments_take_little_room(store: ApprovalStore) -> None:
    big = request(args=tuple("x" * 1000 for _ in range(900)), env={f"N{n}": "x" for n in range(5000)})
    store.approve(big)
    assert store.answer(big).standing == "approved"
    assert os.path.getsize(store.path) < 50_000


def test_a_store_past_its_size_is_not_written(store: ApprovalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.approve(request())
    kept = Path(store.path).read_bytes()
    monkeypatch.setattr("toolbridge.trust.approval.sealed_store.MOST_BYTES", len(kept))
    with pytest.raises(ApprovalStoreError, match="too long"):
        store.approve(request(name="other"))
    assert Path(store.path).read_bytes() == kept
    assert store.answer(request()).standing == "approved"


# ---- several at once


def _approve_some(directory: str, first: int, count: int) -> None:
    store = ApprovalStore(directory)
    for number in range(first, first + count):
        store.approve(request(name=f"server{number}"))


def test_processes_that_approve_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    directory = str(tmp_path / "approvals")
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_approve_some, args=(directory, 100 * n, 12)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    kept = {record.name for record in ApprovalStore(directory).read().approvals}
    assert kept == {f"server{100 * n + m}" for n in range(3) for m in range(12)}
    left = {path.name for path in Path(directory).iterdir()}
    assert left == {"approved-mcp.json", "seal.key", "lock"}


def test_threads_that_approve_revoke_and_read_at_the_same_time_lose_nothing(store: ApprovalStore) -> None:
    problems: list[BaseException] = []

    def work(number: int) -> None:
        try:
            store.approve(request(name=f"kept{number}"))
            store.approve(request(name=f"gone{number}"))
            store.revoke(f"gone{number}")
            store.read()
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    decisions = {record.name: record.decision for record in store.read().approvals}
    assert decisions == {f"{word}{n}": d for n in range(8) for word, d in (("kept", "approved"), ("gone", "revoked"))}


def test_a_lock_that_is_never_let_go_of_is_an_error_that_says_so(
    store: ApprovalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.approve(request())
    monkeypatch.setattr("toolbridge.trust.approval.sealed_store.LOCK_SECONDS", 0.05)
    script = (
        "import sys; from toolbridge.files import file_lock\n"
        "with file_lock(sys.argv[1], seconds=5): print('held', flush=True); sys.stdin.read()"
    )
    lock = os.path.join(os.path.dirname(store.path), "lock")
    with subprocess.Popen(
        [sys.executable, "-c", script, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(ApprovalStoreError, match="another process has held"):
            store.approve(request(name="other"))
        assert store.answer(request()).standing == "approved"  # reading waits for nobody
        holder.kill()
    store.approve(request(name="other"))  # the system let go of it


# ---- places


def test_the_store_is_in_the_state_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLBRIDGE_STATE_DIR", str(tmp_path))
    assert ApprovalStore().path == str(tmp_path / "approvals" / "approved-mcp.json")


@pytest.mark.parametrize(
    "environ", [{"TOOLBRIDGE_STATE_DIR": "here"}, {"TOOLBRIDGE_STATE_DIR": "./.state"}, {"HOME": "here"}]
)
def test_a_store_is_never_found_in_the_current_directory(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TOOLBRIDGE_STATE_DIR", "XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    for use in (ApprovalStore().read, lambda: ApprovalStore().approve(request()), ApprovalStore("here").read):
        with pytest.raises(ApprovalStoreError, match="absolute path"):
            use()


def test_the_file_is_json_that_a_person_can_read(store: ApprovalStore) -> None:
    store.approve(request(stdio("weather", "-y", "pkg@1.2.3", env={"KEY": "${TOKEN}"})))
    document: dict[str, Any] = json.loads(Path(store.path).read_text())
    (entry,) = document["approvals"]
    assert entry.pop("when").endswith("Z")
    assert entry.pop("digest").startswith("sha256:")
    assert entry == {
        "name": "weather",
        "origin": {"kind": "project", "detail": "/srv/shop/toolbridge.json"},
        "directory": None,
        "decision": "approved",
        "what": {
            "transport": "stdio",
            "command": "npx",
            "program": "/usr/bin/npx",
            "args": ["-y", "pkg@1.2.3"],
            "directory": "/srv/shop",
            "env": {"KEY": "${TOKEN}"},
        },
    }
