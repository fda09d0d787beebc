"""SECURITY: `toolbridge.lock` on disk: its place, its owner check, and locked, atomic changes (T26).

A project's servers are pinned next to the project's configuration, to be committed; a user's and a plugin's in the
user's configuration directory; a program's in a file that the program names, else in memory.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NoReturn, cast

from toolbridge.config.read_file import user_directory
from toolbridge.config.server_config import Origin
from toolbridge.config.values import kind_of, quoted
from toolbridge.errors import ConfigError, advised
from toolbridge.files import (
    LockTimeoutError,
    check_ancestors,
    make_private_directories,
    replace_file,
    state_directory,
    wait_for_lock,
)
from toolbridge.trust.pins.definition import FIELDS, PinnedTool, UnpinnableError, canonical_text, pin_of, pin_of_fields
from toolbridge_codegen.catalog import ToolDefinition, one_per_name

# SECURITY: the text of `toolbridge.lock` is canonical, and parsed strictly.
#
# For commits and reviews: one member a line, sorted, no time and no path of this machine, and ASCII only, so that
# hidden and confusable characters are `\uXXXX` in every diff.


LOCK_VERSION = 1
MOST_BYTES = 64 * 2**20
"""The whole file."""
MOST_SERVER_BYTES = 8 * 2**20
"""One server in it, so that none uses up the room of the others."""
MOST_TOOL_BYTES = 2**20
"""One tool of it, or its instructions: longer ones are not pinned."""

_ENCODER = json.JSONEncoder(indent=2, sort_keys=True, ensure_ascii=True, allow_nan=False)
_CONFLICT = re.compile(rb"^(?:<{7}|\|{7}|={7}|>{7})(?: |\r?$)", re.MULTILINE)


class LockError(ConfigError):
    """A lock can't be read, parsed or written: no tool that it would pin is used."""


@dataclass(frozen=True, slots=True)
class PinnedServer:
    """The pins of one server: its tools by name, and its instructions, which a model reads as well."""

    tools: Mapping[str, PinnedTool]
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class Lock:
    """The pins of all servers of one lock."""

    servers: Mapping[str, PinnedServer] = field(default_factory=lambda: MappingProxyType({}))

    def with_server(self, name: str, pinned: PinnedServer | None) -> Lock:
        """Returns a copy with other pins for one server, or with none."""
        rest = {known: value for known, value in self.servers.items() if known != name}
        return Lock(rest if pinned is None else {**rest, name: pinned})


def pinned_server(tools: Iterable[ToolDefinition], instructions: str) -> PinnedServer:
    """Returns the pins of a listing; unpinnable definitions are left out, and so never admitted."""
    pinned: dict[str, PinnedTool] = {}
    for tool in one_per_name(tools):
        try:
            pin = checked_pin(tool)
        except UnpinnableError:
            continue
        pinned[pin.name] = pin
    instructions = canonical_text(instructions)
    return PinnedServer(pinned, "" if size_problem(instructions) else instructions)


def checked_pin(tool: ToolDefinition) -> PinnedTool:
    """Returns the pin of a definition that a lock has room for.

    Raises:
        UnpinnableError: it has no exact form in JSON, or is too long.
    """
    pin = pin_of(tool)
    problem = size_problem(dict(pin.fields))
    if problem:
        raise UnpinnableError(problem)
    return pin


def size_problem(value: object) -> str:
    """Returns `takes more than … bytes` for a value that is too long to be pinned; else an empty string."""
    size = 0
    # Indented, as in the file: nesting multiplies the length. Stops at the limit.
    for part in _ENCODER.iterencode(value):
        size += len(part)
        if size > MOST_TOOL_BYTES:
            return f"takes more than {MOST_TOOL_BYTES:,} bytes"
    return ""


