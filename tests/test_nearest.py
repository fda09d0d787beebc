"""The known name that a misspelt one stands for."""

from __future__ import annotations

import time

import pytest

from toolbridge.errors import nearest

KNOWN = ("get_forecast", "get-alerts", "location", "command")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("get_forcast", "get_forecast"),
        ("getForecast", "get_forecast"),
        ("GET_ALERTS", "get-alerts"),
        ("comand", "command"),
        ("loc", "location"),
        ("lo", None),
        ("", None),
        ("weather", None),
    ],
)
def test_the_nearest_name_is_found_whatever_its_case_and_hyphens(name: str, meant: str | None) -> None:
    assert nearest(name, KNOWN) == meant
    assert nearest(name, ()) is None


def test_hostile_names_take_bounded_time() -> None:
    names = ("ab" * 5_000 + f"{number:05}" for number in range(1_000_000))
    begun = time.monotonic()
    assert nearest("ab" * 1_000_000, names) is not None
    assert time.monotonic() - begun < 10
