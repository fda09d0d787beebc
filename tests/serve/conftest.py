"""What tests of serving share."""

from __future__ import annotations

import pytest

from serve.serving import ERAS, Era


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> Era:
    """Both eras of the protocol."""
    return request.param
