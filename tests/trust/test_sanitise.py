"""Text from servers in errors: secrets redacted, inert, bounded, and the message still there."""

from __future__ import annotations

import base64
import json
import tempfile
import urllib.parse
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from codegen.stub_syntax import hidden_characters, is_hidden
from growth import is_at_most
from toolbridge.trust.sanitise import (
    for_error,
    for_guest_error,
    for_terminal,
    masked,
    masked_bytes,
)

SECRET = 'hunter2/+ "é'
FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "hostile" / "texts"
ERRORS: list[dict[str, Any]] = json.loads((FIXTURES / "server_errors.json").read_text("utf-8"))["cases"]
KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END PRIVATE KEY-----"


@settings(max_examples=100, derandomize=True, deadline=None)
@given(
    # What can't be seen at the end of a secret may stay beside the mask.
    secret=st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=8, max_size=40),
    before=st.binary(max_size=5),
)
def test_any_secret_is_masked_at_any_alignment_of_base64(secret: str, before: bytes) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        encoded = encode(before + secret.encode() + b"tail").decode()
        assert "***" in masked(encoded, [secret])
    for echoed in (secret, json.dumps(secret), urllib.parse.quote(secret), secret.encode().hex()):
        assert masked(echoed, [secret]).strip('"') == "***"


def test_a_secret_in_binary_data_is_written_over_and_all_else_stays() -> None:
    for encode in ("utf-8", "utf-16-le", "utf-16-be"):
        planted = SECRET.encode(encode)
        data = b"\xff\xd8" + planted + b"\0tail"
        assert masked_bytes(data, [SECRET]) == b"\xff\xd8" + b"*" * len(planted) + b"\0tail"
    assert masked_bytes(b"\xff abcd", ["abcd"]) == b"\xff abcd"


def test_one_line_of_a_key_of_many_is_masked() -> None:
    assert "AQEF" not in masked("bad key near AQEFAASCBKcwggSjAgEAAoIB", [KEY])
    assert masked(KEY, [KEY]) == masked(KEY.replace("\n", "\r\n"), [KEY]) == "***"


def test_of_two_secrets_that_overlap_the_longer_goes_first() -> None:
    assert masked("hunter2-production", ["hunter2", "hunter2-production"]) == "***"


def test_text_without_secrets_is_kept() -> None:
    assert for_error("Rate limit: try again in 5 s", ["hunter2"]) == "Rate limit: try again in 5 s"


def test_an_error_is_one_inert_line() -> None:
    assert for_error("no\n\tsuch \x1b[31mthing\x07\u202e\ud800") == "no such \\x1b[31mthing\\x07\\u202e?"


def test_a_long_error_is_cut_visibly() -> None:
    assert for_error("x" * 5000) == "x" * 999 + "…"
    assert for_error("x" * 10_000_000, ["secret"], limit=10) == "x" * 9 + "…"
    assert for_guest_error("x" * 10_000_000, ["secret"], limit=10) == "x" * 9 + "…"


@each("sanitise", [for_error, for_guest_error])
@each("before", [995, 3_995, 15_990, 15_995, 63_990, 63_995])
@each("filler", ["x", " "])
def test_a_secret_that_a_cut_would_halve_is_masked(sanitise: Any, before: int, filler: str) -> None:
    text = sanitise(filler * before + "hunter2hunter2" + " and more" * 100, ["hunter2hunter2"])
    assert "hunt" not in text


def test_a_secret_with_hidden_characters_in_it_is_masked_for_a_guest() -> None:
    assert for_guest_error("key hun\u200bter2-\x1b[0mabc is bad", ["hunter2-abc"]) == "key *** is bad"


@pytest.mark.parametrize("case", ERRORS, ids=[case["name"] for case in ERRORS])
def test_an_error_keeps_its_message_and_loses_frames_and_home_directories(case: dict[str, Any]) -> None:
    shown = for_guest_error(case["text"], ["unrelated-secret"])
    assert shown == case["shown"]
    assert "alice" not in shown
    assert for_guest_error(shown) == shown


@pytest.fixture(autouse=True)
def home_of_alice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/alice")


