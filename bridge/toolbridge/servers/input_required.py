"""The newer protocol's way for a server to ask during a call: it answers with questions, and is called again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import mcp_types as types
from mcp.client._input_required import InputRequiredRoundsExceededError, run_input_required_driver

MOST_QUESTIONS = 16
"""In one answer: they are asked at the same time."""

Ask = Callable[[str, types.InputRequest], Awaitable[types.InputResponse | types.ErrorData]]
Send = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


async def answer_questions(first: dict[str, Any], params: dict[str, Any], *, ask: Ask, send: Send) -> dict[str, Any]:
    """Answer a server's questions until its call has a result.

    Raises:
        MCPError: a question was refused, or the server refused.
        ValueError: it kept asking, or its questions are none.
    """

    async def again(
        responses: types.InputResponses | None, state: str | None
    ) -> dict[str, Any] | types.InputRequiredResult:
        retry = types.CallToolRequestParams(
            name=params["name"], arguments=dict(params["arguments"]), input_responses=responses, request_state=state
        )
        result = await send(retry.model_dump(by_alias=True, mode="json", exclude_none=True))
        return _questions(result) if result.get("resultType") == "input_required" else result

    try:
        return await run_input_required_driver(_questions(first), dispatch=ask, retry=again)
    except InputRequiredRoundsExceededError:
        raise ValueError("it kept asking for input") from None


def _questions(result: dict[str, Any]) -> types.InputRequiredResult:
    asked: object = result.get("inputRequests")
    if isinstance(asked, dict) and len(cast("dict[str, Any]", asked)) > MOST_QUESTIONS:
        raise ValueError(f"it asked more than {MOST_QUESTIONS} questions at once")
    return types.InputRequiredResult.model_validate(result)
