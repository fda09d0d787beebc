"""T4: secrets that only one way of searching finds: of a few characters, truncated, or in the values of a result."""

from __future__ import annotations

import base64
import json
import urllib.parse
from collections.abc import Callable

import pytest

from toolbridge.calls.results import unwrap
from toolbridge.trust.sanitise import masked
from toolbridge_codegen.catalog import ServerListing, ToolDefinition, build_catalog

SHORT = "k3y9z!"
KEY = "sk-0123456789abcdef"
QUOTED = 'p"w\\9'


def _base64(secret: str) -> str:
    return base64.b64encode(secret.encode()).decode()


def _within_base64(secret: str) -> str:
    return _base64(f"u:{secret}")


def _json_in_json(secret: str) -> str:
    return json.dumps(json.dumps(secret))


def _hex(secret: str) -> str:
    return secret.encode().hex()


def _url(secret: str) -> str:
    return urllib.parse.quote(secret, safe="")


@pytest.mark.parametrize(
    ("secret", "written"),
    [
        (SHORT, str),
        (SHORT, _base64),
        (SHORT, _within_base64),
        (SHORT, _url),
        (SHORT, _hex),
        (QUOTED, str),
        (QUOTED, json.dumps),
        (QUOTED, _json_in_json),
        (QUOTED, _url),
    ],
)
def test_a_short_secret_is_masked_however_it_is_written(secret: str, written: Callable[[str], str]) -> None:
    text = f"the key {written(secret)} was refused"
    shown = masked(text, frozenset({secret}))
    assert "***" in shown
    assert written(secret).strip('"=') not in shown
    assert shown.startswith("the key ")
    assert shown.endswith(" was refused")


def test_the_first_or_last_two_thirds_of_a_secret_are_masked() -> None:
    key = "sk-live-5fK2q9ZpXw7Lr3TnVb8YcHd1MjGu6SaEo4Ri0PtW"
    for cut in (key[:40], key[8:]):
        assert masked(f"the key {cut}… was refused", frozenset({key})) == "the key ***… was refused"


def test_the_bytes_of_a_secret_are_masked_in_a_result() -> None:
    catalog = build_catalog([ServerListing("s", (ToolDefinition("tool", {"type": "object"}),))])
    spec = catalog.tool("s", "tool")
    assert spec is not None
    buffer = {"type": "Buffer", "data": [*KEY.encode()]}
    found = unwrap({"structuredContent": buffer}, spec, inline_bytes=10_000, secrets=(KEY,))
    assert found.value == {"type": "Buffer", "data": "[***]"}
    assert b"***" in found.encoded
    assert ",".join(map(str, KEY.encode())).encode() not in found.encoded
