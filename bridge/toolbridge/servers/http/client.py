"""HTTP requests to one server: sign-in, safe redirects, retries with backoff, typed errors."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Protocol

import anyio
import httpcore2
import httpx2
from mcp.shared.exceptions import MCPError

from toolbridge.config.secret_values import masked_arguments
from toolbridge.errors import ServerConnectError, ServerDisconnectedError
from toolbridge.servers.failures import BadAnswerError
from toolbridge.servers.http.network import CLOSE_SECONDS, FOR_THE_SERVER, NETWORK_ERRORS, unlogged
from toolbridge.servers.http.ssrf import (
    AddressRefusedError,
    HttpRuleError,
    check_header,
    check_header_value,
    redirected,
)
from toolbridge.trust.sanitise import MAX_GUEST_ERROR, for_error

# Retries: only requests that connect or list are sent again. A call may have taken effect, and is never sent twice.
BUSY_STATUSES = frozenset({429, 502, 503, 504})
_SAFE_METHODS = frozenset(
    {
        "server/discover",
        "initialize",
        "notifications/initialized",
        "ping",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
    }
)
_MOST_ATTEMPTS = 5
_FIRST_DELAY = 0.25
_LONGEST_DELAY = 4.0
# Where nobody has set a deadline.
_LONGEST_WAIT = 60.0
_jitter = random.SystemRandom()


def may_be_repeated(method: str) -> bool:
    """Return whether a request of this JSON-RPC method is idempotent, so that sending it twice is safe."""
    return method in _SAFE_METHODS


def retry_delay(
    method: str, status: int, retry_after: str | None, *, attempts: int, seconds_left: float
) -> float | None:
    """Return the backoff in seconds before a request is sent again; None if it must not be.

    Args:
        method: the JSON-RPC method.
        status: the HTTP status of the answer.
        retry_after: the answer's `Retry-After`.
        attempts: how often the request has been sent.
        seconds_left: until the caller's deadline.
    """
    if not may_be_repeated(method):
        return None
    return busy_delay(status, retry_after, attempts=attempts, seconds_left=seconds_left)


def busy_delay(status: int, retry_after: str | None, *, attempts: int, seconds_left: float) -> float | None:
    """Return the backoff in seconds before asking a busy server again; None if it is not busy or there is no time.

    `Retry-After` takes precedence over exponential backoff with jitter. Does not check whether the request is safe.
    """
    if status not in BUSY_STATUSES or attempts >= _MOST_ATTEMPTS:
        return None
    asked = parse_retry_after(retry_after)
    if asked is None:
        asked = min(_LONGEST_DELAY, _FIRST_DELAY * 2 ** (attempts - 1)) * _jitter.uniform(0.5, 1.5)
    # Waiting past the deadline would turn "the server is busy" into "the server did not answer".
    return asked if asked < min(seconds_left, _LONGEST_WAIT) else None


def parse_retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """Parse a `Retry-After`, in seconds or as a date, into seconds from `now`; None if it is absent or malformed."""
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value[:9]) if len(value) <= 9 else float("inf")
    try:
        then = parsedate_to_datetime(value)
        if then.tzinfo is None:
            then = then.replace(tzinfo=UTC)
        return max(0.0, (then - (now or datetime.now(UTC))).total_seconds())
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


_MOST_REDIRECTS = 5


class SignInSession(Protocol):
    """Holds the tokens for a server; see `oauth.OAuthSession`."""

    async def token(self) -> str | None:
        """The token to send."""
        ...

    async def renew(self, refused: httpx2.Response, used: str | None, *, may_ask: bool) -> bool:
        """Get another token; False if there is none."""
        ...

    def advice(self) -> str:
        """Advice for an error message without a token."""
        ...

    def secrets(self) -> frozenset[str]:
        """Secrets to redact."""
        ...


class HttpClient:
    """Requests to one server."""

    def __init__(
        self,
        server: str,
        url: httpx2.URL,
        headers: Mapping[str, str],
        http: httpx2.AsyncClient,
        *,
        session: SignInSession | None = None,
        unauthorized: str = "",
    ) -> None:
        self.server = server
        self.url = url
        self.is_signed_in = False
        """Whether the last request was sent with a token."""
        self._headers = dict(headers)
        self._http = http
        self._session = session
        self._unauthorized = unauthorized

    @asynccontextmanager
    async def send(
        self,
        method: str,
        headers: Mapping[str, str],
        *,
        content: bytes | None = None,
        url: httpx2.URL | None = None,
        may_sign_in: bool = False,
    ) -> AsyncGenerator[httpx2.Response]:
        """Send a request with the configured headers and token; yields the answer, whose body the caller reads.

        Redirects are followed where nothing could leak. A refusal is repeated once with a refreshed token, or, with
        `may_sign_in`, after a person has signed in. Not bounded in time.

        Raises:
            ServerConnectError: it was not sent, being against a rule; the server can't be reached, or wants a sign-in.
            ServerDisconnectedError: no answer came back, or not all of it.
            BadAnswerError: the answer leads elsewhere.
        """
        try:
            for name, value in headers.items():
                check_header(name, value)
            target = url or self.url
            renewed = False
            for _ in range(_MOST_REDIRECTS + 2):
                token = None if self._session is None else await self._session.token()
                self.is_signed_in = token is not None
                request = self._build(method, target, headers, content, token)
                with unlogged():
                    response = await self._http.send(request, stream=True, auth=None, follow_redirects=False)
                try:
                    if self._session is not None and not renewed and _asks_for_a_sign_in(response):
                        renewed = await self._session.renew(response, token, may_ask=may_sign_in)
                        if renewed:
                            continue
                    if response.status_code == 401:
                        advice = self._unauthorized if self._session is None else self._session.advice()
                        raise ServerConnectError(self.server, f"answered HTTP 401 Unauthorized: {advice}")
                    if (moved := _moved(request, response)) is None:
                        yield response
                        return
                finally:
                    await _close(response)
                target = moved
            raise BadAnswerError("It redirects without end")
        except (HttpRuleError, AddressRefusedError) as error:
            raise ServerConnectError(self.server, f"was not reached: {error}") from None
        except (httpcore2.ConnectError, httpcore2.ConnectTimeout, httpcore2.PoolTimeout, httpcore2.ProxyError) as error:
            (place,) = masked_arguments([str(self.url)])
            words = for_error(_words(error), limit=300)
            raise ServerConnectError(self.server, f"could not be reached at {for_error(place)}: {words}") from None
        except NETWORK_ERRORS as error:
            words = for_error(_words(error), limit=300)
            raise ServerDisconnectedError(
                self.server, f"broke off before it had answered; what was asked of it may have taken effect: {words}"
            ) from None

    def redacted(self, error: MCPError) -> MCPError:
        """Return a server's error with tokens masked in its message; unchanged if it is of a subclass of `MCPError`."""
        secrets, text = self.tokens(), error.error.message
        if not secrets or type(error) is not MCPError:
            return error
        return MCPError(error.error.code, for_error(text, secrets, limit=MAX_GUEST_ERROR), error.error.data)

    def without_tokens(self, data: bytes) -> bytes:
        """Return a server's message with tokens masked."""
        for secret in self.tokens():
            data = data.replace(secret.encode(), b"***")
        return data

    def tokens(self) -> frozenset[str]:
        """Tokens to redact; they change with every sign-in and refresh."""
        return self._session.secrets() if self._session is not None else frozenset()

    def _build(
        self, method: str, url: httpx2.URL, headers: Mapping[str, str], content: bytes | None, token: str | None
    ) -> httpx2.Request:
        """Build, not send, a request marked as meant for this server. Raises `HttpRuleError` for an unusable token."""
        authorization = {} if token is None else {"authorization": f"Bearer {token}"}
        for name, value in authorization.items():
            check_header_value(name, value)
        return self._http.build_request(
            method,
            url,
            headers={**self._headers, **headers, **authorization},
            content=content,
            extensions={FOR_THE_SERVER: True},
        )


def _asks_for_a_sign_in(response: httpx2.Response) -> bool:
    challenge = response.headers.get("www-authenticate", "")
    return response.status_code == 401 or (response.status_code == 403 and "insufficient_scope" in challenge)


def _moved(request: httpx2.Request, response: httpx2.Response) -> httpx2.URL | None:
    """Return a redirect's checked target; None if it is none. Raises `BadAnswerError` if it may not be followed."""
    try:
        return redirected(request, response)
    except HttpRuleError as error:
        raise BadAnswerError(str(error)) from None


async def _close(response: httpx2.Response) -> None:
    """Close a response even if the caller is cancelled: else its connection never returns to the pool."""
    with anyio.move_on_after(CLOSE_SECONDS, shield=True):
        await response.aclose()


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
