"""What this process holds: memory and descriptors, read from /proc."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

STATM = Path("/proc/self/statm")
needs_proc = pytest.mark.skipif(not STATM.exists(), reason="the process's memory is read from /proc")


def resident_bytes() -> int:
    """Of this process, without what is shared with nobody but the page cache."""
    _, resident, shared, *_ = (int(word) for word in STATM.read_text().split())
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")


def open_descriptors() -> int:
    """How many there are."""
    return len(os.listdir("/proc/self/fd"))


def highest_memory(work: Callable[[], object]) -> int:
    """By how much the process's memory grows while something is done."""
    gc.collect()
    before = resident_bytes()
    highest = before
    done = threading.Event()

    def watch() -> None:
        nonlocal highest
        while not done.wait(0.01):
            highest = max(highest, resident_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    work()
    done.set()
    watcher.join()
    return highest - before
