"""SECURITY: where sign-ins are kept: the system's keyring, or a file that only this user can read (T4, T35).

An entry belongs to one server at one place (see `place_of`): another server, another URL of the same host, or another
configuration that has the name and the URL from elsewhere, does not get it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

import anyio
import anyio.to_thread
import httpx2

from toolbridge.config.server_config import ServerConfig
from toolbridge.host_threads import on_daemon_thread
from toolbridge.private_files import private_directory, read_private_file, write_private_file
from toolbridge.servers.http_rules import origin
from toolbridge.trust.file_lock import LockTimeoutError, file_lock

STATE_VARIABLE = "TOOLBRIDGE_STATE_DIR"
_SERVICE = "toolbridge"
_MOST_BYTES = 256 * 1024
# A keyring may wait for a person to unlock it, or for a bus that never answers.
_KEYRING_SECONDS = 5.0
# As long as whoever holds it may take: a keyring, the authorization server, the keyring again.
_LOCK_SECONDS = 40.0
_LOCK_PAUSE = 0.05
_VERSION = 2
_LOGGER = logging.getLogger("toolbridge")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """All that is needed to go on without a person: the tokens, and whom to ask for new ones."""

    tokens: dict[str, Any] | None = None
    expires_at: float | None = None
    client: dict[str, Any] | None = None
    authorization_server: dict[str, Any] | None = None
    resource: dict[str, Any] | None = None

    def __repr__(self) -> str:
        """Without a value."""
        return f"Credentials(tokens={'***' if self.tokens else None})"


class TokenStore:
    """The sign-ins of this user. A store that can't be used costs a sign-in, never a run."""

    _keyring_answers: ClassVar[bool] = True
    """One that does not is waited for once in the life of a process, not once for every connection."""

    def __init__(self, directory: str | os.PathLike[str] | None = None, *, use_keyring: bool = True) -> None:
        self._directory = None if directory is None else Path(directory)
        self._use_keyring = use_keyring

    async def load(self, server: str, place: str) -> Credentials | None:
        """What is kept for a server at a place; None if nothing is, or nothing that can be trusted."""
        kept = await self._in_keyring(lambda keyring: keyring.get_password(_SERVICE, _entry(server, place)))
        if kept is None:
            kept = await anyio.to_thread.run_sync(self._read, server, place)
        if kept is None:
            return None
        found = _parse(kept, server, place)
        if found is None:
            _LOGGER.warning("The sign-in that was kept for server %r is damaged and is not used", server)
        return found

    async def save(self, server: str, place: str, credentials: Credentials) -> None:
        """Keep a sign-in: in the keyring, or else in a file."""
        fields = {"version": _VERSION, "server": server, "place": place, **asdict(credentials)}
        text = json.dumps(fields, separators=(",", ":"))

        def put(keyring: Any) -> bool:
            keyring.set_password(_SERVICE, _entry(server, place), text)
            return True

        if await self._in_keyring(put):
            await anyio.to_thread.run_sync(self._remove_file, server, place)
        else:
            await anyio.to_thread.run_sync(self._write, server, place, text)

    async def remove(self, server: str, place: str) -> bool:
        """Forget a sign-in, wherever it is; whether there was one."""

        def forget(keyring: Any) -> bool:
            entry = _entry(server, place)
            if keyring.get_password(_SERVICE, entry) is None:
                return False
            keyring.delete_password(_SERVICE, entry)
            return True

        in_keyring = await self._in_keyring(forget)
        in_file = await anyio.to_thread.run_sync(self._remove_file, server, place)
        return bool(in_keyring) or in_file

    @asynccontextmanager
    async def exclusive(self, server: str, place: str) -> AsyncGenerator[None]:
        """While no other process renews this sign-in: two that did would each undo the other's.

        A lock that can't be had is done without: that may cost the sign-in, where waiting would cost the run.
        """
        path = self._path(server, place).with_suffix(".lock")
        with ExitStack() as held:
            with anyio.move_on_after(_LOCK_SECONDS):
                # Who holds it is another process, which sets no event of ours.
                while not await anyio.to_thread.run_sync(self._take_lock, server, path, held):  # noqa: ASYNC110
                    await anyio.sleep(_LOCK_PAUSE)
            yield

    def _take_lock(self, server: str, path: Path, held: ExitStack) -> bool:
        """Whether there is nothing more to wait for."""
        try:
            held.enter_context(file_lock(path, seconds=0))
        except LockTimeoutError:
            return False
        except OSError as error:
            _LOGGER.warning("The sign-in of server %r is renewed without a lock: %s", server, error)
        return True

    # ---- the keyring

    async def _in_keyring(self, use: Callable[[Any], T]) -> T | None:
        """What a use of the keyring gives; None where there is none, or it fails."""
        if not self._use_keyring or not TokenStore._keyring_answers:
            return None

        def used() -> T | None:
            keyring = _real_keyring()
            return None if keyring is None else use(keyring)

        try:
            with anyio.fail_after(_KEYRING_SECONDS):
                return await on_daemon_thread(used)
        except TimeoutError:
            TokenStore._keyring_answers = False
            _LOGGER.warning("The system's keyring does not answer; sign-ins are kept in a file")
        except Exception as error:
            # Locked, refused, too long for it: the text may quote what was to be stored.
            _LOGGER.warning("The system's keyring failed (%s); sign-ins are kept in a file", type(error).__name__)
        return None

    # ---- the file

    def _path(self, server: str, place: str) -> Path:
        if self._directory is None:
            self._directory = _default_directory()
        return self._directory / f"{hashlib.sha256(_entry(server, place).encode()).hexdigest()[:32]}.json"

    def _read(self, server: str, place: str) -> str | None:
        try:
            return read_private_file(self._path(server, place), limit=_MOST_BYTES).decode("utf-8", "replace")
        except FileNotFoundError:
            return None
        except OSError as error:
            _LOGGER.warning("The sign-in of server %r is not read: %s", server, error)
            return None

    def _write(self, server: str, place: str, text: str) -> None:
        try:
            write_private_file(self._path(server, place), text.encode())
        except OSError as error:
            _LOGGER.warning("The sign-in of server %r is not kept: %s", server, error)

    def _remove_file(self, server: str, place: str) -> bool:
        path = self._path(server, place)
        try:
            private_directory(path.parent, create=False)
            path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            _LOGGER.warning("The sign-in of server %r is not removed: %s", server, error)
            return False
        return True


