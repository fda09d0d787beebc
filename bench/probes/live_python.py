"""Prints the private memory that one more live Python instance takes after an eval."""

from __future__ import annotations

import json

from bench.probes.process_facts import process_facts
from toolbridge import Sandbox, Session

_LIVE = 40


def _live(sandbox: Sandbox) -> Session:
    session = sandbox.session(language="python")
    assert session.run_sync("1+1").value == 2
    return session


with Sandbox() as shared:
    kept = [_live(shared) for _ in range(3)]  # what only the first ones cost
    before = process_facts().private
    kept.extend(_live(shared) for _ in range(_LIVE))
    print(json.dumps((process_facts().private - before) / _LIVE))
