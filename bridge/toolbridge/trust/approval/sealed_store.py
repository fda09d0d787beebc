"""SECURITY: files of this user's decisions: private, sealed with an HMAC, changed under a lock between processes (T10).

A store that another user could have written, or that is damaged, approves nothing and is never overwritten. The key
lies beside the file: a file copied from elsewhere, or written by a program that can't read the key, is refused. No file
is safe against a program of the same user, which can read the key too.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, NoReturn, TypeAlias, TypeVar, cast, get_args

from toolbridge.config.server_config import Origin, OriginKind
from toolbridge.errors import ToolbridgeError
from toolbridge.files import AnyPath, check_ancestors, file_lock, read_private_file, state_directory, write_private_file

# SECURITY: the content of the approval store, and its text, which is parsed strictly.

VERSION = 1

Decision: TypeAlias = Literal["approved", "revoked"]
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_WHEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class RecordsError(ValueError):
    """The text of a store is invalid; says why. Never leaves the store."""


@dataclass(frozen=True, slots=True)
class ApprovalRecord:
    """A decision about a server of one origin, in one directory if its configuration names none."""

    origin: Origin
    name: str
    directory: str | None
    digest: str
    decision: Decision
    when: str
    what: Mapping[str, object] = field(default_factory=dict[str, object])
    """The approved facts, for people; see `approved_facts`."""

    @property
    def place(self) -> tuple[Origin, str, str | None]:
        """The key: one decision each."""
        return self.origin, self.name, self.directory


@dataclass(frozen=True, slots=True)
class SwitchRecord:
    """A server that this user enabled or disabled, which outranks its configuration."""

    origin: Origin
    name: str
    enabled: bool
    when: str

    @property
    def place(self) -> tuple[Origin, str]:
        """The key: one switch each."""
        return self.origin, self.name


@dataclass(frozen=True, slots=True)
class Records:
    """The content of a store."""

    approvals: tuple[ApprovalRecord, ...] = ()
    switches: tuple[SwitchRecord, ...] = ()

    def with_approval(self, record: ApprovalRecord) -> Records:
        """Returns a copy with this decision in place of an earlier one."""
        others = tuple(each for each in self.approvals if each.place != record.place)
        return Records((*others, record), self.switches)

    def with_switch(self, record: SwitchRecord) -> Records:
        """Returns a copy with this switch in place of an earlier one."""
        others = tuple(each for each in self.switches if each.place != record.place)
        return Records(self.approvals, (*others, record))

    def switch(self, origin: Origin, name: str) -> bool | None:
        """Whether a server was enabled or disabled; None if neither."""
        return next((each.enabled for each in self.switches if each.place == (origin, name)), None)


def records_to_text(records: Records, key: bytes) -> bytes:
    """Returns the text of a store's file, sorted and sealed."""
    content: dict[str, Any] = {
        "version": VERSION,
        "approvals": [
            {
                "name": each.name,
                "origin": origin_to_json(each.origin),
                "directory": each.directory,
                "decision": each.decision,
                "when": each.when,
                "digest": each.digest,
                "what": dict(each.what),
            }
            for each in sorted(records.approvals, key=lambda each: (each.name, str(each.origin), each.directory or ""))
        ],
        "switches": [
            {"name": each.name, "origin": origin_to_json(each.origin), "enabled": each.enabled, "when": each.when}
            for each in sorted(records.switches, key=lambda each: (each.name, str(each.origin)))
        ],
    }
    return sealed(content, key)


def records_from_text(text: bytes, key: bytes) -> Records:
    """Parses the text of a store's file.

    Raises:
        RecordsError: it is damaged, altered, or of another version.
    """
    fields = unsealed(text, key, {"version", "approvals", "switches"})
    approvals = tuple(_approval(each) for each in items_of(fields["approvals"], "approvals"))
    switches = tuple(_switch(each) for each in items_of(fields["switches"], "switches"))
    for places in ([each.place for each in approvals], [each.place for each in switches]):
        if len(set(places)) != len(places):
            raise RecordsError("is damaged: it has two decisions about one server")
    return Records(approvals, switches)


