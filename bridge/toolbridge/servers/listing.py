"""Listings: the answers to `tools/list`, their pins, their storage on disk, and the tool filter."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio.to_thread

from toolbridge.concurrency import is_foreign
from toolbridge.config.server_config import ServerConfig
from toolbridge.config.values import with_spelling_of
from toolbridge.errors import ToolBlockedError, ToolbridgeError, advised
from toolbridge.files import UnsafePathError, read_private_file, write_private_file
from toolbridge.trust.pins.admission import Admission, BlockedTool, how_to_see, what_to_run
from toolbridge.trust.pins.pins import Pins
from toolbridge.trust.sanitise import for_error
from toolbridge_codegen.catalog import ToolDefinition, assign_identifiers, assign_wire_names, identifier

_log = logging.getLogger("toolbridge")

MAX_NAME = 1_024
"""The length of the longest tool name."""


@dataclass(frozen=True, slots=True)
class ToolProblem:
    """A problem of one listed tool, or of the whole listing."""

    tool: str
    """Its name, or its position in the listing if it has none; empty for the listing as a whole."""
    problem: str
    usable: bool = False
    """Whether the tool is exposed despite the problem."""


@dataclass(frozen=True, slots=True)
class Listing:
    """One complete answer to `tools/list`. All text in it is the server's: hostile until sanitised."""

    server: str
    tools: tuple[ToolDefinition, ...]
    problems: tuple[ToolProblem, ...] = ()
    protocol_version: str = ""
    server_name: str = ""
    server_version: str = ""
    server_title: str = ""
    server_description: str = ""
    instructions: str = ""
    live: bool = field(default=True, compare=False)
    """False when it was read from disk."""

    @property
    def about(self) -> dict[str, str]:
        """The server's own name, title, version and description, by JSON path, for the audit."""
        texts = {
            "name": self.server_name,
            "title": self.server_title,
            "version": self.server_version,
            "description": self.server_description,
        }
        return {f"serverInfo/{field}": text for field, text in texts.items() if text}

    def tool(self, name: str) -> ToolDefinition | None:
        """Return the first tool of this original name, or None."""
        return next((tool for tool in self.tools if tool.name == name), None)


def parse_tool(raw: object, position: int) -> tuple[ToolDefinition | None, ToolProblem | None]:
    """Parse one entry of a listing into a tool, a problem, or both; no tool if it has no usable name or needs a task.

    Other malformed members are left out. An input schema that is no object is replaced by an open one: the server
    then validates the arguments.
    """
    entry = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
    name: object = entry.get("name")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        problem = f"is {_kind(raw)}, not an object" if not isinstance(raw, dict) else "has no usable name"
        return None, ToolProblem(f"#{position}", problem)
    execution: object = entry.get("execution")
    if isinstance(execution, dict) and cast("dict[str, Any]", execution).get("taskSupport") == "required":
        return None, ToolProblem(name, "can be called only as a task, which is not supported")
    schema, output = entry.get("inputSchema"), entry.get("outputSchema")
    problem = _input_problem(schema) or _output_problem(output)
    annotations: object = entry.get("annotations")
    known = cast("dict[str, Any]", annotations) if isinstance(annotations, dict) else {}
    tool = ToolDefinition(
        name=name,
        title=_text(entry.get("title")) or _text(known.get("title")),
        description=_text(entry.get("description")),
        input_schema=cast("dict[str, Any]", schema) if isinstance(schema, dict) else {},
        output_schema=cast("dict[str, Any]", output) if isinstance(output, dict) else None,
        annotations=known,
    )
    return tool, ToolProblem(name, problem, usable=True) if problem else None


def _input_problem(schema: object) -> str:
    """Say what is wrong with an input schema: no object, or without type "object"; empty if nothing is."""
    if not isinstance(schema, dict):
        return f"has an inputSchema that is {_kind(schema)}, not an object; it is taken for one that says nothing"
    known = cast("dict[str, Any]", schema)
    if "type" not in known:
        # Real servers do this for all of their tools; arguments are an object in any case.
        return "has an inputSchema without a type; it is taken for an object"
    kind = known["type"]
    return "" if kind == "object" else f'has an inputSchema whose type is {repr(kind)[:80]}, not "object"'


