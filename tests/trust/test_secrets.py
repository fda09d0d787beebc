"""Secrets are masked plain, truncated and in their usual encodings, other text stays, and the time is linear."""

from __future__ import annotations

import base64
import html
import json
import random
import string
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable
from types import FrameType
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from growth import cpu_seconds, is_at_most
from toolbridge.trust import secrets as secret_masks
from toolbridge.trust.sanitise import for_error, for_guest_error, masked
from toolbridge.trust.secrets import _PIECE, encodings

TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
SPECIAL = "p@ss/w+rd=\"q'\\z é%41&x;"
LONG = "sk-live-5fK2q9ZpXw7Lr3TnVb8YcHd1MjGu6SaEo4Ri0PtW"  # 48 characters

Encoding = Callable[[str], str]


def percent(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode())


ENCODINGS: dict[str, Encoding] = {
    "plain": str,
    "capitals": str.upper,
    "json": lambda text: json.dumps(text)[1:-1],
    "json without ascii": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "json in json": lambda text: json.dumps(json.dumps(text))[3:-3],
    "slashes": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "url": lambda text: urllib.parse.quote(text, safe=""),
    "url with slashes": urllib.parse.quote,
    "form": urllib.parse.quote_plus,
    "encodeURIComponent": lambda text: urllib.parse.quote(text, safe="!~*'()"),
    "url in small letters": percent,
    "html": html.escape,
    "html without quotes": lambda text: html.escape(text, quote=False),
    "html by Go": lambda text: (
        html.escape(text).replace("&#x27;", "&#39;").replace("&quot;", "&#34;").replace("+", "&#43;")
    ),
    "html by Handlebars": lambda text: html.escape(text).replace("`", "&#x60;").replace("=", "&#x3D;"),
    "html by Jinja": lambda text: html.escape(text).replace("&#x27;", "&#39;"),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 behind a name": lambda text: base64.b64encode(f"me:{text}".encode()).decode(),
    "base64 of URLs": lambda text: base64.urlsafe_b64encode(f"u:{text}".encode()).decode(),
    "base64 in a URL": lambda text: urllib.parse.quote(base64.b64encode(text.encode()).decode(), safe=""),
    "base64 of UTF-16": lambda text: base64.b64encode(text.encode("utf-16-le")).decode(),
    "UTF-16": "\0".join,
    "a list of bytes": lambda text: str(list(text.encode())),
    "hex": lambda text: text.encode().hex(),
    "capital hex": lambda text: text.encode().hex().upper(),
}


def test_a_secret_is_masked_in_every_encoding() -> None:
    wrong: list[str] = []
    for name, encode in ENCODINGS.items():
        for secret in (TOKEN, SPECIAL):
            for sanitise in (masked, for_error, for_guest_error):
                text = sanitise(f"bad key ({encode(secret)}) given", [secret])
                # The ends of base64 depend on what stands beside it.
                is_short = len(text.replace("***", "", 1)) <= len("bad key () given") + 7
                if not (text.startswith("bad key (") and text.endswith(") given") and is_short):
                    wrong.append(f"{name}, {sanitise.__name__}: {text}")
    assert wrong == []


