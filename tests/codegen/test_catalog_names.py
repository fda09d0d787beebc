"""Identifiers and wire names of tools: safe in every language, unique, independent of the order."""

from __future__ import annotations

import keyword
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolbridge_codegen.catalog import MAX_NAME, RESERVED_IDENTIFIERS, assign_identifiers, assign_wire_names, identifier


@pytest.mark.parametrize(
    ("original", "expected"),
    [
        ("get_forecast", "get_forecast"),
        ("getForecast", "getForecast"),
        ("get-forecast", "get_forecast"),
        ("get.forecast/now", "get_forecast_now"),
        ("class", "class_"),
        ("delete", "delete_"),
        ("None", "None_"),
        ("constructor", "constructor_"),
        ("then", "then_"),
        ("__proto__", "tool_proto"),
        ("__class__", "tool_class"),
        ("__x", "tool_x"),
        ("_private", "_private"),
        ("1st", "_1st"),
        ("", "tool"),
        ("---", "tool"),
        ("\u0430dmin", "_dmin"),
        ('"]);x(', "_x_"),
        ("a\nb", "a_b"),
    ],
)
def test_an_identifier_says_what_the_name_says(original: str, expected: str) -> None:
    assert identifier(original) == expected


def test_a_long_name_is_cut_and_stays_its_own() -> None:
    one, two = identifier("x" * 5000), identifier("x" * 5001)
    assert (len(one), len(two)) == (MAX_NAME, MAX_NAME)
    assert one != two


def test_a_valid_name_keeps_itself_and_others_give_way() -> None:
    given_names = assign_identifiers(["delete-all", "delete_all", "delete.all"])
    assert given_names["delete_all"] == "delete_all"
    assert re.fullmatch(r"delete_all_[0-9a-f]{6}", given_names["delete-all"])
    assert re.fullmatch(r"delete_all_[0-9a-f]{6}", given_names["delete.all"])
    assert len(set(given_names.values())) == 3


def test_if_no_name_is_valid_none_is_preferred() -> None:
    assert "delete_all" not in assign_identifiers(["delete-all", "delete.all"]).values()


def test_keywords_of_every_language_are_reserved() -> None:
    assert set(keyword.kwlist) | set(keyword.softkwlist) - {"_"} <= RESERVED_IDENTIFIERS
    assert {"function", "var", "let", "await", "interface", "namespace", "arguments"} <= RESERVED_IDENTIFIERS


@settings(max_examples=200, derandomize=True, deadline=None)
@given(originals=st.lists(st.text(max_size=8), unique=True, max_size=12), seed=st.integers(0, 99))
def test_identifiers_are_valid_unique_and_independent_of_order(originals: list[str], seed: int) -> None:
    assigned = assign_identifiers(originals)
    assert set(assigned) == set(originals)
    assert len(set(assigned.values())) == len(originals)
    for name in assigned.values():
        assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", name)
        assert name not in RESERVED_IDENTIFIERS
        assert not name.startswith("__")
    shuffled = random.Random(seed).sample(originals, len(originals))
    assert assign_identifiers(shuffled) == assigned


def test_wire_names_fit_what_model_providers_accept() -> None:
    identities = [("weather", "get.forecast"), ("weather", "x" * 100), ("wea-ther", "a")]
    names = assign_wire_names(identities, prefix="mcp__", separator="__")
    assert names["wea-ther", "a"] == "mcp__wea-ther__a"
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names.values())


def test_short_names_have_no_hyphens() -> None:
    identities = [
        ("my-server", "alpha"),
        ("my", "server_alpha"),
        ("filesystem", "get-sum"),
        ("a", "x.-y"),
        ("a", "x" * 99),
    ]
    names = assign_wire_names(identities, prefix="", separator="_", hyphens=False)
    assert all(re.fullmatch(r"[A-Za-z0-9_]{1,64}", name) for name in names.values())
    assert len(set(names.values())) == len(identities)
    assert names["filesystem", "get-sum"] == "filesystem_get_sum"
    assert names["a", "x.-y"] == "a_x__y"
    assert names["my", "server_alpha"] == "my_server_alpha", "its own name is exactly that"
    assert names == assign_wire_names(identities[::-1], prefix="", separator="_", hyphens=False)


def test_wire_names_never_meet() -> None:
    identities = [("a", "b__c"), ("a__b", "c"), ("a", "b.c"), ("a", "b_c"), ("a_b", "c")]
    qualified = assign_wire_names(identities, prefix="mcp__", separator="__")
    short = assign_wire_names(identities, prefix="", separator="_", taken=qualified.values(), hyphens=False)
    assert len({*qualified.values(), *short.values()}) == 10
