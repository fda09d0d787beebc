"""Python programs call every tool of third-party servers. Skipped without a package registry."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.real_servers import PATIENT, REAL_SERVERS, Failure
from runtime.worlds import runtime_of
from toolbridge import Config, Limits

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("name", list(REAL_SERVERS))
async def test_every_tool_of_a_real_server_is_called_from_python(name: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    real = REAL_SERVERS[name](tmp_path / "data")
    config = Config.of(real.config, limits=PATIENT)
    async with runtime_of(tmp_path, config=config, pins="none", limits=Limits(wall_seconds=60.0)) as runtime:
        await runtime.start_all()
        module = runtime.catalog.module(f"host:mcp-{name}")
        assert module is not None
        async with runtime.session("python") as session:
            for use in real.uses:
                result = await session.run(f"from {module.python_module} import {use.tool}\n{use.tool}({use.input!r})")
                if isinstance(use, Failure):
                    assert result.failure is not None, (use, result.value)
                    assert result.failure.message.startswith("ToolFailedError: "), use
                    assert use.words in result.failure.message, (use, str(result.failure))
                else:
                    assert result.failure is None, (use, str(result.failure))
                    assert use.is_right(result.value), (use, result.value)
                    assert [call.outcome for call in result.calls] == ["ok"]
