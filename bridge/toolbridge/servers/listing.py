"""What a server lists: its tools, those that can't be used and why, and what it says of itself."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
from toolbridge.trust.text.sanitise import for_error
from toolbridge_codegen.catalog import ToolDefinition, assign_identifiers, assign_wire_names, identifier

MAX_NAME = 1_024
"""A longer name of a tool is no name."""


@dataclass(frozen=True, slots=True)
class ToolProblem:
    """What is wrong with a listed tool. It costs nobody but that tool."""

    tool: str
    """Its name, or its place in the listing when it has none; empty for the listing as a whole."""
    problem: str
    usable: bool = False
    """Whether it is exposed all the same."""


@dataclass(frozen=True, slots=True)
class Listing:
    """One complete answer to `tools/list`. Everything in it is the server's text: hostile until sanitised."""

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
    """False when it was read from disk and the server has not been asked."""

    @property
    def about(self) -> dict[str, str]:
        """What the server says of itself beside its instructions, by place, for the audit."""
        said = {
            "name": self.server_name,
            "title": self.server_title,
            "version": self.server_version,
            "description": self.server_description,
        }
        return {f"serverInfo/{field}": text for field, text in said.items() if text}

    def tool(self, name: str) -> ToolDefinition | None:
        """The tool of this name."""
        return next((tool for tool in self.tools if tool.name == name), None)


def parse_tool(raw: object, place: int) -> tuple[ToolDefinition | None, ToolProblem | None]:
    """One entry of a listing. What a call needs must be there; anything else that is odd is left out.

    An input that is not described as an object is open: what it may be is then for the server to say.
    """
    entry = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
    name: object = entry.get("name")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        problem = f"is {_kind(raw)}, not an object" if not isinstance(raw, dict) else "has no usable name"
        return None, ToolProblem(f"#{place}", problem)
    if _needs_task(entry.get("execution")):
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


def _needs_task(execution: object) -> bool:
    """Whether a tool refuses to be called and waited for."""
    return isinstance(execution, dict) and cast("dict[str, Any]", execution).get("taskSupport") == "required"


def _input_problem(schema: object) -> str:
    if not isinstance(schema, dict):
        return f"has an inputSchema that is {_kind(schema)}, not an object; it is taken for one that says nothing"
    known = cast("dict[str, Any]", schema)
    if "type" not in known:
        # Real servers do this, for all of their tools; arguments are an object in any case.
        return "has an inputSchema without a type; it is taken for an object"
    kind = known["type"]
    return "" if kind == "object" else f'has an inputSchema whose type is {repr(kind)[:80]}, not "object"'


def _output_problem(schema: object) -> str:
    if schema is None or isinstance(schema, dict):
        return ""
    return f"has an outputSchema that is {_kind(schema)}, not an object; it is not used"


def listing_to_json(listing: Listing) -> dict[str, Any]:
    """A listing as it is kept on disk."""
    return {
        "server": listing.server,
        "protocolVersion": listing.protocol_version,
        "serverName": listing.server_name,
        "serverVersion": listing.server_version,
        "serverTitle": listing.server_title,
        "serverDescription": listing.server_description,
        "instructions": listing.instructions,
        "tools": [_tool_to_json(tool) for tool in listing.tools],
        "problems": [
            {"tool": problem.tool, "problem": problem.problem, "usable": problem.usable} for problem in listing.problems
        ],
    }


def listing_from_json(server: str, kept: Mapping[str, Any]) -> Listing:
    """A listing that was kept. Entries are checked as if the server had just sent them."""
    parsed = [parse_tool(raw, place)[0] for place, raw in enumerate(_list(kept.get("tools")))]
    problems = [cast("dict[str, Any]", raw) for raw in _list(kept.get("problems")) if isinstance(raw, dict)]
    return Listing(
        server=server,
        tools=tuple(tool for tool in parsed if tool is not None),
        problems=tuple(
            ToolProblem(_text(raw.get("tool")), _text(raw.get("problem")), raw.get("usable") is True)
            for raw in problems
        ),
        protocol_version=_text(kept.get("protocolVersion")),
        server_name=_text(kept.get("serverName")),
        server_version=_text(kept.get("serverVersion")),
        server_title=_text(kept.get("serverTitle")),
        server_description=_text(kept.get("serverDescription")),
        instructions=_text(kept.get("instructions")),
        live=False,
    )


