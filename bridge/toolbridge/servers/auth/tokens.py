"""SECURITY: where sign-ins are kept: the system's keyring, or a file that only this user can read (T4, T35).

An entry belongs to one server at one place (see `place_of`): another server, another URL of the same host, or another
configuration that has the name and the URL from elsewhere, does not get it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

import anyio
import anyio.to_thread
import httpx2
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken, ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url
from pydantic import ValidationError

from toolbridge.concurrency import on_daemon_thread
from toolbridge.config.server_config import OAuth, ServerConfig
from toolbridge.files import (
    LockTimeoutError,
    UnsafePathError,
    file_lock,
    private_directory,
    read_private_file,
    state_directory,
    write_private_file,
)
from toolbridge.servers.http.ssrf import origin

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
        """Load a server's sign-in from the keyring or else its file; None if missing, unreadable or damaged."""
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
        """Store a sign-in in the keyring, deleting its file, or else in the file; a failure is logged, not raised."""
        fields = {"version": _VERSION, "server": server, "place": place, **asdict(credentials)}
        text = json.dumps(fields, separators=(",", ":"))

        def put(keyring: Any) -> bool:
            """Store it in the keyring; true."""
            keyring.set_password(_SERVICE, _entry(server, place), text)
            return True

        if await self._in_keyring(put):
            await anyio.to_thread.run_sync(self._remove_file, server, place)
        else:
            await anyio.to_thread.run_sync(self._write, server, place, text)

    async def remove(self, server: str, place: str) -> bool:
        """Delete a sign-in from keyring and file; true if there was one. Failures are logged, not raised."""

        def forget(keyring: Any) -> bool:
            """Delete the keyring's entry; false if there is none."""
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
        """Hold the token refresh lock between processes: two refreshes would each undo the other's.

        A lock that can't be had is done without: that may cost the sign-in, where waiting would cost the run.
        """
        with ExitStack() as held:
            with anyio.move_on_after(_LOCK_SECONDS):
                # Who holds it is another process, which sets no event of ours.
                while not await anyio.to_thread.run_sync(self._take_lock, server, place, held):  # noqa: ASYNC110
                    await anyio.sleep(_LOCK_PAUSE)
            yield

    def _take_lock(self, server: str, place: str, held: ExitStack) -> bool:
        """Try to enter the file lock into `held`; false if another process has it. A failure warns, and is true."""
        try:
            held.enter_context(file_lock(self._path(server, place).with_suffix(".lock"), seconds=0))
        except LockTimeoutError:
            return False
        except OSError as error:
            _LOGGER.warning("The sign-in of server %r is renewed without a lock: %s", server, error)
        return True

    # ---- the keyring

    async def _in_keyring(self, use: Callable[[Any], T]) -> T | None:
        """Run `use` with the keyring on a thread, within a time limit; None if there is none, or it fails (logged).

        A keyring that does not answer in time is never asked again in this process.
        """
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
        """Return the file of a sign-in, named by a hash. Raises `UnsafePathError` if there is no state directory."""
        if self._directory is None:
            self._directory = _default_directory()
        return self._directory / f"{hashlib.sha256(_entry(server, place).encode()).hexdigest()[:32]}.json"

    def _read(self, server: str, place: str) -> str | None:
        """Read a sign-in's file; None if it is missing, or can't be read safely (logged). Blocks."""
        try:
            return read_private_file(self._path(server, place), limit=_MOST_BYTES).decode("utf-8", "replace")
        except FileNotFoundError:
            return None
        except OSError as error:
            _LOGGER.warning("The sign-in of server %r is not read: %s", server, error)
            return None

    def _write(self, server: str, place: str, text: str) -> None:
        """Write a sign-in's file, private to the user; a failure is logged. Blocks."""
        try:
            write_private_file(self._path(server, place), text.encode())
        except OSError as error:
            _LOGGER.warning("The sign-in of server %r is not kept: %s", server, error)

    def _remove_file(self, server: str, place: str) -> bool:
        """Delete a sign-in's file; false if there was none, or it can't be deleted (logged). Blocks."""
        try:
            path = self._path(server, place)
            private_directory(path.parent, create=False)
            path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            _LOGGER.warning("The sign-in of server %r is not removed: %s", server, error)
            return False
        return True


def place_of(server: ServerConfig, url: httpx2.URL) -> str:
    """Return where a server's sign-in belongs: its origin, and a digest of its URL's path and configuration's source.

    A digest, since a path may hold a key, and a keyring shows the names of its entries.
    """
    path = url.raw_path.partition(b"?")[0].decode("ascii", "replace")
    source = json.dumps([path, server.origin.kind, server.origin.detail])
    return f"{origin(url)} {hashlib.sha256(source.encode()).hexdigest()[:32]}"


def _entry(server: str, place: str) -> str:
    return f"{server} {place}"


def _parse(text: str, server: str, place: str) -> Credentials | None:
    """Parse a stored sign-in; None if it is malformed, of another version, or for another server or place."""
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
    """Return the keyring, or None if it refuses, forgets, or writes secrets to a plain file. May block: imports it."""
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
    """Return the tokens' directory in the state directory. Raises `UnsafePathError` if that has no absolute path."""
    state = state_directory()
    if state is None:
        raise UnsafePathError("there is no absolute path for it: set TOOLBRIDGE_STATE_DIR to one")
    return Path(state) / "tokens"


# SECURITY: the sign-in of one server: as it is kept, where other processes renew it too, and as the SDK has it.


# A token that ends while a request is on its way would have been refused.
_EARLY_SECONDS = 15.0


