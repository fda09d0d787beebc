"""Whatever goes wrong with a server, as one typed error: what it says stays, what it tells of its insides goes."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import Implementation
from pydantic import ValidationError

from toolbridge.calls.call_errors import call_error
from toolbridge.errors import ToolRefusedError
from toolbridge.servers.failures import call_failure, connect_failure

SECRET = "sk-0123456789abcdef"
TRACE = """Traceback (most recent call last):
  File "/srv/app/server.py", line 7, in handle
    look(place)
ValueError: there is no such place"""


def refusal(message: str, data: Any = None) -> ToolRefusedError:
    error = MCPError(-32000, message, data)
    failure = call_failure("maps", "find", error, seconds=30.0, end="", secrets=[SECRET])
    assert isinstance(failure, ToolRefusedError)
    return failure


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "Invalid params (code"),
        ("the city is missing", "Invalid params: the city is missing (code"),
        (
            {"errors": [{"path": ["city"], "message": "Required"}]},
            '{"errors":[{"path":["city"],"message":"Required"}]}',
        ),
        ({"stack": "at f (/srv/app/index.js:1:2)"}, "Invalid params (code"),
        ({"traceback": TRACE, "hint": "name a city"}, 'Invalid params: {"hint":"name a city"} (code'),
        ([], "Invalid params (code"),
        (7, "Invalid params (code"),
        ("Invalid params", "Invalid params (code"),
        ({1: float("nan")}, "Invalid params (code"),
        ({"token": SECRET}, 'Invalid params: {"token":"***"} (code'),
    ],
)
def test_what_a_server_says_in_the_data_of_an_error_is_told(data: Any, said: str) -> None:
    assert said in str(refusal("Invalid params", data))


def test_a_long_story_in_the_data_of_an_error_is_cut() -> None:
    assert len(str(refusal("Invalid params", "x" * 1_000_000))) < 5_000


@pytest.mark.parametrize("error", [refusal(TRACE), refusal("It failed", TRACE)], ids=["message", "data"])
def test_of_a_stack_trace_the_message_stays(error: ToolRefusedError) -> None:
    for text in (str(error), call_error(error, []).message):
        assert "ValueError: there is no such place" in text
        assert "server.py" not in text
        assert "Traceback" not in text


def test_an_answer_that_is_not_as_the_protocol_has_it_is_told_by_its_fields() -> None:
    with pytest.raises(ValidationError) as raised:
        Implementation.model_validate({"name": ["x" * 1000], "version": 3, "title": 4, "websiteUrl": 5, "icons": 6})
    failure = str(connect_failure("maps", raised.value, end="", secrets=[]))
    assert failure.startswith("Server 'maps' does not speak MCP as expected: name: Input should be a valid string; ")
    assert failure.endswith("; and 2 more")
    assert "xxx" not in failure
    assert "pydantic" not in failure
