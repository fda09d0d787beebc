"""SECURITY: the tokens for one server: kept, renewed, and asked for where a person can sign in (T4)."""

from __future__ import annotations

import time

import httpx2
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, ValidationError

from toolbridge.config.server_config import OAuth
from toolbridge.errors import ServerConnectError
from toolbridge.servers.http_rules import origin
from toolbridge.servers.oauth_flow import OAuthFlow
from toolbridge.servers.pausable_deadline import waiting_for_a_person
from toolbridge.servers.sign_in import SIGN_IN_COMMAND, SignIn, SignInAttempt, SignInFailedError
from toolbridge.servers.sign_in_turns import SignInTurns
from toolbridge.servers.token_store import Credentials, TokenStore

# A token that ends while a request is on its way would have been refused.
_EARLY_SECONDS = 15.0
_LONG_AGO = 1.0


class OAuthSession:
    """The sign-in of one channel."""

    def __init__(
        self,
        server: str,
        url: httpx2.URL,
        http: httpx2.AsyncClient,
        *,
        options: OAuth | None,
        client_secret: str | None,
        store: TokenStore,
        sign_in: SignIn | None,
    ) -> None:
        self._server = server
        self._origin = origin(url)
        self._options = options or OAuth()
        self._client_secret = client_secret
        self._store = store
        self._sign_in = sign_in
        self._flow = OAuthFlow(url, http, _Storage(self))
        self._context = self._flow.context
        self._turns = SignInTurns()
        self._loaded = False
        self._asked_in_vain = False
        self._problem = ""
        self._page = ""

    def __repr__(self) -> str:
        """Without a value."""
        return f"OAuthSession(server={self._server!r})"

    def secrets(self) -> frozenset[str]:
        """What must not be shown, should a server repeat it."""
        tokens, client = self._context.current_tokens, self._context.client_info
        found = [self._client_secret, client.client_secret if client else None]
        if tokens is not None:
            found += [tokens.access_token, tokens.refresh_token]
        return frozenset(each for each in found if each)

    def advice(self) -> str:
        """What helps when a request was refused for want of a sign-in."""
        if self._problem:
            return f"the sign-in could not be renewed ({self._problem}): run `{SIGN_IN_COMMAND} {self._server}`"
        return f"it wants a sign-in: run `{SIGN_IN_COMMAND} {self._server}`"

    async def token(self) -> str | None:
        """The token to send; None as long as nobody has signed in."""
        if not self._loaded or (self._ends_soon() and self._context.can_refresh_token()):
            async with self._turns.taking():
                await self._load()
                if self._ends_soon() and self._context.can_refresh_token():
                    await self._refresh()
        return self._current()

    async def renew(self, refused: httpx2.Response, used: str | None, *, may_ask: bool) -> bool:
        """Get another token after a request was refused; whether there is one.

        Args:
            refused: the answer, of which only the status and the challenge are looked at.
            used: the token that was sent.
            may_ask: whether the request is one for which a person may be asked to sign in.

        Raises:
            ServerConnectError: a person was asked, in vain.
        """
        async with self._turns.taking():
            if await self._renewed_by_another(used):
                return True
            wants_more_rights = refused.status_code == 403
            if not wants_more_rights and self._context.can_refresh_token() and await self._refresh():
                return True
            # Asking again and again would teach people to click it away.
            if self._sign_in is None or not may_ask or self._asked_in_vain:
                return False
            if wants_more_rights and self._options.scopes:
                return False  # the configuration says how far its rights go
            try:
                await self._ask_a_person(self._sign_in, refused)
            except SignInFailedError as error:
                self._asked_in_vain = True
                raise ServerConnectError(self._server, f"could not be signed in to: {error}") from None
            return True

    # ---- what is kept

    async def _load(self) -> None:
        if not self._loaded:
            self._adopt(await self._store.load(self._server, self._origin) or Credentials())
            self._loaded = True

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
        if self._options.client_id is not None:
            context.client_info = self._configured_client(self._options.client_id, context.client_info)

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

    async def save(self) -> None:
        """Keep what there is now."""
        context = self._context
        tokens, client = context.current_tokens, context.client_info
        metadata, resource = context.oauth_metadata, context.protected_resource_metadata
        if client is not None and client.client_id == self._options.client_id:
            # Its secret was given as a reference, and stays one.
            issuer = client.issuer or (str(metadata.issuer) if metadata else None)
            client = client.model_copy(update={"client_secret": None, "issuer": issuer})
        kept = Credentials(
            tokens=tokens.model_dump(mode="json", exclude_none=True) if tokens else None,
            expires_at=context.token_expiry_time,
            client=client.model_dump(mode="json", exclude_none=True) if client else None,
            authorization_server=metadata.model_dump(mode="json", exclude_none=True) if metadata else None,
            resource=resource.model_dump(mode="json", exclude_none=True) if resource else None,
        )
        await self._store.save(self._server, self._origin, kept)

    def _current(self) -> str | None:
        tokens = self._context.current_tokens
        return tokens.access_token if tokens is not None else None

    def _ends_soon(self) -> bool:
        ends = self._context.token_expiry_time
        return self._context.current_tokens is not None and ends is not None and ends - _EARLY_SECONDS < time.time()

    async def _renewed_by_another(self, used: str | None) -> bool:
        """Whether another request, or another process, has got a token meanwhile."""
        if self._current() not in (None, used):
            return True
        kept = await self._store.load(self._server, self._origin)
        if kept is None or not kept.tokens or kept.tokens.get("access_token") in (None, used):
            return False
        self._adopt(kept)
        return self._current() is not None and not self._ends_soon()

    # ---- getting tokens

    async def _refresh(self) -> bool:
        """Renew the tokens without a person; whether that worked."""
        context = self._context
        before = context.current_tokens
        context.token_expiry_time = _LONG_AGO  # it was refused, whatever it says
        try:
            await self._flow.run(None)
            self._problem = self._flow.refusal
        except SignInFailedError as error:
            self._problem = str(error)
        if self._problem and not self._flow.refused_for_good:
            # The authorization server may be back later, and still know these.
            context.current_tokens, context.token_expiry_time = before, _LONG_AGO
            return False
        if self._current() is None:
            await self.save()
        return self._current() is not None

    async def _ask_a_person(self, sign_in: SignIn, refused: httpx2.Response) -> None:
        context = self._context
        if refused.status_code == 401:
            context.clear_tokens()
        client = context.client_info
        known = client.redirect_uris[0] if client is not None and client.redirect_uris else None
        fixed = self._options.redirect_port
        port = fixed or (known.port if known is not None else None)
        async with sign_in.attempt(self._server, port=port, fixed=fixed is not None) as attempt:
            context.client_metadata.redirect_uris = [AnyUrl(attempt.redirect_uri)]
            if known is not None and str(known) != attempt.redirect_uri:
                context.client_info = None  # registered for another address: register anew
            context.redirect_handler = self._remember_page
            context.callback_handler = lambda: self._answer_of_a_person(attempt)
            with self._turns.asking():
                await self._flow.run(self._challenge(refused))
        self._problem = ""
        if self._current() is None:
            raise SignInFailedError(self._flow.refusal or "the authorization server gave no token")

    def _challenge(self, refused: httpx2.Response) -> httpx2.Response:
        """The answer that begins a sign-in, asking for the scopes that the configuration asks for."""
        given = refused.headers.get("www-authenticate", "Bearer")
        if self._options.scopes:
            scheme, _, rest = given.partition(" ")
            given = f'{scheme} scope="{" ".join(self._options.scopes)}", {rest}'  # the first one counts
        return httpx2.Response(refused.status_code, headers={"www-authenticate": given})

    async def _remember_page(self, url: str) -> None:
        self._page = url

    async def _answer_of_a_person(self, attempt: SignInAttempt) -> AuthorizationCodeResult:
        client, metadata = self._context.client_info, self._context.oauth_metadata
        methods = metadata.token_endpoint_auth_methods_supported if metadata else None
        if client is not None and client.client_secret and methods and client.token_endpoint_auth_method not in methods:
            # Said by hand, the client can do either; the authorization server says which it takes.
            client.token_endpoint_auth_method = "client_secret_post"  # noqa: S105
        with waiting_for_a_person():
            answer = await attempt.authorize(self._page)
        return AuthorizationCodeResult(code=answer.code, state=answer.state, iss=answer.issuer)


class _Storage:
    """What the SDK's provider sees of the store."""

    def __init__(self, session: OAuthSession) -> None:
        self._session = session

    async def get_tokens(self) -> OAuthToken | None:
        return self._session._context.current_tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._session._context.current_tokens = tokens
        await self._session.save()

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._session._context.client_info

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._session._context.client_info = client_info
        await self._session.save()
