"""T35: a merged configuration that is printed has references in it, and never a value."""

from __future__ import annotations

import json

import pytest

from toolbridge import Config, ServerConfig
from toolbridge.sources.merge import shown_config

SECRET = "correct-horse-battery"


@pytest.mark.parametrize(
    "value",
    [SECRET, f"Bearer {SECRET}", f"${{HOST}}{SECRET}", f"{SECRET}${{env:HOST}}", f"$${{{SECRET}", f"${{{SECRET}"],
)
def test_a_value_that_was_written_out_is_masked(value: str) -> None:
    servers = [
        ServerConfig.stdio("one", "x", env={"TOKEN": value}),
        ServerConfig.http("two", f"https://x.test/mcp?key={SECRET}", headers={"Authorization": value}),
    ]
    assert SECRET not in json.dumps(shown_config(Config.of(*servers)))