def lock_text(lock: Lock, path: str) -> str:
    """Returns the text of a lock.

    Raises:
        LockError: it would be too long to be read again.
    """
    servers: dict[str, Any] = {}
    for name, server in lock.servers.items():
        servers[name] = _server_value(server)
        size = len(_dump(servers[name]))
        if size > MOST_SERVER_BYTES:
            problem = f"its tools take {size:,} bytes; at most {MOST_SERVER_BYTES:,} are pinned."
            raise LockError(problem, file=path, server=name)
    text = _dump({"lockVersion": LOCK_VERSION, "servers": servers})
    if len(text) > MOST_BYTES:
        raise LockError(f"would have {len(text):,} bytes; at most {MOST_BYTES:,} are read.", file=path)
    return text


def _server_value(server: PinnedServer) -> dict[str, Any]:
    tools = {name: {"digest": pin.digest, **pin.fields} for name, pin in server.tools.items()}
    return {"tools": tools, **({"instructions": server.instructions} if server.instructions else {})}


def _dump(value: object) -> str:
    return _ENCODER.encode(value) + "\n"


def parse_lock(content: bytes, path: str) -> Lock:
    """Parses the text of a lock strictly, and verifies every digest; `path` is for errors.

    Raises:
        LockError: it is not exactly what a lock is; says where.
    """
    document = _Place(path).object(_parsed(content, path), {"lockVersion", "servers"}, {"lockVersion", "servers"})
    version: object = document["lockVersion"]
    if type(version) is not int or version != LOCK_VERSION:
        found = str(version) if type(version) is int and abs(version) < 10**6 else kind_of(version)
        problem = f"is of version {found}; this toolbridge reads version {LOCK_VERSION}."
        raise LockError(problem, file=path, field="lockVersion", fix="Use the toolbridge that wrote it.")
    servers = _Place(path, field="servers").object(document["servers"])
    return Lock({name: _server(path, name, value) for name, value in servers.items()})


def _server(path: str, name: str, value: object) -> PinnedServer:
    """Parses one server's entry; raises LockError if it is not exactly what an entry is."""
    entry = _Place(path, name).object(value, {"tools"}, {"tools", "instructions"})
    instructions = entry.get("instructions", "")
    if not isinstance(instructions, str):
        _Place(path, name, "instructions").refuse(f"expected text, found {kind_of(instructions)}.")
    tools = _Place(path, name, "tools").object(entry["tools"])
    return PinnedServer({tool: _tool(path, name, tool, each) for tool, each in tools.items()}, instructions)


