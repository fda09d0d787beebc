"""One server's configuration: frozen, and safe to print.

Values of `env` and `headers` are kept as written (`${TOKEN}`): `config.references` resolves references when the server
is started, and the values go into its environment or requests only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, cast
from urllib.parse import urlsplit

from toolbridge.config.secret_values import masked_arguments
from toolbridge.errors import ConfigError, reports_misuse

if TYPE_CHECKING:
    from typing import Unpack


# Limits of servers.


MIB = 1024 * 1024

RANGES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "servers": (1, 1_000),
        "connections": (1, 1_000),
        "connect_seconds": (0.001, 3600),
        "call_seconds": (0.001, 3600),
        "close_seconds": (0, 60),
        "respawns": (0, 1_000),
        "tools": (1, 100_000),
        "pages": (1, 10_000),
        "listing_bytes": (1, 1024 * MIB),
        "message_bytes": (1, 1024 * MIB),
        "calls_in_flight": (1, 10_000),
    }
)
"""The range of each limit, finite: a repository's file can set limits."""


@reports_misuse
@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Caps that hold for all servers together, and for each; a `ServerConfig` may override its timeouts."""

    servers: int = 50
    """Configured servers."""
    connections: int = 5
    """Servers connected at once, counting those being opened."""
    connect_seconds: float = 10.0
    """Timeout of a connection, including the first listing of tools."""
    call_seconds: float = 30.0
    """Timeout of one call of a tool."""
    close_seconds: float = 3.0
    """Grace period between asking a process to end and killing it."""
    respawns: int = 3
    """Restarts of one server in one session."""
    tools: int = 1_000
    """Tools of one server."""
    pages: int = 100
    """Pages of one listing."""
    listing_bytes: int = 16 * MIB
    """One listing, all pages together."""
    message_bytes: int = 32 * MIB
    """One message of a server: a longer one is dropped before it is parsed."""
    calls_in_flight: int = 32
    """Concurrent calls of one server; more are queued (semaphore)."""

    def __post_init__(self) -> None:
        """Check each limit and convert it to int or float; ConfigError at the first that is out of range."""
        for each in fields(self):
            object.__setattr__(self, each.name, check_limit(each.name, getattr(self, each.name), each.name))


def check_limit(name: str, value: object, field: str) -> float:
    """Check the value of the limit `name`, in range; an int, or a float for seconds. `field` is for the message.

    Raises:
        ConfigError: it is not a number, out of range, or has a fraction where none may be.
    """
    least, most = RANGES[name]
    whole = not name.endswith("_seconds")
    expected = f"expected {'a whole number' if whole else 'a number'} from {least:g} to {most:,.0f}."
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigError(expected, field=field)
    if not least <= value <= most or (whole and value != int(value)):
        raise ConfigError(expected, field=field)
    return int(value) if whole else float(value)


Transport: TypeAlias = Literal["stdio", "http", "sse", "in_process"]
OriginKind: TypeAlias = Literal["code", "user", "project", "plugin"]

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_COLLECTIONS = ("env", "headers", "output_schemas", "args", "env_required", "allow_tools", "deny_tools", "labels")


@reports_misuse
@dataclass(frozen=True, slots=True)
class Origin:
    """The source of a server's configuration; an approval holds for one origin only."""

    kind: OriginKind = "code"
    detail: str = ""
    """The file's path, or the plugin's name."""

    def __str__(self) -> str:
        return f"{self.kind} ({self.detail})" if self.detail else self.kind


@reports_misuse
@dataclass(frozen=True, slots=True, repr=False)
class OAuth:
    """How to sign in to an HTTP server; fields left out are discovered."""

    client_id: str | None = None
    client_secret: str | None = None
    """A reference such as `${SECRET}`."""
    scopes: tuple[str, ...] = ()
    redirect_port: int | None = None

    def __post_init__(self) -> None:
        _freeze(self, "scopes")

    def __repr__(self) -> str:
        """Without the secret, which may be literal."""
        secret = "" if self.client_secret is None else ", client_secret=***"
        scopes, port = [*self.scopes] if isinstance(self.scopes, tuple) else self.scopes, self.redirect_port  # pyright: ignore[reportUnnecessaryIsInstance]
        return f"OAuth(client_id={self.client_id!r}{secret}, scopes={scopes!r}, redirect_port={port!r})"


