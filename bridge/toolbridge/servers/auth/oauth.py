"""SECURITY: OAuth for one server: token refresh under a lock, and sign-in where a person can be asked (T4)."""

from __future__ import annotations

import contextlib
import json
import logging
import re
from typing import Any, cast

import anyio
import anyio.abc
import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, TokenStorage
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from toolbridge.config.server_config import OAuth
from toolbridge.errors import ServerConnectError, advised
from toolbridge.servers.auth.sign_in import SignIn, SignInAttempt, SignInFailedError, SignInLock
from toolbridge.servers.auth.tokens import KeptSignIn, TokenStore
from toolbridge.servers.connection import waiting_for_a_person
from toolbridge.servers.failures import BadAnswerError
from toolbridge.servers.http.network import NETWORK_ERRORS, read_body, unlogged
from toolbridge.servers.http.ssrf import AddressRefusedError, HttpRuleError, origin
from toolbridge.trust.sanitise import for_error

# SECURITY: drives the SDK's OAuth flow, which makes requests from what a server says (T27).
#
# Left to itself, as httpx would have it, the flow holds a lock during every request, so that calls wait for each
# other; it reads whole answers, however long; and it would register this client with a server that nobody has asked
# to sign in to. Here it runs only when a token is wanted, and its requests pass our rules and bounds.


_MOST_BYTES = 256 * 1024
_EXCHANGE_SECONDS = 30.0
_KEPT_HEADERS = frozenset({"content-type", "location", "www-authenticate"})
_ERROR_NAME = re.compile(r"[a-z_]{1,64}")


