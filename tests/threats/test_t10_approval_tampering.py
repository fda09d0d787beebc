"""T10: a store that is altered, linked, open to others, foreign or damaged approves nothing and is not overwritten."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from toolbridge.errors import ServerNotApprovedError
from toolbridge.servers.lifecycle import approved_start
from toolbridge.trust.approval.approvers import StoredApprovals
from toolbridge.trust.approval.store import ApprovalStore, ApprovalStoreError
from trust.approval.approval_requests import request, stdio

posix_only = pytest.mark.skipif(os.name != "posix", reason="modes, owners and links are POSIX's")
root_only = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give files away")

Tamper = Callable[[Path], object]


@pytest.fixture
def store(tmp_path: Path) -> ApprovalStore:
    store = ApprovalStore(tmp_path / "approvals")
    store.approve(request())
    store.set_enabled(stdio("other"), False)
    return store


def edited(change: Callable[[dict[str, Any]], object]) -> Tamper:
    """The file with its JSON changed, written as well as anybody could."""

    def tamper(path: Path) -> None:
        document = json.loads(path.read_text())
        change(document)
        path.write_text(json.dumps(document))

    return tamper


def first(document: dict[str, Any]) -> dict[str, Any]:
    return document["approvals"][0]


def linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def linked_directory(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))
    path.parent.symlink_to(path.parent.with_name("elsewhere"))


def replaced_by_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def replaced_by_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def of_another_user(path: Path) -> None:
    os.chown(path, 12345, 12345)


def in_another_users_directory(path: Path) -> None:
    os.chown(path.parent, 12345, 12345)


def with_another_key(path: Path) -> None:
    (path.parent / "seal.key").write_bytes(b"k" * 32)


ALTERED: dict[str, Tamper] = {
    "another digest": edited(lambda document: first(document).update(digest="sha256:" + "0" * 64)),
    "another name": edited(lambda document: first(document).update(name="evil")),
    "another origin": edited(lambda document: first(document)["origin"].update(detail="/srv/evil/toolbridge.json")),
    "another decision": edited(lambda document: first(document).update(decision="revoked")),
    "another time": edited(lambda document: first(document).update(when="2031-01-01T00:00:00Z")),
    "what was approved": edited(lambda document: first(document)["what"].update(command="true")),
    "an approval more": edited(lambda document: document["approvals"].append(first(document) | {"name": "evil"})),
    "an approval less": edited(lambda document: document["approvals"].clear()),
    "a switch less": edited(lambda document: document["switches"].clear()),
    "a switch turned": edited(lambda document: document["switches"][0].update(enabled=True)),
    "no seal": edited(lambda document: document.pop("seal")),
    "a seal that is no text": edited(lambda document: document.update(seal=7)),
    "a seal of odd letters": edited(lambda document: document.update(seal="\ud800")),
    "a key more": edited(lambda document: document.update(trustEverything=True)),
}
DAMAGED: dict[str, Tamper] = {
    "half written": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
    "one byte short": lambda path: path.write_bytes(path.read_bytes()[:-3]),
    "not UTF-8": lambda path: path.write_bytes(b"\xff\xfe" + path.read_bytes()),
    "zeros": lambda path: path.write_bytes(b"\0" * 500),
    "a list": lambda path: path.write_bytes(b"[]"),
    "null": lambda path: path.write_bytes(b"null"),
    "a tower of brackets": lambda path: path.write_bytes(b"[" * 100_000),
    "a tower of objects": lambda path: path.write_bytes(b'{"version":1,"a":' + b'{"a":' * 100_000),
    "a number of a million digits": lambda path: path.write_bytes(b'{"version":' + b"9" * 1_000_000 + b"}"),
    "NaN": lambda path: path.write_bytes(b'{"version":NaN}'),
    "a key twice": lambda path: path.write_bytes(path.read_bytes().replace(b"{", b'{"version": 1, ', 1)),
    "too long": lambda path: path.write_bytes(path.read_bytes() + b" " * 9 * 2**20),
    "a newer version": edited(lambda document: document.update(version=2)),
    "version true": edited(lambda document: document.update(version=True)),
    "no version": edited(lambda document: document.pop("version")),
}
UNSAFE: dict[str, Tamper] = {
    "a symbolic link": linked,
    "a directory that is a symbolic link": linked_directory,
    "a second name": lambda path: os.link(path, path.with_name("second")),
    "writable by the group": lambda path: path.chmod(0o620),
    "writable by all": lambda path: path.chmod(0o602),
    "readable by all": lambda path: path.chmod(0o644),
    "a directory that the group can write to": lambda path: path.parent.chmod(0o770),
    "a directory that all can write to": lambda path: path.parent.chmod(0o777),
    "a pipe": replaced_by_a_pipe,
    "a directory in its place": replaced_by_a_directory,
    "a key that all can read": lambda path: (path.parent / "seal.key").chmod(0o644),
    "a key that is gone": lambda path: (path.parent / "seal.key").unlink(),
    "a key that is not whole": lambda path: (path.parent / "seal.key").write_bytes(b"short"),
    "another key": with_another_key,
}
FOREIGN: dict[str, Tamper] = {
    "another user's file": of_another_user,
    "another user's directory": in_another_users_directory,
}


def check_refused(store: ApprovalStore, tamper: Tamper) -> None:
    """Nothing is approved, nothing is written, and the error says where and what."""
    path = Path(store.path)
    tamper(path)
    before = path.read_bytes() if path.is_file() else None
    for use in (
        store.read,
        lambda: store.answer(request()),
        lambda: store.approve(request(name="more")),
        lambda: store.revoke("weather"),
        lambda: store.set_enabled(stdio(), True),
    ):
        with pytest.raises(ApprovalStoreError) as raised:
            use()
        assert "approved-mcp.json" in str(raised.value) or "seal.key" in str(raised.value)
    assert (path.read_bytes() if path.is_file() else None) == before

    answer = anyio.run(StoredApprovals(store).approve, request())
    assert answer.approved is False
    assert "can't be used" in answer.reason


@pytest.mark.parametrize("how", ALTERED)
def test_an_altered_store_approves_nothing(store: ApprovalStore, how: str) -> None:
    check_refused(store, ALTERED[how])


@pytest.mark.parametrize("how", DAMAGED)
def test_a_damaged_store_approves_nothing(store: ApprovalStore, how: str) -> None:
    check_refused(store, DAMAGED[how])


@posix_only
@pytest.mark.parametrize("how", UNSAFE)
def test_a_store_that_others_could_have_written_approves_nothing(store: ApprovalStore, how: str) -> None:
    check_refused(store, UNSAFE[how])


@root_only
@pytest.mark.parametrize("how", FOREIGN)
def test_another_users_store_approves_nothing(store: ApprovalStore, how: str) -> None:
    check_refused(store, FOREIGN[how])


def test_a_store_from_another_machine_approves_nothing(store: ApprovalStore, tmp_path: Path) -> None:
    """Dotfiles that are cloned bring no approvals along."""
    mine = ApprovalStore(tmp_path / "mine")
    mine.approve(request(name="mine"))
    shutil.copy(store.path, mine.path)
    with pytest.raises(ApprovalStoreError, match="seal"):
        mine.answer(request())


def test_semantically_equal_json_is_the_same_store(store: ApprovalStore) -> None:
    """Another order of keys and other spaces are no alteration."""
    path = Path(store.path)
    document = json.loads(path.read_text())
    path.write_text(json.dumps(dict(reversed(document.items())), indent=7))
    assert store.answer(request()).standing == "approved"


def test_the_error_says_what_to_do_and_what_is_in_the_file_stays_there(store: ApprovalStore) -> None:
    path = Path(store.path)
    half = path.read_bytes()[:200]
    path.write_bytes(half)
    with pytest.raises(ApprovalStoreError) as raised:
        store.approve(request())
    assert str(raised.value) == (
        f"The approvals in {path} can't be used: the file is damaged: it is not whole JSON. No server is approved from "
        "it, and it is not written over. Look at it, move it away, and approve again the servers that you trust."
    )
    assert path.read_bytes() == half
    path.rename(path.with_name("damaged.json"))
    store.approve(request())
    assert store.answer(request()).standing == "approved"


@posix_only
def test_a_link_in_place_of_the_lock_is_not_followed(store: ApprovalStore, tmp_path: Path) -> None:
    lock = Path(store.path).with_name("lock")
    lock.unlink()
    lock.symlink_to(tmp_path / "target")
    with pytest.raises(ApprovalStoreError):
        store.approve(request(name="more"))
    assert not (tmp_path / "target").exists()


AS_AN_ORDINARY_USER = """
import os, sys, tempfile
from toolbridge.trust.approval.sealed_store import ApprovalStoreError
from toolbridge.trust.approval.store import ApprovalStore
from trust.approval.approval_requests import request
if os.geteuid() == 0:  # who may read and write everything
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
with tempfile.TemporaryDirectory(dir="/tmp") as home:
    store = ApprovalStore(os.path.join(home, "state", "approvals"))
    directory = os.path.dirname(store.path)
    if sys.argv[1] != "read-only home":
        store.approve(request())
    mode, path = {
        "read-only home": (0o500, home),
        "read-only directory": (0o500, directory),
        "unreadable directory": (0o000, directory),
        "unreadable file": (0o000, store.path),
        "unreadable key": (0o000, os.path.join(directory, "seal.key")),
    }[sys.argv[1]]
    os.chmod(path, mode)
    try:
        print("standing", store.answer(request()).standing)
    except ApprovalStoreError as error:
        print("read", error)
    try:
        store.approve(request(name="more"))
    except ApprovalStoreError as error:
        print("write", error)
    os.chmod(path, 0o700 if os.path.isdir(path) else 0o600)
    print("after", [each.name for each in store.read().approvals])