@pytest.mark.parametrize("seed", range(10))
def test_any_secret_is_masked_and_its_neighbours_stay(seed: int) -> None:
    chance = random.Random(seed)
    alphabet = chance.choice([string.ascii_letters, string.printable.strip() + "äé😀", string.hexdigits])
    words = ["GET /v1", "50%", "a & b", "C:\\new", "naïve;", "\n", '{"a": [1, 2]}', "&amp;", "%20", "x" * _PIECE]
    for name, encode in ENCODINGS.items():
        secret = "q" + "".join(chance.choices(alphabet, k=chance.randint(12, 60))) + "7"
        before, after = (" ".join(chance.choices(words, k=3)) for _ in range(2))
        echoed = encode(secret)
        text = masked(f"{before} ({echoed}) {after}", [secret, "hunter22"])
        assert text.startswith(f"{before} ("), (secret, name)
        assert text.endswith(f") {after}"), (secret, name)
        left = text[len(before) + 2 : len(text) - len(after) - 2]
        assert "***" in left, (secret, name, left)
        assert len(left.replace("***", "")) <= max(8, len(echoed) // 4), (secret, name, left)
        assert masked(f"{before} {after}", [secret]) == f"{before} {after}"


def test_a_truncated_secret_is_masked() -> None:
    for cut in (LONG[:40], LONG[8:], LONG[:40].upper(), LONG[:33], LONG[-33:]):
        assert masked(f"key {cut}… refused", [LONG]) == "key ***… refused"
    for kept in (LONG[:20], LONG[-20:], "sk-live-of-another"):
        assert masked(f"key {kept} refused", [LONG]) == f"key {kept} refused"


@pytest.mark.parametrize("place", [_PIECE - 60, _PIECE - 20, _PIECE - 1, _PIECE, 2 * _PIECE - 20])
def test_a_secret_between_two_pieces_is_masked(place: int) -> None:
    for echoed in (LONG, LONG[8:], LONG[:40], percent(LONG)):
        assert masked("." * place + echoed + "." * _PIECE, [LONG]) == "." * place + "***" + "." * _PIECE


def test_base64_of_big_endian_utf_16_is_masked() -> None:
    assert "***" in masked(base64.b64encode(SPECIAL.encode("utf-16-be")).decode(), [SPECIAL])


def test_what_stands_beside_a_secret_stays() -> None:
    assert masked(f"a%20{percent(TOKEN)}%20b \\n\\u0041 {TOKEN}\\u0042", [TOKEN]) == "a%20***%20b \\n\\u0041 ***\\u0042"
    assert masked(f"{base64.b64encode(TOKEN.encode()).decode()}.abc", [TOKEN]).endswith(".abc")
    words = "The pass word is in Production, and red acted; 12 34 56 78."
    assert masked(words, ["password", "redacted", "12345678", "isinprod"]) == words


HOSTILE = [
    *(
        "\\u0067",
        "%67",
        "%25",
        "&#103;",
        "\\",
        "\u200b",
        "Z2hw",
        "ghp_16C7",
        "6768",
        "103,",
        "\0",
        "é \u00a0",
        "İ",
        "a",
    ),
    *(TOKEN + " ", TOKEN[:30], TOKEN[-30:], percent(TOKEN), "<a href='/x?y=1&amp;z'>word</a>\n"),
]


@pytest.mark.parametrize("piece", HOSTILE, ids=lambda piece: ascii(piece[:10]))
def test_the_time_is_linear(piece: str) -> None:
    secrets = frozenset({TOKEN, SPECIAL, "a" * 40 + "b"})
    masked("", secrets)
    text = piece * (400_000 // len(piece))
    assert is_at_most(2.5, lambda: masked(text + text, secrets), lambda: masked(text, secrets))


def test_no_step_holds_the_interpreter_for_long() -> None:
    """A call into C holds the GIL for its whole length: none is as long as a large text would take at once."""
    longest: dict[str, float] = {}
    began: dict[str, float] = {}

    def profile(frame: FrameType, event: str, arg: Any) -> None:
        del frame
        if event == "c_call":
            began[arg.__name__] = time.thread_time()
        elif event == "c_return":
            took = time.thread_time() - began[arg.__name__]
            longest[arg.__name__] = max(took, longest.get(arg.__name__, 0.0))

    text, secrets = "%25" * (8 * 2**20 // 3), frozenset({TOKEN})
    whole = min(cpu_seconds(lambda: masked(text, secrets)) for _ in range(3))
    sys.setprofile(profile)
    try:
        assert masked(text, secrets) == text
    finally:
        sys.setprofile(None)
    assert max(longest["find"], longest["lower"]) < whole / 8, longest


@pytest.mark.anyio
async def test_masking_stops_when_its_call_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    began, cancelled, ended = anyio.Event(), threading.Event(), threading.Event()
    stop_if_cancelled = secret_masks._stop_if_cancelled
    pieces: list[int] = []

    def stop() -> None:
        if not pieces:
            anyio.from_thread.run_sync(began.set)
            cancelled.wait(60)
        pieces.append(1)
        stop_if_cancelled()

    def work() -> None:
        try:
            masked("x" * (10 * _PIECE), frozenset({TOKEN}))
        finally:
            ended.set()

    async def call() -> None:
        await anyio.to_thread.run_sync(work, abandon_on_cancel=True)

    monkeypatch.setattr(secret_masks, "_stop_if_cancelled", stop)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await began.wait()
        tasks.cancel_scope.cancel()
    cancelled.set()
    assert await anyio.to_thread.run_sync(ended.wait, 60)
    assert len(pieces) == 1


def test_encodings_are_computed_once_and_short_ones_left_out() -> None:
    assert encodings(frozenset(["one-secret", "another"])) is encodings(frozenset(["another", "one-secret"]))
    found = encodings(frozenset(["abc", "abcd"]))
    assert found.shortest == min(map(len, found.exact + found.any_case)) == 4