class OAuthFlow:
    """The SDK's provider for one server, and what became of its last run."""

    def __init__(self, url: httpx2.URL, http: httpx2.AsyncClient, storage: TokenStorage) -> None:
        self.refusal = ""
        """What an authorization server answered with, if it was an error."""
        self.refused_for_good = False
        """Whether asking the same again would be answered the same."""
        self._url = url
        self._http = http
        metadata = OAuthClientMetadata(
            redirect_uris=[AnyUrl("http://127.0.0.1/callback")],  # replaced once somebody listens
            client_name="toolbridge",
            token_endpoint_auth_method="none",  # noqa: S106  # a public client: its secret would be everybody's
        )
        self._provider = OAuthClientProvider(str(url), metadata, storage)
        self.context = self._provider.context

    async def run(self, challenge: httpx2.Response | None) -> None:
        """Get tokens as if a request had been refused with this challenge; without one, only refresh what there is.

        Sends requests to authorization servers; the SDK's context receives the tokens. Sets `refusal` if one refuses.

        Raises:
            SignInFailedError: the flow failed; its text repeats nothing that was sent.
        """
        self.refusal, self.refused_for_good = "", False
        request = httpx2.Request("POST", self._url, headers={"mcp-protocol-version": "2025-11-25"})
        with unlogged():
            flow = self._provider.async_auth_flow(request)
            try:
                outgoing = await anext(flow)
                while True:
                    if outgoing is not request:
                        answer = await self._exchange(outgoing)
                    elif challenge is not None:
                        # What the flow would learn by sending the request is known already.
                        answer, challenge = challenge, None
                    else:
                        return
                    outgoing = await flow.asend(answer)
            except StopAsyncIteration:
                return
            except Exception as error:
                raise SignInFailedError(self._words(error)) from None
            finally:
                await flow.aclose()

    async def _exchange(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request that the flow makes, within 30 s, and read a bounded answer; an HTTP error sets `refusal`."""
        with anyio.fail_after(_EXCHANGE_SECONDS):
            response = await self._http.send(request, stream=True, auth=None, follow_redirects=False)
            try:
                body = await read_body(response, _MOST_BYTES)
            finally:
                with anyio.CancelScope(shield=True):
                    await response.aclose()
        if response.status_code >= 400:
            self.refusal = f"{origin(request.url)} answered HTTP {response.status_code}{_error_name(body)}"
            self.refused_for_good = response.status_code in (400, 401, 403)
        copied = httpx2.Response(
            response.status_code,
            headers={name: value for name, value in response.headers.items() if name in _KEPT_HEADERS},
            content=body,
            request=request,
        )
        copied.next_request = response.next_request
        return copied

    def _words(self, error: Exception) -> str:
        """Describe why a run failed, in words that repeat nothing that was sent."""
        if isinstance(error, SignInFailedError):
            words = str(error)
        elif isinstance(error, (HttpRuleError, AddressRefusedError)):
            words = f"a place that it names is not asked: {error}"
        elif isinstance(error, NETWORK_ERRORS):
            words = "the authorization server can't be reached, broke off, or did not answer in time"
        elif isinstance(error, BadAnswerError):
            words = f"the authorization server answered badly: {error}"
        elif type(error) is OAuthFlowError and "State" not in str(error):
            words = for_error(str(error), limit=300)
        else:
            # The SDK's other errors quote whole answers, which may repeat a code or a secret.
            words = self.refusal or f"the authorization server answered badly ({type(error).__name__})"
        return words


def _error_name(body: bytes) -> str:
    """Return the OAuth error code in a JSON body as " (code)", or "": a fixed vocabulary, unlike its description."""
    value: Any = None
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(body)
    name = cast("dict[str, Any]", value).get("error") if isinstance(value, dict) else None
    return f" ({name})" if isinstance(name, str) and _ERROR_NAME.fullmatch(name) else ""


# Token refresh, once for all that wait for it. Many refresh tokens are valid once: a cancellation between request and
# answer, or a second process, would lose the sign-in. So a refresh is a task of the session, and holds a refresh lock.


_LONG_AGO = 1.0
# When the channel is closed: an authorization server that answers at all does so in this time.
_LAST_SECONDS = 5.0
_LOGGER = logging.getLogger("toolbridge")


class Renewals:
    """The token refreshes of one session, one at a time."""

    def __init__(self, flow: OAuthFlow, kept: KeptSignIn, tasks: anyio.abc.TaskGroup) -> None:
        self.problem = ""
        """Why the last one failed."""
        self._flow = flow
        self._kept = kept
        self._tasks = tasks
        self._over: anyio.Event | None = None
        self._scope = anyio.CancelScope()

    async def settled(self) -> None:
        """Wait for the refresh under way, if a cancelled task left one; never raises its failure."""
        if self._over is not None:
            await self._over.wait()

    async def renew(self) -> bool:
        """Refresh the tokens in a task of the session, and wait; false if it failed. Cancelling ends only the wait."""
        over, scope = anyio.Event(), anyio.CancelScope(shield=True)
        self._tasks.start_soon(self._run, scope, over)
        self._over, self._scope = over, scope
        await over.wait()
        return not self.problem and self._kept.token is not None

    def hurry(self) -> None:
        """Give a refresh under way at most five more seconds, since the channel closes. Does not wait."""
        self._scope.deadline = anyio.current_time() + _LAST_SECONDS

    async def _run(self, scope: anyio.CancelScope, over: anyio.Event) -> None:
        """Refresh under the lock between processes, unless another one just did; failures end up in `problem`."""
        try:
            with scope:
                async with self._kept.exclusive():
                    self.problem = ""
                    if not await self._kept.adopt_news() or self._kept.ends_soon:
                        await self._exchange()
            if scope.cancelled_caught:
                self.problem = "the connection was closed meanwhile"
        except Exception as error:
            self.problem = "it failed"
            _LOGGER.warning("A sign-in was not renewed (%s)", type(error).__name__)
        finally:
            self._over = None
            over.set()

    async def _exchange(self) -> None:
        """Use the refresh token; a failure sets `problem`. Tokens refused for good are deleted, else kept."""
        context = self._flow.context
        before = context.current_tokens
        if not context.can_refresh_token():
            self.problem = "there is no refresh token"
            return
        context.token_expiry_time = _LONG_AGO  # it was refused, whatever it says
        try:
            await self._flow.run(None)
            self.problem = self._flow.refusal
        except SignInFailedError as error:
            self.problem = str(error)
        if self._flow.refused_for_good:
            await self._kept.forget(before)
            if self._kept.token is not None:
                self.problem = ""
        elif self.problem or self._kept.token is None:
            # The authorization server may be back later, and still know these.
            self.problem = self.problem or "the authorization server answered badly"
            context.current_tokens, context.token_expiry_time = before, _LONG_AGO


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
        self._lock = SignInLock()
        self._renewals = Renewals(self._flow, self.kept, tasks)
        self._asked_in_vain = False
        self._page = ""

    def __repr__(self) -> str:
        """Without a value."""
        return f"OAuthSession(server={self._server!r})"

    def secrets(self) -> frozenset[str]:
        """Return the tokens and client secrets to redact, should a server repeat them."""
        tokens, client = self._context.current_tokens, self._context.client_info
        found = [self._client_secret, client.client_secret if client else None]
        if tokens is not None:
            found += [tokens.access_token, tokens.refresh_token]
        return frozenset(each for each in found if each)

    def advice(self) -> str:
        """Return what helps when a request was refused for want of a sign-in: the command to run."""
        if self._renewals.problem:
            return (
                f"the sign-in could not be renewed ({self._renewals.problem}): run {advised(f'sign-in {self._server}')}"
            )
        return f"it wants a sign-in: run {advised(f'sign-in {self._server}')}"

    async def token(self) -> str | None:
        """Return the token to send, loaded and refreshed as needed, which may wait; None if nobody has signed in."""
        kept = self.kept
        if not kept.is_loaded or kept.must_be_renewed:
            async with self._lock.held():
                await self._renewals.settled()
                await kept.load()
                if kept.must_be_renewed:
                    await self._renewals.renew()
        return kept.token

    def close(self) -> None:
        """Bound the time of a refresh under way, since the channel closes. Does not wait for it."""
        self._renewals.hurry()

    async def renew(self, refused: httpx2.Response, used: str | None, *, may_ask: bool) -> bool:
        """Get another token after a refusal: stored by others, refreshed, or by asking a person. False if none.

        Args:
            refused: the answer, of which only the status and the challenge are looked at.
            used: the token that was sent.
            may_ask: whether the request is one for which a person may be asked to sign in; asked in vain, never again.

        Raises:
            ServerConnectError: a person was asked, in vain.
        """
        async with self._lock.held():
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
        """Have a person sign in, and wait. Drops refused tokens, and the registration if its redirect address changed.

        Raises:
            SignInFailedError: there is no token in the end.
        """
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
            with self._lock.asking():
                await self._flow.run(self._challenge(refused))
        self._renewals.problem = ""
        if self.kept.token is None:
            raise SignInFailedError(self._flow.refusal or "the authorization server gave no token")

    def _challenge(self, refused: httpx2.Response) -> httpx2.Response:
        """Build the answer that begins a sign-in: the refusal's challenge, with the configured scopes first."""
        given = refused.headers.get("www-authenticate", "Bearer")
        if self._options.scopes:
            scheme, _, rest = given.partition(" ")
            given = f'{scheme} scope="{" ".join(self._options.scopes)}", {rest}'  # the first one counts
        return httpx2.Response(refused.status_code, headers={"www-authenticate": given})

    async def _remember_page(self, url: str) -> None:
        self._page = url

    async def _answer_of_a_person(self, attempt: SignInAttempt) -> AuthorizationCodeResult:
        """Await the person's sign-in with enclosing deadlines paused, and return its code."""
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
