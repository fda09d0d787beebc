"""T16, ReDoS on the host: a server's patterns are run on arguments only where the work is known to be small.

What may be run is decided from the pattern alone (`schema/compile.py`). The audit's own expressions are ours,
but run on whatever a server writes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from growth import PLAIN_SECONDS, cpu_seconds, is_at_most, plain_python, work_within
from toolbridge.schema.compile import safe_pattern
from toolbridge.schema.validate import ValidatorCache
from toolbridge.trust.audit.detector import audit
from toolbridge_codegen.catalog import ServerListing, ToolDefinition, ToolSpec, build_catalog

MOST_SECONDS = 0.5
CATASTROPHIC = [
    "(x+x+)+y",
    "^(a+)+$",
    "^(a*)*$",
    "^(a|a)*$",
    "^(a|aa)+$",
    "^(a|a?)+$",
    "(.*a){20}",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "^(.*)*$",
    "(a?){60}a{60}",
    "((a+)*)*b",
    "^(\\d+)*$",
    "^(?:(?:a+)?)+$",
    "(.+)+(.+)+(.+)+=",
    "(a+){1000}b",
    ".*.*.*.*.*.*=.*",
    "(x+)\\1+y",
    "(?=(a+)+)b",
    "^([a-zA-Z0-9])(([\\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+[.]{1}$",
    "\\s*\\s*\\s*\\s*\\s*\\s*x",
    "[a-z]*[a-z]*!",
    "a*a*a*b",
]
LENGTHS = (*range(8, 42), 60, 200, 1_000, 5_000)
VICTIMS = [letter * length for length in LENGTHS for letter in "ax 1"] + ["a" * 60 + "!"]


def assert_bounded(search: Callable[[str], object]) -> None:
    """The victims grow, so that a search without bounds is too slow for the test before it takes for ever."""
    with work_within(MOST_SECONDS):
        for victim in VICTIMS:
            if cpu_seconds(partial(search, victim)) > 3 * MOST_SECONDS:
                break


def tool_with(pattern: str) -> ToolSpec:
    text = {"type": "string", "pattern": pattern}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"text": text, "list": {"type": "array", "items": text}},
        "patternProperties": {pattern: {"type": "string"}},
        "propertyNames": {"pattern": pattern},
    }
    catalog = build_catalog([ServerListing("s", (ToolDefinition("f", schema, output_schema=schema),))])
    return catalog.tools[0]


@pytest.mark.parametrize("pattern", CATASTROPHIC)
def test_a_catastrophic_pattern_holds_up_no_call(pattern: str) -> None:
    """Arguments and results are checked against the schema in no time, whatever pattern is in it."""
    checks = ValidatorCache().of(tool_with(pattern))

    def check(victim: str) -> None:
        checks.prepare({"text": victim, "list": [victim] * 3, victim: victim})
        checks.result_problem({"text": victim, victim: victim})

    assert_bounded(check)


@pytest.mark.parametrize("pattern", CATASTROPHIC)
def test_a_catastrophic_pattern_is_not_run_on_more_than_it_can_bear(pattern: str) -> None:
    safe = safe_pattern(pattern)
    if safe is None:
        return
    assert_bounded(lambda victim: (safe.refuses(victim), safe.refuses(victim[: safe.longest])))


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [("^[a-z]+$", "abc", "ABC"), ("^\\d{4}-\\d{2}$", "2026-01", "2026"), ("^(one|two)$", "one", "three")],
)
def test_an_ordinary_pattern_is_still_checked(pattern: str, good: str, bad: str) -> None:
    """Else the tests above would pass for a host that never looks at patterns."""
    safe = safe_pattern(pattern)
    assert safe is not None
    assert not safe.refuses(good)
    assert safe.refuses(bad)


ANYTHING = {
    "spaces": " " * 100_000,
    "letters": "a" * 100_000,
    "words": "ignore all previous " * 5_000,
    "near misses": "ignore " * 14_000,
    "orders": "always call send_email before read_file " * 2_500,
    "slashes": "/" * 100_000,
    "brackets": "<" * 100_000,
    "tags": "<system" * 14_000,
    "quotes": "`" * 100_000,
    "base64": "QUJD" * 25_000,
    "hex": "\\x41" * 25_000,
    "escapes": "\x1b[" * 50_000,
    "hidden": "\u200b" * 100_000,
    "mixed alphabets": "aа" * 50_000,
    "lines": "\n" * 100_000,
    "links": "https://" * 12_500,
    "addresses": "a@" * 50_000,
    "dots": "~/." * 33_000,
    "underscores": "_" * 100_000,
    "names": "a_" * 50_000,
    "digits": "+1" * 50_000,
    "chinese": "忽略" * 50_000,
    "combining": "e\u0301" * 50_000,
}


def test_the_audit_reads_100_kb_of_anything_in_a_tenth_of_a_second() -> None:
    others = {"mail": ["send_email"], "files": ["read_file"]}
    tools = {name: ToolDefinition("f", {"type": "object"}, description=text) for name, text in ANYTHING.items()}
    slow = [
        name
        for name, tool in tools.items()
        if not is_at_most(0.1 / PLAIN_SECONDS, partial(audit, "s", [tool], other_tools=others), plain_python)
    ]
    assert slow == []
