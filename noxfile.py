"""The tests on every supported Python: `nox` runs those present, `nox --python 3.13 -- tests/cli` one of them.

Each session runs `make` in its own environment, so that nox, CI and a person run the same commands.
"""

from __future__ import annotations

import nox

nox.needs_version = ">=2025.2.9"
nox.options.error_on_missing_interpreters = False

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def _make(session: nox.Session, target: str, *variables: str) -> None:
    session.run("make", target, f"VENV={session.virtualenv.location}", *variables, external=True)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the tests, or those named after `--`."""
    _make(session, "test", f"TESTS={' '.join(session.posargs) or 'tests'}")


@nox.session(python=PYTHONS, default=False)
def check(session: nox.Session) -> None:
    """Lint, check the format, type-check, check the import contracts."""
    _make(session, "check")
