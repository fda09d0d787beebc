"""The grammar of references."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbridge.config.references import UnknownReferenceError, expand, looks_expandable, uses_input

VALUES = {"A": "1", "B_2": "two", "NESTED": "${A}", "DOLLARS": "$${A}$", "_": "under"}


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("", ""),
        ("plain", "plain"),
        ("${A}", "1"),
        ("${env:A}", "1"),
        ("Bearer ${B_2}!", "Bearer two!"),
        ("${A}${A}${env:B_2}", "11two"),
        ("${_}", "under"),
        ("$A $(A) {A} $ $$ 100$", "$A $(A) {A} $ $$ 100$"),
        ("$${A}", "${A}"),
        ("$${", "${"),
        ("$$${A}", "$${A}"),
        ("$${A} ${A}", "${A} 1"),
        ("a}b", "a}b"),
    ],
)
def test_references_are_replaced_and_all_else_stays(text: str, result: str) -> None:
    assert expand(text, VALUES.__getitem__) == result


@pytest.mark.parametrize("name", ["NESTED", "DOLLARS"])
def test_a_value_is_not_looked_at_again(name: str) -> None:
    assert expand(f"<${{{name}}}>", VALUES.__getitem__) == f"<{VALUES[name]}>"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("${input:my-token}", "${input:my-token}"),
        ("${VAR:-sk-secret}", "${VAR…"),
        ("${A", "${…"),
        ("pass${word", "${…"),
        ("pass${word:sk}", "${…"),
        ("${}", "${…"),
        ("${env:}", "${…"),
        ("${ A }", "${…"),
        ("${A.B}", "${…"),
        ("${1}", "${…"),
        ("${A\n}", "${…"),
        ("${Ä}", "${…"),
        ("${${A}}", "${…"),
        ("${command:run}", "${…"),
    ],
)
def test_any_other_form_is_refused_without_showing_what_may_be_secret(text: str, shown: str) -> None:
    with pytest.raises(UnknownReferenceError) as caught:
        expand(text, VALUES.__getitem__)
    assert caught.value.name == shown


@given(st.text(alphabet="${}:envA_ -x"))
def test_doubling_the_dollar_of_every_opening_gives_the_text_itself(text: str) -> None:
    if "$${" not in text:
        assert expand(text.replace("${", "$${"), VALUES.__getitem__) == text


@pytest.mark.parametrize("text", ["${input:a}", "x${input:a}y", "$ ${input:"])
def test_an_input_is_noticed(text: str) -> None:
    assert uses_input(text)


@pytest.mark.parametrize("text", ["$${input:a}", "$input:a", "${inputs}", "input:a"])
def test_what_is_no_input_is_not(text: str) -> None:
    assert not uses_input(text)


def test_what_a_person_may_expect_to_work_is_noticed() -> None:
    assert [looks_expandable(text) for text in ("${A}", "${input:x}", "${x", "$A", "$${A}", "a")] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]
    assert not looks_expandable("${A}", besides={"A": ""})
    assert looks_expandable("${A} ${B}", besides={"A": ""})