def _tool_to_json(tool: ToolDefinition) -> dict[str, Any]:
    kept: dict[str, Any] = {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
    if tool.title:
        kept["title"] = tool.title
    if tool.output_schema is not None:
        kept["outputSchema"] = tool.output_schema
    if tool.annotations:
        kept["annotations"] = dict(tool.annotations)
    return kept


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _kind(value: object) -> str:
    if value is None:
        return "missing"
    kinds: dict[type, str] = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list"}
    return kinds.get(type(value), f"of type {type(value).__name__}")


# SECURITY: pins, asked in one place, and so that whatever goes wrong with them admits nothing (T11).


_log = logging.getLogger("toolbridge")
_DIFF_LINES = 12


class Admissions:
    """The host's pins; with none, every listed tool is admitted."""

    def __init__(self, pins: Pins | None) -> None:
        self._pins = pins
        self._changes = 0
        """How often the pins may have changed."""

    def of(self, server: ServerConfig, listing: Listing) -> Admission | None:
        """What of a listing may be used; None for all of it."""
        if self._pins is None:
            return None
        try:
            admission = cast("object", self._pins.admit(server, listing))  # the host's own, maybe
        except Exception as error:
            return Admission(problem=f"its pins failed, so none of its tools can be used: {_words(error)}")
        if not isinstance(admission, Admission):
            return Admission(problem=f"its pins answered with a {type(admission).__name__}, not an Admission")
        return admission

    async def of_foreign(self, server: ServerConfig, listing: Listing) -> Admission | None:
        """The same in a worker thread, again if the pins change meanwhile: a listing may be megabytes."""
        if self._pins is None:
            return None
        while True:
            changes = self._changes
            admission = await anyio.to_thread.run_sync(self.of, server, listing)
            if changes == self._changes:
                return admission

    async def settle(self, server: ServerConfig, listing: Listing, other_tools: Mapping[str, Collection[str]]) -> None:
        """Give a server that has no pins its first, if the host wants that."""
        if self._pins is None:
            return
        try:
            await self._pins.settle(server, listing, other_tools)
        except BaseException as error:
            if not isinstance(error, Exception) and not is_foreign(error):
                raise
            _log.warning("The tools of server %r could not be pinned: %s", server.name, _words(error))

    async def accept(self, server: ServerConfig, listing: Listing, tools: Collection[str] | None) -> None:
        """Pin what somebody has seen.

        Raises:
            ToolbridgeError: there are no pins, or they can't be changed so.
        """
        if self._pins is None:
            raise ToolbridgeError(f"The tools of server {server.name!r} are not pinned: there is nothing to accept.")
        try:
            await self._pins.accept(server, listing, tools)
        finally:
            self._changes += 1

    def reread(self) -> None:
        """Take notice of what was pinned elsewhere."""
        if self._pins is None:
            return
        self._changes += 1
        try:
            self._pins.reread()
        except Exception as error:
            _log.warning("The pins could not be read again: %s", _words(error))


def blocked_error(server: ServerConfig, tool: BlockedTool) -> ToolBlockedError:
    """What a call of a blocked tool comes to."""
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


def _words(error: BaseException) -> str:
    return for_error(str(error) or type(error).__name__)


# Listings kept on disk, so that stubs exist without starting a server.
#
# An entry is named by a hash of the server's configuration: another command, another listing. What is kept is a
# server's own text and no secret; it is read back with the same checks as a fresh answer.


MOST_ENTRIES = 500
MOST_BYTES = 256 * 1024 * 1024
_MOST_ERROR_BYTES = 8_000
_ENTRY = re.compile(r"[0-9a-f]{64}\.(?:json|error)")


class ListingStore:
    """The listings in one private directory; with no directory, nothing is kept."""

    def __init__(self, directory: str | os.PathLike[str] | None, *, limit: int) -> None:
        self._directory = None if directory is None else Path(directory)
        self._limit = limit

    def load(self, server: str, key: str) -> Listing | None:
        """The listing kept under this key. A missing, damaged or foreign entry is no listing."""
        if self._directory is None:
            return None
        try:
            content = read_private_file(self._path(key), limit=self._limit)
            kept: object = json.loads(content)
        except (UnsafePathError, OSError, ValueError, RecursionError):
            return None
        if not isinstance(kept, dict) or cast("dict[str, Any]", kept).get("server") != server:
            return None
        with contextlib.suppress(OSError):
            os.utime(self._path(key))  # it is used: others are removed first
        return listing_from_json(server, cast("dict[str, Any]", kept))

    def save(self, key: str, listing: Listing) -> None:
        """Keep a listing; a failure costs only the next start."""
        if self._directory is None:
            return
        try:
            content = json.dumps(listing_to_json(listing), separators=(",", ":"))
            write_private_file(self._path(key), content.encode())
            self._remove_oldest(self._directory)
        except (UnsafePathError, OSError, ValueError, RecursionError) as error:
            _log.warning("The listing of server %r is not kept: %s", listing.server, error)

    def load_error(self, key: str) -> str:
        """Why the server could not be used the last time; empty if it could."""
        if self._directory is None:
            return ""
        try:
            return for_error(read_private_file(self._error_path(key), limit=_MOST_ERROR_BYTES).decode(errors="replace"))
        except OSError:
            return ""

    def save_error(self, key: str, error: str) -> None:
        """Keep a server's last error, without secrets already; an empty one is forgotten."""
        if self._directory is None:
            return
        with contextlib.suppress(OSError):
            if error:
                write_private_file(self._error_path(key), error.encode("utf-8", "replace")[:_MOST_ERROR_BYTES])
                self._remove_oldest(self._directory)
            else:
                self._error_path(key).unlink(missing_ok=True)

    def _error_path(self, key: str) -> Path:
        return self._path(key).with_suffix(".error")

    def _remove_oldest(self, directory: Path) -> None:
        """Every other configuration leaves an entry; those that were not used for longest go."""
        entries: list[tuple[float, int, Path]] = []
        with os.scandir(directory) as found:
            for entry in found:
                if _ENTRY.fullmatch(entry.name):
                    facts = entry.stat(follow_symlinks=False)
                    entries.append((facts.st_mtime, facts.st_size, directory / entry.name))
        size = 0
        for count, (_, each, path) in enumerate(sorted(entries, reverse=True)):
            size += each
            if count and (count >= MOST_ENTRIES or size > MOST_BYTES):
                path.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        assert self._directory is not None
        return self._directory / f"{key.removeprefix('sha256:')}.json"


# Which of a server's tools its `allowTools` and `denyTools` let through, in whichever spelling a tool is named.
#
# A tool is `list_issues`, `mcp__github__list_issues`, `github_list_issues` or `mcp:github_list_issues`, and
# `mcp__github__*` is all of them; entries add up. Where guest code calls a tool by another name (`del_it` for `del-
# it`), that will do in its place; so will `-` for `_`, and the reverse, in the server's name. An original name means
# the tool that has it. Of other spellings, one under `denyTools` means every tool that it could mean, whatever else
# is listed.


_FORMS = (("mcp__", "__"), ("mcp:", "_"), ("", "_"))
"""What stands before the server and before the tool."""
_Value = TypeVar("_Value")


class ToolNames:
    """The names that the tools of one server go by."""

    def __init__(self, server: str, originals: Sequence[str]) -> None:
        self._server = server
        self._originals = frozenset(originals)
        self._all = frozenset(f"{before}{server}{between}*" for before, between in _FORMS if before)
        self._other: dict[str, set[str]] = {}
        self._alone: dict[str, set[str]] = {}
        """By what a tool would be called in guest code if no other were listed: a new one must not take a deny away."""
        short = _short_names(server, originals)
        for original, assigned in assign_identifiers(originals).items():
            wire = {*_wire_spellings(server, original), *_with_prefix(short[original])}
            for spelling in {*_own_spellings(server, assigned), *wire}:
                self._other.setdefault(spelling, set()).add(original)
            alone = _with_prefix(_short_names(server, [original])[original])
            for spelling in {*_own_spellings(server, identifier(original)), *alone}:
                self._alone.setdefault(spelling, set()).add(original)

    def meant(self, entry: str) -> frozenset[str]:
        """The original names of the tools that an entry means: none, one, or all of them."""
        if entry in self._originals:
            return frozenset({entry})
        written = self._spellings(entry)
        if not written.isdisjoint(self._all):
            return self._originals
        found = _union(frozenset(self._other.get(each, ())) for each in written)
        return found if len(found) == 1 else frozenset()

    def possible(self, entry: str) -> frozenset[str]:
        """Every tool that an entry could mean; in another case of its letters only where it means none otherwise."""
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
        """An entry as it is, and with its server's name as the server has it."""
        return frozenset({entry, *(with_spelling_of(entry, each[0], self._server, each[1]) for each in _FORMS)})


def exposed_tools(
    server: str, tools: tuple[ToolDefinition, ...], allow: tuple[str, ...] | None, deny: tuple[str, ...]
) -> tuple[ToolDefinition, ...]:
    """The tools that a configuration lets through: allow, minus deny."""
    if allow is None and not deny:
        return tools
    names = ToolNames(server, [tool.name for tool in tools])
    allowed = _union(names.meant(entry) for entry in allow or ())
    denied = _union(names.possible(entry) for entry in deny)
    return tuple(tool for tool in tools if (allow is None or tool.name in allowed) and tool.name not in denied)


def original_names(server: str, originals: Sequence[str], written: Collection[str]) -> set[str]:
    """The original names for names in any spelling; one that means no tool stays as it is."""
    names = ToolNames(server, originals)
    return set[str]().union(*(names.meant(each) or {each} for each in written))


def by_original_name(
    server: str, tools: tuple[ToolDefinition, ...], written: Mapping[str, _Value]
) -> Mapping[str, _Value]:
    """Values by tools in any spelling, by their original names; one that means no tool stays as it is.

    What is said of a tool by its original name holds over what is said of it by another.
    """
    if not written:
        return written
    names = ToolNames(server, [tool.name for tool in tools])
    found: dict[str, _Value] = {}
    for entry, value in sorted(written.items(), key=lambda item: item[0] in names.meant(item[0])):
        meant = names.meant(entry)
        found[entry if entry.endswith("*") or not meant else min(meant)] = value
    return found


def _own_spellings(server: str, name: str) -> set[str]:
    return {name, *(f"{before}{server}{between}{name}" for before, between in _FORMS)}


def _wire_spellings(server: str, original: str) -> set[str]:
    spellings: set[str] = set()
    for before, between in _FORMS:
        spellings.add(f"{before}{server}{between}{original}")
        # As the catalog writes it, where that differs: without the characters that model providers refuse.
        prefix, added = (before, "") if before != "mcp:" else ("", before)
        (wire,) = assign_wire_names([(server, original)], prefix=prefix, separator=between).values()
        spellings.add(added + wire)
    return spellings


def _short_names(server: str, originals: Sequence[str]) -> dict[str, str]:
    """As the catalog has them."""
    identities = [(server, original) for original in originals]
    short = assign_wire_names(identities, prefix="", separator="_", hyphens=False)
    return {original: name for (_, original), name in short.items()}


def _with_prefix(short: str) -> tuple[str, str]:
    return short, f"mcp:{short}"


def _union(parts: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*parts)
