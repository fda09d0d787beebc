"""The compile cache in ordinary use. What a hostile neighbour could do is in tests/threats."""

from __future__ import annotations

import errno
import hashlib
import os
import time
from pathlib import Path

import pytest

from toolbridge.files import cache_directory
from toolbridge.sandbox.compile_cache import CompileCache, entry_key

KEY = entry_key("image", "version")
DAY = 24 * 3600


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def names(directory: Path) -> set[str]:
    return set(os.listdir(directory))


def entry_name(key: str, code: bytes) -> str:
    return f"{key}-{hashlib.sha256(key.encode() + code).hexdigest()}.cwasm"


def found(cache: CompileCache, key: str) -> str | None:
    with cache.find(key) as entry:
        return None if entry is None else entry.path


def test_what_is_stored_is_found(directory: Path) -> None:
    cache = CompileCache(directory)
    stored = cache.store(KEY, b"code")
    assert stored is not None
    assert found(cache, KEY) == stored
    assert Path(stored).read_bytes() == b"code"


def test_a_cache_that_can_only_be_read_is_used(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = CompileCache(directory)
    stored = cache.store(KEY, b"code")

    def refuse(_path: str) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "utime", refuse)
    assert found(cache, KEY) == stored


def test_no_descriptor_stays_open(directory: Path) -> None:
    cache = CompileCache(directory)
    cache.store(KEY, b"code")
    (directory / entry_name(KEY, b"lost")).write_bytes(b"other")
    with cache.find(KEY) as entry:
        assert entry is not None
        assert Path(entry.loadable).read_bytes() == b"code"
    if entry.loadable != entry.path:
        assert not os.path.exists(entry.loadable)


def test_an_entry_is_named_by_its_key_and_its_content(directory: Path) -> None:
    CompileCache(directory).store(KEY, b"code")
    assert names(directory) == {entry_name(KEY, b"code")}


def test_nothing_is_found_where_nothing_was_stored(directory: Path) -> None:
    assert found(CompileCache(directory), KEY) is None
    assert not directory.exists()


def test_an_entry_of_another_key_is_not_found(directory: Path) -> None:
    cache = CompileCache(directory)
    cache.store(KEY, b"code")
    assert found(cache, entry_key("image", "another version")) is None


def test_the_directory_and_its_parents_are_made_and_the_directory_is_private(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "b" / "cache"
    stored = CompileCache(directory).store(KEY, b"code")
    assert stored is not None
    assert directory.stat().st_mode & 0o777 == 0o700
    assert Path(stored).stat().st_mode & 0o777 == 0o600


def test_storing_the_same_code_twice_leaves_one_entry(directory: Path) -> None:
    cache = CompileCache(directory)
    assert cache.store(KEY, b"code") == cache.store(KEY, b"code")
    assert names(directory) == {entry_name(KEY, b"code")}


def test_a_second_compilation_that_differs_is_as_good_as_the_first(directory: Path) -> None:
    cache = CompileCache(directory)
    stored = {cache.store(KEY, b"code"), cache.store(KEY, b"also code")}
    assert found(cache, KEY) in stored


def test_an_entry_whose_content_changed_is_removed_and_not_found(directory: Path) -> None:
    cache = CompileCache(directory)
    stored = cache.store(KEY, b"code")
    assert stored is not None
    Path(stored).write_bytes(b"cod3")
    assert found(cache, KEY) is None
    assert names(directory) == set()


def test_a_good_entry_is_found_beside_a_damaged_one(directory: Path) -> None:
    cache = CompileCache(directory)
    stored = cache.store(KEY, b"code")
    assert stored is not None
    (directory / entry_name(KEY, b"lost")).write_bytes(b"other")
    assert found(cache, KEY) == stored


def test_a_discarded_entry_is_gone_and_discarding_it_again_is_harmless(directory: Path) -> None:
    cache = CompileCache(directory)
    stored = cache.store(KEY, b"code")
    assert stored is not None
    cache.discard(stored)
    cache.discard(stored)
    assert names(directory) == set()


@pytest.mark.parametrize(("days", "remains"), [(31, False), (29, True)])
def test_entries_and_remains_are_pruned_after_thirty_days(directory: Path, days: int, remains: bool) -> None:
    cache = CompileCache(directory)
    cache.store(entry_key("old"), b"old code")
    (directory / "new-abc.tmp").write_bytes(b"half")
    then = time.time() - days * DAY
    for name in names(directory):
        os.utime(directory / name, (then, then))
    cache.store(KEY, b"code")
    kept = {entry_name(entry_key("old"), b"old code"), "new-abc.tmp"} if remains else set[str]()
    assert names(directory) == kept | {entry_name(KEY, b"code")}


def test_a_file_that_is_not_ours_is_never_pruned(directory: Path) -> None:
    cache = CompileCache(directory)
    cache.store(KEY, b"code")
    (directory / "notes.txt").write_text("mine")
    os.utime(directory / "notes.txt", (0, 0))
    cache.store(KEY, b"code")
    assert names(directory) == {entry_name(KEY, b"code"), "notes.txt"}


def test_an_entry_that_is_used_every_day_is_not_pruned(directory: Path) -> None:
    """What counts is when an entry was last used, not when it was made: `find` is a use."""
    cache = CompileCache(directory)
    used = cache.store(KEY, b"code")
    assert used is not None
    long_ago = time.time() - 31 * DAY
    os.utime(used, (long_ago, long_ago))
    assert found(cache, KEY) == used
    cache.store(entry_key("another"), b"more code")
    assert found(cache, KEY) == used


def test_code_is_not_stored_where_no_directory_can_be_made(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = CompileCache(tmp_path / "file" / "cache")
    assert cache.store(KEY, b"code") is None
    assert found(cache, KEY) is None
    assert [record.name for record in caplog.records] == ["toolbridge"]
    assert "every start compiles" in caplog.text


def test_the_directory_can_be_chosen_by_an_environment_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOOLBRIDGE_CACHE_DIR", str(tmp_path / "chosen"))
    assert Path(cache_directory()) == tmp_path / "chosen"


@pytest.mark.skipif(os.name != "posix" or os.uname().sysname != "Linux", reason="XDG is for Linux")
def test_the_directory_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TOOLBRIDGE_CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert Path(cache_directory()) == tmp_path / "xdg" / "toolbridge"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert Path(cache_directory()) == tmp_path / ".cache" / "toolbridge"


def test_keys_differ_when_facts_are_cut_differently() -> None:
    keys = {entry_key("a", "bc"), entry_key("ab", "c"), entry_key("abc"), entry_key("abc", "")}
    assert len(keys) == 4
    assert all(len(key) == 32 for key in keys)