def _output_problem(schema: object) -> str:
    """Say what is wrong with an output schema that is neither an object nor None; else empty."""
    if schema is None or isinstance(schema, dict):
        return ""
    return f"has an outputSchema that is {_kind(schema)}, not an object; it is not used"


# The text fields of a stored listing, by their names in JSON.
_TEXTS = {
    "protocolVersion": "protocol_version",
    "serverName": "server_name",
    "serverVersion": "server_version",
    "serverTitle": "server_title",
    "serverDescription": "server_description",
    "instructions": "instructions",
}


def listing_to_json(listing: Listing) -> dict[str, Any]:
    """Return a listing in the form that is stored on disk; `live` is left out."""
    return {
        "server": listing.server,
        **{name: getattr(listing, field) for name, field in _TEXTS.items()},
        "tools": [_tool_to_json(tool) for tool in listing.tools],
        "problems": [asdict(problem) for problem in listing.problems],
    }


def listing_from_json(server: str, stored: Mapping[str, Any]) -> Listing:
    """Build a listing from its stored JSON, `live` unset. Malformed parts are dropped, as in a server's own answer."""
    parsed = [parse_tool(raw, position)[0] for position, raw in enumerate(_list(stored.get("tools")))]
    problems = [cast("dict[str, Any]", raw) for raw in _list(stored.get("problems")) if isinstance(raw, dict)]
    return Listing(
        server=server,
        tools=tuple(tool for tool in parsed if tool is not None),
        problems=tuple(
            ToolProblem(_text(raw.get("tool")), _text(raw.get("problem")), raw.get("usable") is True)
            for raw in problems
        ),
        **{field: _text(stored.get(name)) for name, field in _TEXTS.items()},
        live=False,
    )


def _tool_to_json(tool: ToolDefinition) -> dict[str, Any]:
    """Return a tool as it is stored on disk, in the form in which servers list it."""
    fields = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "title": tool.title or None,
        "outputSchema": tool.output_schema,
        "annotations": dict(tool.annotations) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _kind(value: object) -> str:
    """Describe a JSON value's type for a message ("a string"); None is "missing"."""
    if value is None:
        return "missing"
    kinds: dict[type, str] = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list"}
    return kinds.get(type(value), f"of type {type(value).__name__}")


_DIFF_LINES = 12


class Admissions:
    """SECURITY: verifies listings against the host's pins; a failure admits no tool, no pins admit all (T11)."""

    def __init__(self, pins: Pins | None) -> None:
        self._pins = pins
        self._changes = 0
        """Counts possible changes of the pins."""

    def verify(self, server: ServerConfig, listing: Listing) -> Admission | None:
        """Verify a listing against its pins; None admits all tools. Never raises: a failure admits none."""
        if self._pins is None:
            return None
        try:
            admission = cast("object", self._pins.admit(server, listing))  # a host's own may answer anything
        except Exception as error:
            return Admission(problem=f"its pins failed, so none of its tools can be used: {_message(error)}")
        if not isinstance(admission, Admission):
            return Admission(problem=f"its pins answered with a {type(admission).__name__}, not an Admission")
        return admission

    async def verify_in_thread(self, server: ServerConfig, listing: Listing) -> Admission | None:
        """Verify in a worker thread, since a listing may be megabytes; again if the pins change meanwhile."""
        if self._pins is None:
            return None
        while True:
            changes = self._changes
            admission = await anyio.to_thread.run_sync(self.verify, server, listing)
            if changes == self._changes:
                return admission

    async def settle(self, server: ServerConfig, listing: Listing, other_tools: Mapping[str, Collection[str]]) -> None:
        """Let the pins pin a listing's tools, if the host wants that and they are not pinned; may ask a person.

        Does nothing without pins. Exceptions, except the host's own cancellation, are logged as a warning.
        """
        if self._pins is None:
            return
        try:
            await self._pins.settle(server, listing, other_tools)
        except BaseException as error:
            if not isinstance(error, Exception) and not is_foreign(error):
                raise
            _log.warning("The tools of server %r could not be pinned: %s", server.name, _message(error))

    async def accept(self, server: ServerConfig, listing: Listing, tools: Collection[str] | None) -> None:
        """Pin tools that a person has seen.

        Raises:
            ToolbridgeError: this host has no pins, or they can't be changed so.
        """
        if self._pins is None:
            raise ToolbridgeError(f"The tools of server {server.name!r} are not pinned: there is nothing to accept.")
        try:
            await self._pins.accept(server, listing, tools)
        finally:
            self._changes += 1

    def reread(self) -> None:
        """Have the pins read again, in case another process changed them; does nothing without pins, logs a failure."""
        if self._pins is None:
            return
        self._changes += 1
        try:
            self._pins.reread()
        except Exception as error:
            _log.warning("The pins could not be read again: %s", _message(error))


