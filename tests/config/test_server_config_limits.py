"""Limits: their ranges hold in code as in files."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from toolbridge.config.server_config import RANGES, ServerLimits
from toolbridge.errors import ConfigError


def limits(**values: Any) -> ServerLimits:
    return ServerLimits(**values)


def test_every_limit_has_a_range_that_its_default_is_in() -> None:
    assert [field.name for field in fields(ServerLimits)] == list(RANGES)
    assert ServerLimits() == limits(**{field.name: field.default for field in fields(ServerLimits)})


@pytest.mark.parametrize("name", list(RANGES))
def test_a_limit_can_be_its_least_and_its_most_and_nothing_beyond(name: str) -> None:
    least, most = RANGES[name]
    for value in (least, most):
        assert getattr(limits(**{name: value}), name) == value
    beyond: list[Any] = [least - 1, most + 1, 10**400, -1, float("nan"), float("inf"), True, "5", None]
    for value in beyond:
        with pytest.raises(ConfigError) as caught:
            limits(**{name: value})
        assert caught.value.field == name


@pytest.mark.parametrize("name", [name for name in RANGES if not name.endswith("_seconds")])
def test_a_count_is_a_whole_number(name: str) -> None:
    with pytest.raises(ConfigError, match="a whole number"):
        limits(**{name: 2.5})