def place_of(server: ServerConfig, url: httpx2.URL) -> str:
    """Where a server's sign-in belongs: its URL, and the file or plugin that its configuration came from.

    Of the path and of that source there is a digest only: a path may hold a key, and a keyring shows the names of its
    entries.
    """
    path = url.raw_path.partition(b"?")[0].decode("ascii", "replace")
    source = json.dumps([path, server.origin.kind, server.origin.detail])
    return f"{origin(url)} {hashlib.sha256(source.encode()).hexdigest()[:32]}"


def _entry(server: str, place: str) -> str:
    return f"{server} {place}"


def _parse(text: str, server: str, place: str) -> Credentials | None:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    if (fields.get("version"), fields.get("server"), fields.get("place")) != (_VERSION, server, place):
        return None
    expires_at = fields.get("expires_at")
    objects = {name: fields.get(name) for name in ("tokens", "client", "authorization_server", "resource")}
    if not all(each is None or isinstance(each, dict) for each in objects.values()):
        return None
    if expires_at is not None and (isinstance(expires_at, bool) or not isinstance(expires_at, (int, float))):
        return None
    return Credentials(expires_at=expires_at, **objects)


def _real_keyring() -> Any:
    """The keyring, if there is one that keeps secrets: none that refuses, forgets, or writes them to a plain file."""
    import keyring
    from keyring.backends import chainer, fail, null

    found = keyring.get_keyring()
    if isinstance(found, (fail.Keyring, null.Keyring)) or type(found).__module__.startswith("keyrings.alt"):
        return None
    if isinstance(found, chainer.ChainerBackend):
        backends = cast("list[Any]", found.backends)
        real = [each for each in backends if not type(each).__module__.startswith("keyrings.alt")]
        return real[0] if real else None
    return found


def _default_directory() -> Path:
    chosen = os.environ.get(STATE_VARIABLE)
    if chosen:
        return Path(chosen) / "tokens"
    import platformdirs

    return Path(platformdirs.user_state_dir("toolbridge", appauthor=False)) / "tokens"
