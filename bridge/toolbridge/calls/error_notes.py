"""What the audit finds in the words of an error: a note in the call's record, since a model gets to read them (T3)."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=256)
def error_notes(message: str) -> tuple[str, ...]:
    """A note for each grave finding. Programs repeat what fails: the same words are read once."""
    from toolbridge.trust.audit_text import findings_in  # its rules are compiled for those who need them

    grave = [found.rule for found in findings_in(message) if found.severity == "high"]
    return tuple(f"The audit finds {rule.id} in the error's text: it {rule.why}" for rule in grave)