def _tool(path: str, server: str, name: str, value: object) -> PinnedTool:
    """Parses one tool's entry; raises LockError if its form is wrong or its digest is not that of its definition."""
    place = _Place(path, server, f"tools.{quoted(name)}")
    entry = place.object(value, {"digest", "inputSchema"}, {"digest", *FIELDS})
    for key in ("title", "description"):
        if not isinstance(entry.get(key, ""), str):
            place.refuse(f"{key!r} is {kind_of(entry[key])}; expected text.")
    for key in ("inputSchema", "outputSchema", "annotations"):
        if not isinstance(entry.get(key, {}), dict):
            place.refuse(f"{key!r} is {kind_of(entry[key])}; expected an object.")
    given = {key: item for key, item in entry.items() if key != "digest"}
    # Empty values have one form only: absent.
    given = {key: item for key, item in given.items() if item or key.endswith("Schema")}
    try:
        pin = pin_of_fields(name, given)
    except UnpinnableError as error:
        place.refuse(f"{error}.")
    if entry["digest"] != pin.digest:
        place.refuse("its digest is not that of its definition: it was edited by hand, or merged from two versions.")
    return pin


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in a lock, for errors."""

    path: str
    server: str | None = None
    field: str | None = None

    def refuse(self, problem: str) -> NoReturn:
        """Raises a LockError about this place."""
        server = None if self.server is None else quoted(self.server)[1:-1]
        raise LockError(problem, file=self.path, server=server, field=self.field, fix=_restore())

    def object(self, value: object, needed: Iterable[str] = (), known: set[str] | None = None) -> dict[str, Any]:
        """Returns the value as an object with the needed and only known keys (None: any); else raises LockError."""
        if not isinstance(value, dict):
            self.refuse(f"expected an object, found {kind_of(value)}.")
        found = cast("dict[str, Any]", value)
        for key in sorted(needed):
            if key not in found:
                self.refuse(f"{key!r} is missing.")
        unknown = [] if known is None else [key for key in found if key not in known]
        if unknown:
            self.refuse(f"has {quoted(unknown[0])}, which this toolbridge does not know.")
        return found


def _parsed(content: bytes, path: str) -> object:
    """Parses JSON strictly: raises LockError, with the line where known, also for repeated keys and merge conflicts."""
    conflict = _CONFLICT.search(content)
    if conflict is not None:
        line = content.count(b"\n", 0, conflict.start()) + 1
        fix = f"Take either side, then run {advised('lock --check')} to see what differs from the servers."
        raise LockError(f"has a merge conflict at line {line}.", file=path, fix=fix)
    try:
        return json.loads(
            content.removeprefix(b"\xef\xbb\xbf").decode(), object_pairs_hook=_object, parse_constant=_refuse_constant
        )
    except UnicodeDecodeError:
        problem = "is not UTF-8."
    except json.JSONDecodeError as error:
        problem = f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        if not content.strip():
            problem = "is empty."
    except RecursionError:
        problem = "is nested too deeply."
    except _RepeatedError as error:
        problem = f"has {quoted(error.args[0])} twice in the same object."
    except ValueError:
        problem = "has a number that is not JSON, or too long."
    # Outside of `except`: the parser's error holds the whole text, and would be the context of this one.
    raise LockError(problem, file=path, fix=_restore())


def _restore() -> str:
    return f"Restore it from version control, or delete it and run {advised('lock')}."


class _RepeatedError(ValueError):
    """A key is twice in one object."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Makes an object of parsed pairs; raises _RepeatedError if a key is among them twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        raise _RepeatedError(next(key for key, _ in pairs if key in seen or seen.add(key)))
    return found


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(text)


LOCK_NAME = "toolbridge.lock"
WAIT_SECONDS = 5.0
"""The longest wait for another writer."""

_TOOL_FOLDERS = (".vscode", ".agents")


class LockNotWritableError(LockError):
    """The system refuses to write a lock."""


@dataclass(frozen=True, slots=True)
class LockPlace:
    """The place of pins."""

    path: str
    private: bool = False
    """Whether only this user may write the file. A project's is as open as its repository."""
    in_memory: bool = False
    """Whether the pins end with the program."""


def lock_place(origin: Origin, environ: Mapping[str, str]) -> LockPlace | None:
    """Returns the place of the lock for servers of an origin; None for a program's servers. Reads no file.

    Raises:
        LockError: there is no such place on this machine.
    """
    if origin.kind == "code":
        return None
    if origin.kind == "project":
        folder, name = os.path.split(os.path.dirname(origin.detail))
        # Configurations of other tools are in a folder of theirs; the lock is in the project.
        return LockPlace(os.path.join(folder if name in _TOOL_FOLDERS else os.path.join(folder, name), LOCK_NAME))
    directory = user_directory(environ)
    if directory is None:
        raise LockError("there is no home directory to keep pins in.", fix="Set TOOLBRIDGE_CONFIG_DIR.")
    return LockPlace(os.path.join(directory, LOCK_NAME), private=True)


