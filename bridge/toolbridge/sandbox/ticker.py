"""The epoch ticker: advances the engine's epoch while runs are active, and sleeps otherwise."""

from __future__ import annotations

import threading
import time

from toolbridge.boundary import library
from toolbridge.boundary.run_time import Ticks

TICK_SECONDS = 0.005
# A few idle ticks before going to sleep: runs that follow each other needn't wake the thread each time.
_LINGER_TICKS = 10


class EpochTicker:
    """One thread per engine, started by the first run."""

    def __init__(self, engine: int) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._active = 0
        self.ticks = Ticks(TICK_SECONDS)

    @property
    def is_ticking(self) -> bool:
        """Whether the epoch advances at the moment."""
        return self._thread is not None and self._wake.is_set()

    def enter(self) -> None:
        """A run begins."""
        with self._lock:
            self._active += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._tick, name="toolbridge-ticker", daemon=True)
                self._thread.start()
            if not self._wake.is_set():
                self._wake.set()

    def leave(self) -> None:
        """A run has ended."""
        with self._lock:
            self._active -= 1

    def _tick(self) -> None:
        idle = 0
        counted_until = time.monotonic()
        while True:
            if not self._wake.is_set():
                self._wake.wait()
                counted_until = time.monotonic()
            time.sleep(TICK_SECONDS)
            library.engine_increment_epoch(self._engine)
            # Where the host's own threads are busy, this one gets its turn late: it counts the ticks that it missed.
            passed = max(1, int((time.monotonic() - counted_until) / TICK_SECONDS))
            counted_until += passed * TICK_SECONDS
            self.ticks.count += passed
            if self._active:
                idle = 0
                continue
            idle += 1
            if idle > _LINGER_TICKS:
                with self._lock:
                    if not self._active:
                        self._wake.clear()
