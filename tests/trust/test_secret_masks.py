"""Secrets are found through whatever encodings they went, in any order, and other text stays as it is."""

from __future__ import annotations

import base64
import html
import json
import random
import string
import textwrap
import time
import urllib.parse
from collections.abc import Callable

import pytest

from toolbridge.trust.sanitise import for_error, for_guest_error, masked

TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
SPECIAL = "p@ss/w+rd=\"q'\\z é%41&x;"


def escaped(text: str) -> str:
    """Every character as JSON may write it."""
    return "".join(f"\\u{unit:04x}" for unit in memoryview(text.encode("utf-16-le")).cast("H"))


def percent(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode())


def spread(between: str) -> Callable[[str], str]:
    return between.join


def wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, 20, break_long_words=True, replace_whitespace=False, drop_whitespace=False))


# What only writes characters otherwise: any of them upon any other is undone.
ESCAPES: dict[str, Callable[[str], str]] = {
    "json": lambda text: json.dumps(text)[1:-1],
    "json without ascii": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "every character in JSON": escaped,
    "slashes": lambda text: text.replace("/", "\\/"),
    "url": lambda text: urllib.parse.quote(text, safe=""),
    "url in small letters": percent,
    "html": html.escape,
    "html by number": lambda text: "".join(f"&#{ord(each)};" for each in text),
    "html in hex": lambda text: "".join(f"&#x{ord(each):X};" for each in text),
    "python": lambda text: text.encode("unicode_escape").decode(),
    "bytes of python": lambda text: "".join(f"\\x{byte:02x}" for byte in text.encode()),
    "javascript": lambda text: "".join(f"\\u{{{ord(each):x}}}" for each in text),
    "zero width": spread("\u200b"),
    "direction": spread("\u202e"),
    "colours": spread("\x1b[31m"),
}
# What parts it: the characters are as they are.
PARTINGS: dict[str, Callable[[str], str]] = {
    "spaces": spread(" "),
    "no-break spaces": spread("\u00a0"),
    "lines": wrapped,
    "escaped lines": lambda text: wrapped(text).replace("\n", "\\n"),
    "dashes": spread("-"),
}
# What writes it in other letters.
LETTERS: dict[str, Callable[[str], str]] = {
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 of URLs": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64 without an end": lambda text: base64.b64encode(text.encode()).decode().rstrip("="),
    "hex": lambda text: text.encode().hex(),
    "capital hex": lambda text: text.encode().hex().upper(),
}
OTHERS: dict[str, Callable[[str], str]] = {
    "capitals": str.upper,
    "small letters": str.lower,
    "backwards": lambda text: text[::-1],
    "base32": lambda text: base64.b32encode(text.encode()).decode(),
    "a list of numbers": lambda text: str(list(text.encode())),
    "hex with signs": lambda text: ", ".join(f"0x{byte:02x}" for byte in text.encode()),
    "hex with colons": lambda text: text.encode().hex(":"),
    "hex with blanks": lambda text: text.encode().hex(" ").upper(),
}
EVERY = ESCAPES | PARTINGS | LETTERS | OTHERS


@pytest.mark.parametrize("secret", [TOKEN, SPECIAL], ids=["token", "special"])
@pytest.mark.parametrize("encoding", EVERY)
@pytest.mark.parametrize("sanitise", [masked, for_error, for_guest_error])
def test_a_secret_is_masked_in_every_encoding(
    sanitise: Callable[[str, list[str]], str], encoding: str, secret: str
) -> None:
    text = sanitise(f"bad key ({EVERY[encoding](secret)}) given", [secret])
    assert text.startswith("bad key (")
    assert text.endswith(") given")
    # The ends of base64 depend on what stands beside it, and signs at the end of a secret may stay.
    assert len(text.replace("***", "", 1)) <= len("bad key () given") + 6, text


def random_secret(chance: random.Random) -> str:
    alphabet = chance.choice(
        [string.ascii_letters + string.digits, string.printable.strip() + "äé😀", string.hexdigits]
    )
    return "".join(chance.choices(alphabet, k=chance.randint(16, 60))) + "q7"


