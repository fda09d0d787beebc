"""What Linux says about a process."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class ProcessFacts(NamedTuple):
    """Memory in bytes; threads and open descriptors in number."""

    private: int
    """Pages that no other process, and no second mapping, shares."""
    resident: int
    threads: int
    descriptors: int


def process_facts(process: int | str = "self") -> ProcessFacts:
    """The facts of a process of ours, now."""
    root = Path("/proc") / str(process)
    sizes: dict[str, int] = {}
    for line in (root / "smaps_rollup").read_text().splitlines()[1:]:
        name, kilobytes, *_ = line.split()
        sizes[name.rstrip(":")] = 1024 * int(kilobytes)
    return ProcessFacts(
        private=sizes["Private_Clean"] + sizes["Private_Dirty"],
        resident=sizes["Rss"],
        threads=len(list((root / "task").iterdir())),
        descriptors=len(list((root / "fd").iterdir())),
    )