def sealed(content: Mapping[str, Any], key: bytes) -> bytes:
    """Returns the text of a file with its HMAC; raises RecordsError for what JSON can't hold."""
    # ASCII only: a path that is no UTF-8 has lone surrogates, which have no other encoding.
    return (json.dumps({**content, "seal": _seal(content, key)}, indent=2, ensure_ascii=True) + "\n").encode("ascii")


def unsealed(text: bytes, key: bytes, keys: set[str]) -> dict[str, Any]:
    """Verifies the seal and returns the content, which must have exactly these keys.

    Raises:
        RecordsError: it is damaged, altered, or of another version.
    """
    try:
        document: object = json.loads(text.decode(), object_pairs_hook=_without_repeats, parse_constant=_refuse)
    except RecordsError:
        raise
    except (ValueError, RecursionError):
        raise RecordsError("is damaged: it is not whole JSON") from None
    fields = object_of(document, "the file", None)
    version = fields.get("version")
    if isinstance(version, bool) or version != VERSION:
        raise RecordsError("was written by another version of toolbridge")
    seal = fields.pop("seal", None)
    expected = _seal(fields, key)
    if not isinstance(seal, str) or not hmac.compare_digest(seal.encode("utf-8", "replace"), expected.encode()):
        raise RecordsError("was changed by something other than toolbridge: its seal does not fit")
    return object_of(fields, "the file", keys)


def _seal(content: Mapping[str, Any], key: bytes) -> str:
    """Returns the HMAC of the content's canonical form; raises RecordsError for what JSON can't hold."""
    try:
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    except (ValueError, RecursionError):
        raise RecordsError("is damaged") from None
    return f"hmac-sha256:{hmac.new(key, canonical.encode('ascii'), hashlib.sha256).hexdigest()}"


def _approval(value: object) -> ApprovalRecord:
    """Parses a decision about a server; raises RecordsError if a field is missing, unknown or malformed."""
    keys = {"name", "origin", "directory", "decision", "when", "digest", "what"}
    fields = object_of(value, "an approval", keys)
    directory, decision = fields["directory"], fields["decision"]
    if decision not in get_args(Decision):
        raise RecordsError("is damaged: a decision is neither approved nor revoked")
    return ApprovalRecord(
        origin=origin_of(fields["origin"]),
        name=text_of(fields["name"], "a name"),
        directory=None if directory is None else text_of(directory, "a directory"),
        digest=text_of(fields["digest"], "a digest", _DIGEST),
        decision=cast("Decision", decision),
        when=text_of(fields["when"], "a time", _WHEN),
        what=object_of(fields["what"], "what was approved", None),
    )


def _switch(value: object) -> SwitchRecord:
    """Parses a switch of a server; raises RecordsError if a field is missing, unknown or malformed."""
    fields = object_of(value, "a switch", {"name", "origin", "enabled", "when"})
    if not isinstance(fields["enabled"], bool):
        raise RecordsError("is damaged: a switch is neither on nor off")
    when = text_of(fields["when"], "a time", _WHEN)
    return SwitchRecord(origin_of(fields["origin"]), text_of(fields["name"], "a name"), fields["enabled"], when)


def origin_to_json(origin: Origin) -> dict[str, str]:
    """An origin as JSON."""
    return {"kind": origin.kind, "detail": origin.detail}


def origin_of(value: object) -> Origin:
    """Parses an origin; raises RecordsError if it is malformed."""
    fields = object_of(value, "an origin", {"kind", "detail"})
    if fields["kind"] not in get_args(OriginKind):
        raise RecordsError("is damaged: an origin is of no known kind")
    return Origin(cast("OriginKind", fields["kind"]), text_of(fields["detail"], "an origin"))


def object_of(value: object, what: str, keys: set[str] | None) -> dict[str, Any]:
    """Returns the value as an object with exactly these keys, or any for None; raises RecordsError otherwise."""
    if not isinstance(value, dict) or (keys is not None and set(cast("dict[str, Any]", value)) != keys):
        raise RecordsError(f"is damaged: {what} has not the fields it should have")
    return cast("dict[str, Any]", value)