def random_words(chance: random.Random) -> str:
    words = [
        "GET",
        "/v1/users",
        "50%",
        "a & b",
        "C:\\new\\table",
        "naïve",
        "x=1;",
        "\n",
        '{"a": [1, 2]}',
        "0x1f",
        "&amp;",
        "%20",
    ]
    return " ".join(chance.choices(words, k=chance.randint(0, 12)))


def one_composition(chance: random.Random) -> list[str]:
    """Escapes, then other letters, then escapes, then perhaps parted: innermost first."""
    inner = chance.choices(list(ESCAPES), k=chance.randint(0, 1))
    letters = chance.choices(list(LETTERS), k=chance.randint(0, 2))
    outer = chance.choices(list(ESCAPES), k=chance.randint(0, 2))
    # What is parted can't be told from words any more if it has to be decoded from other letters twice.
    parted = chance.choices(list(PARTINGS), k=1) if len(letters) + len(inner) < 2 and chance.random() < 0.3 else []
    if (parted == ["dashes"] and (inner or outer)) or "colours" in [*inner, *outer]:
        parted = []
    return [*inner, *letters, *outer, *parted]


@pytest.mark.parametrize("seed", range(40))
def test_no_composition_of_encodings_gets_a_secret_through(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(15):
        secret, names = random_secret(chance), one_composition(chance)
        echoed = secret
        for name in names:
            echoed = EVERY[name](echoed)
        before, after = random_words(chance), random_words(chance)
        text = masked(f"{before} ({echoed}) {after}", [secret])
        assert text.startswith(f"{before} ("), (secret, names)
        assert text.endswith(f") {after}"), (secret, names)
        left = text[len(before) + 2 : len(text) - len(after) - 2]
        # At the ends of base64, what is left depends on its neighbours; the secret is not in it.
        assert "***" in left, (secret, names, left)
        assert len(left.replace("***", "")) <= len(echoed) // 4, (secret, names, left)


@pytest.mark.parametrize("seed", range(20))
def test_text_without_secrets_stays_as_it_is(seed: int) -> None:
    chance = random.Random(1000 + seed)
    for _ in range(20):
        text, secret = random_words(chance), random_secret(chance)
        for name in chance.choices(list(EVERY), k=chance.randint(0, 2)):
            text = EVERY[name](text)
        assert masked(text, [secret, "password", "hunter2"]) == text


def test_what_stands_beside_a_secret_stays() -> None:
    assert (
        masked(f"a%20{percent(TOKEN)}%20b \\n\\u0041 {escaped(TOKEN)}\\u0042", [TOKEN])
        == "a%20***%20b \\n\\u0041 ***\\u0042"
    )
    assert masked(f"{base64.b64encode(TOKEN.encode()).decode()}.abc", [TOKEN]).endswith(".abc")


def test_words_that_only_spell_a_secret_stay() -> None:
    text = "The pass word is in Production, and red acted; 12 34 56 78."
    assert masked(text, ["password", "redacted", "12345678", "isinprod"]) == text


HOSTILE = [
    "\\u0067",
    "%67",
    "%25",
    "&#103;",
    "\\",
    "&",
    "%",
    "\u200b",
    "\x1b[",
    "Z2hw",
    "ghp_16C7",
    "6768",
    "a ",
    "\\ud800",
    "%F0%9F",
    "\\x67",
    "0x",
    "A" * 61 + "\n",
    "é \u00a0",
    base64.b64encode(base64.b64encode(b"%2567" * 10)).decode() + " ",
    TOKEN + " ",
    percent(TOKEN),
]


@pytest.mark.parametrize("piece", HOSTILE, ids=lambda piece: ascii(piece[:10]))
def test_looking_takes_time_in_proportion(piece: str) -> None:
    seconds: list[float] = []
    for size in (100_000, 400_000):
        text = piece * (size // len(piece))
        began = time.process_time()
        masked(text, [TOKEN, SPECIAL, "a" * 40 + "b"])
        seconds.append(time.process_time() - began)
    assert seconds[0] < 1  # 0.01 to 0.15 s measured
    assert seconds[1] < 10 * seconds[0] + 0.2
