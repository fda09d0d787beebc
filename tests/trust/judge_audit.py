"""Counts the audit on texts that were never fitted to: `python -m trust.judge_audit` in tests/.

Public attacks by source, and the texts of servers in packages (`audit_corpus`). Each text is read alone: names of other
servers' tools are not known. Only counts are shown: never look at which are missed, and count seldom.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from toolbridge.trust.audit_text import findings_in
from trust import audit_corpus
from trust.audit_sources import JUDGED, attacks


def _line(name: str, texts: Iterable[str]) -> str:
    found = [{finding.severity for finding in findings_in(text)} for text in texts]
    medium, high = (sum(bool(each & set(least)) for each in found) for least in (("medium", "high"), ("high",)))
    return f"| {name} | {len(found)} | {100 * medium / len(found):.1f} % | {100 * high / len(found):.2f} % |"


def judged() -> Iterator[str]:
    """A table: of each source and of the servers, the shares that are found."""
    yield "| texts | counted | medium or high | high |\n|---|---|---|---|"
    sources = {source: texts for source, texts in attacks().items() if source in JUDGED}
    for source, texts in sorted(sources.items()):
        yield _line(source, texts)
    yield _line("all attacks", (text for texts in sources.values() for text in texts))
    servers = [server for server in audit_corpus.servers() if server.is_judged]
    count = f"of {len(servers)} servers (false alarms)"
    yield _line(f"titles, descriptions and instructions {count}", (t for each in servers for t in each.tool_texts))
    yield _line(f"descriptions of parameters {count}", (t for each in servers for t in each.parameter_texts))


if __name__ == "__main__":
    for line in judged():
        sys.stdout.write(line + "\n")