def own_place(place: LockPlace) -> LockPlace:
    """Returns this user's own lock beside a shared one: for unseen definitions, and for read-only projects.

    It is in memory on a machine without a state directory.
    """
    state = state_directory()
    if state is None:
        return LockPlace(place.path, in_memory=True)
    name = hashlib.sha256(place.path.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return LockPlace(os.path.join(state, "locks", f"{name}.lock"), private=True)


def read_lock(place: LockPlace) -> Lock:
    """Reads and parses a lock; without a file there are no pins. Blocks on the file.

    Raises:
        LockError: the file is not a lock, or, at a private place, another user could have written it.
    """
    content = _content(place)
    return Lock() if content is None else parse_lock(content, place.path)


def change_lock(place: LockPlace, change: Callable[[Lock], Lock]) -> Lock:
    """Reads, changes and writes a lock under an exclusive lock; returns the new content. Writes no unchanged lock.

    Blocks, for `WAIT_SECONDS` at most if another process holds the lock. At a private place, makes the directories.

    Raises:
        LockError: the lock can't be read or written; it is as it was.
    """
    directory = os.path.dirname(place.path)
    try:
        if place.private:
            make_private_directories(directory)
        with _locked(place.path):
            before = read_lock(place)
            after = change(before)
            if after == before and os.path.lexists(place.path):
                return before
            content = lock_text(after, place.path).encode("ascii")
            written = parse_lock(content, place.path)  # never writes a lock that can't be read
            replace_file(place.path, content, mode=_mode(place))
            return written
    except LockError:
        raise
    except OSError as error:
        problem = f"can't be written: {error.strerror or error}."
        raise LockNotWritableError(
            problem, file=place.path, fix="Its tools stay blocked until they are pinned."
        ) from None


def _content(place: LockPlace) -> bytes | None:
    """Reads a lock's bytes; None without a file.

    Raises:
        LockError: it can't be read, is a link, no regular file or too long, or at a private place unsafe.
    """
    # Without O_NONBLOCK, opening a named pipe would wait for a writer.
    try:
        descriptor = os.open(place.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        is_link = error.errno in (errno.ELOOP, errno.EMLINK)
        problem = "is a symbolic link, which isn't followed." if is_link else f"can't be opened: {error.strerror}."
        raise LockError(problem, file=place.path) from None
    except ValueError:
        raise LockError("is not the path of a file.", file=repr(place.path)) from None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise LockError("is not a regular file.", file=place.path)
        if place.private:
            _check_owner(place.path, facts)
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise LockError(f"can't be read: {error.strerror}.", file=place.path) from None
    finally:
        os.close(descriptor)
    if len(content) > MOST_BYTES:
        raise LockError(f"has more than the {MOST_BYTES:,} bytes that are read.", file=place.path)
    return content


def _check_owner(path: str, facts: os.stat_result) -> None:
    """Raises LockError if another user could write the file or move a directory above it, or if it has a hard link."""
    directory = os.path.dirname(path)
    for what, found in ((path, facts), (directory, os.stat(directory))):
        if found.st_uid != os.geteuid():
            raise LockError("belongs to another user.", file=what, fix="It is not used.")
        if found.st_mode & 0o022:
            raise LockError("can be written by others.", file=what, fix="Run `chmod go-w` on it once it is checked.")
    try:
        check_ancestors(directory)
    except OSError as error:
        raise LockError(f"is not safe there: {error}.", file=path, fix="It is not used.") from None
    if facts.st_nlink != 1:
        raise LockError("has a second name (a hard link).", file=path, fix="It is not used.")


def _mode(place: LockPlace) -> int:
    """Returns the mode of the existing file; of a new one 0600, or 0644 in a project."""
    with contextlib.suppress(OSError):
        return stat.S_IMODE(os.lstat(place.path).st_mode)
    return 0o600 if place.private else 0o644


@contextlib.contextmanager
def _locked(path: str) -> Generator[None]:
    """Holds a lock on the directory, so that no lock file lies in a repository.

    Blocks for `WAIT_SECONDS` at most, then raises LockError; raises OSError if there is no directory.
    """
    descriptor = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        wait_for_lock(descriptor, path, seconds=WAIT_SECONDS)
        yield
    except LockTimeoutError:
        raise LockError("is being written by another process.", file=path, fix="Try again.") from None
    finally:
        os.close(descriptor)
