"""A fresh sandbox, `1+1`, and its end: what isolating every single run costs."""

from __future__ import annotations

from collections.abc import Iterable

from bench.case import NATIVE_PEER, NODE_PEER, SPAWN, Bench, spawn_python
from bench.measure import Batch, batch, compare, take_turns
from bench.peer_packages import Missing
from bench.report import Finding, Row, Skipped
from toolbridge import Sandbox
from toolbridge.sandbox.engine import shared_engine

_WHAT = "fresh sandbox, 1+1, close"
_SHARED = "Its contexts share one Wasm memory; ours share nothing"
_RESTORED = "Where Linux tells which pages a guest wrote to, they are restored and the guest serves again"
_MAPPED_ANEW = "ours, every guest mapped anew"
_NODE_OWN_MEMORY = f"{NODE_PEER}, own Wasm memory"


def measure(bench: Bench) -> Iterable[Finding]:
    """Against a process, and against peers that isolate less."""
    contenders: dict[str, Batch] = {
        "ours": batch(_fresh_sandbox, 40),
        _MAPPED_ANEW: batch(_mapped_anew, 40),
        SPAWN: batch(spawn_python),
    }
    skipped: list[Finding] = []
    if isinstance(bench.node, Missing):
        skipped.append(Skipped(f"{_WHAT} against {NODE_PEER}", bench.node.reason))
    else:
        contenders[NODE_PEER] = bench.node.batch("freshContext", 40)
        contenders[_NODE_OWN_MEMORY] = bench.node.batch("freshModule", 5)
    native = bench.native
    if isinstance(native, Missing):
        skipped.append(Skipped(f"{_WHAT} against {NATIVE_PEER}", native.reason))
    else:
        contenders[NATIVE_PEER] = batch(lambda: native.Context().eval("1+1"), 40)
    samples = take_turns(contenders, bench.rounds(50))

    targets = {SPAWN: 1 / 40, NODE_PEER: 1.0}
    notes = {_MAPPED_ANEW: _RESTORED, NODE_PEER: _SHARED, NATIVE_PEER: "No sandbox: it shares the process's memory"}
    rows = [
        Row(_WHAT, name, compare(samples["ours"], theirs), targets.get(name), note=notes.get(name, ""))
        for name, theirs in samples.items()
        if name != "ours"
    ]
    return [*rows, *skipped]


def _mapped_anew() -> None:
    guests = shared_engine().pool("javascript")
    while guests._instances:
        guests._instances.pop().close()
    _fresh_sandbox()


def _fresh_sandbox() -> None:
    with Sandbox() as sandbox:
        assert sandbox.run_sync("1+1").value == 2
