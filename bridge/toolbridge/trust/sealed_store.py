"""SECURITY: files of this user's decisions: private, sealed with an HMAC, changed under a lock between processes (T10).

A store that another user could have written, or that is damaged, decides nothing and is never written over. The key
lies beside the file, so a file copied from elsewhere, or written by a program that can't read the key, is not accepted.
Against a program that runs as the same user, which can read the key too, no file is safe.
"""

from __future__ import annotations

import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Generic, TypeVar

from toolbridge.directories import state_directory
from toolbridge.errors import ToolbridgeError
from toolbridge.private_files import AnyPath, check_ancestors, read_private_file, write_private_file
from toolbridge.trust.approval_records import RecordsError
from toolbridge.trust.file_lock import file_lock

KEY_NAME = "seal.key"
LOCK_NAME = "lock"
MOST_BYTES = 8 * 2**20
LOCK_SECONDS = 10.0
_KEY_BYTES = 32

_Content = TypeVar("_Content")


class ApprovalStoreError(ToolbridgeError):
    """Decisions of this user can't be read or written. Nothing is approved by them then, and none of them is lost."""

    def __init__(self, path: str, problem: str, fix: str, what: str = "The approvals") -> None:
        self.path = path
        shown = path if path.isprintable() else repr(path)
        super().__init__(f"{what} in {shown} can't be used: {problem.rstrip('.')}. {fix}".rstrip())


class SealedStore(ABC, Generic[_Content]):
    """One sealed file. Every `read` reads it anew: another process may have written it."""

    what: ClassVar[str]
    """`The approvals`, to begin an error with."""
    file_name: ClassVar[str]
    folder: ClassVar[str]
    """Of the user's state directory."""

    def __init__(self, directory: AnyPath | None = None) -> None:
        state = state_directory() if directory is None else None
        self._directory = os.path.join(state, self.folder) if state is not None else os.fspath(directory or "")
        self.path = os.path.join(self._directory, self.file_name)

    @property
    def has_place(self) -> bool:
        """Whether there is an absolute path for it; without one, nothing was ever kept."""
        return os.path.isabs(self._directory)

    @abstractmethod
    def _from_text(self, text: bytes | None, key: bytes) -> _Content:
        """The content of a file; of None where there is no file. May raise RecordsError."""

    @abstractmethod
    def _to_text(self, content: _Content, key: bytes) -> bytes:
        """The text of a file, sealed."""

    def read(self) -> _Content:
        """All decisions; without a file there are none.

        Raises:
            ApprovalStoreError: the file is not ours alone, or is damaged.
        """
        self._check_place()
        try:
            text = read_private_file(self.path, limit=MOST_BYTES)
        except FileNotFoundError:
            return self._from_text(None, b"")
        except OSError as error:
            raise self._refused(error) from None
        try:
            return self._from_text(text, self._key())
        except RecordsError as error:
            fix = (
                "No server is approved from it, and it is not written over. Look at it, move it away, "
                "and approve again the servers that you trust."
            )
            raise self._error(f"the file {error}", fix) from None

    def stamp(self) -> object:
        """Another one once the file has been written, or anything done to it. Reads nothing."""
        try:
            facts = os.lstat(self.path)
        except (OSError, ValueError):
            return None
        return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns

    def _change(self, change: Callable[[_Content], _Content]) -> None:
        """Read, change and write as one step, whoever else wants to."""
        self._check_place()
        try:
            with file_lock(os.path.join(self._directory, LOCK_NAME), seconds=LOCK_SECONDS):
                before = self.read()
                after = change(before)
                if after == before:
                    return
                text = self._to_text(after, self._key(create=True))
                if len(text) > MOST_BYTES:
                    raise self._error("the file would become too long", "Move it away.")
                write_private_file(self.path, text)
        except OSError as error:
            raise self._refused(error) from None

    def _check_place(self) -> None:
        """Never a file of the current directory, which may be anybody's repository, nor one that others can move."""
        if not self.has_place:
            fix = "Set TOOLBRIDGE_STATE_DIR to an absolute path."
            raise self._error("there is no absolute path for them", fix)
        try:
            check_ancestors(self._directory)
        except OSError as error:
            raise self._refused(error) from None

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
            raise self._error(f"{KEY_NAME}, which it was sealed with, is gone", fix) from None
        except OSError as error:
            raise self._refused(error) from None
        if len(key) != _KEY_BYTES:
            fix = f"Move it and {self.file_name} away, and approve again the servers that you trust."
            raise ApprovalStoreError(path, "it is not whole", fix, self.what)
        return key

    def _error(self, problem: str, fix: str) -> ApprovalStoreError:
        return ApprovalStoreError(self.path, problem, fix, self.what)

    def _refused(self, error: OSError) -> ApprovalStoreError:
        words = error.strerror or str(error)
        if os.path.islink(self.path):
            words = "the file is a symbolic link, which is not followed"
        return self._error(words, "Correct that, or choose another place with TOOLBRIDGE_STATE_DIR.")