def blocked_error(server: ServerConfig, tool: BlockedTool) -> ToolBlockedError:
    """Build, not raise, the error for calling a tool that its pin blocks: the reason, advice and a shortened diff."""
    problem = {
        "new": "is not pinned, and nobody has accepted it yet",
        "changed": f"changed since it was pinned ({tool.changed_fields})",
        "unseen": "is pinned, but this user has not accepted it",
        "refused": "was refused by a person",
        "unpinnable": f"{tool.problem}, so that it can't be pinned",
        "unchecked": "can't be compared with its pin",
    }[tool.why]
    lines = tool.diff.split("\n")
    diff = "\n".join([*lines[:_DIFF_LINES], *(["…"] if len(lines) > _DIFF_LINES else [])])
    of_program = server.origin.kind == "code"
    if tool.why in ("unseen", "refused") and not of_program:
        what_to_do = f"see and accept it with {how_to_see(server.name)}"
    elif tool.why == "unchecked":
        what_to_do = f"repair what its problem names: {advised('list --connect')} tells it"
    else:
        what_to_do = what_to_run(server.name, tool.name, of_program=of_program)
    return ToolBlockedError(server.name, for_error(tool.name, limit=100), problem, what_to_do, diff=diff)


def _message(error: BaseException) -> str:
    return for_error(str(error) or type(error).__name__)


MAX_ENTRIES = 500
MAX_BYTES = 256 * 1024 * 1024
_MAX_ERROR_BYTES = 8_000
_ENTRY = re.compile(r"[0-9a-f]{64}\.(?:json|error)")


