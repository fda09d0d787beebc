"""Arguments in events: masked, cut, inert."""

from __future__ import annotations

import base64
import json
import urllib.parse
from typing import Any

import pytest

from cases import each
from toolbridge.events import MOST_CHARACTERS, shown

SECRET = "hunter2-of-the-north"


def test_arguments_are_json_on_one_line() -> None:
    assert shown({"location": "Århus", "days": 3}) == '{"location":"Århus","days":3}'


@pytest.mark.parametrize("form", [SECRET, base64.b64encode(f"user:{SECRET}".encode()).decode(), SECRET.encode().hex()])
@pytest.mark.parametrize("before", [0, 150, 170, 185, 195])
def test_a_secret_is_masked_wherever_the_cut_falls(form: str, before: int) -> None:
    text = shown({"q": "x" * before + form + "y" * 500}, [SECRET])
    assert len(text) <= MOST_CHARACTERS
    assert form[8:14] not in text
    assert "***" in text or before > 180


@each("secret", ["k" * 900 + "ey", "\U0001f600" * 100 + "smile"])
@each("times", range(1, 30))
def test_not_even_a_part_of_a_long_secret_is_shown(secret: str, times: int) -> None:
    for text in (secret, json.dumps(secret)[1:-1], urllib.parse.quote(secret)):
        part = text[:24]
        assert part not in shown({"q": text * times}, [secret])


def test_what_a_terminal_would_obey_is_written_out() -> None:
    text = shown({"q": "\x1b[2J\u202e\x7f", "lone": "\ud800"})
    assert text.isprintable()
    assert "\x1b" not in text


def deep() -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(200_000):
        value = {"a": value}
    return value


def cyclic() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


@pytest.mark.parametrize("make", [deep, cyclic, lambda: {("a",): 1}])
def test_what_has_no_json_form_says_so(make: Any) -> None:
    assert shown(make()) == "(no JSON form)"


def test_bytes_are_shown_by_their_type() -> None:
    assert shown({"file": b"\x89PNG"}) == '{"file":"<bytes>"}'
