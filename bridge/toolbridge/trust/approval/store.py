"""SECURITY: this user's decisions about servers: `approved-mcp.json`, a sealed store (T1, T10, T25, T35)."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from toolbridge.config.config import Config
from toolbridge.config.server_config import Origin, ServerConfig
from toolbridge.trust.approval.approver import ApprovalRequest, approved_facts, differences
from toolbridge.trust.approval.sealed_store import (
    ApprovalRecord,
    ApprovalStoreError,
    Records,
    SealedStore,
    SwitchRecord,
    records_from_text,
    records_to_text,
)

__all__ = ["ApprovalStore", "ApprovalStoreError", "Standing", "StoredAnswer", "with_switches"]

FILE_NAME = "approved-mcp.json"

Standing: TypeAlias = Literal["approved", "unknown", "changed", "revoked"]


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The stored decision about a request."""

    standing: Standing
    when: str = ""
    """The time of the decision."""
    changes: tuple[str, ...] = ()
    """The facts that differ from the approved ones."""
    disabled: bool = False
    """Whether this user disabled the server: then it is not started, approved or not."""


class ApprovalStore(SealedStore[Records]):
    """The decisions of this user about servers."""

    what = "The approvals"
    file_name = FILE_NAME
    folder = "approvals"

    def _from_text(self, text: bytes | None, key: bytes) -> Records:
        return Records() if text is None else records_from_text(text, key)

    def _to_text(self, content: Records, key: bytes) -> bytes:
        return records_to_text(content, key)

    def answer(self, request: ApprovalRequest) -> StoredAnswer:
        """Returns the decision about exactly this snapshot. Blocks on the file, which is read anew.

        Raises:
            ApprovalStoreError: see `read`.
        """
        server = request.server
        records = self.read()
        disabled = records.switch(server.origin, server.name) is False
        known = [each for each in records.approvals if (each.origin, each.name) == (server.origin, server.name)]
        # A decision for the same directory says more than one for another.
        known.sort(key=lambda each: (each.directory == _directory(request), each.when))
        if not known:
            return StoredAnswer("unknown", disabled=disabled)
        last = known[-1]
        if last.decision == "revoked":
            return StoredAnswer("revoked", last.when, disabled=disabled)
        if last.digest == request.digest and last.directory == _directory(request):
            return StoredAnswer("approved", last.when, disabled=disabled)
        return StoredAnswer("changed", last.when, differences(last.what, approved_facts(request)), disabled)

    def approve(self, request: ApprovalRequest) -> None:
        """Stores an approval of exactly this snapshot, in place of an earlier decision. Blocks on the file.

        Raises:
            ApprovalStoreError: it can't be stored.
        """
        server = request.server
        what = approved_facts(request)
        record = ApprovalRecord(
            server.origin, server.name, _directory(request), request.digest, "approved", _now(), what
        )
        self._change(lambda records: records.with_approval(record))

    def revoke(self, name: str, origin: Origin | None = None) -> tuple[ApprovalRecord, ...]:
        """Revokes the approvals of a server in every directory, of one origin or of all; returns the former ones.

        A host that has the server connected closes it as well. Blocks on the file.

        Raises:
            ApprovalStoreError: it can't be stored.
        """
        revoked: list[ApprovalRecord] = []

        def change(records: Records) -> Records:
            """Revokes the approvals, and collects those of the file in `revoked`."""
            revoked[:] = [
                each
                for each in records.approvals
                if each.decision == "approved" and each.name == name and origin in (None, each.origin)
            ]
            for each in revoked:
                records = records.with_approval(replace(each, decision="revoked", when=_now()))
            return records

        self._change(change)
        return tuple(revoked)

    def set_enabled(self, server: ServerConfig, enabled: bool) -> None:
        """Stores that a server is enabled or disabled for this user. Enabling approves nothing. Blocks on the file.

        Raises:
            ApprovalStoreError: it can't be stored.
        """
        record = SwitchRecord(server.origin, server.name, enabled, _now())
        self._change(lambda records: records.with_switch(record))


def with_switches(config: Config, records: Records) -> Config:
    """Returns the configuration with every server enabled or disabled as this user chose."""
    servers: dict[str, ServerConfig] = {}
    for name, server in config.servers.items():
        switch = records.switch(server.origin, server.name)
        servers[name] = server if switch is None or switch is server.enabled else replace(server, enabled=switch)
    return replace(config, servers=servers)


def _directory(request: ApprovalRequest) -> str | None:
    """The directory of an approval: the current one, if the configuration names none."""
    return request.directory if request.server.cwd is None else None


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
