"""SECURITY: where this user's decisions about servers are kept: `approved-mcp.json` (T1, T10, T25, T35).

A store that somebody else could have written, or that is damaged, approves nothing and is never written over: what is
in it can still be looked at. It is sealed with a key that lies beside it, so that a file copied from elsewhere, or one
written by something that can write files but not read them, is not taken for ours. Against a program that runs as the
same user, which can read the key too, no file is safe.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from toolbridge.config.config import Config
from toolbridge.config.server_config import Origin, ServerConfig
from toolbridge.directories import state_directory
from toolbridge.errors import ToolbridgeError
from toolbridge.private_files import AnyPath, read_private_file, write_private_file
from toolbridge.trust.approval_records import (
    ApprovalRecord,
    Records,
    RecordsError,
    SwitchRecord,
    records_from_text,
    records_to_text,
)
from toolbridge.trust.approved_facts import approved_facts, differences
from toolbridge.trust.approver import ApprovalRequest
from toolbridge.trust.file_lock import file_lock

FILE_NAME = "approved-mcp.json"
KEY_NAME = "seal.key"
LOCK_NAME = "lock"
MOST_BYTES = 8 * 2**20
LOCK_SECONDS = 10.0
_KEY_BYTES = 32

Standing: TypeAlias = Literal["approved", "unknown", "changed", "revoked"]


class ApprovalStoreError(ToolbridgeError):
    """The approvals can't be read or written. Nothing is approved by them then, and nothing in them is lost."""

    def __init__(self, path: str, problem: str, fix: str) -> None:
        self.path = path
        shown = path if path.isprintable() else repr(path)
        super().__init__(f"The approvals in {shown} can't be used: {problem.rstrip('.')}. {fix}".rstrip())


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """What the store says of a request."""

    standing: Standing
    when: str = ""
    """When that was decided."""
    changes: tuple[str, ...] = ()
    """What differs from what was approved."""
    disabled: bool = False
    """Whether this user switched the server off: then it is not started, approved or not."""


class ApprovalStore:
    """The decisions of this user. Every method reads the file anew: another process may have written it."""

    def __init__(self, directory: AnyPath | None = None) -> None:
        state = state_directory() if directory is None else None
        self._directory = os.path.join(state, "approvals") if state is not None else os.fspath(directory or "")
        self.path = os.path.join(self._directory, FILE_NAME)

    def read(self) -> Records:
        """All decisions; without a file there are none.

        Raises:
            ApprovalStoreError: the file is not ours alone, or is damaged.
        """
        self._check_place()
        try:
            text = read_private_file(self.path, limit=MOST_BYTES)
        except FileNotFoundError:
            return Records()
        except OSError as error:
            raise self._refused(error) from None
        try:
            return records_from_text(text, self._key())
        except RecordsError as error:
            fix = (
                "No server is approved from it, and it is not written over. Look at it, move it away, "
                "and approve again the servers that you trust."
            )
            raise ApprovalStoreError(self.path, f"the file {error}", fix) from None

    def stamp(self) -> object:
        """Another one once the file has been written, or anything done to it. Reads nothing."""
        try:
            facts = os.lstat(self.path)
        except (OSError, ValueError):
            return None
        return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns

    def answer(self, request: ApprovalRequest) -> StoredAnswer:
        """What was decided about exactly this snapshot.

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
        """Remember that exactly this snapshot may be started or reached.

        Raises:
            ApprovalStoreError: it can't be kept.
        """
        server = request.server
        what = approved_facts(request)
        record = ApprovalRecord(
            server.origin, server.name, _directory(request), request.digest, "approved", _now(), what
        )
        self._change(lambda records: records.with_approval(record))

    def revoke(self, name: str, origin: Origin | None = None) -> tuple[ApprovalRecord, ...]:
        """Take back what was approved of a server, in every directory; of every origin where none is given.

        Gives what was approved until now. A host that has the server connected closes it as well.

        Raises:
            ApprovalStoreError: it can't be kept.
        """
        revoked: list[ApprovalRecord] = []

        def change(records: Records) -> Records:
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
        """Switch a server on or off for this user. Being on approves nothing.

        Raises:
            ApprovalStoreError: it can't be kept.
        """
        record = SwitchRecord(server.origin, server.name, enabled, _now())
        self._change(lambda records: records.with_switch(record))

    def _change(self, change: Callable[[Records], Records]) -> None:
        """Read, change and write as one step, whoever else wants to."""
        self._check_place()
        try:
            with file_lock(os.path.join(self._directory, LOCK_NAME), seconds=LOCK_SECONDS):
                before = self.read()
                after = change(before)
                if after == before:
                    return
                text = records_to_text(after, self._key(create=True))
                if len(text) > MOST_BYTES:
                    raise ApprovalStoreError(self.path, "the file would become too long", "Move it away.")
                write_private_file(self.path, text)
        except OSError as error:
            raise self._refused(error) from None

    def _check_place(self) -> None:
        """Never a file of the current directory, which may be anybody's repository."""
        if not os.path.isabs(self._directory):
            fix = "Set TOOLBRIDGE_STATE_DIR to an absolute path."
            raise ApprovalStoreError(self.path, "there is no absolute path for them", fix)

    def _key(self, *, create: bool = False) -> bytes:
        path = os.path.join(self._directory, KEY_NAME)
        try:
            key = read_private_file(path, limit=_KEY_BYTES)
        except FileNotFoundError:
            if create and not os.path.lexists(self.path):
                key = secrets.token_bytes(_KEY_BYTES)
                write_private_file(path, key)
                return key
            fix = f"If you moved it from elsewhere, move {KEY_NAME} too; else move it away, and approve again."
            raise ApprovalStoreError(self.path, f"{KEY_NAME}, which it was sealed with, is gone", fix) from None
        except OSError as error:
            raise self._refused(error) from None
        if len(key) != _KEY_BYTES:
            fix = f"Move it and {FILE_NAME} away, and approve again the servers that you trust."
            raise ApprovalStoreError(path, "it is not whole", fix)
        return key

    def _refused(self, error: OSError) -> ApprovalStoreError:
        words = error.strerror or str(error)
        if os.path.islink(self.path):
            words = "the file is a symbolic link, which is not followed"
        fix = "Correct that, or choose another place with TOOLBRIDGE_STATE_DIR."
        return ApprovalStoreError(self.path, words, fix)


def with_switches(config: Config, records: Records) -> Config:
    """The configuration with every server on or off as this user switched it."""
    servers: dict[str, ServerConfig] = {}
    for name, server in config.servers.items():
        switch = records.switch(server.origin, server.name)
        servers[name] = server if switch is None or switch is server.enabled else replace(server, enabled=switch)
    return replace(config, servers=servers)


def _directory(request: ApprovalRequest) -> str | None:
    """The directory that an approval is for, where the configuration leaves it to whoever starts toolbridge."""
    return request.directory if request.server.cwd is None else None


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