@pytest.mark.parametrize(
    ("home", "text", "shown"),
    [
        ("/odd place/jane roe", "no /odd place/jane roe/notes/a.txt here", "no ~/notes/a.txt here"),
        ("/accounts/jane", "no /accounts/jane: gone", "no ~: gone"),
        (
            "/accounts/jane",
            "no /accounts/janet/x and no /accounts/jane-old",
            "no /accounts/janet/x and no /accounts/jane-old",
        ),
        ("/root", "scandir '/root/.ssh' and /rooted", "scandir '~/.ssh' and /rooted"),
        ("/", "no /etc/x", "no /etc/x"),
        ("relative", "no relative/x", "no relative/x"),
    ],
)
def test_the_home_directory_of_this_user_is_hidden_wherever_it_is(
    home: str, text: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", home)
    assert for_guest_error(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at file:///home/bob/a/b.js:3:4", "at file://~/a/b.js:3:4"),
        ("no \\/home\\/bob\\/x there", "no ~\\/x there"),
        ('{"path":"\\\\/home\\\\/bob\\\\/x"}', '{"path":"~\\\\/x"}'),
        ("no /mnt/c/Users/bob/x", "no ~/x"),
        ("in /home/bob", "in ~"),
        ("see https://example.com/home/bob and /api/home/bob", "see https://example.com/home/bob and /api/home/bob"),
        ("no C:\\Users\\a\\b\\c.txt", "no ~\\b\\c.txt"),
    ],
)
def test_a_home_directory_is_a_tilde(text: str, shown: str) -> None:
    assert for_guest_error(text) == shown


def test_where_nobody_can_write_an_error_says_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(
        tempfile, "_get_default_tempdir", lambda: (_ for _ in ()).throw(FileNotFoundError(str(tmp_path)))
    )
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    assert for_guest_error("no /home/alice/notes.txt") == "no ~/notes.txt"


@pytest.mark.parametrize(
    "text",
    [
        "/home" * 2_000_000,
        "C:\\" * 3_000_000,
        "C:\\a " * 2_000_000,
        "'/home/" * 1_500_000,
        "    at (" * 1_000_000,
        "    at x (\n" * 900_000,
        "Traceback (most recent call last):\n" * 300_000,
        "a://" * 2_500_000,
        "goroutine 1 [" * 800_000,
        "\\n    at " * 1_000_000,
        "a.js:1\n" * 1_400_000,
        "\u200b" * 10**7,
        "\x1b]" * 5_000_000,
        "| " * 5_000_000,
        "x:" * 5_000_000,
    ],
    ids=lambda text: ascii(text[:12]),
)
def test_the_time_for_an_error_does_not_depend_on_its_length(text: str) -> None:
    def clean(text: str) -> None:
        for_guest_error(text, ["some-secret"])
        for_error(text, ["some-secret"])

    assert is_at_most(2.5, lambda: clean(text), lambda: clean(text[:200_000]))


@settings(max_examples=300, derandomize=True, deadline=None)
@given(text=st.text(st.characters(), max_size=80))
def test_nothing_hidden_reaches_a_guest_or_a_terminal(text: str) -> None:
    assert not hidden_characters(for_guest_error(text).replace("\n", ""))
    assert not hidden_characters(for_error(text))


def test_every_hidden_character_is_written_out_on_a_terminal() -> None:
    every = [chr(code) for code in range(0x110000) if is_hidden(code) and chr(code) not in "\t\n"]
    for character in every:
        assert character not in for_terminal(f"a{character}b")


def test_a_symbol_may_be_in_colour_but_hides_nothing() -> None:
    assert for_terminal("❤️ ⚠️ ok") == "❤️ ⚠️ ok"
    assert for_terminal("❤️\ufe0f\ufe01") == "❤️\\ufe0f\\ufe01"
    assert for_terminal("a\ufe0f") == "a\\ufe0f"


def test_an_indented_line_that_begins_with_at_is_no_stack_frame() -> None:
    text = "Expected\n    at f (a.js:1:2)\n  at least 3\n  at most 100"
    assert for_error(text) == "Expected at least 3 at most 100"