class KeptSignIn:
    """What is kept of a sign-in, and the SDK's context that works with it."""

    def __init__(
        self,
        server: str,
        place: str,
        context: OAuthContext,
        *,
        store: TokenStore,
        options: OAuth,
        client_secret: str | None,
    ) -> None:
        self._server = server
        self._place = place
        self._context = context
        self._store = store
        self._options = options
        self._client_secret = client_secret
        self._known: set[str] = set()
        """Access tokens that were ours once: finding one of them in the store again is no news."""
        self._loaded = False

    @property
    def token(self) -> str | None:
        """The access token; None without one. It may have ended: see `ends_soon`."""
        tokens = self._context.current_tokens
        return tokens.access_token if tokens is not None else None

    @property
    def is_loaded(self) -> bool:
        """Whether it was looked for."""
        return self._loaded

    @property
    def must_be_renewed(self) -> bool:
        """Whether its token has ended, or is about to, and can be renewed without a person."""
        return self.ends_soon and self._context.can_refresh_token()

    @property
    def ends_soon(self) -> bool:
        """Whether its token has ended, or ends in 15 s or less; false without a token or a known end."""
        ends = self._context.token_expiry_time
        return self.token is not None and ends is not None and ends - _EARLY_SECONDS < time.time()

    def exclusive(self) -> AbstractAsyncContextManager[None]:
        """Hold the token refresh lock between processes within the context: see `TokenStore.exclusive`."""
        return self._store.exclusive(self._server, self._place)

    async def load(self) -> None:
        """Load the stored sign-in into the SDK's context; only the first call does anything."""
        if not self._loaded:
            self._adopt(await self._kept() or Credentials())
            self._loaded = True

    async def adopt_news(self) -> bool:
        """Load tokens that another process stored meanwhile into the SDK's context; true if there are new ones."""
        kept = await self._kept()
        if kept is None or not kept.tokens or kept.tokens.get("access_token") in (None, self.token, *self._known):
            return False
        self._adopt(kept)
        return self.token is not None

    async def forget(self, refused: OAuthToken | None) -> None:
        """Store that the refused tokens are gone; if another process stored new ones meanwhile, adopt those instead."""
        kept = await self._kept()
        tokens = {} if kept is None else kept.tokens or {}
        if refused is None or tokens.get("refresh_token") in (None, refused.refresh_token):
            await self.save()
        elif kept is not None and tokens.get("access_token") not in self._known:
            self._adopt(kept)

    async def save(self) -> None:
        """Store the SDK context's current tokens and client; a configured client's secret is left out."""
        context = self._context
        tokens, client = context.current_tokens, context.client_info
        metadata, resource = context.oauth_metadata, context.protected_resource_metadata
        self._remember()
        if client is not None and client.client_id == self._options.client_id:
            # Its secret was given as a reference, and stays one.
            issuer = client.issuer or (str(metadata.issuer) if metadata else None)
            client = client.model_copy(update={"client_secret": None, "issuer": issuer})
        kept = Credentials(
            tokens=_fields(tokens),
            expires_at=context.token_expiry_time,
            client=_fields(client),
            authorization_server=_fields(metadata),
            resource=_fields(resource),
        )
        await self._store.save(self._server, self._place, kept)

    async def _kept(self) -> Credentials | None:
        """Load the stored sign-in; None, with a warning, if it is for another URL: a token is for one resource."""
        kept = await self._store.load(self._server, self._place)
        if kept is None or kept.resource is None or _covers(kept.resource.get("resource"), self._context.server_url):
            return kept
        _LOGGER.warning("The sign-in that was kept for server %r is for another place and is not used", self._server)
        return None

    def _adopt(self, kept: Credentials) -> None:
        """Replace the SDK context's tokens, client and metadata by stored ones; by none if they don't validate."""
        context = self._context
        try:
            context.current_tokens = OAuthToken.model_validate(kept.tokens) if kept.tokens else None
            context.client_info = OAuthClientInformationFull.model_validate(kept.client) if kept.client else None
            metadata, resource = kept.authorization_server, kept.resource
            context.oauth_metadata = OAuthMetadata.model_validate(metadata) if metadata else None
            context.protected_resource_metadata = (
                ProtectedResourceMetadata.model_validate(resource) if resource else None
            )
        except ValidationError:  # kept by another version
            context.current_tokens = context.client_info = None
            context.oauth_metadata = context.protected_resource_metadata = None
        context.token_expiry_time = kept.expires_at
        self._remember()
        if self._options.client_id is not None:
            context.client_info = self._configured_client(self._options.client_id, context.client_info)

    def _remember(self) -> None:
        if self.token is not None:
            self._known.add(self.token)

    def _configured_client(self, client_id: str, kept: OAuthClientInformationFull | None) -> OAuthClientInformationFull:
        """Build the client that was registered by hand, bound to the issuer that it was first used with.

        Its secret goes to no other authorization server, whatever the server names later.
        """
        return OAuthClientInformationFull(
            client_id=client_id,
            client_secret=self._client_secret,
            token_endpoint_auth_method="client_secret_basic" if self._client_secret else "none",
            issuer=kept.issuer if kept is not None and kept.client_id == client_id else None,
        )


def _fields(model: Any) -> dict[str, Any] | None:
    return model.model_dump(mode="json", exclude_none=True) if model is not None else None


def _covers(resource: object, url: str) -> bool:
    """Return whether a token for `resource` may be used at the server's URL; false for a malformed one."""
    try:
        return check_resource_allowed(resource_url_from_server_url(url), str(resource))
    except ValueError:
        return False