class ListingStore:
    """Listings on disk, so that stubs exist without starting a server; without a directory, nothing is stored.

    A file is named by a hash of the server's configuration. It holds a server's own text and no secret.
    """

    def __init__(self, directory: str | os.PathLike[str] | None, *, limit: int) -> None:
        self._directory = None if directory is None else Path(directory)
        self._limit = limit

    def load(self, server: str, key: str) -> Listing | None:
        """Load a listing from disk and mark it as recently used; None if missing, damaged or another server's."""
        if self._directory is None:
            return None
        try:
            content = read_private_file(self._path(key), limit=self._limit)
            stored: object = json.loads(content)
        except (UnsafePathError, OSError, ValueError, RecursionError):
            return None
        if not isinstance(stored, dict) or cast("dict[str, Any]", stored).get("server") != server:
            return None
        with contextlib.suppress(OSError):
            os.utime(self._path(key))  # for LRU eviction
        return listing_from_json(server, cast("dict[str, Any]", stored))

    def save(self, key: str, listing: Listing) -> None:
        """Write a listing to disk, and delete the oldest files above the caps; a failure is logged."""
        if self._directory is None:
            return
        try:
            content = json.dumps(listing_to_json(listing), separators=(",", ":"))
            write_private_file(self._path(key), content.encode())
            self._remove_oldest(self._directory)
        except (UnsafePathError, OSError, ValueError, RecursionError) as error:
            _log.warning("The listing of server %r is not kept: %s", listing.server, error)

    def load_error(self, key: str) -> str:
        """Load the server's last error, sanitised; empty if there is none or it can't be read."""
        if self._directory is None:
            return ""
        try:
            return for_error(read_private_file(self._error_path(key), limit=_MAX_ERROR_BYTES).decode(errors="replace"))
        except OSError:
            return ""

    def save_error(self, key: str, error: str) -> None:
        """Write a server's last error, secrets masked already; an empty one deletes it. Failures are ignored."""
        if self._directory is None:
            return
        with contextlib.suppress(OSError):
            if error:
                write_private_file(self._error_path(key), error.encode("utf-8", "replace")[:_MAX_ERROR_BYTES])
                self._remove_oldest(self._directory)
            else:
                self._error_path(key).unlink(missing_ok=True)

    def _error_path(self, key: str) -> Path:
        return self._path(key).with_suffix(".error")

    def _remove_oldest(self, directory: Path) -> None:
        """Delete the least recently used files above the caps on count and bytes; always keeps the newest."""
        entries: list[tuple[float, int, Path]] = []
        with os.scandir(directory) as found:
            for entry in found:
                if _ENTRY.fullmatch(entry.name):
                    facts = entry.stat(follow_symlinks=False)
                    entries.append((facts.st_mtime, facts.st_size, directory / entry.name))
        size = 0
        for count, (_, each, path) in enumerate(sorted(entries, reverse=True)):
            size += each
            if count and (count >= MAX_ENTRIES or size > MAX_BYTES):
                path.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        assert self._directory is not None
        return self._directory / f"{key.removeprefix('sha256:')}.json"


_FORMS = (("mcp__", "__"), ("mcp:", "_"), ("", "_"))
"""Prefixes before the server and before the tool."""
_Value = TypeVar("_Value")


class ToolNames:
    """The spellings of one server's tool names in `allowTools`, `denyTools` and `outputSchemas`.

    A tool is `list_issues`, `mcp__github__list_issues`, `github_list_issues` or `mcp:github_list_issues`, and
    `mcp__github__*` means all tools. The name in guest code (`del_it` for `del-it`) is a spelling, too, and in the
    server's name `-` and `_` are interchangeable. An original name always means its own tool.
    """

    def __init__(self, server: str, originals: Sequence[str]) -> None:
        self._server = server
        self._originals = frozenset(originals)
        self._all = frozenset(f"{before}{server}{between}*" for before, between in _FORMS if before)
        self._other: dict[str, set[str]] = {}
        self._alone: dict[str, set[str]] = {}
        """Names in guest code as if no other tool were listed: a new tool must not lift a deny."""
        short = _short_names(server, originals)
        for original, assigned in assign_identifiers(originals).items():
            wire = {*_wire_spellings(server, original), *_with_prefix(short[original])}
            for spelling in {*_own_spellings(server, assigned), *wire}:
                self._other.setdefault(spelling, set()).add(original)
            alone = _with_prefix(_short_names(server, [original])[original])
            for spelling in {*_own_spellings(server, identifier(original)), *alone}:
                self._alone.setdefault(spelling, set()).add(original)

    def meant(self, entry: str) -> frozenset[str]:
        """Return the tools that an `allowTools` entry means: one, all (`mcp__server__*`), or none, as if ambiguous."""
        if entry in self._originals:
            return frozenset({entry})
        written = self._spellings(entry)
        if not written.isdisjoint(self._all):
            return self._originals
        found = _union(frozenset(self._other.get(each, ())) for each in written)
        return found if len(found) == 1 else frozenset()

    def possible(self, entry: str) -> frozenset[str]:
        """Return all tools that a `denyTools` entry could mean; ignores letter case only if no tool matches exactly."""
        written = self._spellings(entry)
        lower = {each.lower() for each in written}
        if not lower.isdisjoint(self._all):
            return self._originals
        named = (frozenset(names.get(each, ())) for names in (self._other, self._alone) for each in written)
        found = _union(named) | ({entry} & self._originals)
        of_other_case = (
            tools for names in (self._other, self._alone) for each, tools in names.items() if each.lower() in lower
        )
        return found or _union(frozenset(tools) for tools in of_other_case)

    def _spellings(self, entry: str) -> frozenset[str]:
        """An entry as written, and with the server's name in its own spelling."""
        return frozenset({entry, *(with_spelling_of(entry, each[0], self._server, each[1]) for each in _FORMS)})


