"""A variable that is not set and may be empty: said once, where somebody looks who wonders why nothing works."""

from __future__ import annotations

import logging

import pytest

from servers.fault_servers import fault_server, manager_of

pytestmark = pytest.mark.anyio


async def test_a_variable_that_is_left_empty_is_logged_once_and_among_the_problems(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = fault_server("weather", "fine", env={"KEY": "${NEVER_SET_ANYWHERE}"}, unset_env="empty")
    words = "the variable 'NEVER_SET_ANYWHERE' is not set"
    with caplog.at_level(logging.WARNING, "toolbridge"):
        async with manager_of([server], environ={"PATH": "/usr/bin:/bin"}) as manager:
            await manager.connect("weather")
            assert [problem for problem in manager.status("weather").problems if words in problem] != []
            await manager.close_server("weather")
            await manager.connect("weather")
    assert len([message for message in caplog.messages if words in message]) == 1
