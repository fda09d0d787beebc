"""A server's words in errors: secrets masked however they are encoded, inert, and the useful part still there."""

from __future__ import annotations

import base64
import html
import json
import tempfile
import urllib.parse
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.stub_syntax import hidden_characters, is_hidden
from growth import is_at_most
from toolbridge.trust.text.sanitise import (
    argument_texts,
    for_error,
    for_guest_error,
    for_terminal,
    masked,
    masked_bytes,
)

SECRET = 'hunter2/+ "é'
FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "hostile" / "texts"
ERRORS: list[dict[str, Any]] = json.loads((FIXTURES / "server_errors.json").read_text("utf-8"))["cases"]
KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END PRIVATE KEY-----"


@pytest.mark.parametrize(
    "echoed",
    [
        SECRET,
        json.dumps(SECRET),
        json.dumps(SECRET, ensure_ascii=False),
        json.dumps(SECRET).replace("/", "\\/"),
        html.escape(SECRET),
        urllib.parse.quote(SECRET),
        urllib.parse.quote(SECRET, safe=""),
        urllib.parse.quote(SECRET, safe="").replace("%2F", "%2f").replace("%2B", "%2b").replace("%C3%A9", "%c3%a9"),
        urllib.parse.quote_plus(SECRET),
        "".join(f"%{byte:02x}" for byte in SECRET.encode()),
        SECRET.encode().hex(),
        SECRET.encode().hex().upper(),
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode(),
        *(base64.b64encode((before + SECRET + "!").encode()).decode() for before in ("", "a", "ab", "Bearer ")),
        base64.b64encode(SECRET.encode("utf-16-le")).decode(),
        base64.b64encode(SECRET.encode("utf-16-be")).decode(),
        SECRET.encode().hex(":"),
        SECRET.encode().hex(" ").upper(),
    ],
)
@pytest.mark.parametrize("sanitise", [for_error, for_guest_error])
def test_a_known_secret_is_masked_in_every_common_encoding(sanitise: Any, echoed: str) -> None:
    text = sanitise(f"401 for {echoed} at /login", [SECRET])
    assert "***" in text
    assert text.startswith("401 for ")
    assert text.endswith(" at /login")
    core = base64.b64encode(SECRET.encode())[2:-4].decode()
    for form in (SECRET, json.dumps(SECRET)[1:-1], urllib.parse.quote(SECRET, safe=""), core):
        assert form not in text


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


@pytest.mark.parametrize("sanitise", [for_error, for_guest_error])
@pytest.mark.parametrize("before", [995, 3_995, 15_990, 15_995, 63_990, 63_995])
@pytest.mark.parametrize("filler", ["x", " "])
def test_a_secret_that_a_cut_would_halve_is_masked(sanitise: Any, before: int, filler: str) -> None:
    text = sanitise(filler * before + "hunter2hunter2" + " and more" * 100, ["hunter2hunter2"])
    assert "hunt" not in text


def test_a_secret_with_hidden_characters_in_it_is_masked_for_a_guest() -> None:
    assert for_guest_error("key hun\u200bter2-\x1b[0mabc is bad", ["hunter2-abc"]) == "key *** is bad"


@pytest.mark.parametrize("case", ERRORS, ids=[case["name"] for case in ERRORS])
def test_what_a_servers_error_says_stays_and_what_it_tells_of_the_host_goes(case: dict[str, Any]) -> None:
    shown = for_guest_error(case["text"], ["unrelated-secret"], keep=case["keep"])
    assert shown == case["shown"]
    if not case["keep"]:
        assert "alice" not in shown
    # What was made harmless once stays as it is.
    assert for_guest_error(shown, keep=case["keep"]) == shown


def test_there_are_thirty_kinds_of_errors() -> None:
    assert len(ERRORS) >= 30


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
    ("text", "keep", "shown"),
    [
        ("at file:///home/bob/a/b.js:3:4", [], "at file://~/a/b.js:3:4"),
        ("no \\/home\\/bob\\/x there", [], "no ~\\/x there"),
        ('{"path":"\\\\/home\\\\/bob\\\\/x"}', [], '{"path":"~\\\\/x"}'),
        ("no /mnt/c/Users/bob/x", [], "no ~/x"),
        ("in /home/bob", [], "in ~"),
        (
            "see https://example.com/home/bob and /api/home/bob",
            [],
            "see https://example.com/home/bob and /api/home/bob",
        ),
        ("no /home/a/b/c.txt", ["/home/a/b"], "no /home/a/b/c.txt"),
        ("no /home/a/bcd/c.txt", ["/home/a/b"], "no ~/bcd/c.txt"),
        ("no /home/a/c.txt", ["/home"], "no ~/c.txt"),
        ("no /home/a.", ["/home/a/c.txt"], "no /home/a."),
        ("no /home/b/c.txt", ["/home/a/c.txt"], "no ~/c.txt"),
        ("no /home/a/c.txt", ["a file:///home/a/ to read"], "no /home/a/c.txt"),
        ("no C:\\Users\\a\\b\\c.txt", ["C:\\Users\\a\\b"], "no C:\\Users\\a\\b\\c.txt"),
    ],
)
def test_a_home_directory_is_hidden_except_in_paths_that_were_named(text: str, keep: list[str], shown: str) -> None:
    assert for_guest_error(text, keep=keep) == shown


def test_where_nobody_can_write_an_error_says_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(
        tempfile, "_get_default_tempdir", lambda: (_ for _ in ()).throw(FileNotFoundError(str(tmp_path)))
    )
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    assert for_guest_error("no /home/alice/notes.txt") == "no ~/notes.txt"


def test_the_strings_of_arguments_are_found_at_any_depth_and_never_without_end() -> None:
    deep: Any = "/bottom"
    for _ in range(5000):
        deep = [deep]
    assert argument_texts({"a": ["/x/y", {"b": "c\\d", "e": "word"}], "n": 1}) == ("c\\d", "/x/y")
    assert argument_texts(deep) == ("/bottom",)
    assert len(argument_texts(["/x"] * 10**6)) == 200
    assert sum(map(len, argument_texts(["/x" * 2000] * 10**6))) <= 20_000
    assert argument_texts([1] * 10**6) == ()
    assert argument_texts("x" * 10**6) == ()


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
        for_guest_error(text, ["some-secret"], keep=["/home/x/y"] * 200)
        for_error(text, ["some-secret"])

    assert is_at_most(2.5, lambda: clean(text), lambda: clean(text[:200_000]))


@pytest.mark.parametrize("named", ["/srv/%d/", "/home/x/%d/"])
def test_the_time_for_an_error_is_linear_in_itself_and_the_arguments_of_the_call(named: str) -> None:
    """A server that repeats its arguments, which name many paths, in an error: each path against each took 17 s."""

    arguments = [(named % number * 600)[:4000] for number in range(10)]

    def clean(paths: int, keep: list[str]) -> None:
        for_guest_error("'/home/x" * paths, (), keep=keep)

    assert is_at_most(2.5, lambda: clean(2000, arguments), lambda: clean(1000, arguments[:5]))


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
