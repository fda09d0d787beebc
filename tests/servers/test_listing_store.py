"""Kept listings: what was saved comes back, and nothing else is believed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from toolbridge.servers.listing import Listing, ListingStore, ToolProblem
from toolbridge_codegen.catalog import ToolDefinition

KEY = "sha256:" + "ab" * 32
LISTING = Listing(
    server="shop",
    tools=(
        ToolDefinition(
            name="find \ud800 it",
            title="Find",
            description="Finds\u2028things",
            input_schema={"type": "object", "properties": {"q": {"type": "string"}}},
            output_schema={"type": "object"},
            annotations={"readOnlyHint": True},
        ),
    ),
    problems=(ToolProblem("bad", "has no schema"),),
    protocol_version="2025-11-25",
    server_name="Shop",
    server_version="2",
    server_title="The shop",
    server_description="Sells",
    instructions="Ask nicely",
)


def store(directory: Path) -> ListingStore:
    return ListingStore(directory / "listings", limit=1_000_000)


def entry(directory: Path) -> Path:
    (found,) = (directory / "listings").glob("*.json")
    return found


def test_a_saved_listing_comes_back_whole_and_is_not_live(tmp_path: Path) -> None:
    store(tmp_path).save(KEY, LISTING)
    kept = store(tmp_path).load("shop", KEY)
    assert kept == LISTING
    assert kept is not None
    assert not kept.live


def test_another_configuration_has_no_listing(tmp_path: Path) -> None:
    store(tmp_path).save(KEY, LISTING)
    assert store(tmp_path).load("shop", "sha256:" + "cd" * 32) is None


def test_an_entry_of_another_server_is_not_believed(tmp_path: Path) -> None:
    store(tmp_path).save(KEY, LISTING)
    assert store(tmp_path).load("bank", KEY) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"7", b"\xff", b'{"server":"shop","tools":' + b"[" * 100_000])
def test_a_damaged_entry_is_no_listing(tmp_path: Path, content: bytes) -> None:
    store(tmp_path).save(KEY, LISTING)
    entry(tmp_path).write_bytes(content)
    assert store(tmp_path).load("shop", KEY) is None


def test_entries_are_checked_like_a_fresh_answer(tmp_path: Path) -> None:
    store(tmp_path).save(KEY, LISTING)
    entry(tmp_path).write_text('{"server": "shop", "tools": [{"name": ""}, 5], "problems": [7], "instructions": []}')
    assert store(tmp_path).load("shop", KEY) == Listing("shop", ())


def test_files_and_directory_are_private(tmp_path: Path) -> None:
    store(tmp_path).save(KEY, LISTING)
    assert stat.S_IMODE(entry(tmp_path).stat().st_mode) == 0o600
    assert stat.S_IMODE(entry(tmp_path).parent.stat().st_mode) == 0o700


def test_a_directory_open_to_others_is_not_read(tmp_path: Path) -> None:
    store(tmp_path).save(KEY, LISTING)
    (tmp_path / "listings").chmod(0o755)
    assert store(tmp_path).load("shop", KEY) is None


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    store(tmp_path).save(KEY, LISTING)
    path = entry(tmp_path)
    os.rename(path, tmp_path / "elsewhere.json")
    path.symlink_to(tmp_path / "elsewhere.json")
    assert store(tmp_path).load("shop", KEY) is None


def test_a_place_that_cannot_be_written_costs_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "listings").write_text("a file")
    store(tmp_path).save(KEY, LISTING)
    assert "is not kept" in caplog.text
    assert store(tmp_path).load("shop", KEY) is None


def test_without_a_directory_nothing_is_kept() -> None:
    nowhere = ListingStore(None, limit=1000)
    nowhere.save(KEY, LISTING)
    assert nowhere.load("shop", KEY) is None


def test_entries_that_were_not_used_for_longest_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolbridge.servers.listing.MAX_ENTRIES", 3)
    kept = store(tmp_path)
    keys = [f"sha256:{number:064x}" for number in range(5)]
    for age, key in enumerate(keys[:4]):
        kept.save(key, LISTING)
        path = tmp_path / "listings" / f"{key.removeprefix('sha256:')}.json"
        if path.exists():
            os.utime(path, (1_000_000 + age, 1_000_000 + age))
    assert kept.load("shop", keys[0]) is None
    assert kept.load("shop", keys[1]) is not None  # and is the newest by that
    kept.save(keys[4], LISTING)
    assert [kept.load("shop", key) is not None for key in keys] == [False, True, False, True, True]


def test_entries_are_bounded_in_bytes_and_the_newest_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolbridge.servers.listing.MAX_BYTES", 1)
    kept = store(tmp_path)
    other = tmp_path / "listings" / "notes.txt"
    kept.save("sha256:" + "cd" * 32, LISTING)
    other.write_text("somebody else's")
    os.utime(tmp_path / "listings" / ("cd" * 32 + ".json"), (1, 1))
    kept.save(KEY, LISTING)
    assert sorted(path.name for path in other.parent.iterdir()) == sorted([f"{'ab' * 32}.json", "notes.txt"])
