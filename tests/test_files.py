"""Files that only this user can read and write."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from toolbridge.files import UnsafePathError, private_directory, read_private_file, write_private_file


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "private" / "file"
    write_private_file(path, b"first")
    write_private_file(path, b"second")
    assert read_private_file(path, limit=100) == b"second"
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_files_and_their_directory_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_private_file(tmp_path / "private" / "file", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "private" / "file").stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o750, 0o701, 0o720])
def test_a_directory_that_others_can_enter_is_refused(tmp_path: Path, mode: int) -> None:
    write_private_file(tmp_path / "private" / "file", b"x")
    (tmp_path / "private").chmod(mode)
    with pytest.raises(UnsafePathError, match="accessible to others"):
        read_private_file(tmp_path / "private" / "file", limit=100)
    with pytest.raises(UnsafePathError, match="accessible to others"):
        write_private_file(tmp_path / "private" / "file", b"y")


def test_a_directory_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(UnsafePathError, match="not a directory"):
        private_directory(tmp_path / "link", create=True)


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o602])
def test_a_file_that_others_can_use_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "private" / "file"
    write_private_file(path, b"x")
    path.chmod(mode)
    with pytest.raises(UnsafePathError, match="accessible to others"):
        read_private_file(path, limit=100)


def test_links_pipes_and_second_names_are_refused(tmp_path: Path) -> None:
    directory = Path(private_directory(tmp_path / "private", create=True))
    write_private_file(directory / "file", b"x")
    (directory / "link").symlink_to(directory / "file")
    with pytest.raises(OSError, match="link"):
        read_private_file(directory / "link", limit=100)
    os.mkfifo(directory / "pipe", 0o600)
    with pytest.raises(UnsafePathError, match="not a regular file"):
        read_private_file(directory / "pipe", limit=100)
    os.link(directory / "file", tmp_path / "second")
    with pytest.raises(UnsafePathError, match="second name"):
        read_private_file(directory / "file", limit=100)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_another_users_file_or_directory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "private" / "file"
    write_private_file(path, b"x")
    os.chown(path, 12345, 12345)
    with pytest.raises(UnsafePathError, match="another user"):
        read_private_file(path, limit=100)
    os.chown(path.parent, 12345, 12345)
    with pytest.raises(UnsafePathError, match="another user"):
        private_directory(path.parent, create=False)


def test_a_file_past_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "private" / "file"
    write_private_file(path, b"x" * 101)
    with pytest.raises(UnsafePathError, match="101 bytes"):
        read_private_file(path, limit=100)


def test_writers_at_the_same_time_leave_one_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "private" / "file"
    contents = [bytes([65 + n]) * 50_000 for n in range(8)]
    threads = [threading.Thread(target=write_private_file, args=(path, content)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_private_file(path, limit=100_000) in contents
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]
