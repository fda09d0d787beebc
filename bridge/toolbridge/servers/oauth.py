"""SECURITY: the tokens for one server: kept, renewed, and asked for where a person can sign in (T4)."""

from __future__ import annotations

import anyio.abc
import httpx2
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl

from toolbridge.advice import advised
from toolbridge.config.server_config import OAuth
from toolbridge.errors import ServerConnectError
from toolbridge.servers.oauth_flow import OAuthFlow
from toolbridge.servers.oauth_kept import KeptSignIn
from toolbridge.servers.oauth_renewal import Renewals
from toolbridge.servers.pausable_deadline import waiting_for_a_person
from toolbridge.servers.sign_in import SignIn, SignInAttempt, SignInFailedError
from toolbridge.servers.sign_in_turns import SignInTurns
from toolbridge.servers.token_store import TokenStore


class OAuthSession:
    """The sign-in of one channel."""

    def __init__(
        self,
        server: str,
        place: str,
        url: httpx2.URL,
        http: httpx2.AsyncClient,
        *,
        options: OAuth | None,
        client_secret: str | None,
        store: TokenStore,
        sign_in: SignIn | None,
        tasks: anyio.abc.TaskGroup,
    ) -> None:
        self._server = server
        self._options = options or OAuth()
        self._client_secret = client_secret
        self._sign_in = sign_in
        self._flow = OAuthFlow(url, http, _Storage(self))
        self._context = self._flow.context
        self.kept = KeptSignIn(
            server,
            place,
            self._context,
            store=store,
            options=self._options,
            client_secret=client_secret,
        )
        self._turns = SignInTurns()
        self._renewals = Renewals(self._flow, self.kept, tasks)
        self._asked_in_vain = False
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
        if self._renewals.problem:
            return (
                f"the sign-in could not be renewed ({self._renewals.problem}): run {advised(f'sign-in {self._server}')}"
            )
        return f"it wants a sign-in: run {advised(f'sign-in {self._server}')}"

    async def token(self) -> str | None:
        """The token to send; None as long as nobody has signed in."""
        kept = self.kept
        if not kept.is_loaded or kept.must_be_renewed:
            async with self._turns.taking():
                await self._renewals.settled()
                await kept.load()
                if kept.must_be_renewed:
                    await self._renewals.renew()
        return kept.token

    def close(self) -> None:
        """The channel closes. A renewal that is under way is not given up at once."""
        self._renewals.hurry()

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
            await self._renewals.settled()
            if self.kept.token not in (None, used) or (await self.kept.adopt_news() and not self.kept.ends_soon):
                return True  # by another request, or another process
            wants_more_rights = refused.status_code == 403
            if not wants_more_rights and self._context.can_refresh_token() and await self._renewals.renew():
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

    # ---- asking a person

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
        self._renewals.problem = ""
        if self.kept.token is None:
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
        await self._session.kept.save()

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._session._context.client_info

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._session._context.client_info = client_info
        await self._session.kept.save()
