"""`toolbridge.lock` on disk: where it is, whose it is, and that no writer loses another's pins."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from toolbridge.config.server_config import Origin
from toolbridge.trust.pins import lock_file
from toolbridge.trust.pins.lock_file import (
    Lock,
    LockError,
    LockPlace,
    PinnedServer,
    change_lock,
    lock_place,
    lock_text,
    pinned_server,
    read_lock,
)
from toolbridge_codegen.catalog import ToolDefinition

posix_only = pytest.mark.skipif(os.name != "posix", reason="modes and owners are POSIX's")
as_root = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give files away")
not_as_root = pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")

PINNED = pinned_server([ToolDefinition("ping", {"type": "object"})], "")


def add(place: LockPlace, name: str, pinned: PinnedServer = PINNED) -> Lock:
    return change_lock(place, lambda lock: lock.with_server(name, pinned))


def place_in(directory: Path, *, private: bool = False) -> LockPlace:
    return LockPlace(str(directory / "toolbridge.lock"), private)


# ---- where


@pytest.mark.parametrize(
    ("origin", "path"),
    [
        (Origin("project", "/srv/shop/toolbridge.json"), "/srv/shop/toolbridge.lock"),
        (Origin("project", "/srv/shop/.mcp.json"), "/srv/shop/toolbridge.lock"),
        (Origin("project", "/srv/shop/.vscode/mcp.json"), "/srv/shop/toolbridge.lock"),
        (Origin("project", "/srv/shop/.agents/mcp.json"), "/srv/shop/toolbridge.lock"),
        (Origin("project", "/srv/shop/deep/other.json"), "/srv/shop/deep/toolbridge.lock"),
        (Origin("project", "/toolbridge.json"), "/toolbridge.lock"),
    ],
)
def test_a_projects_lock_is_in_the_project_and_open_to_it(origin: Origin, path: str) -> None:
    assert lock_place(origin, {}) == LockPlace(path, private=False)


@pytest.mark.parametrize("origin", [Origin("user", "/home/me/.config/toolbridge/config.json"), Origin("plugin", "db")])
def test_a_users_and_a_plugins_lock_is_the_users_own(origin: Origin) -> None:
    found = lock_place(origin, {"TOOLBRIDGE_CONFIG_DIR": "/home/me/settings"})
    assert found == LockPlace("/home/me/settings/toolbridge.lock", private=True)


def test_a_program_names_its_lock_itself() -> None:
    assert lock_place(Origin("code"), {"HOME": "/home/me"}) is None


# ---- reading


def test_no_file_means_no_pins(tmp_path: Path) -> None:
    assert read_lock(place_in(tmp_path)) == Lock()
    assert read_lock(place_in(tmp_path / "nowhere")) == Lock()


def test_what_was_pinned_is_read_and_nothing_else_lies_about(tmp_path: Path) -> None:
    assert add(place_in(tmp_path), "shop") == Lock({"shop": PINNED})
    assert read_lock(place_in(tmp_path)) == Lock({"shop": PINNED})
    assert [entry.name for entry in tmp_path.iterdir()] == ["toolbridge.lock"]
    assert (tmp_path / "toolbridge.lock").read_bytes() == lock_text(Lock({"shop": PINNED}), "").encode()


@posix_only
def test_links_pipes_and_directories_are_refused(tmp_path: Path) -> None:
    add(place_in(tmp_path), "shop")
    os.rename(tmp_path / "toolbridge.lock", tmp_path / "elsewhere")
    place = place_in(tmp_path)
    (tmp_path / "toolbridge.lock").symlink_to(tmp_path / "elsewhere")
    for use in (read_lock, lambda place: add(place, "bank")):  # pyright: ignore[reportUnknownLambdaType, reportUnknownVariableType, reportUnknownArgumentType]
        with pytest.raises(LockError, match="symbolic link"):
            use(place)
    os.unlink(place.path)
    os.mkfifo(place.path)
    with pytest.raises(LockError, match="not a regular file"):
        read_lock(place)
    os.unlink(place.path)
    os.mkdir(place.path)
    with pytest.raises(LockError, match="not a regular file"):
        read_lock(place)


def test_a_file_past_the_bound_is_refused_before_it_is_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_file, "MOST_BYTES", 1000)
    (tmp_path / "toolbridge.lock").write_bytes(b"[" * 1001)
    with pytest.raises(LockError, match="more than the 1,000 bytes"):
        read_lock(place_in(tmp_path))


@posix_only
def test_a_users_lock_that_others_could_have_written_is_refused(tmp_path: Path) -> None:
    place = place_in(tmp_path / "settings", private=True)
    add(place, "shop")
    path = Path(place.path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    for changed, mode, back in ((path, 0o620, 0o600), (path, 0o602, 0o600), (path.parent, 0o777, 0o700)):
        changed.chmod(mode)
        with pytest.raises(LockError, match="can be written by others"):
            read_lock(place)
        changed.chmod(back)
    os.link(path, tmp_path / "second")
    with pytest.raises(LockError, match="second name"):
        read_lock(place)
    os.unlink(tmp_path / "second")
    path.parent.chmod(0o755)  # a directory that others can look into is fine: there is nothing secret in it
    assert read_lock(place) == Lock({"shop": PINNED})


@as_root
def test_another_users_lock_is_refused(tmp_path: Path) -> None:
    place = place_in(tmp_path, private=True)
    add(place, "shop")
    os.chown(place.path, 12345, 12345)
    with pytest.raises(LockError, match="another user"):
        read_lock(place)
    os.chown(place.path, 0, 0)
    os.chown(tmp_path, 12345, 12345)
    with pytest.raises(LockError, match="another user"):
        read_lock(place)


@posix_only
def test_a_projects_lock_may_belong_to_a_group(tmp_path: Path) -> None:
    """As every file of a checkout does with a umask of 002."""
    add(place_in(tmp_path), "shop")
    (tmp_path / "toolbridge.lock").chmod(0o664)
    add(place_in(tmp_path), "bank")
    assert set(read_lock(place_in(tmp_path)).servers) == {"shop", "bank"}
    assert stat.S_IMODE((tmp_path / "toolbridge.lock").stat().st_mode) == 0o664


# ---- writing


def test_a_lock_that_is_not_understood_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "toolbridge.lock"
    for content in ("", "{", '{"lockVersion": 2, "servers": {}}', "<<<<<<< HEAD\n"):
        path.write_text(content)
        with pytest.raises(LockError):
            add(place_in(tmp_path), "shop")
        assert path.read_text() == content
    assert [entry.name for entry in tmp_path.iterdir()] == ["toolbridge.lock"]


def test_a_change_that_fails_leaves_everything_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(place_in(tmp_path), "shop")
    before = (tmp_path / "toolbridge.lock").read_bytes()

    def broken(*words: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(LockError, match=r"can't be written: No space left on device\. Its tools stay blocked"):
        add(place_in(tmp_path), "bank")
    assert (tmp_path / "toolbridge.lock").read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["toolbridge.lock"]


def test_a_reader_sees_the_old_lock_or_the_new_one_and_never_a_half(tmp_path: Path) -> None:
    add(place_in(tmp_path), "shop")
    before = (tmp_path / "toolbridge.lock").read_bytes()
    with open(tmp_path / "toolbridge.lock", "rb") as reader:
        add(place_in(tmp_path), "bank")
        assert reader.read() == before
    assert set(read_lock(place_in(tmp_path)).servers) == {"shop", "bank"}


def test_what_is_the_same_is_not_written_again(tmp_path: Path) -> None:
    add(place_in(tmp_path), "shop")
    before = (tmp_path / "toolbridge.lock").stat()
    add(place_in(tmp_path), "shop")
    assert (tmp_path / "toolbridge.lock").stat().st_ino == before.st_ino


def test_a_directory_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(LockError, match="can't be written: No such file or directory"):
        add(place_in(tmp_path / "gone"), "shop")


@not_as_root
def test_a_read_only_project_is_a_clear_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(LockError, match="can't be written: Permission denied"):
        add(place_in(tmp_path), "shop")
    tmp_path.chmod(0o700)


def test_threads_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    names = [f"server{number}" for number in range(16)]
    threads = [threading.Thread(target=add, args=(place_in(tmp_path), name)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(read_lock(place_in(tmp_path)).servers) == set(names)
    assert [entry.name for entry in tmp_path.iterdir()] == ["toolbridge.lock"]


WRITER = """
import sys
from toolbridge.trust.pins.lock_file import LockPlace, change_lock, pinned_server
from toolbridge_codegen.catalog import ToolDefinition
pinned = pinned_server([ToolDefinition("ping", {"type": "object"})], "")
sys.stdin.read(1)
for number in range(10):
    change_lock(LockPlace(sys.argv[1]), lambda lock: lock.with_server(f"{sys.argv[2]}{number}", pinned))
"""


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, place.path, name], stdin=subprocess.PIPE) for name in "abc"
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"x")
        writer.stdin.close()
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert set(read_lock(place).servers) == {f"{name}{number}" for name in "abc" for number in range(10)}


@posix_only
def test_a_writer_that_never_ends_is_not_waited_for_forever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    monkeypatch.setattr(lock_file, "WAIT_SECONDS", 0.05)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(LockError, match="being written by another process"):
            add(place_in(tmp_path), "shop")
    finally:
        os.close(descriptor)
    add(place_in(tmp_path), "shop")
