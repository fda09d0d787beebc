"""Where sign-ins are kept."""

from __future__ import annotations

import logging
import os
import stat
import threading
from pathlib import Path
from typing import Any, cast

import anyio
import httpx2
import keyring
import keyring.core
import keyring.errors
import pytest
from keyring.backend import KeyringBackend
from keyring.backends import fail, null

from toolbridge.config.server_config import Origin, ServerConfig
from toolbridge.servers.auth import tokens as token_store
from toolbridge.servers.auth.tokens import Credentials, TokenStore, place_of

pytestmark = pytest.mark.anyio

PLACE = "https://mcp.example.com 0123456789abcdef"
SECRET = "the-access-token"
KEPT = Credentials(tokens={"access_token": SECRET, "refresh_token": "r"}, expires_at=12.5, client={"client_id": "c"})


class MemoryKeyring(KeyringBackend):
    """A keyring as a system has it, in memory."""

    priority = -1  # pyright: ignore[reportAssignmentType]  # or it would be chosen wherever it is defined

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if (service, username) not in self.kept:
            raise keyring.errors.PasswordDeleteError
        del self.kept[service, username]


class BrokenKeyring(MemoryKeyring):
    """A keyring that refuses everything, and quotes what it refuses."""

    def get_password(self, service: str, username: str) -> str | None:
        raise keyring.errors.KeyringLocked("locked")

    def set_password(self, service: str, username: str, password: str) -> None:
        raise keyring.errors.PasswordSetError(f"can't store {password}")


