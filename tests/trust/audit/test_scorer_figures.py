"""What the audit finds: measured, and told as it is in docs/audit-servers.md."""

from __future__ import annotations

import pytest
from bench.audit import figures as audit_figures
from bench.audit.figures import found, held_out, texts, withheld


def test_the_corpus_is_as_large_as_it_should_be() -> None:
    attacks = texts("attacks")
    assert len(attacks) >= 180
    assert 0.28 < sum(text.held_out for text in attacks) / len(attacks) < 0.40
    assert len(texts("benign")) >= 60
    assert len(texts("attacks_held_out")) >= 160
    for file in audit_figures.TEXTS.glob("*.jsonl"):
        name = file.stem
        assert len({text.id for text in texts(name)}) == len({text.text for text in texts(name)}) == len(texts(name))


def test_of_the_attacks_that_were_held_out_at_least_80_percent_are_found() -> None:
    held_out = [text for text in texts("attacks") if text.held_out]
    assert found(held_out) >= 0.80 * len(held_out)


def test_of_attacks_that_others_wrote_and_nobody_here_has_read_at_least_85_percent_are_found() -> None:
    """Never look at which are missed: then the figure says nothing any more."""
    attacks = held_out("attacks")
    assert len(attacks) >= 400
    assert found(attacks) >= 0.85 * len(attacks)


def test_of_harmless_texts_in_the_same_words_hardly_any_is_found() -> None:
    assert found(list(texts("benign"))) <= 0.03 * len(texts("benign"))


@pytest.mark.parametrize("name", ["benign_independent", "benign_five_authors"])
def test_of_harmless_texts_that_others_wrote_to_be_mistaken_few_are_found(name: str) -> None:
    assert found(list(texts(name))) <= 0.08 * len(texts(name))


def test_the_grade_that_withholds_a_tool_is_for_attacks_and_not_for_harmless_texts() -> None:
    attacks = held_out("attacks")
    assert withheld(attacks) >= 0.55 * len(attacks)
    for name in ("benign", "benign_wordings", "benign_servers"):
        assert withheld(list(texts(name))) <= 0.005 * len(texts(name))


def test_of_such_texts_that_nobody_here_has_read_few_are_found() -> None:
    assert found(held_out("benign")) <= 0.08 * len(held_out("benign"))


def test_real_servers_cause_few_false_alarms() -> None:
    alarms = audit_figures.false_alarms()
    assert alarms.tool_texts > 300
    assert alarms.in_tool_texts <= 0.02 * alarms.tool_texts
    assert alarms.in_parameter_texts <= 0.003 * alarms.parameter_texts
    assert alarms.high_in_tool_texts <= 0.005 * alarms.tool_texts
    assert alarms.high_in_parameter_texts <= 0.001 * alarms.parameter_texts


def test_the_figures_in_the_document_are_those_of_today() -> None:
    document = audit_figures.DOCUMENT.read_text("utf-8")
    assert audit_figures.table_in(document, "figures") == audit_figures.figures_table()
    assert audit_figures.table_in(document, "rules") == audit_figures.rules_table()
