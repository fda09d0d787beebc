"""Counts the audit on texts that were never fitted to: `python -m bench.audit.judge`.

Public attacks by source, and the texts of servers in packages (`audit_corpus`). Packages copy from each other: a text
much of which stands in a text that was fitted to is not counted. Each text is read alone: names of other servers' tools
are not known. Only counts are shown: never look at which are missed, and count seldom.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator

from bench.audit import corpus as audit_corpus
from bench.audit.fit import Sample, listed_texts, own_texts, package_texts
from bench.audit.sources import JUDGED, attacks
from toolbridge.trust.audit.detector import findings_in

MOST_KNOWN = 0.3
"""A text is a copy if more of its runs of words stand in texts of the same kind that were fitted to."""
_RUN = 6


def without_copies(texts: Iterable[str], fitted: Iterable[str]) -> list[str]:
    """The texts of which little stands in those that were fitted to."""
    known = {run for text in fitted for run in _runs(text)}
    return [text for text in texts if len((own := _runs(text)) & known) <= MOST_KNOWN * len(own)]


def _runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[start : start + _RUN]) for start in range(max(1, len(words) - _RUN + 1))}


def _line(name: str, texts: Iterable[str]) -> str:
    found = [{finding.severity for finding in findings_in(text)} for text in texts]
    medium, high = (sum(bool(each & set(least)) for each in found) for least in (("medium", "high"), ("high",)))
    return f"| {name} | {len(found)} | {100 * medium / len(found):.1f} % | {100 * high / len(found):.2f} % |"


def judged() -> Iterator[str]:
    """A table: of each source and of the servers, the shares that are found."""
    samples: list[Sample] = [*own_texts(), *listed_texts(), *package_texts()]
    hostile = [sample.text for sample in samples if sample.is_attack]
    harmless = [sample.text for sample in samples if not sample.is_attack]
    yield "| texts | counted | medium or high | high |\n|---|---|---|---|"
    sources = {name: without_copies(texts, hostile) for name, texts in attacks().items() if name in JUDGED}
    for source, texts in sorted(sources.items()):
        yield _line(source, texts)
    yield _line("all attacks", (text for texts in sources.values() for text in texts))
    servers = [server for server in audit_corpus.servers() if server.is_judged]
    count = f"of {len(servers)} servers (false alarms)"
    tools = without_copies((text for each in servers for text in each.tool_texts), harmless)
    yield _line(f"titles, descriptions and instructions {count}", tools)
    parameters = without_copies((text for each in servers for text in each.parameter_texts), harmless)
    yield _line(f"descriptions of parameters {count}", parameters)


if __name__ == "__main__":
    for line in judged():
        sys.stdout.write(line + "\n")