def exposed_tools(
    server: str, tools: tuple[ToolDefinition, ...], allow: tuple[str, ...] | None, deny: tuple[str, ...]
) -> tuple[ToolDefinition, ...]:
    """Return the tools that a configuration allows: those of `allow` (None: all), minus those of `deny`."""
    if allow is None and not deny:
        return tools
    names = ToolNames(server, [tool.name for tool in tools])
    allowed = _union(names.meant(entry) for entry in allow or ())
    denied = _union(names.possible(entry) for entry in deny)
    return tuple(tool for tool in tools if (allow is None or tool.name in allowed) and tool.name not in denied)


def original_names(server: str, originals: Sequence[str], written: Collection[str]) -> set[str]:
    """Return original names for names in any spelling; a name that means no tool is kept as written."""
    names = ToolNames(server, originals)
    return set[str]().union(*(names.meant(each) or {each} for each in written))


def by_original_name(
    server: str, tools: tuple[ToolDefinition, ...], written: Mapping[str, _Value]
) -> Mapping[str, _Value]:
    """Rekey values from names in any spelling to original names; a name that means no tool is kept.

    If several names mean one tool, its original name wins.
    """
    if not written:
        return written
    names = ToolNames(server, [tool.name for tool in tools])
    found: dict[str, _Value] = {}
    for entry, value in sorted(written.items(), key=lambda item: item[0] in names.meant(item[0])):
        meant = names.meant(entry)
        found[entry if entry.endswith("*") or not meant else min(meant)] = value
    return found


def unmatched_names(
    server: str, tools: tuple[ToolDefinition, ...], allow: tuple[str, ...] | None, deny: tuple[str, ...]
) -> tuple[str, ...]:
    """Return entries of `allowTools` and `denyTools` that match no tool, once each: most often a misspelling."""
    names = ToolNames(server, [tool.name for tool in tools])
    missing = [entry for entry in allow or () if not names.meant(entry)]
    return tuple(dict.fromkeys([*missing, *(entry for entry in deny if not names.possible(entry))]))


def _own_spellings(server: str, name: str) -> set[str]:
    return {name, *(f"{before}{server}{between}{name}" for before, between in _FORMS)}


def _wire_spellings(server: str, original: str) -> set[str]:
    """Return a tool's names with the server's before it (`mcp__github__x`), as written and as in the catalog."""
    spellings: set[str] = set()
    for before, between in _FORMS:
        spellings.add(f"{before}{server}{between}{original}")
        # As the catalog spells it: without the characters that model providers refuse.
        prefix, added = (before, "") if before != "mcp:" else ("", before)
        (wire,) = assign_wire_names([(server, original)], prefix=prefix, separator=between).values()
        spellings.add(added + wire)
    return spellings


def _short_names(server: str, originals: Sequence[str]) -> dict[str, str]:
    """Map each tool to the catalog's short name of it, `server_tool` without hyphens."""
    identities = [(server, original) for original in originals]
    short = assign_wire_names(identities, prefix="", separator="_", hyphens=False)
    return {original: name for (_, original), name in short.items()}


def _with_prefix(short: str) -> tuple[str, str]:
    return short, f"mcp:{short}"


def _union(parts: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*parts)