"""


@posix_only
@pytest.mark.parametrize(
    ("what", "reads"),
    [
        ("read-only home", "standing unknown"),
        ("read-only directory", "standing approved"),
        ("unreadable directory", "read"),
        ("unreadable file", "read"),
        ("unreadable key", "read"),
    ],
)
def test_what_can_not_be_read_or_written_is_an_error_and_nothing_is_lost(what: str, reads: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AS_AN_ORDINARY_USER, what],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    read, write, after = done.stdout.splitlines()
    assert read.startswith(reads)
    assert write.startswith("write The approvals in ")
    assert "Permission denied" in write
    assert "TOOLBRIDGE_STATE_DIR" in write
    assert after == ("after []" if what == "read-only home" else "after ['weather']")


@pytest.mark.parametrize("how", ["half written", "an approval more"])
def test_a_server_is_not_started_by_a_store_that_was_tampered_with(tmp_path: Path, how: str) -> None:
    canary = tmp_path / "started"
    server = stdio("trap", str(canary), command="/usr/bin/touch", cwd=str(tmp_path))
    store = ApprovalStore(tmp_path / "approvals")
    store.approve(request(server, executable="/usr/bin/touch", directory=str(tmp_path)))
    (ALTERED | DAMAGED)[how](Path(store.path))

    async def main() -> None:
        with pytest.raises(ServerNotApprovedError, match="can't be used"):
            await approved_start(server, StoredApprovals(store), os.environ)

    anyio.run(main)
    assert not canary.exists()


def writable_by_all_above(above: Path) -> None:
    above.chmod(0o777)


def of_another_user_above(above: Path) -> None:
    os.chown(above, 12345, 12345)


@posix_only
@pytest.mark.parametrize(
    "tamper",
    [
        writable_by_all_above,
        pytest.param(of_another_user_above, marks=root_only),
    ],
    ids=lambda tamper: tamper.__name__,
)
@pytest.mark.parametrize("depth", [1, 2])
def test_a_store_below_a_directory_that_others_can_write_approves_nothing(
    tmp_path: Path, tamper: Tamper, depth: int
) -> None:
    """Its owner could put another store of this user's, an older one, in its place."""
    place = tmp_path / "above" / "state" / "approvals"
    store = ApprovalStore(place)
    store.approve(request())
    above = place.parents[depth - 1]
    tamper(above)
    for use in (store.read, lambda: store.answer(request()), lambda: store.approve(request())):
        with pytest.raises(ApprovalStoreError, match=f"{above}, above it, (can be written by every|belongs to an)"):
            use()
    os.chown(above, os.geteuid(), -1)
    above.chmod(0o1777)  # as /tmp is: others can't rename what is not theirs
    assert store.answer(request()).standing == "approved"
    above.chmod(0o775)  # a home directory of systems on which everybody has a group of their own
    assert store.answer(request()).standing == "approved"


@posix_only
def test_a_store_behind_a_link_is_looked_for_where_it_is(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "above" / "state" / "approvals")
    store.approve(request())
    (tmp_path / "above").rename(tmp_path / "real")
    (tmp_path / "above").symlink_to(tmp_path / "real")  # as a home directory may be
    assert store.answer(request()).standing == "approved"
    (tmp_path / "open").mkdir()
    (tmp_path / "real").rename(tmp_path / "open" / "real")
    (tmp_path / "above").unlink()
    (tmp_path / "above").symlink_to(tmp_path / "open" / "real")
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(ApprovalStoreError, match="open, above it, can be written by everybody"):
        store.read()