@reports_misuse
@dataclass(frozen=True, slots=True, repr=False)
class ServerConfig:
    """One MCP server: made by a factory such as `ServerConfig.stdio`, or read from a file by `load_config`.

    Raises:
        ConfigError: a field is invalid.
    """

    name: str
    """1 to 64 of a-z, 0-9, "-" and "_"; its module is `host:mcp-<name>`."""
    transport: Transport
    command: str | None = None
    """The executable of a stdio server."""
    args: tuple[str, ...] = ()
    cwd: str | None = None
    """The working directory; by default this program's."""
    env: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    env_required: tuple[str, ...] = ()
    """Variables that are forwarded under their own names."""
    inherit_env: bool = False
    """Whether the process gets all variables of this one."""
    unset_env: Literal["error", "empty"] = "error"
    """The effect of a reference to a variable that is not set."""
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    oauth: OAuth | None = None
    server: Any = None
    """In-process only: an `mcp.server` object."""
    allow_tools: tuple[str, ...] | None = None
    """Patterns of the tools to expose; None exposes all."""
    deny_tools: tuple[str, ...] = ()
    """Patterns of tools to hide; they win over `allow_tools`."""
    reading: Literal["intended", "literal"] = "intended"
    """How schemas are read: as their authors most likely intend, or to the letter (docs/generate-types.md)."""
    output_schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: _NOTHING)
    """JSON Schemas for the results of tools that have none, by the tools' own names."""
    labels: tuple[str, ...] = ()
    """`private`, `untrusted`, `external`, or `external:<tool>` for one tool: see `config.policy`."""
    connect_timeout: float | None = None
    """Seconds; None: `ServerLimits.connect_seconds`."""
    call_timeout: float | None = None
    """Seconds; None: `ServerLimits.call_seconds`."""
    display_name: str = ""
    """Its name in another tool's file, where that is no valid name."""
    description: str = ""
    enabled: bool = True
    """Whether the server may be connected."""
    origin: Origin = field(default_factory=Origin)

    def __post_init__(self) -> None:
        """Replace None by defaults, copy collections, and check all fields.

        Raises:
            ConfigError: lists everything that is wrong.
        """
        for each in fields(self):  # None is "not given"; name and transport have no default
            if getattr(self, each.name) is None and (default := _default(each)) is not MISSING:
                object.__setattr__(self, each.name, default)
        _freeze(self, *_COLLECTIONS)
        from toolbridge.config.fields import check_server

        check_server(self)

    def __repr__(self) -> str:
        """Names of variables and headers only: a literal value may be a secret. A URL may have one in its path."""
        args = list(masked_arguments(self.args))
        what = _place(self.url) if self.transport in ("http", "sse") else self.command
        return (
            f"ServerConfig(name={self.name!r}, transport={self.transport!r}, {what!r}, args={args!r}, "
            f"env={sorted(self.env)!r}, headers={sorted(self.headers)!r}, origin={str(self.origin)!r})"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> ServerConfig:
        """A copy with its own JSON Schemas; the rest is immutable, or the host's server object."""
        return replace(self, output_schemas=deepcopy(dict(self.output_schemas), memo))

    def with_origin(self, origin: Origin) -> ServerConfig:
        """A copy of the server with another origin, checked anew; approvals of this one don't apply to it."""
        return replace(self, origin=origin)

    @staticmethod
    @reports_misuse
    def stdio(name: str, command: str, args: Sequence[str] = (), **options: Unpack[ProcessOptions]) -> ServerConfig:
        """Configure a server that is started as a process; starts nothing yet.

        Raises:
            ConfigError: a field is invalid.
        """
        return _made(name=name, transport="stdio", command=command, args=args, **options)

    @staticmethod
    @reports_misuse
    def npm(name: str, package: str, args: Sequence[str] = (), **options: Unpack[ProcessOptions]) -> ServerConfig:
        """Configure a server from an npm package, started by `npx -y`, with a default description; starts nothing yet.

        A version (`pkg@1.2.3`) keeps it the same one.

        Raises:
            ConfigError: a field is invalid.
        """
        args = ("-y", _package(name, package), *_sequence(name, args))
        options["description"] = options.get("description") or f"MCP server: {package}"
        return _made(name=name, transport="stdio", command="npx", args=args, **options)

    @staticmethod
    @reports_misuse
    def uvx(name: str, package: str, args: Sequence[str] = (), **options: Unpack[ProcessOptions]) -> ServerConfig:
        """Configure a server from a Python package, started by `uvx`, with a default description; starts nothing yet.

        A version (`pkg==1.2.3`) keeps it the same one.

        Raises:
            ConfigError: a field is invalid.
        """
        args = (_package(name, package), *_sequence(name, args))
        options["description"] = options.get("description") or f"MCP server: {package}"
        return _made(name=name, transport="stdio", command="uvx", args=args, **options)

    @staticmethod
    @reports_misuse
    def http(name: str, url: str, **options: Unpack[RemoteOptions]) -> ServerConfig:
        """Configure a server that is reached by streamable HTTP; connects nothing yet.

        Raises:
            ConfigError: a field is invalid.
        """
        return _made(name=name, transport="http", url=url, **options)

    @staticmethod
    @reports_misuse
    def sse(name: str, url: str, **options: Unpack[RemoteOptions]) -> ServerConfig:
        """Configure a server that is reached by the older HTTP transport, server-sent events; connects nothing yet.

        Raises:
            ConfigError: a field is invalid.
        """
        return _made(name=name, transport="sse", url=url, **options)

    @staticmethod
    @reports_misuse
    def in_process(name: str, server: Any, **options: Unpack[CommonOptions]) -> ServerConfig:
        """Configure a server that is an object of this program.

        Raises:
            ConfigError: a field is invalid.
        """
        return _made(name=name, transport="in_process", server=server, **options)


def _made(**given: Any) -> ServerConfig:
    """Construct a server; the constructor converts sequences to tuples."""
    return ServerConfig(**given)


def checked_server(**given: Any) -> ServerConfig:
    """Construct a server from fields that `config.fields` has just checked, without a second check; raises nothing."""
    server = object.__new__(ServerConfig)
    for each in fields(ServerConfig):
        object.__setattr__(server, each.name, given.get(each.name, _default(each)))
    _freeze(server, *_COLLECTIONS)
    return server


def _default(field: Field[Any]) -> Any:
    """The default of a dataclass field, made anew by its factory; MISSING if it has none."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def _freeze(record: object, *names: str) -> None:
    """Copy mutable fields into tuples and read-only mappings, in place; other types are left as they are.

    So the approved configuration is the one that runs (TOCTOU).
    """
    for name in names:
        value: object = getattr(record, name)
        if isinstance(value, list):
            object.__setattr__(record, name, tuple(cast("list[object]", value)))
        elif isinstance(value, Mapping) and value is not _NOTHING:
            object.__setattr__(record, name, MappingProxyType(dict(cast("Mapping[object, object]", value))))


def _sequence(name: str, args: object) -> tuple[Any, ...]:
    """The arguments as a tuple, empty for None; ConfigError if they are no list or tuple."""
    if args is None:
        return ()
    if not isinstance(args, (list, tuple)):
        raise ConfigError("expected a list.", server=name, field="args")
    return tuple(cast("list[object] | tuple[object, ...]", args))


def _package(name: str, package: object) -> str:
    """Return the name of a package; ConfigError for an option of the command that fetches it, or white space."""
    if isinstance(package, str) and package and not package.startswith("-") and not any(map(str.isspace, package)):
        return package
    raise ConfigError("expected the name of a package.", server=name, field="package", fix="Arguments go into args.")


def _place(url: object) -> str | None:
    """A URL without user, path and query, to print; None if it is malformed."""
    try:
        parts = urlsplit(str(url))
        return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}/…"
    except ValueError:
        return None


# The keyword arguments of the factories of `ServerConfig`.


class CommonOptions(TypedDict, total=False):
    """Options of every server."""

    allow_tools: Sequence[str] | None
    deny_tools: Sequence[str] | None
    output_schemas: Mapping[str, Mapping[str, Any]] | None
    reading: Literal["intended", "literal"]
    labels: Sequence[str] | None
    connect_timeout: float | None
    call_timeout: float | None
    display_name: str | None
    description: str | None
    enabled: bool
    origin: Origin


class ProcessOptions(CommonOptions, total=False):
    """Options of a server that is started as a process."""

    cwd: str | None
    env: Mapping[str, str] | None
    env_required: Sequence[str] | None
    inherit_env: bool
    unset_env: Literal["error", "empty"]


class RemoteOptions(CommonOptions, total=False):
    """Options of a server that is reached by URL."""

    headers: Mapping[str, str] | None
    oauth: OAuth | None
    unset_env: Literal["error", "empty"]
