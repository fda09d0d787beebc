"""The audit's weights are what the fit makes of the texts that may be learned from, and of nothing else."""

from __future__ import annotations

from toolbridge.trust.audit_weights import DATA, read_weights, weights, written
from trust import fit_audit
from trust.audit_figures import texts


def test_the_fit_gives_the_weights_that_are_there() -> None:
    """Byte for byte; `python -m trust.fit_audit` in tests/ writes them anew. Skipped without real listings."""
    assert fit_audit.fitted_text() == DATA.read_text("utf-8")


def test_nothing_that_is_held_out_is_learned_from() -> None:
    learned = {sample.text for samples in fit_audit.authors().values() for sample in samples}
    assert not learned & {text.text for text in texts("attacks") if text.held_out}


def test_weights_are_read_as_they_were_written() -> None:
    assert read_weights(written(weights())) == weights()
