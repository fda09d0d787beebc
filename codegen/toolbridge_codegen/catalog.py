"""The catalog: the frozen set of exposed tools, and the table that resolves their names.

A tool's identity is `(server, original name)`. Every other name (for guest code, permission patterns, logs) is assigned
here once, from the whole listing, and only looked up afterwards.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, cast

from toolbridge_codegen.escaping import plain_json, text_without_recursion

# The manifest: modules, their exports, and the tool that each export calls.

InputStyle: TypeAlias = Literal["keywords", "mapping"]
"""How Python passes the input: by keyword, or as one mapping if a property's name is no identifier."""


@dataclass(frozen=True, slots=True)
class Export:
    """An exported function of a module."""

    server: str
    tool: str
    """The tool's original name."""
    input_style: InputStyle


Manifest: TypeAlias = Mapping[str, Mapping[str, Export]]
"""Specifier → identifier → export."""


# Names of tools as identifiers that are safe in every guest language, independent of the listing's order: a tool whose
# name is a valid identifier keeps it; a changed name that collides gets a suffix, hashed from its original.

MAX_NAME = 64
"""The longest tool name that model providers accept; longer ones are truncated, and end in a hash."""

_JAVASCRIPT = """
abstract any arguments as asserts async await bigint boolean break case catch class const constructor continue debugger
declare default delete do else enum eval export extends false finally for from function get global globalThis if
implements import in Infinity infer instanceof interface is keyof let module NaN namespace never new null number object
of package private protected public readonly require return satisfies set static string super switch symbol this throw
true try type typeof undefined unique unknown using var void while with yield
"""

_PYTHON = """
False None True and as assert async await break case class continue def del elif else except finally for from global
if import in is lambda match nonlocal not or pass raise return try type while with yield
"""

_MEMBERS = """
prototype constructor then toString toLocaleString valueOf hasOwnProperty isPrototypeOf propertyIsEnumerable toJSON
aio default
"""

RESERVED_IDENTIFIERS = frozenset(f"{_JAVASCRIPT} {_PYTHON} {_MEMBERS}".split())
"""Keywords of JavaScript, TypeScript and Python, and members of every object."""

_NOT_IDENTIFIER = re.compile(r"[^A-Za-z0-9_]+")
_NOT_WIRE = re.compile(r"[^A-Za-z0-9_-]+")
_NOT_WORD = re.compile(r"[^A-Za-z0-9_]")


def identifier(original: str) -> str:
    """Returns the identifier for a name, before collisions are resolved: at most 64 letters, digits and `_`.

    Reserved words get a final `_`; truncated names end in a hash.
    """
    name = _NOT_IDENTIFIER.sub("_", original)
    if name.startswith("__") or not name.strip("_"):
        # The form of Python's and JavaScript's own members: `__class__`, `__proto__`.
        name = f"tool_{name.strip('_')}".rstrip("_")
    elif name[0].isdigit():
        name = f"_{name}"
    if len(name) > MAX_NAME:
        name = f"{name[: MAX_NAME - 9]}_{_digest(original)[:8]}"
    return f"{name}_" if name in RESERVED_IDENTIFIERS else name


def assign_identifiers(originals: Iterable[str]) -> dict[str, str]:
    """Assigns a unique identifier to each name; where names collide, all but an exact one get a hash."""
    wanted = {original: identifier(original) for original in originals}
    return _assign(wanted, exact={original for original, name in wanted.items() if original == name})


def assign_wire_names(
    identities: Collection[tuple[str, str]],
    *,
    prefix: str,
    separator: str,
    taken: Iterable[str] = (),
    hyphens: bool = True,
) -> dict[tuple[str, str], str]:
    """Assigns `<prefix><server><separator><tool>` to each tool: unique, and none of `taken`.

    In characters and length that model providers accept. Some accept no hyphens: without `hyphens`, every
    character but `[A-Za-z0-9_]` becomes `_`.
    """
    unfit = _NOT_WIRE if hyphens else _NOT_WORD
    natural = {f"{server}\n{tool}": f"{prefix}{server}{separator}{tool}" for server, tool in identities}
    wanted = {key: unfit.sub("_", name) for key, name in natural.items()}
    assigned = _assign(wanted, exact={key for key, name in natural.items() if wanted[key] == name}, taken=taken)
    return {(server, tool): assigned[f"{server}\n{tool}"] for server, tool in identities}


