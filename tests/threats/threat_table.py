"""The threats, as data: what the suite covers, what docs/THREAT-MODEL.md explains and what the report has a row for.

A test belongs to a threat by the name of its file: `test_t07_namespace_collision.py` is about T7. A threat may have
several files. `test_threat_table.py` ties table, tests, document and self-test to each other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal, TypeAlias

Degree: TypeAlias = Literal["low", "medium", "high", "critical"]

_FILE = re.compile(r"test_t(\d{2})_\w+\.py")


@dataclass(frozen=True, slots=True)
class Threat:
    """One thing that could go wrong."""

    number: int
    title: str
    severity: Degree
    """What it would cost if nothing were done about it."""
    likelihood: Degree
    """How probably somebody tries it, or it happens by itself."""
    promise: str
    """What must hold, in one sentence."""

    @property
    def id(self) -> str:
        """`T7`."""
        return f"T{self.number}"


def _threat(number: int, title: str, severity: Degree, likelihood: Degree, promise: str) -> Threat:
    return Threat(number, title, severity, likelihood, promise)


THREATS: tuple[Threat, ...] = (
    _threat(
        *(1, "command injection through configuration", "critical", "high"),
        "A server that nobody approved is never started, by any path.",
    ),
    _threat(
        *(2, "a server has full OS access", "critical", "high"),
        "Whoever approves a server has read that it runs with their permissions, and can put a wall around it.",
    ),
    _threat(
        *(3, "a response carries instructions", "high", "high"),
        "A response stays data: it enters no stub, prompt or catalog, and results name the servers they came from.",
    ),
    _threat(
        *(4, "environment and secrets leak", "high", "high"),
        "A secret of the configuration is in nothing that is shown, logged or kept, in any common encoding.",
    ),
    _threat(
        *(5, "crash or hang", "medium", "high"),
        "Every wait ends in time in a typed error, and a dead server is started again, but not for ever.",
    ),
    _threat(
        *(6, "schema poisoning", "high", "medium"),
        "A server's text stays in comments and literals: every stub parses and declares only what it should.",
    ),
    _threat(
        *(7, "namespace collision", "high", "low"),
        "Reserved, native and twin names of servers are refused when the configuration is loaded.",
    ),
    _threat(
        *(8, "stdio injection", "medium", "high"),
        "Whatever else comes out of a server's stdout breaks no session and becomes no result.",
    ),
    _threat(
        *(9, "proliferation", "medium", "medium"),
        "The caps on servers, connections, tools, pages and bytes hold, under concurrency too.",
    ),
    _threat(
        *(10, "approval tampering", "critical", "medium"),
        "A store that somebody else could have written, or that is damaged, approves nothing.",
    ),
    _threat(
        *(11, "rug pull", "high", "medium"),
        "A tool that is not exactly as it was pinned is blocked, and the difference is shown.",
    ),
    _threat(
        *(12, "shadowing across servers", "high", "medium"),
        "Text about another server's tools is flagged, and no server takes another's place.",
    ),
    _threat(
        *(13, "identifier collision", "high", "low"),
        "Every tool has a name of its own, and the tool that was gated is the tool that is called.",
    ),
    _threat(
        *(14, "hidden text", "high", "medium"),
        "What a reader can't see reaches no model, and a person is shown that it is there.",
    ),
    _threat(
        *(15, "schema bombs", "medium", "low"),
        "Any schema is read in bounded time and size, and nothing is fetched.",
    ),
    _threat(
        *(16, "ReDoS", "medium", "low"),
        "No pattern of a server runs unbounded on the host, and neither does one of ours.",
    ),
    _threat(
        *(17, "reserved members", "medium", "low"),
        "Names that mean something to a language become no members of anything of ours.",
    ),
    _threat(
        *(18, "endless listing", "medium", "low"),
        "A listing without end is given up, and a flood of changes is one change.",
    ),
    _threat(
        *(19, "unframed output", "medium", "low"),
        "A line without end, or a flood on either stream, is bounded before it is parsed.",
    ),
    _threat(
        *(20, "terminal injection", "high", "medium"),
        "No text of a server is obeyed by a terminal.",
    ),
    _threat(
        *(21, "confused deputy", "high", "medium"),
        "Nothing that guest code passes, or a server says of its tools, lowers a decision of the gate.",
    ),
    _threat(
        *(22, "exfiltration between servers", "critical", "medium"),
        "Who has read private data and strangers' words sends nothing out, unless the policy says so.",
    ),
    _threat(
        *(23, "time-of-check/time-of-use", "high", "low"),
        "What was approved is what runs, whatever is changed in between.",
    ),
    _threat(
        *(24, "command hijack", "critical", "medium"),
        "A look-alike on PATH, a variable that loads code and an unpinned package are shown and hashed.",
    ),
    _threat(
        *(25, "project configuration trusted by cloning", "critical", "high"),
        "A repository's file needs its own approval, and no approval carries to another origin.",
    ),
    _threat(
        *(26, "control-plane writes", "critical", "medium"),
        "Guest code and tools change no configuration, approval, lock or cache through the bridge.",
    ),
    _threat(
        *(27, "HTTP", "high", "medium"),
        "Secrets go to the server they were configured for, encrypted, and nobody is reached by way of another.",
    ),
    _threat(
        *(28, "orphans", "low", "high"),
        "Whatever a server started is gone with it, however either came to its end.",
    ),
    _threat(
        *(29, "server-initiated requests", "high", "medium"),
        "Sampling, roots and elicitation are declined unless the host handles them, and then the server is named.",
    ),
    _threat(
        *(30, "boundary abuse", "critical", "medium"),
        "Whatever bytes a guest hands over, the host answers with an error frame or a trap.",
    ),
    _threat(
        *(31, "resource exhaustion by the guest", "high", "high"),
        "A guest ends at its limits, the host is unharmed, and the next run is none the worse.",
    ),
    _threat(
        *(32, "escape", "critical", "low"),
        "No file, variable, socket, process, clock or other run's memory can be reached from guest code.",
    ),
    _threat(
        *(33, "state bleed between runs", "high", "low"),
        "Nothing of one run is visible to the next.",
    ),
    _threat(
        *(34, "poisoned compile cache", "critical", "low"),
        "Compiled code that another user could have written, or that is stale, is never loaded.",
    ),
    _threat(
        *(35, "secrets on disk", "high", "medium"),
        "Files that toolbridge writes hold references, never values.",
    ),
)

BY_ID = {threat.id: threat for threat in THREATS}


def threat_of(path: str) -> Threat | None:
    """The threat that a file of tests is about; None for those about the suite itself."""
    match = _FILE.fullmatch(PurePath(path).name)
    return BY_ID.get(f"T{int(match[1])}") if match else None
