"""Switches each mitigation off in turn and shows that the threat suite goes red for it: `make threats-selftest`.

    python tests/threats/run_selftest.py [--jobs N] [T7 T22 …]

One mitigation at a time is taken away from a copy of the source (`selftest/*_mitigations.py` has the table), and the
tests that should notice are run until the first failure; that test must then pass against the unchanged copy.
The result is printed, and written to dist/threats/selftest.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]

if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))
    from threats.selftest.command import main

    sys.exit(main(sys.argv[1:]))
