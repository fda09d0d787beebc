"""SECURITY: the SDK's callbacks for the handlers that a host supplied. What a handler raises never reaches a server."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp.client.session import ClientRequestContext

from toolbridge.foreign_cancellation import is_foreign
from toolbridge.servers.server_requests import ElicitationRequest, ServerRequests
from toolbridge.trust.sanitise import for_error

_log = logging.getLogger("toolbridge")


def session_callbacks(requests: ServerRequests, server: str) -> dict[str, Any]:
    """For the handlers there are; what has none is not announced to the server."""
    callbacks: dict[str, Any] = {}
    if requests.elicit is not None:
        callbacks["elicitation_callback"] = _elicitation(server, requests.elicit)
    if requests.sample is not None:
        callbacks["sampling_callback"] = _sampling(server, requests.sample)
    if requests.list_roots is not None:
        callbacks["list_roots_callback"] = _list_roots(server, requests)
    return callbacks


def _elicitation(server: str, elicit: Callable[..., Awaitable[Any]]) -> Any:
    async def callback(
        context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        del context
        raw = params.model_dump(by_alias=True, mode="json", exclude_none=True)
        request = ElicitationRequest(server, raw.get("message", ""), raw.get("requestedSchema"), raw.get("url"))
        try:
            answer = await elicit(request)
            content = None if answer.content is None else dict(answer.content)
            return types.ElicitResult.model_validate({"action": answer.action, "content": content})
        except BaseException as error:
            if not isinstance(error, Exception) and not is_foreign(error):
                raise
            return _handler_failed(server, "elicitation", error)

    return callback


def _sampling(server: str, sample: Callable[..., Awaitable[Any]]) -> Any:
    async def callback(
        context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        del context
        try:
            answer = await sample(server, params.model_dump(by_alias=True, mode="json", exclude_none=True))
            return types.CreateMessageResult.model_validate(dict(answer))
        except BaseException as error:
            if not isinstance(error, Exception) and not is_foreign(error):
                raise
            return _handler_failed(server, "sampling", error)

    return callback


def _list_roots(server: str, requests: ServerRequests) -> Any:
    async def callback(context: ClientRequestContext) -> types.ListRootsResult | types.ErrorData:
        del context
        try:
            assert requests.list_roots is not None
            roots = tuple(await requests.list_roots(server))
            requests.listed_roots[server] = roots
            return types.ListRootsResult.model_validate({"roots": [{"uri": uri} for uri in roots]})
        except BaseException as error:
            if not isinstance(error, Exception) and not is_foreign(error):
                raise
            return _handler_failed(server, "roots", error)

    return callback


def _handler_failed(server: str, what: str, error: BaseException) -> types.ErrorData:
    """The server learns that it failed, and nothing of the host."""
    _log.warning("The %s handler failed for server %r: %s", what, server, for_error(repr(error)))
    return types.ErrorData(code=types.INTERNAL_ERROR, message=f"The host's {what} handler failed")
