"""A real authorization server, of the SDK's server side, and an MCP server that it protects: each on its own port."""

from __future__ import annotations

import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from servers.http_servers import reserved_port, uvicorn_server

SCOPES = ["read", "write"]


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Grants whatever is asked for; tokens rotate, and can be taken back."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.lifetime = 3600
        self.asked: list[AuthorizationParams] = []

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        assert client_info.client_id
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        self.asked.append(params)
        code = AuthorizationCode(
            code=secrets.token_urlsafe(16),
            scopes=params.scopes or ["read"],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._issue(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        if self.refresh.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        return self._issue(client.client_id, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.pop(token.token, None)
        self.refresh.pop(token.token, None)

    async def verify_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    def _issue(self, client_id: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = f"access-{secrets.token_urlsafe(16)}", f"refresh-{secrets.token_urlsafe(16)}"
        self.access[access] = AccessToken(token=access, client_id=client_id, scopes=scopes, resource=resource)
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes, resource=resource)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=self.lifetime, scope=" ".join(scopes))


class Recorder:
    """Which paths were asked for; and, for a while, an answer in place of the real one."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.paths: list[str] = []
        self.credentials: list[str] = []
        self.instead: dict[str, Response] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            request = Request(scope, receive)
            self.paths.append(request.url.path)
            self.credentials.append(request.headers.get("authorization", ""))
            if request.url.path in self.instead:
                await self.instead[request.url.path](scope, receive, send)
                return
        await self.app(scope, receive, send)


@dataclass
class ProtectedServer:
    """Both servers, while they run."""

    url: str
    issuer: str
    provider: Provider
    authorization: Recorder
    resource: Recorder
    visited: list[str] = field(default_factory=list[str])

    def sign_in(self, page: str) -> None:
        """What a browser does: follow redirects to the end."""
        self.visited.append(page)
        with urllib.request.urlopen(page, timeout=10) as response:
            response.read()

    def where_it_ends(self, page: str) -> str:
        """The address that a browser ends up at when nobody listens there."""
        self.visited.append(page)
        opener = urllib.request.build_opener(_Stay)
        try:
            with opener.open(page, timeout=10) as response:
                raise AssertionError(response.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.headers["location"]

    def forget_access(self) -> None:
        """Take all access tokens back."""
        self.provider.access.clear()


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        return None


@contextmanager
def protected_server(*, registration: bool = True) -> Generator[ProtectedServer]:
    """An MCP server with one tool, and the authorization server that it names."""
    provider = Provider()
    places = [reserved_port() for _ in range(2)]
    issuer, resource = (f"http://127.0.0.1:{place.getsockname()[1]}" for place in places)
    options = ClientRegistrationOptions(enabled=registration, valid_scopes=SCOPES, default_scopes=["read"])
    routes = create_auth_routes(provider, AnyHttpUrl(issuer), client_registration_options=options)
    settings = AuthSettings(
        issuer_url=AnyHttpUrl(issuer),
        resource_server_url=AnyHttpUrl(f"{resource}/mcp"),
        required_scopes=["read"],
        validate_token_resource=True,
    )
    server = MCPServer("weather", token_verifier=provider, auth=settings)

    @server.tool()
    def forecast(city: str) -> str:
        return f"Sunny in {city}"

    authorization, protected = Recorder(Starlette(routes=routes)), Recorder(server.streamable_http_app())
    with uvicorn_server(authorization, places[0]), uvicorn_server(protected, places[1]):
        yield ProtectedServer(f"{resource}/mcp", issuer, provider, authorization, protected)


def json_answer(value: object, status: int = 200) -> Response:
    return JSONResponse(value, status_code=status)
