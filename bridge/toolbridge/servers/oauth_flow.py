"""SECURITY: drives the SDK's OAuth flow, which makes requests from what a server says (T27).

Left to itself, as httpx would have it, the flow holds a lock during every request, so that calls wait for each other;
it reads whole answers, however long; and it would register this client with a server that nobody has asked to sign in
to. Here it runs only when a token is wanted, and its requests pass our rules and bounds.
"""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any, cast

import anyio
import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, TokenStorage
from mcp.shared.auth import OAuthClientMetadata
from pydantic import AnyUrl

from toolbridge.servers.channel import BadAnswerError
from toolbridge.servers.http_addresses import AddressRefusedError
from toolbridge.servers.http_body import read_body
from toolbridge.servers.http_logs import unlogged
from toolbridge.servers.http_rules import HttpRuleError, origin
from toolbridge.servers.http_transport import NETWORK_ERRORS
from toolbridge.servers.sign_in import SignInFailedError
from toolbridge.trust.sanitise import for_error

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
        """Get tokens as if a request had been refused with this challenge; without one, only renew what there is.

        Raises:
            SignInFailedError: there are none.
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
        """Send a request that the flow makes, and read a bounded answer."""
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
        """Why a run failed, in words that repeat nothing that was sent."""
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
    """The name of an OAuth error, if the body has one: a fixed vocabulary, unlike its description."""
    value: Any = None
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(body)
    name = cast("dict[str, Any]", value).get("error") if isinstance(value, dict) else None
    return f" ({name})" if isinstance(name, str) and _ERROR_NAME.fullmatch(name) else ""
