"""SECURITY: this user's decisions about tool definitions, by server and digest: a sealed store (T11, T25).

A lock in a repository records a definition; only this file records that this user accepted it. A refusal holds until
a person accepts the same definition. `audited` marks definitions that passed the audit, and that no person has seen.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from toolbridge.config.config import listing_key
from toolbridge.config.server_config import Origin, ServerConfig
from toolbridge.trust.approval.sealed_store import (
    VERSION,
    RecordsError,
    SealedStore,
    items_of,
    object_of,
    origin_of,
    origin_to_json,
    sealed,
    text_of,
    unsealed,
)
from toolbridge.trust.pins.definition import canonical_text

Decision: TypeAlias = Literal["accepted", "refused", "audited"]
MOST_AUDITED = 2_000
"""Of one server, so that definitions without a person's decision can't fill the file."""
INSTRUCTIONS = ""
"""The name of a server's instructions among decisions: no tool has it."""

_MOST_NAME = 200
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
ServerKey: TypeAlias = tuple[Origin, str, str]
Named: TypeAlias = Mapping[str, str]
"""Digests of definitions, each with the name of its tool."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """The decisions about one server's definitions."""

    accepted: Named = field(default_factory=dict[str, str])
    refused: Named = field(default_factory=dict[str, str])
    audited: Named = field(default_factory=dict[str, str])

    def of(self, digest: str) -> Decision | None:
        """Returns the decision about a definition; None without one."""
        for each in get_args(Decision):
            if digest in getattr(self, each):
                return each
        return None

    @property
    def has_persons(self) -> bool:
        """Whether a person decided about any definition of this server."""
        return bool(self.accepted or self.refused)

    def may_pass_unseen(self, name: str, *, is_pinned: bool) -> bool:
        """Whether a tool may be used unseen: at the first use, or as a reviewed lock pins it.

        Never after a person refused a definition of this tool, or the whole server.
        """
        if not self.has_persons:
            return True
        return is_pinned and bool(self.accepted) and name[:_MOST_NAME] not in self.refused.values()

    def with_decision(self, decision: Decision, named: Named) -> Decisions:
        """Returns a copy in which these definitions have this decision, and no other.

        "audited" overrides no person: it leaves out definitions that were accepted or refused. It also replaces all
        earlier audited ones, since they are those of the last listing.
        """
        rest = {each: getattr(self, each) for each in get_args(Decision)}
        kept = {
            each: {digest: name for digest, name in known.items() if digest not in named}
            for each, known in rest.items()
        }
        if decision == "audited":
            undecided = {digest: name for digest, name in named.items() if self.of(digest) in (None, "audited")}
            return Decisions(self.accepted, self.refused, undecided)
        kept[decision] = {**kept[decision], **named}
        return Decisions(**kept)


def instructions_digest(text: str) -> str:
    """Returns `sha256:…` of a server's instructions; no definition of a tool has the same digest."""
    content = canonical_text(text).encode("utf-8", "surrogatepass")
    return f"sha256:{hashlib.sha256(b'instructions:' + content).hexdigest()}"


def server_key(server: ServerConfig) -> ServerKey:
    """Returns the key of a server among decisions: origin and name, and for a program's server its configuration."""
    return server.origin, server.name, listing_key(server) if server.origin.kind == "code" else ""


class ToolDecisionStore(SealedStore[dict[ServerKey, Decisions]]):
    """The decisions of this user about tool definitions."""

    what = "The decisions about tools"
    file_name = "tool-decisions.json"
    folder = "tools"

    def record(self, server: ServerConfig, decision: Decision, named: Named) -> Decisions:
        """Stores a decision about these definitions, as `with_decision` does; returns all of this server's.

        Names are cut after 200 characters. Blocks: reads and writes the file under a lock between processes.

        Raises:
            ApprovalStoreError: it can't be kept.
        """
        key = server_key(server)
        named = {digest: name[:_MOST_NAME] for digest, name in named.items()}
        now = Decisions()

        def change(known: dict[ServerKey, Decisions]) -> dict[ServerKey, Decisions]:
            """Adds the decision to those in the file."""
            nonlocal now
            now = known.get(key, Decisions()).with_decision(decision, named)
            return {**known, key: now}

        self._change(change)
        return now

    def _from_text(self, text: bytes | None, key: bytes) -> dict[ServerKey, Decisions]:
        """Parses a file's text; None is an empty store. Raises RecordsError if it is damaged, altered or ambiguous."""
        if text is None:
            return {}
        found: dict[ServerKey, Decisions] = {}
        for value in items_of(unsealed(text, key, {"version", "servers"})["servers"], "servers"):
            fields = object_of(value, "a server", {"name", "origin", "key", *get_args(Decision)})
            place = origin_of(fields["origin"]), text_of(fields["name"], "a name"), text_of(fields["key"], "a key")
            if place in found:
                raise RecordsError("is damaged: it has one server twice")
            found[place] = Decisions(**{each: _named(fields[each]) for each in get_args(Decision)})
        return found

    def _to_text(self, content: dict[ServerKey, Decisions], key: bytes) -> bytes:
        """Returns the text of a file with these decisions, sealed and sorted."""
        servers: list[dict[str, Any]] = [
            {
                "name": name,
                "origin": origin_to_json(origin),
                "key": of_code,
                **{each: dict(getattr(decisions, each)) for each in get_args(Decision)},
            }
            for (origin, name, of_code), decisions in sorted(content.items(), key=lambda item: str(item[0]))
        ]
        return sealed({"version": VERSION, "servers": servers}, key)


def _named(value: object) -> dict[str, str]:
    found = object_of(value, "the decisions about a server", None)
    return {text_of(digest, "a digest", _DIGEST): text_of(name, "a name") for digest, name in found.items()}
