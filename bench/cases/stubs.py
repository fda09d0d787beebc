"""Stubs of 500 rich tools, from nothing and from the cache."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.case import Bench
from bench.measure import Batch, batch, compare, take_turns
from bench.peer_packages import Missing
from bench.report import Finding, Row, Skipped
from bench.rich_tools import catalog_of, rich_servers
from toolbridge_codegen.cache import StubCache
from toolbridge_codegen.catalog import Catalog
from toolbridge_codegen.stubs import Language, generate

_SERVERS, _TOOLS = 10, 50
_PEER = "json-schema-to-typescript on Node"
_PEER_STARTED = f"{_PEER}, new process"
_PEER_SCRIPT = Path(__file__).parent / "peers" / "json_schema_to_typescript.mjs"
_PACKAGE = "json-schema-to-typescript"
_COLD = "500 tools, .d.ts and .pyi"

_NEW_PROCESS = """
import json, sys
sys.path.insert(0, sys.argv[1])
from bench.rich_tools import catalog_of
from toolbridge_codegen.stubs import generate
generate(catalog_of(json.load(open(sys.argv[2]))), language="typescript")
"""


def measure(bench: Bench) -> Iterable[Finding]:
    """Inputs and outputs of all tools, as parsed JSON, to text. Both sides warm, but for what says otherwise."""
    servers = rich_servers(_SERVERS, _TOOLS)
    with tempfile.TemporaryDirectory() as directory:
        listings, schemas = Path(directory) / "listings.json", Path(directory) / "schemas.json"
        listings.write_text(json.dumps(servers), "utf-8")
        schemas.write_text(json.dumps(_schemas(servers)), "utf-8")
        caches = Path(directory) / "cache"
        remembered = StubCache()
        _both(servers, remembered)
        _both(servers, StubCache(caches))
        contenders: dict[str, Batch] = {
            "500 tools, .d.ts": batch(lambda: _written(catalog_of(servers), "typescript")),
            _COLD: batch(lambda: _both(servers, None)),
            "500 tools unchanged, from memory": batch(lambda: _both(servers, remembered)),
            "500 tools unchanged, from disk": batch(lambda: _both(servers, StubCache(caches))),
        }
        skipped: list[Finding] = []
        peer = bench.node_peer(_PEER_SCRIPT, _PACKAGE, str(schemas))
        if isinstance(peer, Missing):
            skipped.append(Skipped(f"stubs against {_PEER}", peer.reason))
        else:
            contenders[_PEER] = peer.batch("compileAll", 1)
            command = ["node", str(_PEER_SCRIPT), str(peer.packages), str(schemas), "once"]
            contenders[_PEER_STARTED] = batch(lambda: _run(command))
            ours = [sys.executable, "-c", _NEW_PROCESS, str(Path(__file__).parents[2]), str(listings)]
            contenders["500 tools, .d.ts, new process"] = batch(lambda: _run(ours))
        samples = take_turns(contenders, bench.rounds(15))

    cold = samples[_COLD]
    rows: list[Finding] = []
    if _PEER in samples:
        rows = [
            Row("500 tools, .d.ts", _PEER, compare(samples["500 tools, .d.ts"], samples[_PEER]), 1.0, note=_NOTE),
            Row(_COLD, _PEER, compare(cold, samples[_PEER]), 2.0),
            Row(
                "500 tools, .d.ts, new process",
                _PEER_STARTED,
                compare(samples["500 tools, .d.ts, new process"], samples[_PEER_STARTED]),
            ),
        ]
    for name in ("500 tools unchanged, from memory", "500 tools unchanged, from disk"):
        rows.append(Row(name, f"{_COLD}, from nothing", compare(samples[name], cold), 1 / 20))
    return [*rows, *skipped]


_NOTE = (
    "processes already started on both sides, the peer without prettier; the line with new processes has it otherwise"
)


def _written(catalog: Catalog, language: Language, cache: StubCache | None = None) -> None:
    """Writes the stubs, and looks that they are there."""
    files = generate(catalog, language=language, cache=cache).files
    assert sum(map(len, files.values())) > 100_000


def _both(servers: dict[str, list[dict[str, Any]]], cache: StubCache | None) -> None:
    catalog = catalog_of(servers)
    _written(catalog, "typescript", cache)
    _written(catalog, "python", cache)


def _schemas(servers: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Every schema on its own, as the peer takes them."""
    return [
        {"name": f"{tool['name']}_{side}", "schema": tool[f"{side}Schema"]}
        for tools in servers.values()
        for tool in tools
        for side in ("input", "output")
    ]


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