def items_of(value: object, what: str) -> list[object]:
    """Returns the value as a list; raises RecordsError if it is none."""
    if not isinstance(value, list):
        raise RecordsError(f"is damaged: {what} is no list")
    return cast("list[object]", value)


def text_of(value: object, what: str, form: re.Pattern[str] | None = None) -> str:
    """Returns the value as text, of this form if any; raises RecordsError otherwise. `what` names it."""
    if not isinstance(value, str) or (form is not None and not form.fullmatch(value)):
        raise RecordsError(f"is damaged: {what} is not of its form")
    return value


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Makes an object of parsed pairs; raises RecordsError if a key is among them twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise RecordsError("is damaged: a key is written twice in one object")
    return found


def _refuse(text: str) -> NoReturn:
    raise RecordsError(f"is damaged: {text} is not JSON")


KEY_NAME = "seal.key"
LOCK_NAME = "lock"
MOST_BYTES = 8 * 2**20
LOCK_SECONDS = 10.0
_KEY_BYTES = 32

_Content = TypeVar("_Content")


class ApprovalStoreError(ToolbridgeError):
    """A store can't be read or written. Then it approves nothing, and loses no decision."""

    def __init__(self, path: str, problem: str, fix: str, what: str = "The approvals") -> None:
        """Makes a message of the store's name (`what`), its path, the problem and what to do about it (`fix`)."""
        self.path = path
        shown = path if path.isprintable() else repr(path)
        super().__init__(f"{what} in {shown} can't be used: {problem.rstrip('.')}. {fix}".rstrip())


class SealedStore(ABC, Generic[_Content]):
    """A sealed file, read anew each time: another process may have written it."""

    what: ClassVar[str]
    """The beginning of an error: `The approvals`."""
    file_name: ClassVar[str]
    folder: ClassVar[str]
    """Of the user's state directory."""

    def __init__(self, directory: AnyPath | None = None) -> None:
        """Uses this directory, else `folder` in the user's state directory; reads and makes nothing yet."""
        state = state_directory() if directory is None else None
        self._directory = os.path.join(state, self.folder) if state is not None else os.fspath(directory or "")
        self.path = os.path.join(self._directory, self.file_name)

    @property
    def has_place(self) -> bool:
        """Whether there is an absolute path for it; without one, it is empty."""
        return os.path.isabs(self._directory)

    @abstractmethod
    def _from_text(self, text: bytes | None, key: bytes) -> _Content:
        """Parses a file's text; None without a file. Raises RecordsError."""

    @abstractmethod
    def _to_text(self, content: _Content, key: bytes) -> bytes:
        """The text of a file, sealed."""

    def read(self) -> _Content:
        """Reads and verifies the file; without a file there are no decisions. Blocks on the file.

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
        """Returns a value that changes with the file, None without one; doesn't read it."""
        try:
            facts = os.lstat(self.path)
        except (OSError, ValueError):
            return None
        return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns

    def _change(self, change: Callable[[_Content], _Content]) -> None:
        """Reads, changes and writes the file under a lock between processes; an unchanged one is not written.

        Blocks, for `LOCK_SECONDS` at most if another process holds the lock.

        Raises:
            ApprovalStoreError: it can't be read, locked or written.
        """
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
        """Raises ApprovalStoreError for a relative path, which may be in a repository, and one that others can move."""
        if not self.has_place:
            fix = "Set TOOLBRIDGE_STATE_DIR to an absolute path."
            raise self._error("there is no absolute path for them", fix)
        try:
            check_ancestors(self._directory)
        except OSError as error:
            raise self._refused(error) from None

    def _key(self, *, create: bool = False) -> bytes:
        """Reads the key of the seal; with `create` makes one, unless the store's file is there already.

        Raises:
            ApprovalStoreError: the key is missing, damaged, or can't be read.
        """
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
        """Returns the error for one of the system, which names a symbolic link as such."""
        words = error.strerror or str(error)
        if os.path.islink(self.path):
            words = "the file is a symbolic link, which is not followed"
        return self._error(words, "Correct that, or choose another place with TOOLBRIDGE_STATE_DIR.")
