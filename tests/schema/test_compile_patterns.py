"""T16: a server's pattern is run only where the work is known to be small."""

from __future__ import annotations

from random import Random

from cases import each
from growth import work_within
from toolbridge.schema.compile import safe_pattern

CATASTROPHIC = [
    *(
        "(a+)+$",
        "(a*)*b",
        "(a|a)*b",
        "(a|aa)+$",
        "(x+x+)+y",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "(.*)*x",
        "(?:a?){30}a{30}",
    ),
    *("((a{1,30}){1,30}){1,30}b", "^(\\d+|[a-z]+)*$", "(a*?)*b", "(a+){10}b", "^(a?){40}a{40}$", "(?:.{0,999}){9}x"),
    *("(a)\\1", "(?=a+)b", "(?!a)b", "(?<=a)b", "(?<n>a)", "(?P<n>a)", "(?i)a", "(?>a)", "a++", "(?#x)a", "(?(1)a|b)"),
]
OTHER_MEANING = ["\\Aa", "a\\Z", "\\p{L}", "\\u{61}", "[]a]", "[^]a]", "a{,3}", "\\cA", "(", "[z-a]", "*", "a**", "\\"]
HARMLESS = {
    "^\\s$": ("\ufeff", "\x85"),
    "^\\S$": ("\x1c", "\ufeff"),
    "^[\\s\\S]$": ("\n", ""),
    "^[^\\s]$": ("\x85", "\u2028"),
    "^a$": ("a", "a\n"),
    "^.$": ("\x85", "\r"),
    "^[.$]+$": (".$", "a"),
    "^\\$\\.$": ("$.", "$a"),
    "^\\d$": ("3", "\u0663"),
    "\\bb": ("éb", "ab"),
    "^[a-z]+$": ("abc", "aBc"),
    "^\\d{4}-\\d{2}-\\d{2}$": ("2026-11-16", "2026-11"),
    "^(foo|bar|baz)$": ("bar", "bart"),
    "^[^@\\s]+@[^@\\s]+\\.[^@\\s]+$": ("a@b.c", "a@b"),
    "^(\\d{1,3}\\.){3}\\d{1,3}$": ("127.0.0.1", "127.0.1"),
    "^https?://": ("https://x", "ftp://x"),
    "^#?([a-fA-F0-9]{6}|[a-fA-F0-9]{3})$": ("#abc123", "#abcd"),
    "^\\w+$": ("a_1", "é"),
    "x": ("axb", "a"),
    "^\\/a\\-b$": ("/a-b", "a-b"),
    "\\u0041": ("A", "a"),
    "": ("", None),
    "^(?:ab)*$": ("abab", "aba"),
}


@each("pattern", [*CATASTROPHIC, *OTHER_MEANING])
def test_a_pattern_that_may_take_long_or_mean_something_else_is_not_run(pattern: str) -> None:
    assert safe_pattern(pattern) is None


@each("pattern", HARMLESS)
def test_patterns_as_schemas_have_them_are_run(pattern: str) -> None:
    safe = safe_pattern(pattern)
    assert safe is not None
    fits, other = HARMLESS[pattern]
    assert not safe.refuses(fits)
    assert other is None or safe.refuses(other)
    assert safe.longest >= 64


def test_a_text_that_is_too_long_is_not_refused() -> None:
    safe = safe_pattern("^[a-z]+$")
    assert safe is not None
    assert safe.refuses("A" * safe.longest)
    assert not safe.refuses("A" * (safe.longest + 1))


def test_a_long_pattern_is_not_even_looked_at() -> None:
    for pattern in ("(" * 100_000, "a" * 1_000_000, "[" * 100_000, "(a|" * 50_000):
        with work_within(0.1):
            assert safe_pattern(pattern) is None


PARTS = [
    "a",
    "b",
    ".",
    "\\w",
    "[ab]",
    "[^b]",
    "(",
    ")",
    "(?:",
    "|",
    "*",
    "+",
    "?",
    "{1,3}",
    "{2}",
    "{0,50}",
    "*?",
    "^",
    "$",
]


def test_no_pattern_by_chance_takes_long_on_a_text_that_is_made_to_hurt() -> None:
    chance = Random(16)
    run = 0
    for _ in range(3000):
        safe = safe_pattern("".join(chance.choice(PARTS) for _ in range(chance.randrange(1, 14))) + "z")
        if safe is None:
            continue
        run += 1
        for text in ("a" * (safe.longest - 1) + "!", ("ab" * safe.longest)[: safe.longest]):
            with work_within(0.25):
                safe.refuses(text)
    assert run > 300