def _assign(wanted: Mapping[str, str], *, exact: set[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Gives each key its wanted name if no other key wants it, or it is the only exact one; others get a hashed suffix.

    Names beyond 64 characters or in `taken` get a suffix, too.
    """
    claims: dict[str, list[str]] = {}
    for key, name in wanted.items():
        claims.setdefault(name, []).append(key)
    used = set(taken)
    result: dict[str, str] = {}
    for name, keys in claims.items():
        owners = keys if len(keys) == 1 else [key for key in keys if key in exact]
        if len(owners) == 1 and len(name) <= MAX_NAME and name not in used:
            result[owners[0]] = name
    used.update(result.values())
    for key in sorted(wanted.keys() - result.keys()):
        digest = _digest(key)
        for length in range(6, MAX_NAME - 1):
            candidate = f"{wanted[key][: MAX_NAME - length - 1]}_{digest[:length]}"
            if candidate not in used and candidate not in RESERVED_IDENTIFIERS:
                used.add(candidate)
                result[key] = candidate
                break
    return result


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# As accepted by the configuration; repeated here because names become files and modules.
_SERVER = re.compile(r"[a-z0-9][a-z0-9_-]*")

Schema = Mapping[str, Any]
"""A JSON Schema as the server sent it."""

Reading: TypeAlias = Literal["intended", "literal"]
"""How schemas are read: as their authors most likely mean them, or to the letter (see `normalize`)."""


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as its server describes it: untrusted text, not sanitised."""

    name: str
    input_schema: Schema
    title: str = ""
    description: str = ""
    output_schema: Schema | None = None
    annotations: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class ServerListing:
    """The tools of one server that may be exposed, in listing order."""

    server: str
    tools: tuple[ToolDefinition, ...]
    display_name: str = ""
    instructions: str = ""
    reading: Reading = "intended"
    output_schemas: Mapping[str, Schema] = field(default_factory=lambda: MappingProxyType({}))
    """The operator's output schemas, for tools without one."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """An exposed tool with all of its names."""

    server: str
    identifier: str
    """The function's name in guest code: `get_forecast`."""
    qualified_name: str
    """`mcp__<server>__<tool>`, unique in the catalog."""
    short_name: str
    """`<server>_<tool>` in `[A-Za-z0-9_]{1,64}`, which every model provider accepts; unique in the catalog."""
    definition: ToolDefinition
    output_schema: Schema | None = None
    """The tool's own, of what its server sends; else the operator's, of what guest code gets."""

    @property
    def name(self) -> str:
        """The tool's original name, the only one its server knows."""
        return self.definition.name

    @property
    def spellings(self) -> frozenset[str]:
        """Every name of the tool: the server's, the guest's and the wire's."""
        names = (self.name, self.identifier, self.qualified_name, self.short_name, f"mcp:{self.short_name}")
        return frozenset(names)


@dataclass(frozen=True, slots=True)
class ModuleSpec:
    """The module of one server."""

    server: str
    display_name: str
    specifier: str
    """`host:mcp-<server>`."""
    python_module: str
    """`host.mcp_<server>`."""
    tools: tuple[ToolSpec, ...]
    """Sorted by identifier."""
    instructions: str = ""
    reading: Reading = "intended"
    output_schemas: Mapping[str, Schema] = field(default_factory=lambda: MappingProxyType({}))
    exports: Mapping[str, str] = field(init=False, compare=False, repr=False)
    """Identifier → the tool's original name."""

    def __post_init__(self) -> None:
        names = {tool.identifier: tool.definition.name for tool in self.tools}
        object.__setattr__(self, "exports", MappingProxyType(names))

    @property
    def async_specifier(self) -> str:
        """The specifier of the module whose functions return promises."""
        return f"{self.specifier}/async"


@dataclass(frozen=True, slots=True)
class Catalog:
    """All exposed tools, with every lookup from a name to a tool."""

    modules: tuple[ModuleSpec, ...]
    """Sorted by server."""
    _by_identity: Mapping[tuple[str, str], ToolSpec]
    _by_specifier: Mapping[str, ModuleSpec]
    _by_name: Mapping[str, ToolSpec]

    def tool(self, server: str, name: str) -> ToolSpec | None:
        """The tool with this server and original name."""
        return self._by_identity.get((server, name))

    def module(self, specifier: str) -> ModuleSpec | None:
        """The module `host:mcp-<server>`."""
        return self._by_specifier.get(specifier)

    def named(self, name: str) -> ToolSpec | None:
        """Returns the tool with this qualified or short name; None without one.

        As in `mcp__weather__now`, `weather_now` or `mcp:weather_now`.
        """
        return self._by_name.get(name.removeprefix("mcp:"))

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """All tools, module by module."""
        return tuple(tool for module in self.modules for tool in module.tools)


def module_specifier(server: str) -> str:
    """The specifier under which guest code imports a server's module."""
    return f"host:mcp-{server}"


def python_module(server: str) -> str:
    """The Python module of a server."""
    return "host.mcp_" + server.replace("-", "_")


def build_catalog(listings: Iterable[ServerListing]) -> Catalog:
    """Builds the catalog: assigns every name of every tool, independent of the order of servers and tools.

    Duplicate names in a listing are one tool: its server could not tell calls of them apart.

    Raises:
        ValueError: a server's name is invalid, or two servers would share a module.
    """
    ordered = sorted(listings, key=lambda listing: listing.server)
    modules_of: dict[str, str] = {}
    for listing in ordered:
        if not _SERVER.fullmatch(listing.server):
            raise ValueError(f"{listing.server!r} is not a server's name: a-z, 0-9, _ and - only")
        module = python_module(listing.server)
        if module in modules_of:
            raise ValueError(f"the servers {modules_of[module]!r} and {listing.server!r} would share a module")
        modules_of[module] = listing.server
    identities = [(listing.server, tool.name) for listing in ordered for tool in one_per_name(listing.tools)]
    qualified = assign_wire_names(identities, prefix="mcp__", separator="__")
    short = assign_wire_names(identities, prefix="", separator="_", taken=qualified.values(), hyphens=False)
    modules: list[ModuleSpec] = []
    for listing in ordered:
        tools = one_per_name(listing.tools)
        identifiers = assign_identifiers([tool.name for tool in tools])
        specs = [
            ToolSpec(
                server=listing.server,
                identifier=identifiers[tool.name],
                qualified_name=qualified[listing.server, tool.name],
                short_name=short[listing.server, tool.name],
                definition=tool,
                output_schema=listing.output_schemas.get(tool.name)
                if tool.output_schema is None
                else tool.output_schema,
            )
            for tool in tools
        ]
        modules.append(
            ModuleSpec(
                server=listing.server,
                display_name=listing.display_name or listing.server,
                specifier=module_specifier(listing.server),
                python_module=python_module(listing.server),
                tools=tuple(sorted(specs, key=lambda spec: spec.identifier)),
                instructions=listing.instructions,
                reading=listing.reading,
                output_schemas=listing.output_schemas,
            )
        )
    tools = [tool for module in modules for tool in module.tools]
    return Catalog(
        modules=tuple(modules),
        _by_identity=MappingProxyType({(tool.server, tool.name): tool for tool in tools}),
        _by_specifier=MappingProxyType({module.specifier: module for module in modules}),
        _by_name=MappingProxyType({name: tool for tool in tools for name in (tool.qualified_name, tool.short_name)}),
    )


def one_per_name(tools: Iterable[ToolDefinition]) -> list[ToolDefinition]:
    """Drops definitions with a duplicate name: the one whose content sorts first stays, whatever the order."""
    by_name: dict[str, ToolDefinition] = {}
    for tool in tools:
        known = by_name.get(tool.name)
        if known is None or _content(tool) < _content(known):
            by_name[tool.name] = tool
    return list(by_name.values())


def _content(tool: ToolDefinition) -> str:
    """Returns all of a definition but its name as canonical text, to compare definitions."""
    mappings = map(plain_schema, (tool.input_schema, tool.output_schema, tool.annotations))
    content = [tool.title, tool.description, *mappings]
    return plain_json(content) or text_without_recursion(content)


def plain_schema(schema: Any) -> Any:
    """A schema as a dictionary if it is any mapping; schemas may be any value."""
    return dict(cast("Mapping[str, Any]", schema)) if isinstance(schema, Mapping) else schema
