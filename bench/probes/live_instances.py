"""Prints the private memory that one more live instance takes: `ours`, or of the `native` engine."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from bench.probes.process_facts import process_facts

_LIVE = 100


def _ours() -> float:
    from toolbridge import Sandbox

    with Sandbox() as sandbox:

        def live() -> Any:
            session = sandbox.session()
            assert session.run_sync("1+1").value == 2
            return session

        return _each(live)


def _native() -> float:
    from bench.peer_packages import native_quickjs

    quickjs: Any = native_quickjs()

    def live() -> Any:
        context = quickjs.Context()
        assert context.eval("1+1") == 2
        return context

    return _each(live)


def _each(live: Callable[[], Any]) -> float:
    kept = [live() for _ in range(3)]  # what only the first ones cost
    before = process_facts().private
    kept.extend(live() for _ in range(_LIVE))
    return (process_facts().private - before) / _LIVE


print(json.dumps(_ours() if sys.argv[1] == "ours" else _native()))