class StuckKeyring(MemoryKeyring):
    """A keyring that waits for somebody who is not there."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()

    def get_password(self, service: str, username: str) -> str | None:
        self.released.wait(60)
        return None

    def set_password(self, service: str, username: str, password: str) -> None:
        self.released.wait(60)


@pytest.fixture(autouse=True)
def own_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    """None, until a test sets one."""
    monkeypatch.setattr(keyring.core, "_keyring_backend", fail.Keyring())
    monkeypatch.setattr(TokenStore, "_keyring_answers", True)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "state" / "tokens"


def the_file(directory: Path) -> Path:
    (path,) = directory.iterdir()
    return path


def files(directory: Path) -> list[str]:
    return os.listdir(directory)


def token_directories(path: Path) -> list[Path]:
    return [found for found in path.rglob("tokens") if found.is_dir()]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def damage(directory: Path, how: str) -> None:
    path, elsewhere = the_file(directory), directory.parent.parent / "elsewhere"
    if how == "readable by others":
        path.chmod(0o644)
    elif how == "link":
        path.rename(elsewhere)
        path.symlink_to(elsewhere)
    elif how == "second name":
        os.link(path, elsewhere)
    elif how == "open directory":
        directory.chmod(0o755)
    else:
        directory.rename(elsewhere)
        directory.symlink_to(elsewhere)


async def test_what_is_kept_comes_back(directory: Path) -> None:
    await TokenStore(directory).save("weather", PLACE, KEPT)
    assert await TokenStore(directory).load("weather", PLACE) == KEPT


async def test_nothing_kept_is_nothing(directory: Path) -> None:
    assert await TokenStore(directory).load("weather", PLACE) is None
    assert await TokenStore(directory).remove("weather", PLACE) is False


@pytest.mark.parametrize(
    ("server", "place"),
    [("other", PLACE), ("weather", "https://evil.example"), ("weather", "http://mcp.example.com")],
)
async def test_neither_another_server_nor_another_place_gets_it(directory: Path, server: str, place: str) -> None:
    await TokenStore(directory).save("weather", PLACE, KEPT)
    assert await TokenStore(directory).load(server, place) is None
    the_file(directory).rename(TokenStore(directory)._path(server, place))
    assert await TokenStore(directory).load(server, place) is None


async def test_only_this_user_can_read_the_file(directory: Path) -> None:
    await TokenStore(directory).save("weather", PLACE, KEPT)
    assert mode(directory) == 0o700
    assert mode(the_file(directory)) == 0o600


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
@pytest.mark.parametrize("how", ["readable by others", "link", "second name", "open directory", "linked directory"])
async def test_a_file_that_others_could_have_touched_is_not_read(
    directory: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    await TokenStore(directory).save("weather", PLACE, KEPT)
    damage(directory, how)
    with caplog.at_level(logging.WARNING):
        assert await TokenStore(directory).load("weather", PLACE) is None
    assert "is not read" in caplog.text
    assert SECRET not in caplog.text


ENTRY = f'{{"version":2,"server":"weather","place":"{PLACE}",'.encode()
DAMAGED = {
    "empty": b"",
    "half": b"{",
    "list": b"[]",
    "null": b"null",
    "not UTF-8": b"\xff\xfe",
    "other version": b'{"version": 1}',
    "deep": b"[" * 100_000,
    "odd tokens": ENTRY + b'"tokens":"x"}',
    "odd time": ENTRY + b'"expires_at":"x"}',
}


@pytest.mark.parametrize("how", DAMAGED)
async def test_a_damaged_entry_is_ignored_with_a_warning(
    directory: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    await TokenStore(directory).save("weather", PLACE, KEPT)
    the_file(directory).write_bytes(DAMAGED[how])
    with caplog.at_level(logging.WARNING):
        assert await TokenStore(directory).load("weather", PLACE) is None
    assert "damaged" in caplog.text


async def test_a_place_that_can_not_be_written_costs_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING):
        await TokenStore(tmp_path / "file" / "tokens").save("weather", PLACE, KEPT)
    assert "is not kept" in caplog.text
    assert SECRET not in caplog.text


async def test_a_place_that_can_not_be_looked_at_has_nothing_to_remove_and_costs_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    store = TokenStore(tmp_path / "file" / "tokens")
    with caplog.at_level(logging.WARNING):
        assert await store.remove("weather", PLACE) is False
    assert "is not removed" in caplog.text
    keyring.set_keyring(memory := MemoryKeyring())
    await store.save("weather", PLACE, KEPT)
    assert len(memory.kept) == 1


def test_a_place_is_a_url_and_where_its_configuration_came_from() -> None:
    def place(url: str, *origin: str) -> str:
        name = "acme__weather" if "plugin" in origin else "weather"
        return place_of(ServerConfig(name, "http", url=url, origin=Origin(*cast("Any", origin))), httpx2.URL(url))

    urls = ["https://x.example/a", "https://x.example/b", "https://x.example/a/", "https://y.example/a"]
    origins = [(), ("user", "/u.json"), ("project", "/p.json"), ("project", "/q.json"), ("plugin", "acme")]
    assert len({place(url, *origin) for url in urls for origin in origins}) == len(urls) * len(origins)
    assert place("https://x.example/a?b=1") == place("https://x.example/a")
    assert "a-key-in-the-path" not in place("https://x.example/a-key-in-the-path/mcp")


async def test_what_is_removed_is_gone(directory: Path) -> None:
    store = TokenStore(directory)
    await store.save("weather", PLACE, KEPT)
    assert await store.remove("weather", PLACE) is True
    assert await store.load("weather", PLACE) is None
    assert files(directory) == []


async def test_a_keyring_is_used_where_there_is_one_and_no_file_remains(directory: Path) -> None:
    await TokenStore(directory).save("weather", PLACE, KEPT)
    memory = MemoryKeyring()
    keyring.set_keyring(memory)
    assert await TokenStore(directory).load("weather", PLACE) == KEPT  # still from the file
    await TokenStore(directory).save("weather", PLACE, KEPT)
    assert files(directory) == []
    assert list(memory.kept) == [("toolbridge", f"weather {PLACE}")]
    assert await TokenStore(directory).load("weather", PLACE) == KEPT
    assert await TokenStore(directory).load("other", PLACE) is None
    assert await TokenStore(directory).remove("weather", PLACE) is True
    assert memory.kept == {}


@pytest.mark.parametrize("kind", [fail.Keyring, null.Keyring])
async def test_a_keyring_that_keeps_nothing_is_none(directory: Path, kind: Any) -> None:
    keyring.set_keyring(kind())
    await TokenStore(directory).save("weather", PLACE, KEPT)
    assert await TokenStore(directory).load("weather", PLACE) == KEPT


async def test_a_keyring_that_writes_plain_files_is_none(directory: Path) -> None:
    plain = MemoryKeyring()
    type(plain).__module__ = "keyrings.alt.file"
    try:
        keyring.set_keyring(plain)
        await TokenStore(directory).save("weather", PLACE, KEPT)
    finally:
        type(plain).__module__ = __name__
    assert plain.kept == {}
    assert the_file(directory).exists()


async def test_a_keyring_that_fails_is_replaced_by_the_file_and_quoted_nowhere(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keyring.set_keyring(BrokenKeyring())
    with caplog.at_level(logging.DEBUG):
        await TokenStore(directory).save("weather", PLACE, KEPT)
        assert await TokenStore(directory).load("weather", PLACE) == KEPT
    assert "PasswordSetError" in caplog.text
    assert SECRET not in caplog.text


async def test_a_keyring_that_does_not_answer_is_waited_for_once_and_not_for_long(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_store, "_KEYRING_SECONDS", 0.1)
    stuck = StuckKeyring()
    keyring.set_keyring(stuck)
    with anyio.fail_after(60):
        for _ in range(20):
            await TokenStore(directory).save("weather", PLACE, KEPT)
            assert await TokenStore(directory).load("weather", PLACE) == KEPT
    stuck.released.set()


def test_no_value_is_in_a_repr() -> None:
    assert SECRET not in repr(KEPT)


async def test_the_usual_place_is_this_users_state_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLBRIDGE_STATE_DIR", str(tmp_path / "chosen"))
    await TokenStore().save("weather", PLACE, KEPT)
    assert token_directories(tmp_path) == [tmp_path / "chosen" / "tokens"]
    monkeypatch.delenv("TOOLBRIDGE_STATE_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    await TokenStore().save("weather", PLACE, KEPT)
    assert len(token_directories(tmp_path)) == 2
