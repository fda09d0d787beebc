"""SECURITY: the sign-in of one server: as it is kept, where other processes renew it too, and as the SDK has it."""

from __future__ import annotations

import logging
import time
from contextlib import AbstractAsyncContextManager
from typing import Any

from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken, ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url
from pydantic import ValidationError

from toolbridge.config.server_config import OAuth
from toolbridge.servers.token_store import Credentials, TokenStore

# A token that ends while a request is on its way would have been refused.
_EARLY_SECONDS = 15.0
_LOGGER = logging.getLogger("toolbridge")


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
        """The access token."""
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
        """Whether its token has ended, or is about to."""
        ends = self._context.token_expiry_time
        return self.token is not None and ends is not None and ends - _EARLY_SECONDS < time.time()

    def exclusive(self) -> AbstractAsyncContextManager[None]:
        """While no other process renews it."""
        return self._store.exclusive(self._server, self._place)

    async def load(self) -> None:
        """Look for it, once."""
        if not self._loaded:
            self._adopt(await self._kept() or Credentials())
            self._loaded = True

    async def adopt_news(self) -> bool:
        """Take over tokens that another process has got meanwhile; whether there are any."""
        kept = await self._kept()
        if kept is None or not kept.tokens or kept.tokens.get("access_token") in (None, self.token, *self._known):
            return False
        self._adopt(kept)
        return self.token is not None

    async def forget(self, refused: OAuthToken | None) -> None:
        """Keep no longer what the authorization server has refused for good; what others stored since then, stays."""
        kept = await self._kept()
        tokens = {} if kept is None else kept.tokens or {}
        if refused is None or tokens.get("refresh_token") in (None, refused.refresh_token):
            await self.save()
        elif kept is not None and tokens.get("access_token") not in self._known:
            self._adopt(kept)

    async def save(self) -> None:
        """Keep what there is now."""
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
        """What is in the store, if it is for this URL: a token is for one resource, whoever else is on the host."""
        kept = await self._store.load(self._server, self._place)
        if kept is None or kept.resource is None or _covers(kept.resource.get("resource"), self._context.server_url):
            return kept
        _LOGGER.warning("The sign-in that was kept for server %r is for another place and is not used", self._server)
        return None

    def _adopt(self, kept: Credentials) -> None:
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
        """The client that was registered by hand, bound to the issuer that it was first used with.

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
    try:
        return check_resource_allowed(resource_url_from_server_url(url), str(resource))
    except ValueError:
        return False
